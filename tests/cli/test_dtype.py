"""The dtype of the fits of the command."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from command import Result, run, write_lines
from labeled_texts import MONEY, PETS


@pytest.fixture
def texts() -> Any:
    return write_lines("texts.csv", ["text", *PETS, *MONEY])


def fitted(data: object, options: str = "") -> Result:
    """Return a fit, whose settings tell of its dtype."""
    found = run(f"fit {data} --rank 2 --out out {options}")
    assert found.json()["settings"]["dtype"] == found.model.components_.dtype.name
    assert "dtype" in found.read()
    return found


def test_texts(texts: Any) -> None:
    found = fitted(texts)
    assert "dtype float32" in found.out
    assert (found.model.dtype, found.model.components_.dtype) == ("float32", np.float32)
    run(f"verify out {texts}")
    run(f"predict out {texts} --out p.csv")
    found = fitted(texts, "--dtype float64")
    assert "dtype float64" in found.out
    assert found.model.components_.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_matrices(dtype: Any) -> None:
    np.save("X.npy", np.random.default_rng(0).poisson(3.0, (20, 10)).astype(dtype))
    kept = np.float32 if dtype == np.float32 else np.float64
    assert fitted("X.npy").model.components_.dtype == kept
    assert fitted("X.npy", "--dtype float32").model.components_.dtype == np.float32


def test_other_dtypes_are_refused(texts: Any) -> None:
    assert "invalid choice: 'float16'" in run(f"fit {texts} --dtype float16", code=2).err
