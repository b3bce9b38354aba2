"""Estimator :class:`BayesianNMF` for data on a cluster."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._common.arrays import Array
from ..estimators._bayesian_base import interval_ends
from ._on_cluster import OnCluster, lazy
from ._samples import MEMORY
from ._variational import fit_variational

Self = TypeVar("Self", bound="BayesianNMF")


class BayesianNMF(OnCluster, estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.BayesianNMF`, but
    that `representation_` and `representation_groups_` are dask arrays.  In every iteration each
    worker updates the posteriors of the rows of S that belong to its blocks, and sends what they
    say of A; these sums are added in a fixed order.  So the result does not depend on the number of
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
        return fit_variational(X.client, X.futures, groups, **arguments)

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
