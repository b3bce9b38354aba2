"""Estimators of data on a cluster, but for the one of classes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._common.arrays import Array
from .._labels import LabelLists
from .._solver.weights import as_weights
from ..estimators._bayesian_base import interval_ends
from ._bayesian import fit_variational
from ._data import MEMORY, Data
from ._on_cluster import OnCluster, PredictsOnCluster, gather, lazy

Self = TypeVar("Self", bound="BayesianNMF")


class NMF(OnCluster, estimators.NMF):
    """Nonnegative matrix factorization X ~ S A of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.NMF`, but that
    `representation_` is a dask array.  :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.NMF`.  For `solver` and `init` see
        :func:`ssnmf_fast.dask.factorize`; `n_threads` are those of each task, None for one.

    See Also
    --------
    ssnmf_fast.dask.factorize : The function behind it.

    Notes
    -----
    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.NMF`, without `representation_`,
    and :func:`ssnmf_fast.load` gives that estimator.

    For example::

        import dask.array as da
        from dask.distributed import Client
        import ssnmf_fast.dask as sfd

        client = Client("tcp://scheduler:8786")
        X = da.random.random((10_000, 50), chunks=(2_500, 50))
        model = sfd.NMF(n_components=5, random_state=0).fit(X)
        S = model.transform(X[:100]).compute()
    """

    _kind: ClassVar = estimators.NMF


class TopicSupervisedNMF(PredictsOnCluster, estimators.TopicSupervisedNMF):
    """Topic-supervised NMF (TS-NMF) of data on a Dask cluster.

    The model, its parameters and its attributes are those of
    :class:`ssnmf_fast.TopicSupervisedNMF`, but that `representation_` is a dask array.
    Predictions for a dask array are lazy dask arrays.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.TopicSupervisedNMF`; as in :class:`ssnmf_fast.dask.NMF`.

    Notes
    -----
    The labels of all samples come to the caller.  For the readout, so do the representations of
    the labeled ones, an array (labeled samples, r).  As for data on disk, the readout sees
    samples through their topics only: in memory it also sees their features and singular
    directions, so that its predictions differ from these.  With ``readout=None`` neither is there.
    """

    _kind: ClassVar = estimators.TopicSupervisedNMF

    def _with_rows(self, X_weights: Any, rows: Array) -> Any:
        if isinstance(X_weights, da.Array):
            return X_weights * da.from_array(rows[:, None], chunks=(X_weights.chunks[0], 1))
        weights = as_weights(X_weights, "X_weights")
        if weights.by_vector and isinstance(weights.by_rows, da.Array):
            weights = weights.with_part(gather(None, weights.by_rows))
        elif isinstance(weights.by_rows, (da.Array, list, tuple)):
            kind = type(X_weights).__name__.lower()
            raise ValueError(
                f"X_weights must be one array with labeled_weight={self.labeled_weight!r}; got "
                f"blocks ({kind}). Set labeled_weight=1, or give the weights as one dask array."
            )
        return super()._with_rows(weights, rows)

    def _support(self, X: Any, lists: LabelLists, rank: int) -> Any:
        """Return the support of each block: that of all samples is as large as S."""
        if not isinstance(X, Data):
            return super()._support(X, lists, rank)
        free, bounds = bool(self.free_in_labeled), np.cumsum([0, *X.rows])
        return [
            X.client.submit(_support_of, lists.part(slice(begin, end)), rank, free, pure=False)
            for begin, end in pairwise(bounds)
        ]

    def _for_readout(self, X: Any, lists: LabelLists) -> tuple[Any, LabelLists]:
        if not isinstance(X, Data):
            return X, lists
        chosen = replace(X, chosen=np.flatnonzero(lists.labeled))
        return chosen, lists.part(lists.labeled)


def _support_of(lists: LabelLists, rank: int, free_in_labeled: bool) -> Array:
    return lists.support(rank, free_in_labeled)


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
        return fit_variational(X, **arguments)

    transform = lazy(estimators.BayesianNMF.transform)

    def interval_representation(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return credible intervals of the entries of `representation_`, as dask arrays.

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
        return interval_ends(self.representation_, self.representation_rates_, level)
