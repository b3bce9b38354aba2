"""The scale of counts of data on a cluster: that of all data in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.count_scale import AT_ONCE, PositiveValues, Summary
from ._build import Given
from ._fit import Data
from ._waiting import result_of

_BITS, _DIGIT = 64, 16  # of a number, and of the part of it by which values are counted at a time


class BlockValues(PositiveValues):
    """The entries of a block above 0, on its worker."""

    def histogram(self, prefix: int, shift: int) -> Array:
        """Count values by some bits of them, from `shift` on, above which is a prefix.

        As integers, the bits of positive numbers are in the order of the numbers.
        """
        counts = np.zeros(1 << _DIGIT, dtype=np.int64)
        for part in self.parts():
            bits = part.view(np.uint64) >> np.uint64(shift)
            mine = bits[bits >> np.uint64(_DIGIT) == np.uint64(prefix)]
            last = (mine & np.uint64(len(counts) - 1)).astype(np.int64)
            counts += np.bincount(last, minlength=len(counts))
        return counts


class ClusterValues(PositiveValues):
    """The entries above 0 of data on a cluster."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self.dtype = data.dtype
        self._summary: Summary | None = None

    def _summed_up(self) -> Summary:
        summary: Summary = self._asked(_both, "summary")
        return summary

    def small(self, limit: float) -> Array:
        return np.asarray(self._asked(_first, "small", limit))

    def agree(self, step: float, largest: float) -> bool:
        return bool(self._asked(_and, "agree", step, largest))

    def median(self) -> float:
        count = self.summary().count
        middle = {(count - 1) // 2, count // 2}
        return float(np.mean(np.array([self._ranked(i) for i in middle], dtype=self.dtype)))

    def _ranked(self, rank: int) -> float:
        """Return the value that a number of others precede, found from its first bits on."""
        prefix = 0
        for shift in range(_BITS - _DIGIT, -1, -_DIGIT):
            below = np.cumsum(self._asked(_sum, "histogram", prefix, shift))
            digit = int(np.searchsorted(below, rank, side="right"))
            rank -= int(below[digit - 1]) if digit else 0
            prefix = prefix << _DIGIT | digit
        return float(np.array(prefix, dtype=np.uint64).view(np.float64))

    def _asked(self, plus: Callable[[Any, Any], Any], query: str, *arguments: Any) -> Any:
        """Ask all blocks; answers are put together in the order of the blocks."""
        submit = self._data.client.submit
        parts = [submit(_answer, given, query, *arguments) for given in self._data.futures]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [submit(plus, *pair) for pair in pairs] + parts[len(parts) // 2 * 2 :]
        return result_of(self._data.client, parts[0])


def _answer(given: Given, query: str, *arguments: Any) -> Any:
    return getattr(BlockValues(given.X), query)(*arguments)


def _both(first: Summary, second: Summary) -> Summary:
    return Summary(
        first.count + second.count,
        min(first.smallest, second.smallest),
        max(first.largest, second.largest),
        first.integers and second.integers,
        math.gcd(first.divisor, second.divisor),
    )


def _first(first: Array, second: Array) -> Array:
    return np.concatenate([first, second])[:AT_ONCE]


def _sum(first: Array, second: Array) -> Array:
    return np.asarray(first + second)


def _and(first: bool, second: bool) -> bool:
    return first and second
