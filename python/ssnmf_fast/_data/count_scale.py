"""Factor that turns data into counts, for models with noise of counts."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._common.text import short
from .arrays import with_values
from .border import check_real

# Count of the median entry of measured values; see docs/guide/bayesian.md.
TYPICAL_COUNT = 2.0

_AT_ONCE = 1 << 16
_LARGEST_INTEGER = 2**53  # up to which floats hold all of them


def check_count_scale(value: object) -> float | None:
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str) or (number := check_real(value, "count_scale")) <= 0:
        raise ValueError(f"count_scale must be 'auto' or a number above 0; got {short(value)}.")
    return number


def find_count_scale(X: Matrix) -> float:
    """Return the factor that turns clean data into counts.

    The greatest common divisor of integers becomes 1; otherwise the median above 0 becomes
    `TYPICAL_COUNT`.
    """
    divisor = common_divisor(X)
    if divisor is None:
        step = float(np.median(_positive_values(X))) / TYPICAL_COUNT
    else:
        step = divisor or 1
    scale = 1 / step if step > 0 else np.inf
    if not np.isfinite(scale):
        raise ValueError("X has values too small to be scaled to counts; multiply it by 1e100.")
    return scale


def scaled(X: Matrix, scale: float) -> Matrix:
    if scale == 1:
        return X
    return with_values(X, np.asarray(X.data) * scale) if sp.issparse(X) else X * scale


def _positive_values(X: Matrix) -> Array:
    values = np.ravel(X.data if sp.issparse(X) else X)
    return values[values > 0]


def common_divisor(X: Matrix) -> int | None:
    """Return the greatest common divisor of entries that all are integers, or None.

    Without an entry above 0 it is 0.
    """
    values, divisor = _positive_values(X), 0
    for begin in range(0, len(values), _AT_ONCE):
        part = values[begin : begin + _AT_ONCE]
        if part.max() >= _LARGEST_INTEGER or np.any(part != np.rint(part)):
            return None
        divisor = math.gcd(divisor, int(np.gcd.reduce(part.astype(np.int64))))
    return divisor
