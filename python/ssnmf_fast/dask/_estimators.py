"""Estimators of data on a cluster, but for the one of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._common.arrays import Array
from .._labels import LabelLists
from .._models.factorize import Factorization
from ..estimators import _class_topics
from ..estimators._bayesian import interval_ends
from ..estimators._class_topics import LabeledSamples
from ..estimators._docstrings import complete_docstring
from ..estimators._training_data import as_outer, checked_weight, labels_for_training
from ..estimators._views import visible
from ._bayesian import fit_variational
from ._block import BlockInput
from ._cluster import keep_value, reduce_tasks
from ._data import MEMORY, Data
from ._factorize import factorize
from ._on_cluster import OnCluster, PredictsOnCluster, Self, gather, lazy, with_rows
from ._waiting import result_of


@complete_docstring
class NMF(OnCluster, estimators.NMF):
    """Nonnegative matrix factorization X ~ S A of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.NMF`.  :meth:`transform` of a dask array is a lazy dask
    array.

    Parameters
    ----------
    solver, init, n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`.

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Factor S of the fit, cut as X is.

    Notes
    -----
    :func:`ssnmf_fast.save` writes the file of the estimator in memory, without `representation_`,
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

    def fit(
        self: Self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        covariates: Any = None,
        client: Client | None = None,
        checkpoint: str | Path | None = None,
        memory: int = MEMORY,
    ) -> Self:
        """Learn a dictionary from samples on the cluster.

        Parameters
        ----------
        X, X_weights, client, checkpoint, memory
            As in :func:`ssnmf_fast.dask.factorize`.
        covariates : array_like or dask.array.Array, shape (n, number of fixed components), optional
            The last columns of S, which are given.  Representations of new samples then need
            theirs, in memory (``model.in_memory().transform(X, covariates=...)``).

        Returns
        -------
        self
            `representation_` is a dask array, cut as X is.
        """
        given = {"X_weights": X_weights, "covariates": covariates}
        return self._fit_data(X, y, client, checkpoint, memory, **given)


@complete_docstring
class TopicSupervisedNMF(PredictsOnCluster, estimators.TopicSupervisedNMF):
    """Topic-supervised NMF (TS-NMF) of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.TopicSupervisedNMF`.  Predictions for a dask array are
    lazy dask arrays.

    Parameters
    ----------
    solver, init, n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`.

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Factor S of the fit, cut as X is.

    Notes
    -----
    The labels of all samples come to the caller.  For the readout, so do the representations of
    the labeled ones, an array (labeled samples, r).  As for data on disk, the readout sees
    samples through their topics only: in memory it also sees their features and singular
    directions, so that its predictions differ from these.  ``predicts=False`` omits both.
    """

    _kind: ClassVar = estimators.TopicSupervisedNMF

    def _with_rows(self, X_weights: Any, rows: Array) -> Any:
        return with_rows(X_weights, rows)

    def _support(self, X: Data, lists: LabelLists, rank: int) -> list[Any]:
        """Return the support of each block: that of all samples is as large as S."""
        parts = [lists.part(slice(begin, end)) for begin, end in pairwise(np.cumsum([0, *X.rows]))]
        return [X.client.submit(LabelLists.support, p, rank, pure=False) for p in parts]

    def _for_readout(self, X: Data, lists: LabelLists) -> tuple[Data, LabelLists]:
        chosen = replace(X, chosen=np.flatnonzero(lists.labeled))
        return chosen, lists.part(lists.labeled)


@complete_docstring
class BayesianNMF(OnCluster, estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.BayesianNMF`.  In every iteration each worker updates
    the posteriors of the rows of S that belong to its blocks, and sends their sums for A, which are
    added in a fixed order.  So the result does not depend on the number of workers.
    :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    init : {"auto", "random", "least-squares", "random-acol"} or tuple of arrays
        Start, as in memory; in a tuple (S, A), S may be a dask array.
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
    rows are found again, given that of A.  Files are as those of :class:`NMF`.

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
        X, client
            As in :func:`ssnmf_fast.dask.factorize`, but without NaN, and not in files.
        y : ignored
        """
        return self._fit_data(X, y, client, None, MEMORY)

    def _fit_variational(self, X: Any, groups: Any, **arguments: Any) -> Any:
        del groups, arguments["n_starts"]  # there are no labels, and there is one start
        return fit_variational(X, **arguments)

    transform = lazy(estimators.BayesianNMF.transform)

    def interval_representation(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return credible intervals of the entries of `representation_`.

        Returns
        -------
        low, high : dask.array.Array, shape (n, r)
            Quantiles of the gamma posteriors, computed when they are asked for.
        """
        check_is_fitted(self)
        return interval_ends(self.representation_, self.representation_rates_, level)


@complete_docstring
class SSNMFClassifier(PredictsOnCluster, estimators.SSNMFClassifier):
    """Semi-supervised NMF for classification, X ~ S A and Y ~ S B, of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.SSNMFClassifier`.  Predictions for a dask array are lazy
    dask arrays.

    Parameters
    ----------
    solver, init, n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`; `init` may also be "labels".

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Factor S of the fit, cut as X is.

    Notes
    -----
    The labels of all samples come to the caller.  So do the representations of the labeled ones,
    an array (labeled samples, r), and their indicators, (labeled samples, k), to which the readout
    is fitted.  As for data on disk, the readout "logistic" sees samples through their topics only:
    in memory it also sees their features and singular directions, so that its predictions differ
    from these.  Files are as those of :class:`NMF`.
    """

    _kind: ClassVar = estimators.SSNMFClassifier

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        label_weight: Any = None,
        client: Client | None = None,
        checkpoint: str | Path | None = None,
        memory: int = MEMORY,
    ) -> SSNMFClassifier:
        """Learn dictionary and classifier from samples and the labels of some of them.

        Parameters
        ----------
        X, X_weights, client, checkpoint, memory
            As in :func:`ssnmf_fast.dask.factorize`.
        y, sample_weight, label_weight : array_like or dask.array.Array
            Labels of all samples, and their weights, as in memory.
        """
        weights = {
            "sample_weight": gather(client, sample_weight),
            "label_weight": gather(client, label_weight),
        }
        return self._fit_data(X, y, client, checkpoint, memory, X_weights=X_weights, **weights)

    def _samples(
        self, X: Data, X_weights: Any, targets: Any, label_weight: Any, sample_weight: Any
    ) -> LabeledBlocks:
        chosen = np.flatnonzero(targets.labeled)
        labels = labels_for_training(targets, label_weight, sample_weight, chosen)
        given = {"X": X, "X_weights": X_weights, "labels": labels, "chosen": chosen}
        weight = checked_weight(sample_weight, X.shape[0])
        return LabeledBlocks.of(self, self.init, sample_weight=weight, **given)


@dataclass(frozen=True, kw_only=True)
class LabeledBlocks(LabeledSamples):
    """Samples on a cluster with the labels of some of them, the `chosen` ones."""

    X: Data
    chosen: Array

    @cached_property
    def _data(self) -> Data:
        return self.X.with_weights(self.X_weights, self.options["n_threads"])

    def overall_mean(self) -> Array:
        parts = self._data.parts(np.arange(self.X.shape[0]), self._even_weights()[:, None])
        sums = self._data.start(_weighted_sums, parts=parts)
        return np.asarray(reduce_tasks(self.X.client, sums)[0])

    @property
    def of_readout(self) -> Data:
        return replace(self.X, chosen=self.chosen)

    def sums(self, weights: Array) -> Array:
        sums = self._data.start(_weighted_sums, parts=self._data.parts(self.chosen, weights))
        return np.asarray(reduce_tasks(self.X.client, sums))

    def support(self, owner: Array) -> list[Any]:
        labels, chosen = self.labels, self.chosen
        parts = self._data.parts(chosen, labels.members, labels.known, everywhere=True)
        return self._data.start(_support, owner, parts=parts)

    def even_start(self, A: Array, support: list[Any] | None) -> list[Any]:
        parts = [(each,) for each in support or [None] * len(self._data.futures)]
        return self._data.start(_even_start, keep_value(self.X.client, A), parts=parts)

    def labeled_sums(self, S: Any) -> Array:
        known, client = self.labels.known, self.X.client
        given = self.chosen[known], self.labels.weight[known, None]
        if isinstance(S, da.Array):
            return np.asarray(result_of(client, client.compute(_sum(S, *given))))
        blocks = replace(self._data, futures=S)
        sums = blocks.start(_sum, parts=blocks.parts(*given, everywhere=True))
        return np.asarray(reduce_tasks(client, sums))

    def targets(self) -> tuple[Any, Any]:
        members, n = sp.coo_array(self.labels.members), self.X.shape[0]
        entries = members.data, (self.chosen[members.row], members.col)
        Y = sp.csr_array(entries, shape=(n, members.shape[1])).astype(self.X.dtype)
        weights = self.labels.entry_weights * self.labels.weight[:, None]
        if (weights == weights[:, :1]).all():
            rows = np.zeros(n)
            rows[self.chosen] = weights[:, 0]
            return Y, as_outer(rows)
        parts = self._data.parts(self.chosen, weights, everywhere=True)
        return Y, self._data.start(_spread, parts=parts)

    def factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        arguments |= self.options
        arguments |= {"client": self.X.client, "checkpoint": self.X.checkpoint}
        X_weights = with_rows(self.X_weights, self.sample_weight)
        return factorize(self.X, Y, X_weights=X_weights, **arguments)


def _spread(given: BlockInput, rows: Array | slice, values: Array) -> Array:
    """Return values for all rows of a block: zeros for others than these rows."""
    spread = np.zeros((given.X.shape[0], *values.shape[1:]), dtype=values.dtype)
    spread[rows] = values
    return spread


def _weighted_sums(given: BlockInput, rows: Array | slice, weights: Array) -> Array:
    return _class_topics.weighted_sums(
        visible(given.X, given.X_weights), _spread(given, rows, weights)
    )


def _support(given: BlockInput, rows: Array, members: Array, known: Array, owner: Array) -> Array:
    return _class_topics.support_of(
        _spread(given, rows, members), _spread(given, rows, known), owner
    )


def _even_start(given: BlockInput, support: Array | None, A: Array) -> Array:
    """Return a start of the rows of S of a block."""
    S = _class_topics.even_start(visible(given.X, given.X_weights), A, support)
    return np.asarray(S, dtype=given.X.dtype)


def _sum(S: Any, rows: Array, weights: Array) -> Any:
    return (S[rows] * weights).sum(axis=0, dtype=np.float64)
