"""Variational Bayes on a cluster: steps of the caller, posteriors of S, the scale of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.arrays import on_disk_error
from .._data.border import check_factor
from .._data.count_scale import common_divisor, scaled
from .._models.variational import (
    Counts,
    Parameters,
    Posterior,
    PosteriorSums,
    VariationalFit,
    VariationalSteps,
    counts_of,
    variational_fit,
)
from .._solver.known import Known
from .._solver.losses import KULLBACK_LEIBLER
from ..estimators._bayesian import interval_ends
from . import _rows
from ._cluster import reduce_tasks
from ._data import BlockInput, Blocks, ClusterData, count_threads, load_blocks, with_title
from ._estimators import OnCluster, Self, documented, lazy
from ._fit import ClusterFit, begin, cluster_fit, pcg64_of
from ._rows import UPDATES_OF_LOST_ROWS, Block, BlockPlan, BlockStatistics, Factors, Rows, Step


@dataclass(frozen=True, kw_only=True)
class PosteriorStep(Step):
    """An update of the posterior, if it `moves`, and the sums to return."""

    prior_shape: float
    rates: Array  # of this update, or of the last one, to recover lost rows
    scales: Array  # factors of the components of the start
    logs: bool = False
    asks: tuple[str, ...] = ()  # for "P", "bound" or "constant"

    def recover(self, block: Block, others: Factors) -> Rows:
        """Recover the posterior, the only maximum of the bound given A."""
        S, term = padded(np.ones((block.n_rows, block.rank)), block.dtype), block.relations[0].term
        counts, posterior = Counts(term), Posterior(S, block.rank, term.threads)
        for _ in range(UPDATES_OF_LOST_ROWS):
            self._update(posterior, counts, others["A"])
        return Rows(S, posterior.E, posterior)

    def run(self, block: Block, rows: Rows, others: Factors) -> BlockStatistics:
        A, term = others["A"], block.relations[0].term
        counts = Counts(term)
        if rows.posterior is None:  # rows of the start
            rows.scale(self.scales)
            rows.posterior = Posterior(rows.S, block.rank, term.threads)
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


class ClusterVariationalSteps(VariationalSteps):
    """The steps for counts on the workers; an update of S returns P for the next update of A."""

    S: PosteriorSums  # type: ignore[assignment]

    def __init__(
        self, fit: ClusterFit, scales: Array, A: Posterior, priors: dict[str, Any], burn_in: int
    ) -> None:
        self._fit, self._scales, self.A, self.priors = fit, scales, A, priors
        self.S = PosteriorSums(fit.data.shape[0], A.rank, 1, A.F.shape[1])
        self.S.set_rates(priors["S"].expectations)
        sums = self._run("P", "constant")
        self._P, self._constant = _rows.aligned_copy(sums["P"]), float(sums["constant"])
        super().__init__(self.S, A, priors, burn_in)

    def step(self, **fields: Any) -> PosteriorStep:
        rates, shape = self.S.rates[:, : self.S.rank], self.priors["S"].shape
        fields |= {"number": self._fit.number, "names": ("A",), "scales": self._scales}
        return PosteriorStep(prior_shape=shape, rates=rates, **fields)

    def _run(self, *asks: str, **fields: Any) -> dict[str, Any]:
        sums = self._fit.run(self.step(asks=asks, **fields), {"A": self.A.F}).sums
        self.S.sums = sums["S"]
        return sums

    def P_of_A(self) -> Array:
        return self._P

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        self._fit.number += 1
        self.S.set_rates(rates)
        sums = self._run("P", moves=True, logs=logs)
        self.S.log_sum, self._P = float(sums["logs"]), _rows.aligned_copy(sums["P"])

    def bound_of_counts(self) -> float:
        sums = self._run("bound")
        self.S.bound = lambda prior_shape: float(sums["bound"])
        return self._constant - float(sums["loss"])


def _as_counts(block: BlockInput, title: str, scale: float) -> BlockInput:
    if not sp.issparse(block.X) and np.isnan(block.X.max()):
        text = "X must not contain NaN: BayesianNMF does not support missing entries. Fill them."
        raise ValueError(f"{title}: {text}")
    return replace(block, X=with_title(title, counts_of, block.X, scale))


def _find_scale(data: ClusterData) -> float:
    """Return the count scale, as for data in memory, except if it needs the median of entries."""
    found = data.start(lambda block: [common_divisor(block.X)])
    divisors = reduce_tasks(data.client, found)
    if None in divisors:
        hint = "give a number. In memory, 2 / median of the positive entries is used for others."
        raise ValueError(f"count_scale='auto' needs integers, such as counts, on a cluster; {hint}")
    return 1 / (math.gcd(*divisors) or 1)


@documented
class BayesianNMF(OnCluster, estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes for data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.BayesianNMF`.  In every iteration each worker updates
    the posteriors of the rows of S that belong to its blocks, and sends sums for A, which are added
    in a fixed order: the result does not depend on the number of workers.

    Parameters
    ----------
    init : {"auto", "random", "least-squares", "random-acol"} or tuple of arrays
        Start, as in memory; in a tuple (S, A), S may be a dask array.
    count_scale : float or "auto"
        As in memory; for "auto", entries of X must be integers, such as counts.
    n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`.

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Posterior expectations of S, with the blocks of X.
    representation_groups_ : dask.array.Array, shape (n,)
        Row of `representation_rates_` for each sample; here always 0.

    See Also
    --------
    ssnmf_fast.dask.factorize : Point estimates, also for data on disk.

    Notes
    -----
    If a worker is lost, another worker loads its blocks and recomputes the posteriors of their
    rows, given the posterior of A.
    """

    def fit(  # type: ignore[override]
        self: Self, X: Blocks, y: object = None, *, client: Client | None = None
    ) -> Self:
        """Learn the posteriors from samples on the cluster.

        Parameters
        ----------
        X, client
            As in :func:`ssnmf_fast.dask.factorize`, but X must not have NaN or be in files.
        y : ignored
        """
        return super().fit(X, y, client=client)

    def _fit_variational(
        self, X: ClusterData, groups: Array | None, **arguments: Any
    ) -> VariationalFit:
        del groups, arguments["n_starts"]  # no labels, and a single start
        init, seed, n_threads = map(arguments.pop, ("init", "random_state", "n_threads"))
        checked, threads = Parameters(**arguments), count_threads(n_threads)
        rng, rank = pcg64_of(seed), checked.rank
        pair = isinstance(init, (tuple, list)) and len(init) == 2 and init[0] is not None
        if not pair and not isinstance(init, str):
            raise ValueError(f"init must be the name of a start, or (S, A); got {init!r:.100}.")
        data = load_blocks(X.client, X, threads, S=None if isinstance(init, str) else init[0])
        if data.on_disk:
            raise on_disk_error("BayesianNMF")
        scale = checked.count_scale or _find_scale(data)
        titles = [(f"block {position}",) for position in data.positions]
        data = replace(data, futures=data.start(_as_counts, scale, parts=titles))
        plan = BlockPlan(rank, (KULLBACK_LEIBLER, KULLBACK_LEIBLER), 1.0, data.lengths, threads)
        with cluster_fit(data, plan) as fit:
            if isinstance(init, str):
                A, means, scales = begin(fit, init, rng, Known())
            else:
                shape = rank, data.shape[1]
                A = check_factor(init[1], "init[1] (A)", shape, data.dtype, "components x features")
                A, means, scales = scaled(A, scale), fit.begin()[0], np.ones(rank)
            A = A.astype(data.dtype)
            of_A = Posterior(padded(A.T, data.dtype), rank, threads)
            sizes = float(means.mean()), float(A.mean(dtype=np.float64))
            priors = checked.priors(scale, None, *sizes)
            steps = ClusterVariationalSteps(fit, scales, of_A, priors, checked.burn_in)
            run = checked.loop.run(steps, lambda: steps.show(scale), checked.burn_in)
            reading = steps.step(reads=_rows.copy_rows)
            S = data.array(fit.read(reading, {"A": of_A.F}), rank, data.dtype)
            of_rows = da.zeros(data.shape[0], dtype=np.int32, chunks=(tuple(data.rows),))
            return variational_fit(steps, run, scale, S, of_rows)

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
