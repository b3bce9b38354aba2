"""Weights of the targets: what the caller gave, and 0 for unlabelled samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.checks import as_array, unmasked
from .._solver.weights import Entrywise, Outer, as_weights


def combined_weights(given: Any, labelled: Array, shape: tuple[int, int]) -> Any:
    """Return the weights of Y: what the caller gave, and 0 in unlabelled rows."""
    if given is None and labelled.all():
        return None
    weights = as_weights(given, "y_weights")
    if isinstance(weights, Entrywise):
        array = as_array(unmasked(given, "y_weights", allow_nan=False), "y_weights")
        if array.ndim == 1:
            return _of_samples(array, labelled)
        if array.shape != shape:
            raise ValueError(
                f"y_weights has shape {array.shape}; expected {shape[:1]} for weights of the "
                f"samples, or {shape}, one for each entry of the target matrix."
            )
    return weights.with_rows(labelled.astype(np.float64), "y_weights")


def _of_samples(array: Array, labelled: Array) -> Outer:
    if array.shape != labelled.shape:
        raise ValueError(f"y_weights has shape {array.shape}; expected {labelled.shape}.")
    return Outer(array, None).with_rows(labelled.astype(np.float64), "y_weights")
