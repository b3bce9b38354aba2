"""Estimator :class:`BayesianNMF` for data on a cluster, and its fit: the steps of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.checks import check_factor, check_integer, check_random_state
from .._data.count_scale import scale_of, scaled
from .._models.variational import Parameters, VariationalFit, variational_fit
from .._models.variational_priors import GammaPrior, LabelPrior, Posterior, PosteriorSums
from .._models.variational_problem import VariationalSteps
from .._solver.beta_divergences import KULLBACK_LEIBLER
from ..estimators._bayesian_base import interval_ends
from . import _counts
from ._build import Plan
from ._cluster import Blocks
from ._counts import ClusterValues, PosteriorOrder
from ._data import Data, load
from ._fit import ClusterFit, begin, choose_start, open_fit, to_pcg64
from ._on_cluster import OnCluster, lazy
from ._rows import aligned_copy
from ._samples import MEMORY

Self = TypeVar("Self", bound="BayesianNMF")


class BayesianNMF(OnCluster, estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.BayesianNMF`, but
    that `representation_` and `representation_groups_` are dask arrays.  In every iteration each
    worker updates the posteriors of the rows of S that belong to its blocks, and sends their
    sums for A, which are added in a fixed order.  So the result does not depend on the number of
    workers.  :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.BayesianNMF`.  `init` is not "nndsvda"; in a tuple S may be a
        dask array.  `n_threads` are those of each task, None for one.  A callback is shown an S of
        None.

    See Also
    --------
    ssnmf_fast.dask.factorize : Point estimates, also of data on disk.

    Notes
    -----
    When a worker is lost, its blocks are loaded again by another one, and the posteriors of their
    rows are found again, given that of A.

    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.BayesianNMF`, without
    `representation_` and its groups, and :func:`ssnmf_fast.load` gives that estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> import ssnmf_fast.dask as sfd
    >>> X = da.random.default_rng(0).poisson(2, (1000, 50), chunks=(250, 50))
    >>> model = sfd.BayesianNMF(n_components=5, max_iter=20, tol=0, random_state=0)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     print(model.fit(X).transform(X[:100]).compute().shape)
    (100, 5)
    """

    _kind: ClassVar = estimators.BayesianNMF
    _left_out: ClassVar[tuple[str, ...]] = ("representation_", "representation_groups_")

    def fit(  # type: ignore[override]
        self: Self, X: Any, y: Any = None, *, client: Client | None = None
    ) -> Self:
        """Learn the posteriors from samples on the cluster.

        Parameters
        ----------
        X : dask.array.Array, shape (n, m), or list of delayed objects or futures
            Nonnegative samples, without NaN, cut by rows; as in :func:`ssnmf_fast.dask.factorize`.
        y : ignored
        client : dask.distributed.Client, optional
            None takes the one in use.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad data or parameters; the message names the block and says how to mend them.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As in memory.
        """
        return self._fitted(X, y, client, None, MEMORY)

    def _fit_variational(self, X: Any, groups: Any, **arguments: Any) -> Any:
        del groups  # of rows by labels, which this model has not
        return fit_variational(X.client, X.futures, **arguments)

    transform = lazy(estimators.BayesianNMF.transform)

    def interval_representation(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return credible intervals of the entries of `representation_`.

        Parameters
        ----------
        level : float
            As in :meth:`interval_components`.

        Returns
        -------
        low, high : dask.array.Array, shape (n, r)
            Quantiles of the gamma posteriors, computed when they are asked for.
        """
        check_is_fitted(self)
        S: Any = self.representation_
        rates = self.representation_rates_
        interval_ends(np.ones((0, S.shape[1])), rates, level)  # checks the level at once
        low, high = (
            da.map_blocks(_end, S, rates, level, end, dtype=S.dtype, meta=S._meta) for end in (0, 1)
        )
        return low, high


def _end(S: Array, rates: Array, level: float, end: int) -> Array:
    return interval_ends(S, rates, level)[end]


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
        self._constant = 0.0
        self._P: Array | None = None
        S.set_rates(priors["S"].expectations)
        super().__init__(S, A, priors, burn_in)

    def _order(self, **what: Any) -> PosteriorOrder:
        """Return an order for the rows as they are; `what` changes it."""
        prior_shape, rates = self.priors["S"].shape, self.S.rates[:, : self.S.rank]
        given = self._blocks.number, ("A",), prior_shape, rates, self._scale
        return PosteriorOrder(*given, **what)

    def _ask(self, **what: Any) -> dict[str, Any]:
        sums = self._blocks.obey(self._order(**what), {"A": self.A.F}).sums
        self.S.sums = sums["S"]
        return sums

    def P_of_A(self) -> Array:
        if self._P is None:  # at the start
            sums = self._ask(asks=("P", "constant"))
            self._P, self._constant = aligned_copy(sums["P"]), float(sums["constant"])
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
        return self._blocks.read(self._order(), _counts.expectations, (), {"A": self.A.F})

    def show(self) -> Mapping[str, Array | None]:
        """Return the factors for a callback."""
        return {"S": None, "A": self.A.E[:, : self.A.rank].T, "B": None}


def fit_variational(
    client: Client,
    X: Any,
    *,
    init: Any,
    random_state: Any,
    n_threads: int | None,
    **parameters: Any,
) -> VariationalFit:
    """Fit the model to data on a cluster; S, and the groups of its rows, are dask arrays."""
    checked = Parameters.checked(**parameters)
    threads = 1 if n_threads is None else check_integer(n_threads, "n_threads", 1)
    rng = to_pcg64(check_random_state(random_state))
    S, A = (None, None) if isinstance(init, str) else _read_init(init)
    raw = load(client, X, threads, MEMORY, S=S)
    if raw.on_disk:
        raise TypeError(
            "X must be in the memory of the workers for BayesianNMF; got blocks on disk. Give "
            "delayed objects that read them, or use ssnmf_fast.dask.NMF."
        )
    name = choose_start(init, KULLBACK_LEIBLER, raw.on_disk) if A is None else ""
    scale = checked.count_scale
    if scale is None:
        scale = scale_of(ClusterValues(raw))
    data = _count(raw, scale)
    plan = Plan(checked.rank, (KULLBACK_LEIBLER, KULLBACK_LEIBLER), 1.0, data.lengths)
    with open_fit(data, plan, threads) as fit:
        started = begin(fit, name, rng, threads) if A is None else _begin_with(fit, A, scale)
        steps = _steps(fit, *started, checked, scale, threads)
        run = checked.seen_in_units(scale).run(steps, steps.show, checked.burn_in)
        rows = data.array(steps.rows(), checked.rank, data.dtype)
        groups = da.zeros(data.shape[0], dtype=np.int32, chunks=(tuple(data.rows),))
        return variational_fit(steps, run, scale, rows, groups)


def _read_init(init: Any) -> tuple[Any, Any]:
    if not isinstance(init, (tuple, list)) or len(init) != 2 or init[0] is None:
        raise ValueError(f"init must be the name of a start, or (S, A); got {init!r:.100}.")
    return init[0], init[1]


def _begin_with(fit: ClusterFit, A: Any, scale: float) -> tuple[Array, Array, float]:
    shape = fit.plan.rank, fit.data.shape[1]
    A = check_factor(A, "init[1] (A)", shape, fit.data.dtype, "components x features")
    columns, _ = fit.begin([None] * len(fit.blocks))
    return scaled(A, scale), columns, 1.0


def _count(data: Data, scale: float) -> Data:
    """Return the data as counts, on the workers."""
    futures = [
        data.client.submit(_counts.as_counts, given, scale, f"block {position}", pure=False)
        for given, position in zip(data.futures, data.positions, strict=True)
    ]
    return replace(data, futures=futures)


def _steps(
    fit: ClusterFit,
    A: Array,
    means: Array,
    start_scale: float,
    checked: Parameters,
    scale: float,
    threads: int,
) -> ClusterVariationalSteps:
    data, rank = fit.data, fit.plan.rank
    A = A.astype(data.dtype)
    of_A = Posterior(padded(A.T, data.dtype), rank, threads)
    of_S = DistantPosterior(data.shape[0], rank, 1, of_A.F.shape[1])
    priors = checked.priors(scale, None, float(means.mean()), float(A.mean(dtype=np.float64)))
    return ClusterVariationalSteps(fit.blocks, of_S, of_A, priors, checked.burn_in, start_scale)
