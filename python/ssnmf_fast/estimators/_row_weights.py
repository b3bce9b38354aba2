"""Weights of samples on top of weights of entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .. import weights
from .._csr import scaled_rows
from .._validation import as_array, pattern_csr, unmasked

Array = npt.NDArray[Any]


def with_row_weights(given: Any, rows: Array) -> Any:
    """Return X_weights with every row multiplied by a number >= 0."""
    if (rows == 1).all():
        return given
    if given is None:
        return weights.outer(rows=rows)
    if isinstance(given, weights.Outer):
        if given.rows is None:
            return weights.outer(rows, given.columns)
        fits = np.shape(given.rows) == rows.shape  # else refused where all shapes are checked
        return weights.outer(rows * given.rows, given.columns) if fits else given
    if isinstance(given, weights.Missing):
        raise ValueError(
            "X_weights are weights.missing(...), which weights of samples cannot be combined with. "
            "Mark missing entries by NaN in a dense X, give weights.observed(...), or set "
            "labelled_weight=1."
        )
    if isinstance(given, weights.Observed):
        pattern = pattern_csr(given.pattern, "X_weights")
        if pattern.shape[0] != len(rows):
            return given
        return weights.observed(scaled_rows(pattern, rows))
    if sp.issparse(given):
        return given
    array = as_array(unmasked(given, "X_weights", allow_nan=False), "X_weights")
    return array * rows[:, None] if array.ndim == 2 and len(array) == len(rows) else given
