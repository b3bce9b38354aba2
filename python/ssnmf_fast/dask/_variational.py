"""Variational Bayes for counts on a cluster: the steps of the caller, and the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.checks import check_factor, check_integer, check_random_state
from .._data.count_scale import scale_of, scaled
from .._models.variational import Parameters, VariationalFit, variational_fit
from .._models.variational_priors import GammaPrior, LabelPrior, Posterior, PosteriorSums
from .._models.variational_problem import Groups, VariationalSteps
from .._solver.beta_divergences import KULLBACK_LEIBLER
from . import _posterior
from ._cluster import Blocks
from ._count_scale import ClusterValues
from ._factorize import by_rows
from ._fit import ClusterFit, Data, fitting, load, plan_of
from ._posterior import PosteriorOrder
from ._rows import own
from ._starts import Begun, begin, chosen, seeded

_MEMORY = 1 << 28  # for the rows of files, which are refused once they are open


class DistantPosterior(PosteriorSums):
    """What is known of the posterior of S, whose rows are on the workers."""

    said_bound = 0.0

    def bound(self, prior_shape: float) -> float:
        return self.said_bound


class ClusterVariationalSteps(VariationalSteps):
    """The steps for counts on the workers.

    An update of S says at once what the counts say of A, which the next iteration begins with.
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
        self._number = 0
        self._constant = 0.0
        self._P: Array | None = None
        S.set_rates(priors["S"].expectations)
        super().__init__(S, A, priors, burn_in)

    def order(self, **what: Any) -> PosteriorOrder:
        """Return an order for the rows as they are; `what` changes it."""
        rates = self.S.rates[:, : self.S.rank]
        order = PosteriorOrder(self._number, self.priors["S"].shape, rates, self._scale)
        return replace(order, **what)

    def _ask(self, **what: Any) -> dict[str, Any]:
        order = self.order(**what)
        said = self._blocks.said(_posterior.work, [order] * len(self._blocks), self.A.F)
        self.S.sums = said.sums["S"]
        return said.sums

    def P_of_A(self) -> Array:
        if self._P is None:  # at the start
            sums = self._ask(P=True, constant=True)
            self._P, self._constant = own(sums["P"]), float(sums["constant"])
        return self._P

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        self._number += 1
        self.S.set_rates(rates)
        sums = self._ask(updates=True, P=True, logs=logs)
        self.S.log_sum, self._P = float(sums["logs"]), own(sums["P"])

    def bound_of_counts(self) -> float:
        sums = self._ask(bound=True)
        self.S.said_bound = float(sums["bound"])
        return self._constant - float(sums["loss"])

    def rows(self) -> list[Any]:
        """Return futures of the expectations of the rows of S."""
        return self._blocks.rows(_posterior.expectations, self.order(), factors=[self.A.F])


def fit_variational(
    client: Client,
    X: Any,
    groups: Groups | None,
    *,
    init: Any,
    random_state: Any,
    n_threads: int | None,
    **parameters: Any,
) -> VariationalFit:
    """Fit the model to data on a cluster; S, and the groups of its rows, are dask arrays."""
    checked = Parameters.checked(**parameters)
    threads = 1 if n_threads is None else check_integer(n_threads, "n_threads", 1)
    rng = seeded(check_random_state(random_state))
    given = None if isinstance(init, str) else _given(init)
    S = None if given is None else given[0]
    raw = load(client, X, None, None, None, None, S, threads, _MEMORY)
    if raw.on_disk:
        raise TypeError(
            "X has blocks on disk, and BayesianNMF needs them in the memory of the workers. Give "
            "delayed objects that read them, or use ssnmf_fast.dask.NMF."
        )
    name = "" if given is not None else chosen(init, KULLBACK_LEIBLER, raw.on_disk)
    scale = checked.count_scale
    if scale is None:
        scale = scale_of(ClusterValues(raw))
    data = _counts(raw, scale)
    losses = KULLBACK_LEIBLER, KULLBACK_LEIBLER
    with fitting(data, plan_of(data, checked.rank, losses, 1.0), threads) as fit:
        if given is None:
            begun = begin(fit, name, rng, threads)
        else:
            begun = _from_given(fit, given[1], scale)
        steps = _steps(fit, begun, checked, groups, scale, threads)
        loop = checked.seen_in_units(scale)
        run = loop.run(steps, _shown(steps), checked.burn_in)
        rows = by_rows(data, steps.rows(), checked.rank, data.dtype)
        return variational_fit(steps, run, scale, rows, _codes(groups, data))


def _given(init: Any) -> tuple[Any, Any]:
    if not isinstance(init, (tuple, list)) or len(init) != 2 or init[0] is None:
        raise ValueError(f"init must be the name of a start, or hold (S, A); got {init!r:.100}.")
    return init[0], init[1]


def _from_given(fit: ClusterFit, A: Any, scale: float) -> Begun:
    shape = fit.plan.rank, fit.data.shape[1]
    A = check_factor(A, "init[1] (A)", shape, fit.data.dtype, "components x features")
    columns, _ = fit.begin([None] * len(fit.blocks))
    return Begun(scaled(A, scale), columns)


def _counts(data: Data, scale: float) -> Data:
    """Return the data as counts, on the workers."""
    futures = [
        data.client.submit(_posterior.counted, given, scale, f"block {position}", pure=False)
        for given, position in zip(data.futures, data.positions, strict=True)
    ]
    return replace(data, futures=futures)


def _steps(
    fit: ClusterFit,
    begun: Begun,
    checked: Parameters,
    groups: Groups | None,
    scale: float,
    threads: int,
) -> ClusterVariationalSteps:
    data, rank = fit.data, fit.plan.rank
    counts = None if groups is None else groups.counts
    n_groups = 1 if counts is None else len(counts)
    fit.blocks.replace(_posterior.grouped, n_groups, threads, own=_cut(groups, data))
    A = begun.A.astype(data.dtype)
    of_A = Posterior(padded(A.T, data.dtype), rank, threads)
    of_S = DistantPosterior(data.shape[0], rank, n_groups, of_A.F.shape[1])
    means = float(begun.means.mean()), float(A.mean(dtype=np.float64))
    priors = checked.priors(scale, counts, *means)
    return ClusterVariationalSteps(fit.blocks, of_S, of_A, priors, checked.burn_in, begun.scale)


def _cut(groups: Groups | None, data: Data) -> list[Array | None]:
    """Return the codes of the rows of each block that has some."""
    if groups is None:
        return [None] * len(data.positions)
    return [
        groups.codes[first : first + data.rows[position]]
        for first, position in zip(data.firsts, data.positions, strict=True)
    ]


def _codes(groups: Groups | None, data: Data) -> Any:
    chunks = tuple(data.rows)
    if groups is None:
        return da.zeros(sum(chunks), dtype=np.int32, chunks=(chunks,))
    return da.from_array(groups.codes, chunks=(chunks,))


def _shown(steps: ClusterVariationalSteps) -> Callable[[], Mapping[str, Array | None]]:
    def shown() -> Mapping[str, Array | None]:
        return {"S": None, "A": steps.A.E[:, : steps.A.rank].T, "B": None}

    return shown
