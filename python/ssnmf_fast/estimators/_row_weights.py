"""Weights of samples on top of weights of entries."""

from __future__ import annotations

from typing import Any

from .._common.arrays import Array
from .._solver.weights import as_weights


def with_row_weights(given: Any, rows: Array) -> Any:
    """Return X_weights with every row multiplied by a number >= 0."""
    if (rows == 1).all():
        return given
    return as_weights(given, "X_weights").with_rows(rows, "X_weights")
