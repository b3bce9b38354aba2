"""Variational Bayes on a cluster: the steps of the caller, posteriors of S, the scale of counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.arrays import on_disk_error
from .._data.border import check_factor
from .._data.count_scale import AT_ONCE, PositiveValues, Summary, scale_of, scaled
from .._models.variational import Parameters, VariationalFit, counts_of, variational_fit
from .._models.variational_problem import (
    Counts,
    GammaPrior,
    LabelPrior,
    Posterior,
    PosteriorSums,
    VariationalSteps,
)
from .._solver.known import Known
from .._solver.losses import KULLBACK_LEIBLER
from ._block import UPDATES_OF_LOST_ROWS, Block, BlockInput, Plan, copy_of_rows
from ._cluster import Blocks, reduce_tasks
from ._data import Data, count_threads, load
from ._fit import ClusterFit, begin, pcg64_of
from ._rows import BlockStatistics, Order, Rows, aligned_copy, with_title

_BITS, _DIGIT = 64, 16  # of a number, and of the part of it by which values are counted at a time


@dataclass(frozen=True, kw_only=True)
class PosteriorOrder(Order):
    """An update of the posterior where it moves, and the sums to return then.

    The rates are those of the update; without one, of the last, with which lost rows are found
    again.  `scales` are what the components of the start are to be multiplied by.
    """

    prior_shape: float
    rates: Array
    scales: Array
    logs: bool = False
    asks: tuple[str, ...] = ()  # for "P", "bound" or "constant"

    def find_again(self, block: Block, others: Mapping[str, Array]) -> Rows:
        """Find the posterior again: its part of the bound has one maximum, given A."""
        S = padded(np.ones((block.n_rows, block.rank)), block.dtype)
        counts = Counts(block.relations[0])
        posterior = Posterior(S, block.rank, block.relations[0].term.threads)
        for _ in range(UPDATES_OF_LOST_ROWS):
            self._update(posterior, counts, others["A"])
        return Rows(S, posterior.E, posterior)

    def obey(self, block: Block, rows: Rows, others: Mapping[str, Array]) -> BlockStatistics:
        A, counts = others["A"], Counts(block.relations[0])
        if rows.posterior is None:  # these are the rows of the start
            rows.scale(self.scales)
            rows.posterior = Posterior(rows.S, block.rank, block.relations[0].term.threads)
            rows.posterior.add_up()
            rows.before = rows.posterior.E
        S = rows.posterior
        if rows.number < self.number:
            self._update(S, counts, A)
            rows.number = self.number
        sums: dict[str, Any] = {"S": S.sums.copy(), "logs": S.log_sum}
        if "P" in self.asks:
            sums["P"] = counts.P("A", A, S.F)
        if "bound" in self.asks:
            sums["loss"] = counts.loss(S.F, A)
            sums["bound"] = S.bound(self.prior_shape)
        if "constant" in self.asks:
            sums["constant"] = counts.constant()
        return BlockStatistics(sums)

    def _update(self, S: Posterior, counts: Counts, A: Array) -> None:
        S.update(counts.P("S", S.F, A), self.prior_shape, self.rates, self.logs)


class DistantPosterior(PosteriorSums):
    """What is known of the posterior of S, whose rows are on the workers."""

    entries_bound = 0.0

    def bound(self, prior_shape: float) -> float:
        return self.entries_bound


class ClusterVariationalSteps(VariationalSteps):
    """The steps for counts on the workers: an update of S returns the P of A for the next one."""

    S: DistantPosterior

    def __init__(
        self,
        blocks: Blocks,
        scales: Array,
        S: DistantPosterior,
        A: Posterior,
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
    ) -> None:
        self._blocks, self._scales = blocks, scales
        S.set_rates(priors["S"].expectations)
        self.S, self.A, self.priors = S, A, priors
        sums = self._ask(asks=("P", "constant"))
        self._P, self._constant = aligned_copy(sums["P"]), float(sums["constant"])
        super().__init__(S, A, priors, burn_in)

    def _order(self, **what: Any) -> PosteriorOrder:
        """Return an order for the rows as they are; `what` changes it."""
        return PosteriorOrder(
            number=self._blocks.number,
            names=("A",),
            prior_shape=self.priors["S"].shape,
            rates=self.S.rates[:, : self.S.rank],
            scales=self._scales,
            **what,
        )

    def _ask(self, **what: Any) -> dict[str, Any]:
        sums = self._blocks.obey(self._order(**what), {"A": self.A.F}).sums
        self.S.sums = sums["S"]
        return sums

    def P_of_A(self) -> Array:
        return self._P

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        self._blocks.number += 1
        self.S.set_rates(rates)
        sums = self._ask(moves=True, logs=logs, asks=("P",))
        self.S.log_sum, self._P = float(sums["logs"]), aligned_copy(sums["P"])

    def bound_of_counts(self) -> float:
        sums = self._ask(asks=("bound",))
        self.S.entries_bound = float(sums["bound"])
        return self._constant - float(sums["loss"])

    def rows(self) -> list[Any]:
        """Return futures of the expectations of the rows of S."""
        return self._blocks.read(self._order(), copy_of_rows, {"A": self.A.F})


def fit_variational(
    X: Data, *, init: Any, random_state: Any, n_threads: int | None, **parameters: Any
) -> VariationalFit:
    """Fit the model to data on a cluster; S, and the groups of its rows, are dask arrays."""
    checked = Parameters(**parameters)
    threads = count_threads(n_threads)
    rng, rank = pcg64_of(random_state), checked.rank
    by_name = isinstance(init, str)
    if not by_name and (not isinstance(init, (tuple, list)) or len(init) != 2 or init[0] is None):
        raise ValueError(f"init must be the name of a start, or (S, A); got {init!r:.100}.")
    data = load(X.client, X, threads, S=None if by_name else init[0])
    if data.on_disk:
        raise on_disk_error("BayesianNMF")
    scale = checked.count_scale or scale_of(ClusterValues(data))
    titles = [(f"block {position}",) for position in data.positions]
    data = replace(data, futures=data.start(_as_counts, scale, parts=titles))
    plan = Plan(rank, (KULLBACK_LEIBLER, KULLBACK_LEIBLER), 1.0, data.lengths, threads)
    with ClusterFit(data, plan) as fit:
        if by_name:
            A, means, scales = begin(fit, init, rng, Known())
        else:
            shape = rank, data.shape[1]
            A = check_factor(init[1], "init[1] (A)", shape, data.dtype, "components x features")
            A, means, scales = scaled(A, scale), fit.begin()[0], np.ones(rank)
        A = A.astype(data.dtype)
        of_A = Posterior(padded(A.T, data.dtype), rank, threads)
        of_S = DistantPosterior(data.shape[0], rank, 1, of_A.F.shape[1])
        sizes = float(means.mean()), float(A.mean(dtype=np.float64))
        model = of_S, of_A, checked.priors(scale, None, *sizes), checked.burn_in
        steps = ClusterVariationalSteps(fit, scales, *model)
        run = checked.loop.run(steps, lambda: steps.show(scale), checked.burn_in)
        S = data.array(steps.rows(), rank, data.dtype)
        groups = da.zeros(data.shape[0], dtype=np.int32, chunks=(tuple(data.rows),))
        return variational_fit(steps, run, scale, S, groups)


def _as_counts(given: BlockInput, title: str, scale: float) -> BlockInput:
    """Return what was given for a block, as counts."""
    if not sp.issparse(given.X) and np.isnan(given.X.max()):
        raise ValueError(
            f"{title}: X must not contain NaN: BayesianNMF takes no missing entries. Fill them, or "
            "leave out their rows."
        )
    return replace(given, X=with_title(title, counts_of, given.X, scale))


class BlockValues(PositiveValues):
    """The entries of a block above 0, on its worker."""

    def histogram(self, prefix: int, shift: int) -> Array:
        """Count values by some bits of them, from `shift` on, above which is a prefix."""
        counts = np.zeros(1 << _DIGIT, dtype=np.int64)
        for part in self.parts():
            bits = (part.view(np.int64) >> shift) - (prefix << _DIGIT)
            mine = bits[(bits >= 0) & (bits < len(counts))]
            counts += np.bincount(mine, minlength=len(counts))
        return counts


class ClusterValues(PositiveValues):
    """The entries above 0 of data on a cluster: its scale of counts is that of data in memory."""

    def __init__(self, data: Data) -> None:
        self._data, self.dtype = data, data.dtype
        self._summary = self._ask(_both, "summary")

    def small(self, limit: float) -> Array:
        first = self._ask(lambda a, b: np.concatenate([a, b])[:AT_ONCE], "small", limit)
        return np.asarray(first)

    def agree(self, step: float, largest: float) -> bool:
        return bool(self._ask(operator.and_, "agree", step, largest))

    def median(self) -> float:
        count = self.summary().count
        middle = {(count - 1) // 2, count // 2}
        return float(np.mean(np.array([self._ranked(i) for i in middle], dtype=self.dtype)))

    def _ranked(self, rank: int) -> float:
        """Return the value that a number of others precede, found from its first bits on."""
        prefix = 0  # as integers, the bits of positive numbers are in their order
        for shift in range(_BITS - _DIGIT, -1, -_DIGIT):
            below = np.cumsum(self._ask(operator.add, "histogram", prefix, shift))
            digit = int(np.searchsorted(below, rank, side="right"))
            rank -= int(below[digit - 1]) if digit else 0
            prefix = prefix << _DIGIT | digit
        return float(np.array(prefix, dtype=np.uint64).view(np.float64))

    def _ask(self, plus: Callable[[Any, Any], Any], query: str, *arguments: Any) -> Any:
        """Ask all blocks; answers are put together in the order of the blocks."""
        answers = self._data.start(_answer, query, *arguments)
        return reduce_tasks(self._data.client, answers, plus)


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
