"""Factor that turns data into counts, for models with noise of counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._common.text import short
from .arrays import with_values
from .border import check_real

# Count of the median entry of measured values; see docs/guide/bayesian.md.
TYPICAL_COUNT = 2.0

AT_ONCE = 1 << 16
LARGEST_INTEGER = 2**53  # up to which floats hold all of them
_SMALL = 10.0  # times the smallest value: values that determine a step
_NEAR, _NEARER = 1e-2, 1e-3  # distances from an integer, in rough and in final steps
_LEAST_STEP = 1e-3  # of the smallest value
_ROUNDINGS = 8  # rounding errors of a value after one or two multiplications


def check_count_scale(value: object) -> float | None:
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str) or (number := check_real(value, "count_scale")) <= 0:
        raise ValueError(f"count_scale must be 'auto' or a number above 0; got {short(value)}.")
    return number


# ask(plus, task, *numbers) calls a task with X, or with each block, whose answers are added.
Ask: TypeAlias = Callable[..., Any]
_MERGES: tuple[Callable[..., Any], ...] = (operator.add, min, max, operator.and_, math.gcd)


def find_count_scale(X: Matrix) -> float:
    """Return the factor c that turns clean data into counts; for a > 0, that of a X is c / a.

    A common step of all entries becomes 1; without one, the median above 0 becomes `TYPICAL_COUNT`.
    """
    step = common_step(lambda plus, task, *arguments: task(X, *arguments), X.dtype)
    if step is None:
        step = float(np.median(positive_values(X))) / TYPICAL_COUNT
    return scale_of_step(step)


def scale_of_step(step: float) -> float:
    scale = 1 / step if step > 0 else np.inf
    if not np.isfinite(scale):
        raise ValueError("X has values too small to be scaled to counts; multiply it by 1e100.")
    return scale


def scaled(X: Matrix, scale: float) -> Matrix:
    if scale == 1:
        return X
    return with_values(X, np.asarray(X.data) * scale) if sp.issparse(X) else X * scale


class Summary(NamedTuple):
    """The values above 0; `divisor` is the greatest common divisor of integers."""

    size: int
    smallest: float
    largest: float
    integers: bool
    divisor: int

    def plus(self, other: Summary) -> Summary:
        return Summary(*(merge(a, b) for merge, a, b in zip(_MERGES, self, other, strict=True)))


def positive_values(X: Matrix) -> Array:
    values = np.ravel(X.data if sp.issparse(X) else X)
    return values[values > 0]


def summarize(X: Matrix) -> Summary:
    values = positive_values(X)
    if not len(values):
        return Summary(0, np.inf, 0.0, True, 0)
    smallest, largest = float(values.min()), float(values.max())
    integers = _are_multiples(values, 1.0, 0.0)
    whole = integers and largest < LARGEST_INTEGER
    divisor = int(np.gcd.reduce(values.astype(np.int64))) if whole else 0
    return Summary(len(values), smallest, largest, integers, divisor)


def small_values(X: Matrix, limit: float) -> Array:
    """Return the first entries above 0 and up to a limit, in float64."""
    values = positive_values(X)
    return values[values <= limit][:AT_ONCE].astype(np.float64)


def count_multiples(X: Matrix, step: float, largest: float) -> Array:
    """Return the number of entries up to `largest`, and whether any is not a multiple of a step."""
    values = positive_values(X)
    values = values[values <= largest]
    return np.array([len(values), not _are_multiples(values, step, _NEARER)])


def _are_multiples(values: Array, step: float, tolerance: float) -> bool:
    begins = range(0, len(values), AT_ONCE)
    parts = (values[begin : begin + AT_ONCE].astype(np.float64) for begin in begins)
    return all(not len(_off(part / step, tolerance)) for part in parts)


def common_step(ask: Ask, dtype: np.dtype[Any]) -> float | None:
    """Return the largest number that divides all values, or None.

    For integers it is the greatest common divisor (1 without values).  Otherwise it comes from
    Euclid's algorithm on small values, up to rounding, and is not much below the smallest.
    """
    summary: Summary = ask(Summary.plus, summarize)
    if summary.integers:
        return float(summary.divisor or 1) if summary.largest < LARGEST_INTEGER else None
    smallest = summary.smallest
    small = ask(lambda a, b: np.concatenate([a, b])[:AT_ONCE], small_values, _SMALL * smallest)
    step = smallest
    while len(rest := _off(small / step, _NEAR)):
        step *= float(rest.min())
        if step < _LEAST_STEP * smallest:
            return None
    step = float(small.sum() / np.rint(small / step).sum())  # one remainder is inexact
    # Above this multiple the fraction of a quotient is rounding error.
    largest = step * min(_NEARER / (_ROUNDINGS * float(np.finfo(dtype).eps)), 1e6)
    n_compared, n_others = ask(operator.add, count_multiples, step, largest)
    if 2 * n_compared <= summary.size:  # one tiny value is a step of itself
        return None
    return None if n_others else step


def _off(quotients: Array, tolerance: float) -> Array:
    """Return the distances from an integer that are above a tolerance."""
    distances = np.abs(quotients - np.rint(quotients))
    return np.asarray(distances[distances > tolerance])
