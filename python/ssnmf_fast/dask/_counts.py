"""Counts on a cluster: their scale, and the posteriors of the rows of S, on their workers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import check_matrix
from .._data.count_scale import AT_ONCE, PositiveValues, Summary
from .._models.variational import counts_of
from .._models.variational_priors import Posterior
from .._models.variational_problem import Counts
from ._block import UPDATES_OF_LOST_ROWS, Block, Rows
from ._build import BlockInput
from ._cluster import reduce_tasks
from ._data import Data
from ._rows import BlockStatistics, Kept, Order, aligned_copy, with_title

_BITS, _DIGIT = 64, 16  # of a number, and of the part of it by which values are counted at a time


def as_counts(given: BlockInput, scale: float, title: str) -> BlockInput:
    """Return what was given for a block, as counts."""
    return replace(given, X=with_title(title, _as_counts, given.X, scale))


def _as_counts(X: Any, scale: float) -> Any:
    if not sp.issparse(X) and np.isnan(X.max()):
        raise ValueError(
            "X must not contain NaN: BayesianNMF takes no missing entries. Fill them, or leave out "
            "their rows."
        )
    return counts_of(check_matrix(X, "X", allow_nan=False), scale)


@dataclass
class PosteriorRows(Kept):
    """The posterior of the rows of a block, and their counts, which the block has too."""

    posterior: Posterior
    counts: Counts | None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"counts": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in ("F", "E"):
            setattr(self.posterior, name, aligned_copy(getattr(self.posterior, name)))


@dataclass(frozen=True)
class PosteriorOrder(Order):
    """An update of the posterior, and the sums to return then.

    The rates are those of the update; without one, of the last, with which lost rows are found
    again.  `scale` is what the rows of the start are to be multiplied by.
    """

    prior_shape: float
    rates: Array
    scale: float
    updates: bool = False
    logs: bool = False
    asks: tuple[str, ...] = ()  # for "P", "bound" or "constant"

    @property
    def moves(self) -> bool:
        return self.updates

    def find_again(self, block: Block, others: Mapping[str, Array]) -> PosteriorRows:
        """Find the posterior again: its part of the bound has one maximum, given A."""
        S = padded(np.ones((block.n_rows, block.rank)), block.dtype)
        rows = self._rows(block, S)
        for _ in range(UPDATES_OF_LOST_ROWS):
            self._update(rows, others["A"])
        return rows

    def ready(self, block: Block, rows: Rows | PosteriorRows) -> PosteriorRows:
        if isinstance(rows, PosteriorRows):
            rows.counts = rows.counts or Counts(block.relations[0].term)
            return rows
        S = aligned_copy(rows.S)  # the start stays what it was for a task that runs again
        S *= S.dtype.type(self.scale)
        begun = self._rows(block, S)
        begun.posterior.add_up()
        return begun

    def _rows(self, block: Block, S: Array) -> PosteriorRows:
        term = block.relations[0].term
        posterior = Posterior(S, block.rank, term.threads)
        return PosteriorRows(posterior, Counts(term))

    def obey(
        self, block: Block, rows: PosteriorRows, others: Mapping[str, Array]
    ) -> BlockStatistics:
        S, counts, A = rows.posterior, rows.counts, others["A"]
        assert counts is not None
        if self.updates and rows.number < self.number:
            self._update(rows, A)
            rows.number = self.number
        sums: dict[str, Any] = {"S": S.sums.copy(), "logs": S.log_sum}
        if "P" in self.asks:
            sums["P"] = counts.P("A", A, S.F).copy()
        if "bound" in self.asks:
            sums["loss"] = counts.loss(S.F, A)
            sums["bound"] = S.bound(self.prior_shape)
        if "constant" in self.asks:
            sums["constant"] = counts.constant()
        return BlockStatistics(sums)

    def _update(self, rows: PosteriorRows, A: Array) -> None:
        S, counts = rows.posterior, rows.counts
        assert counts is not None
        S.update(counts.P("S", S.F, A), self.prior_shape, self.rates, self.logs)


def expectations(block: Block, rows: PosteriorRows) -> Array:
    """Return the expectations of the rows of S, (rows, r)."""
    return np.ascontiguousarray(rows.posterior.E[:, : block.rank])


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
    """The entries above 0 of data on a cluster: its scale of counts is that of data in memory."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self.dtype = data.dtype
        self._summary: Summary | None = None

    def _summed_up(self) -> Summary:
        summary: Summary = self._ask(_both, "summary")
        return summary

    def small(self, limit: float) -> Array:
        return np.asarray(self._ask(_first, "small", limit))

    def agree(self, step: float, largest: float) -> bool:
        return bool(self._ask(operator.and_, "agree", step, largest))

    def median(self) -> float:
        count = self.summary().count
        middle = {(count - 1) // 2, count // 2}
        return float(np.mean(np.array([self._ranked(i) for i in middle], dtype=self.dtype)))

    def _ranked(self, rank: int) -> float:
        """Return the value that a number of others precede, found from its first bits on."""
        prefix = 0
        for shift in range(_BITS - _DIGIT, -1, -_DIGIT):
            below = np.cumsum(self._ask(operator.add, "histogram", prefix, shift))
            digit = int(np.searchsorted(below, rank, side="right"))
            rank -= int(below[digit - 1]) if digit else 0
            prefix = prefix << _DIGIT | digit
        return float(np.array(prefix, dtype=np.uint64).view(np.float64))

    def _ask(self, plus: Callable[[Any, Any], Any], query: str, *arguments: Any) -> Any:
        """Ask all blocks; answers are put together in the order of the blocks."""
        submit = self._data.client.submit
        parts = [submit(_answer, given, query, *arguments) for given in self._data.futures]
        return reduce_tasks(self._data.client, parts, plus)


def _answer(given: BlockInput, query: str, *arguments: Any) -> Any:
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
