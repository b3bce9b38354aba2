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
from .._data.border import check_matrix
from .._data.checks import check_factor, check_random_state
from .._data.count_scale import AT_ONCE, PositiveValues, Summary, scale_of, scaled
from .._models.variational import Parameters, VariationalFit, counts_of, variational_fit
from .._models.variational_priors import GammaPrior, LabelPrior, Posterior, PosteriorSums
from .._models.variational_problem import Counts, VariationalSteps
from .._solver.beta_divergences import KULLBACK_LEIBLER
from ._block import UPDATES_OF_LOST_ROWS, Block
from ._build import BlockInput, Plan
from ._cluster import Blocks, reduce_tasks
from ._data import Data, count_threads, load
from ._fit import ClusterFit, begin, choose_start, to_pcg64
from ._rows import BlockStatistics, Order, Rows, aligned_copy, with_title

_BITS, _DIGIT = 64, 16  # of a number, and of the part of it by which values are counted at a time


@dataclass(frozen=True, kw_only=True)
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

    def find_again(self, block: Block, others: Mapping[str, Array]) -> Rows:
        """Find the posterior again: its part of the bound has one maximum, given A."""
        S = padded(np.ones((block.n_rows, block.rank)), block.dtype)
        posterior, counts = Posterior(S, block.rank, block.threads), Counts(block.relations[0])
        for _ in range(UPDATES_OF_LOST_ROWS):
            self._update(posterior, counts, others["A"])
        return Rows(S, posterior.E, posterior)

    def obey(self, block: Block, rows: Rows, others: Mapping[str, Array]) -> BlockStatistics:
        A, counts = others["A"], Counts(block.relations[0])
        if rows.posterior is None:  # these are the rows of the start
            rows.S *= rows.S.dtype.type(self.scale)
            rows.posterior = Posterior(rows.S, block.rank, block.threads)
            rows.posterior.add_up()
            rows.before = rows.posterior.E
        S = rows.posterior
        if self.updates and rows.number < self.number:
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


def _expectations(block: Block, rows: Rows) -> Array:
    return np.ascontiguousarray(rows.before[:, : block.rank])


class DistantPosterior(PosteriorSums):
    """What is known of the posterior of S, whose rows are on the workers."""

    entries_bound = 0.0

    def bound(self, prior_shape: float) -> float:
        return self.entries_bound


class ClusterVariationalSteps(VariationalSteps):
    """The steps for counts on the workers.

    An update of S returns at once the P of A, which the next iteration begins with.
    """

    S: DistantPosterior

    def __init__(
        self,
        blocks: Blocks,
        S: DistantPosterior,
        A: Posterior,
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
        scale: float,
    ) -> None:
        self._blocks, self._scale = blocks, scale
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
            scale=self._scale,
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
        sums = self._ask(updates=True, logs=logs, asks=("P",))
        self.S.log_sum, self._P = float(sums["logs"]), aligned_copy(sums["P"])

    def bound_of_counts(self) -> float:
        sums = self._ask(asks=("bound",))
        self.S.entries_bound = float(sums["bound"])
        return self._constant - float(sums["loss"])

    def rows(self) -> list[Any]:
        """Return futures of the expectations of the rows of S."""
        return self._blocks.read(self._order(), _expectations, (), {"A": self.A.F})

    def show(self) -> Mapping[str, Array | None]:
        """Return the factors for a callback."""
        return {"S": None, "A": self.A.E[:, : self.A.rank].T, "B": None}


def fit_variational(
    X: Data,
    *,
    init: Any,
    random_state: Any,
    n_threads: int | None,
    **parameters: Any,
) -> VariationalFit:
    """Fit the model to data on a cluster; S, and the groups of its rows, are dask arrays."""
    checked = Parameters(**parameters)
    threads = count_threads(n_threads)
    rng, rank = to_pcg64(check_random_state(random_state)), checked.rank
    named = isinstance(init, str)
    if not named and (not isinstance(init, (tuple, list)) or len(init) != 2 or init[0] is None):
        raise ValueError(f"init must be the name of a start, or (S, A); got {init!r:.100}.")
    data = load(X.client, X, threads, S=None if named else init[0])
    if data.on_disk:
        raise TypeError(
            "X must be in the memory of the workers for BayesianNMF; got blocks on disk. Give "
            "delayed objects that read them, or use ssnmf_fast.dask.NMF."
        )
    name = choose_start(init, KULLBACK_LEIBLER, data.on_disk) if named else ""
    scale = checked.count_scale or scale_of(ClusterValues(data))
    counts = [
        data.client.submit(_as_counts, given, scale, f"block {position}", pure=False)
        for given, position in zip(data.futures, data.positions, strict=True)
    ]
    data = replace(data, futures=counts)
    plan = Plan(rank, (KULLBACK_LEIBLER, KULLBACK_LEIBLER), 1.0, data.lengths)
    with ClusterFit(data, plan, threads) as fit:
        if named:
            A, means, start_scale = begin(fit, name, rng, threads)
        else:
            shape = rank, data.shape[1]
            A = check_factor(init[1], "init[1] (A)", shape, data.dtype, "components x features")
            A, means, start_scale = scaled(A, scale), fit.begin()[0], 1.0
        A = A.astype(data.dtype)
        of_A = Posterior(padded(A.T, data.dtype), rank, threads)
        of_S = DistantPosterior(data.shape[0], rank, 1, of_A.F.shape[1])
        sizes = float(means.mean()), float(A.mean(dtype=np.float64))
        priors = checked.priors(scale, None, *sizes)
        steps = ClusterVariationalSteps(
            fit.blocks, of_S, of_A, priors, checked.burn_in, start_scale
        )
        run = checked.seen_in_units(scale).run(steps, steps.show, checked.burn_in)
        S = data.array(steps.rows(), rank, data.dtype)
        groups = da.zeros(data.shape[0], dtype=np.int32, chunks=(tuple(data.rows),))
        return variational_fit(steps, run, scale, S, groups)


def _as_counts(given: BlockInput, scale: float, title: str) -> BlockInput:
    """Return what was given for a block, as counts."""

    def made(X: Any) -> Any:
        if not sp.issparse(X) and np.isnan(X.max()):
            raise ValueError(
                "X must not contain NaN: BayesianNMF takes no missing entries. Fill them, or "
                "leave out their rows."
            )
        return counts_of(check_matrix(X, "X", allow_nan=False), scale)

    return replace(given, X=with_title(title, made, given.X))


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
