"""Factor that makes counts of data, for models whose noise is that of counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import short
from .arrays import with_values
from .border import check_real

# What the median entry of measured values counts as; see docs/guide/bayesian.md.
TYPICAL_COUNT = 2.0

AT_ONCE = 1 << 16
LARGEST_INTEGER = 2**53  # up to which floats hold all of them
_SMALL = 10.0  # times the smallest value: those on which a step is sought
_NEAR, _NEARER = 1e-2, 1e-3  # distances from an integer, in steps that are still rough, and final
_LEAST_STEP = 1e-3  # of the smallest value
_ROUNDINGS = 8  # rounding errors of a value that was multiplied once or twice


def check_count_scale(value: Any) -> float | None:
    """Return the factor, or None for "auto"."""
    if isinstance(value, str):
        if value == "auto":
            return None
        raise ValueError(f"count_scale must be 'auto' or a number above 0; got {short(value)}.")
    number = check_real(value, "count_scale")
    if number <= 0:
        raise ValueError(f"count_scale must be 'auto' or a number above 0; got {short(value)}.")
    return number


def find_count_scale(X: Any) -> float:
    """Return the factor c that makes counts of clean data; for any a > 0, that of a X is c / a.

    Where all entries are multiples of a common step, as counts are, times a constant or not, the
    step counts as 1.  Elsewhere the median of the entries above 0 counts as `TYPICAL_COUNT`.
    """
    return scale_of(PositiveValues(X))


def scale_of(values: PositiveValues) -> float:
    """Return the factor for data with these entries above 0."""
    if not values.summary().count:
        return 1.0
    step = common_step(values)
    scale = 1 / step if step is not None else TYPICAL_COUNT / values.median()
    if not np.isfinite(scale):
        raise ValueError(
            "X holds values too small to be brought to the scale of counts; multiply it, for "
            "example, by 1e100."
        )
    return scale


def scaled(X: Any, scale: float) -> Any:
    """Return scale * X, of the dtype of X; X itself where the factor is 1."""
    if scale == 1:
        return X
    if not sp.issparse(X):
        return X * scale
    return with_values(X, X.data * scale)


@dataclass(frozen=True)
class Summary:
    """Number and range of values, and the greatest common divisor if all of them are integers."""

    count: int
    smallest: float
    largest: float
    integers: bool
    divisor: int


class PositiveValues:
    """The entries of X above 0, as far as the choice of a scale asks for them."""

    def __init__(self, X: Any) -> None:
        values: Array = X.data if sp.issparse(X) else X.ravel()
        self._values = values[values > 0]
        self.dtype = values.dtype
        self._summary: Summary | None = None

    def summary(self) -> Summary:
        """Return what is known of all of them."""
        if self._summary is None:
            self._summary = self._summed_up()
        return self._summary

    def _summed_up(self) -> Summary:
        values = self._values
        if not len(values):
            return Summary(0, np.inf, 0.0, True, 0)
        smallest, largest, divisor = float(values.min()), float(values.max()), 0
        integers = all(np.array_equal(part, np.rint(part)) for part in self.parts())
        if integers and largest < LARGEST_INTEGER:
            divisor = int(np.gcd.reduce(values.astype(np.int64)))
        return Summary(len(values), smallest, largest, integers, divisor)

    def small(self, limit: float) -> Array:
        """Return the first of those that are no larger than a limit, in float64."""
        return self._values[self._values <= limit][:AT_ONCE].astype(np.float64)

    def median(self) -> float:
        return float(np.median(self._values))

    def agree(self, step: float, largest: float) -> bool:
        """Whether all that are no larger than `largest` are multiples of a step."""
        parts = (part[part <= largest] for part in self.parts())
        return all(not len(_off(part / step, _NEARER)) for part in parts)

    def parts(self) -> Iterator[Array]:
        """Yield the values in float64, some at a time."""
        for begin in range(0, len(self._values), AT_ONCE):
            yield self._values[begin : begin + AT_ONCE].astype(np.float64)


def common_step(values: PositiveValues) -> float | None:
    """Return the largest number of which all of the values are multiples, if there is one.

    Integers have their greatest common divisor.  Elsewhere it is found up to rounding, by Euclid's
    algorithm on the smaller values, and must be no small part of the smallest.
    """
    summary = values.summary()
    if summary.integers:
        return float(summary.divisor) if summary.largest < LARGEST_INTEGER else None
    smallest = summary.smallest
    small = values.small(_SMALL * smallest)
    step = smallest
    while len(rest := _off(small / step, _NEAR)):
        step *= float(rest.min())
        if step < _LEAST_STEP * smallest:
            return None
    step = float(small.sum() / np.rint(small / step).sum())  # one remainder is full of rounding
    # Beyond this multiple the fraction of a quotient is rounding error.
    largest = step * min(_NEARER / (_ROUNDINGS * float(np.finfo(values.dtype).eps)), 1e6)
    if values.median() > largest:  # too few tell: one tiny value is a step of itself
        return None
    return step if values.agree(step, largest) else None


def _off(quotients: Array, tolerance: float) -> Array:
    """Return the distances from an integer that are above a tolerance."""
    distances = np.abs(quotients - np.rint(quotients))
    return np.asarray(distances[distances > tolerance])
