"""The option ``--explain`` of ``ssnmf-fast predict``: terms that speak for a prediction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run, write_lines
from labeled_texts import MONEY, PAGE, PETS

WORDS = {PAGE: set(" ".join(PETS).split()), "money": set(" ".join(MONEY).split())}
FIT = "--min-df 1 --rank 2 --out out"


@pytest.fixture(autouse=True)
def new() -> Path:
    return write_lines("new.csv", ["text", "a cat and a dog", "the bank and its stock price"])


@pytest.mark.slow
def test_terms_of_the_predicted_class(single: Path) -> None:
    run(f"fit {single} --labels kind --model ssnmf {FIT}")
    for ending in (".csv", ".jsonl"):
        found = run(f"predict out new.csv --explain --out result{ending}")
        if ending == ".csv":
            rows = found.rows()
        else:
            rows = [json.loads(line) for line in found.path.read_text("utf-8").splitlines()]
        assert [row["prediction"] for row in rows] == [PAGE, "money"]
        for row, count in zip(rows, (2, 3), strict=True):
            terms = row["terms"].split(", ")
            assert len(terms) == count
            assert set(terms) <= WORDS[row["prediction"]]
    assert "terms" not in run("predict out new.csv --out result.csv").rows()[0]


def test_a_model_of_topics_alone(single: Path) -> None:
    run(f"fit {single} --labels kind --model ssnmf --readout refit {FIT}")
    found = run("predict out new.csv --explain --out result.csv")
    assert "no term supports a prediction" in found.err
    assert found.column("terms") == ["", ""]


def test_a_model_without_labels(single: Path) -> None:
    run(f"fit {single} --model nmf {FIT}")
    error = run("predict out new.csv --explain", code=2).error
    assert "--explain needs a model that predicts labels" in error
