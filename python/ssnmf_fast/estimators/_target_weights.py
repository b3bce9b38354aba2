"""Weights of the targets: what the caller gave, and 0 for unlabelled samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .. import weights
from .._csr import scaled_rows
from .._validation import as_array, pattern_csr, unmasked

Array = npt.NDArray[Any]


def combined_weights(given: Any, labelled: Array, shape: tuple[int, int]) -> Any:
    """Return the weights of Y: what the caller gave, and 0 in unlabelled rows."""
    if given is None:
        return None if labelled.all() else weights.outer(rows=labelled.astype(np.float64))
    if isinstance(given, weights.Outer):
        rows = labelled.astype(np.float64) if given.rows is None else given.rows
        return weights.outer(_masked(rows, labelled, "y_weights.rows"), given.columns)
    if isinstance(given, weights.Observed):
        return weights.observed(_rows_kept(given.pattern, labelled, shape))
    if isinstance(given, weights.Missing):
        rest = sp.csr_array(np.repeat(~labelled[:, None], shape[1], axis=1))
        return weights.missing(_rows_kept(given.pattern, labelled, shape) + rest.astype(float))
    if sp.issparse(given):
        raise TypeError(
            "y_weights is a sparse matrix, which can be read in two ways: give "
            "weights.observed(pattern) if all other entries weigh 0, weights.missing(pattern) if "
            "its entries are the missing ones."
        )
    array = as_array(unmasked(given, "y_weights", allow_nan=False), "y_weights")
    if array.ndim == 1:
        return weights.outer(rows=_masked(array, labelled, "y_weights"))
    if array.shape != shape:
        raise ValueError(
            f"y_weights has shape {array.shape}; expected {shape[:1]} for weights of the samples, "
            f"or {shape}, one for each entry of the target matrix."
        )
    return np.where(labelled[:, None], array, 0)


def _masked(rows: Any, labelled: Array, name: str) -> Array:
    rows = np.asarray(rows)
    if rows.shape != labelled.shape:
        raise ValueError(f"{name} has shape {rows.shape}; expected {labelled.shape}.")
    return np.where(labelled, rows, 0)


def _rows_kept(pattern: Any, labelled: Array, shape: tuple[int, int]) -> Any:
    """Return a pattern without its entries in unlabelled rows."""
    csr = pattern_csr(pattern, "y_weights").astype(np.float64)
    if csr.shape != shape:
        raise ValueError(f"The pattern of y_weights has shape {csr.shape}; expected {shape}.")
    return scaled_rows(csr, labelled.astype(np.float64))
