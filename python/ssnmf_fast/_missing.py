"""Missing labels: None, NaN and pandas.NA."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth; arrays are refused later
        return not isinstance(value, np.ndarray)


def missing(labels: Array) -> Array:
    """Return which labels are missing."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "O":
        return np.fromiter(map(is_missing, labels), dtype=bool, count=len(labels))
    return np.zeros(len(labels), dtype=bool)
