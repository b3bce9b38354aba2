"""Texts of two classes, and the command that fits a model to them."""

from __future__ import annotations

from pathlib import Path

from ssnmf_fast.cli import main

PETS = ["cat dog pet", "cats dogs pet", "dog cat mat", "pet cat vet", "dog vet pet"] * 2
MONEY = ["stock bank", "bank price stock", "price market", "market bank", "bank stock"] * 2
PAGE = "<i>page</i>"  # a class whose name needs care in HTML


def fit(data: Path, model: str, out: Path, *more: str, rank: str | None = "2") -> int:
    size = [] if rank is None or model in ("ts-nmf", "few-labels") else ["--rank", rank]
    given = ["--model", model, "--out", str(out), "--min-df", "1", *size]
    return main(["fit", str(data), *given, *more])
