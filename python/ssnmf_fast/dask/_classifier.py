"""Estimator :class:`SSNMFClassifier` for data on a cluster, and the topics of its classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client

from .. import estimators
from .._common.arrays import Array
from .._models.factorize import Factorization
from ..estimators import _class_topics
from ..estimators._class_topics import LabeledSamples
from ..estimators._docstrings import complete_docstring
from ..estimators._training_data import as_outer, checked_weight, labels_for_training
from ..estimators._views import visible
from ._build import BlockInput
from ._cluster import keep_value, reduce_tasks
from ._data import MEMORY, Data
from ._factorize import factorize
from ._on_cluster import PredictsOnCluster, gather, with_rows
from ._waiting import result_of


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
