"""The dtype of the fits of the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeled_texts import MONEY, PETS

import ssnmf_fast as sf
from ssnmf_fast.cli import main


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(["text", *PETS, *MONEY]) + "\n", encoding="utf-8")
    return path


def fitted(out: Path, capsys: Any, data: Path, *options: str) -> tuple[Any, str]:
    """Return the model of a fit, whose settings tell of its dtype, and what was printed."""
    given = ["fit", str(data), "--rank", "2", "--out", str(out), *options]
    assert main(given) == 0
    model = sf.load(out)
    settings = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["settings"]
    assert settings["dtype"] == model.components_.dtype.name
    assert "dtype" in (out / "report.html").read_text(encoding="utf-8")
    return model, capsys.readouterr().out


def test_texts(texts: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    model, printed = fitted(out, capsys, texts)
    assert "dtype float32" in printed
    assert (model.dtype, model.components_.dtype) == ("float32", np.float32)
    assert main(["verify", str(out), str(texts)]) == 0
    assert main(["predict", str(out), str(texts), "--out", str(tmp_path / "p.csv")]) == 0
    model, printed = fitted(out, capsys, texts, "--dtype", "float64")
    assert "dtype float64" in printed
    assert model.components_.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_matrices(dtype: Any, tmp_path: Path, capsys: Any) -> None:
    path, out = tmp_path / "X.npy", tmp_path / "out"
    np.save(path, np.random.default_rng(0).poisson(3.0, (20, 10)).astype(dtype))
    model, _ = fitted(out, capsys, path)
    assert model.components_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    model, _ = fitted(out, capsys, path, "--dtype", "float32")
    assert model.components_.dtype == np.float32


def test_other_dtypes_are_refused(texts: Path, capsys: Any) -> None:
    assert main(["fit", str(texts), "--dtype", "float16"]) == 2
    assert "invalid choice: 'float16'" in capsys.readouterr().err
