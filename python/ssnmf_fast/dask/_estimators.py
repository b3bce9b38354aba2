"""Estimators :class:`NMF` and :class:`TopicSupervisedNMF` for data on a cluster."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import dask.array as da
import numpy as np

from .. import estimators
from .._common.arrays import Array
from .._labels import LabelLists
from .._solver.weights import as_weights
from ._on_cluster import OnCluster
from ._predicting import PredictsOnCluster
from ._samples import Samples, gathered


class NMF(OnCluster, estimators.NMF):
    """Nonnegative matrix factorization X ~ S A of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.NMF`, but that
    `representation_` is a dask array.  :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.NMF`.  What `solver` and `init` may be is said by
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
            weights = weights.with_part(gathered(None, weights.by_rows))
        elif isinstance(weights.by_rows, (da.Array, list, tuple)):
            kind = type(X_weights).__name__.lower()
            raise ValueError(
                f"X_weights ({kind}) are given by blocks, which labeled_weight="
                f"{self.labeled_weight!r} cannot be combined with. Set labeled_weight=1, or "
                "give the weights as one dask array."
            )
        return super()._with_rows(weights, rows)

    def _support(self, X: Any, lists: LabelLists, rank: int) -> Any:
        """Return the support of each block: that of all samples is as large as S."""
        if not isinstance(X, Samples):
            return super()._support(X, lists, rank)
        free, bounds = bool(self.free_in_labeled), np.cumsum([0, *X.rows])
        return [
            X.client.submit(_support_of, lists.part(slice(begin, end)), rank, free, pure=False)
            for begin, end in pairwise(bounds)
        ]

    def _for_readout(self, X: Any, lists: LabelLists) -> tuple[Any, LabelLists]:
        if not isinstance(X, Samples):
            return X, lists
        return X.only(lists.labeled), lists.part(lists.labeled)


def _support_of(lists: LabelLists, rank: int, free_in_labeled: bool) -> Array:
    return lists.support(rank, free_in_labeled)
