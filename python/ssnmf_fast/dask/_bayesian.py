"""Variational Bayes on a cluster: the steps of the caller, posteriors of S, the scale of counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._backend.dispatch import padded
from .._common.arrays import Array, Seed
from .._data.arrays import on_disk_error
from .._data.border import check_factor
from .._data.count_scale import common_step, scale_of_step, scaled
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
from ..estimators._bayesian import interval_ends
from ._cluster import reduce_tasks
from ._data import BlockInput, Blocks, ByRows, Data, count_threads, load, with_title
from ._estimators import OnCluster, Self, documented, lazy
from ._fit import ClusterFit, begin, pcg64_of
from ._rows import (
    UPDATES_OF_LOST_ROWS,
    Block,
    BlockStatistics,
    Factors,
    Plan,
    Rows,
    Step,
    aligned_copy,
    copy_rows,
)


@dataclass(frozen=True, kw_only=True)
class PosteriorStep(Step):
    """An update of the posterior where it moves, and the sums to return then.

    The rates are those of the update; without one, of the last, with which lost rows are
    recovered.  `scales` are what the components of the start are to be multiplied by.
    """

    prior_shape: float
    rates: Array
    scales: Array
    logs: bool = False
    asks: tuple[str, ...] = ()  # for "P", "bound" or "constant"

    def recover(self, block: Block, others: Factors) -> Rows:
        """Recover the posterior: its part of the bound has one maximum, given A."""
        S = padded(np.ones((block.n_rows, block.rank)), block.dtype)
        counts = Counts(block.relations[0].term)
        posterior = Posterior(S, block.rank, block.relations[0].term.threads)
        for _ in range(UPDATES_OF_LOST_ROWS):
            self._update(posterior, counts, others["A"])
        return Rows(S, posterior.E, posterior)

    def run(self, block: Block, rows: Rows, others: Factors) -> BlockStatistics:
        A, counts = others["A"], Counts(block.relations[0].term)
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

    S: DistantPosterior  # type: ignore[assignment]

    def __init__(
        self,
        fit: ClusterFit,
        scales: Array,
        S: DistantPosterior,
        A: Posterior,
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
    ) -> None:
        self._fit, self._scales = fit, scales
        S.set_rates(priors["S"].expectations)
        self.S, self.A, self.priors = S, A, priors
        sums = self._run(self.step(("P", "constant")))
        self._P, self._constant = aligned_copy(sums["P"]), float(sums["constant"])
        super().__init__(S, A, priors, burn_in)

    def step(
        self, asks: tuple[str, ...] = (), moves: bool = False, logs: bool = False
    ) -> PosteriorStep:
        return PosteriorStep(
            number=self._fit.number,
            names=("A",),
            prior_shape=self.priors["S"].shape,
            rates=self.S.rates[:, : self.S.rank],
            scales=self._scales,
            asks=asks,
            moves=moves,
            logs=logs,
        )

    def _run(self, step: PosteriorStep) -> dict[str, Any]:
        sums = self._fit.run(step, {"A": self.A.F}).sums
        self.S.sums = sums["S"]
        return sums

    def P_of_A(self) -> Array:
        return self._P

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        self._fit.number += 1
        self.S.set_rates(rates)
        sums = self._run(self.step(("P",), moves=True, logs=logs))
        self.S.log_sum, self._P = float(sums["logs"]), aligned_copy(sums["P"])

    def bound_of_counts(self) -> float:
        sums = self._run(self.step(("bound",)))
        self.S.entries_bound = float(sums["bound"])
        return self._constant - float(sums["loss"])


def fit_variational(
    X: Data,
    *,
    init: str | tuple[ByRows, Array],
    random_state: Seed,
    n_threads: int | None,
    **parameters: Any,
) -> VariationalFit:
    """Fit the model to data on a cluster; S, and the groups of its rows, are dask arrays."""
    checked = Parameters(**parameters)
    threads = count_threads(n_threads)
    rng, rank = pcg64_of(random_state), checked.rank
    pair = isinstance(init, (tuple, list)) and len(init) == 2 and init[0] is not None
    if not pair and not isinstance(init, str):
        raise ValueError(f"init must be the name of a start, or (S, A); got {init!r:.100}.")
    data = load(X.client, X, threads, S=None if isinstance(init, str) else init[0])
    if data.on_disk:
        raise on_disk_error("BayesianNMF")
    scale = checked.count_scale or _find_scale(data)
    titles = [(f"block {position}",) for position in data.positions]
    data = replace(data, futures=data.start(_as_counts, scale, parts=titles))
    plan = Plan(rank, (KULLBACK_LEIBLER, KULLBACK_LEIBLER), 1.0, data.lengths, threads)
    with ClusterFit(data, plan) as fit:
        if isinstance(init, str):
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
        S = data.array(fit.read(steps.step(), copy_rows, {"A": of_A.F}), rank, data.dtype)
        groups = da.zeros(data.shape[0], dtype=np.int32, chunks=(tuple(data.rows),))
        return variational_fit(steps, run, scale, S, groups)


def _as_counts(block: BlockInput, title: str, scale: float) -> BlockInput:
    if not sp.issparse(block.X) and np.isnan(block.X.max()):
        raise ValueError(
            f"{title}: X must not contain NaN: BayesianNMF takes no missing entries. Fill them, or "
            "leave out their rows."
        )
    return replace(block, X=with_title(title, counts_of, block.X, scale))


def _find_scale(data: Data) -> float:
    """Return the factor of data in memory, as far as it needs no median of all entries."""

    def ask(plus: Callable[[Any, Any], Any], task: Callable[..., Any], *arguments: float) -> Any:
        return reduce_tasks(data.client, data.start(_ask_block, task, *arguments), plus)

    step = common_step(ask, data.dtype)
    if step is None:
        raise ValueError(
            "count_scale must be a number for data on a cluster that are not multiples of a common "
            "step, as counts are; got 'auto'. In memory, 2 / median of the entries above 0 is used."
        )
    return scale_of_step(step)


def _ask_block(block: BlockInput, task: Callable[..., Any], *arguments: float) -> Any:
    return task(block.X, *arguments)


@documented
class BayesianNMF(OnCluster, estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.BayesianNMF`.  In every iteration each worker updates
    the posteriors of the rows of S that belong to its blocks, and sends their sums for A, which are
    added in a fixed order.  So the result does not depend on the number of workers.

    Parameters
    ----------
    init : {"auto", "random", "least-squares", "random-acol"} or tuple of arrays
        Start, as in memory; in a tuple (S, A), S may be a dask array.
    count_scale : float or "auto"
        As in memory; "auto" needs X whose entries are multiples of a common step, as counts are.
    n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`.

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Posterior expectations of S, cut as X is.
    representation_groups_ : dask.array.Array, shape (n,)
        Row of `representation_rates_` for every sample; here always 0.

    See Also
    --------
    ssnmf_fast.dask.factorize : Point estimates, also of data on disk.

    Notes
    -----
    When a worker is lost, its blocks are loaded again by another one, and the posteriors of their
    rows are computed again, given that of A.
    """

    _kind: ClassVar = estimators.BayesianNMF
    _left_out: ClassVar[tuple[str, ...]] = ("representation_", "representation_groups_")

    def fit(  # type: ignore[override]
        self: Self, X: Blocks, y: object = None, *, client: Client | None = None
    ) -> Self:
        """Learn the posteriors from samples on the cluster.

        Parameters
        ----------
        X, client
            As in :func:`ssnmf_fast.dask.factorize`, but without NaN, and not in files.
        y : ignored
        """
        return super().fit(X, y, client=client)

    def _fit_variational(self, X: Data, groups: Array | None, **arguments: Any) -> VariationalFit:
        del groups, arguments["n_starts"]  # there are no labels, and there is one start
        return fit_variational(X, **arguments)

    transform = lazy(estimators.BayesianNMF.transform)

    def interval_representation(self, level: float = 0.9) -> tuple[da.Array, da.Array]:
        """Return credible intervals of the entries of `representation_`.

        Returns
        -------
        low, high : dask.array.Array, shape (n, r)
            Quantiles of the gamma posteriors, lazy.
        """
        check_is_fitted(self)
        return interval_ends(self.representation_, self.representation_rates_, level)
