"""Estimators :class:`NMF` and :class:`TopicSupervisedNMF` for data on a cluster."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import dask.array as da
import numpy as np

from .. import estimators
from .._common.arrays import Array
from .._labels import LabelLists
from .._solver.weights import Observed, Outer
from ._on_cluster import OnCluster
from ._predicting import PredictsOnCluster
from ._samples import Samples


class NMF(OnCluster, estimators.NMF):
    """Nonnegative matrix factorisation X ~ S A of data on a Dask cluster.

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
    the labelled ones, an array (labelled samples, r).  As for data on disk, the readout sees
    samples through their topics only: in memory it also sees their features and singular
    directions, so that its predictions differ from these.  With ``readout=None`` neither is there.
    """

    _kind: ClassVar = estimators.TopicSupervisedNMF

    def _with_rows(self, X_weights: Any, rows: Array) -> Any:
        if isinstance(X_weights, da.Array):
            return X_weights * da.from_array(rows[:, None], chunks=(X_weights.chunks[0], 1))
        inner = getattr(X_weights, "pattern", None)
        if isinstance(inner, da.Array) or _is_list(X_weights) or _is_list(inner):
            kind = "observed" if isinstance(X_weights, Observed) else type(X_weights).__name__
            raise ValueError(
                f"X_weights ({kind}) are given by blocks, which labelled_weight="
                f"{self.labelled_weight!r} cannot be combined with. Set labelled_weight=1, or "
                "give the weights as one dask array."
            )
        if isinstance(X_weights, Outer) and isinstance(X_weights.rows, da.Array):
            X_weights = Outer(X_weights.rows.compute(), X_weights.columns)
        return super()._with_rows(X_weights, rows)

    def _support(self, X: Any, lists: LabelLists, rank: int) -> Any:
        """Return the support of each block: that of all samples is as large as S."""
        if not isinstance(X, Samples):
            return super()._support(X, lists, rank)
        free, bounds = bool(self.free_in_labelled), np.cumsum([0, *X.rows])
        return [
            X.client.submit(_support_of, lists.part(slice(begin, end)), rank, free, pure=False)
            for begin, end in pairwise(bounds)
        ]

    def _for_readout(self, X: Any, lists: LabelLists) -> tuple[Any, LabelLists]:
        if not isinstance(X, Samples):
            return X, lists
        return X.only(lists.labelled), lists.part(lists.labelled)


def _is_list(weights: Any) -> bool:
    return isinstance(weights, (list, tuple))


def _support_of(lists: LabelLists, rank: int, free_in_labelled: bool) -> Array:
    return lists.support(rank, free_in_labelled)
