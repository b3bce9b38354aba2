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
from .._labels import labels_of
from .._models.factorize import Factorization
from .._topics import topic_shares
from ..estimators import _class_topics, _training_data
from ..estimators._class_topics import LabeledSamples
from ..estimators._classifier_training import plan_of
from ..estimators._context import visible
from ..estimators._conventions import require
from ..estimators._docstrings import complete_docstring
from ..estimators._training_data import as_outer
from ._build import BlockInput
from ._cluster import keep_value, reduce_tasks
from ._data import MEMORY, Data
from ._factorize import factorize
from ._on_cluster import PredictsOnCluster, gather
from ._waiting import result_of


@complete_docstring
class SSNMFClassifier(PredictsOnCluster, estimators.SSNMFClassifier):  # type: ignore[misc]
    """Semi-supervised NMF for classification, X ~ S A and Y ~ S B, of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.SSNMFClassifier`, but `n_components` and
    `supervision_weight` must be given, and nothing is validated: the attributes of a validation are
    missing.  Predictions for a dask array are lazy dask arrays.

    Parameters
    ----------
    n_components : int
        Rank r, at least 1; "auto" is refused.
    supervision_weight : float or "balanced"
        Weight of the loss of Y, at least 0; infinity for supports.  "auto" is refused.
    readout : {"auto", "refit", "joint"}
        How predictions are made; as in :class:`ssnmf_fast.SSNMFClassifier`, where "logistic" needs
        X in memory.  "auto" is "refit".
    self_training, class_weight : "auto"
        They belong to the logistic readout.
    solver, init, n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`; `init` may also be "labels".

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Factor S of the fit, cut as X is.

    Notes
    -----
    The labels of all samples come to the caller.  So do the representations of the labeled ones,
    an array (labeled samples, r), and their indicators, (labeled samples, k): B is fitted to
    them, and `class_shares_` are their means.  Files are as those of :class:`NMF`.
    """

    _kind: ClassVar = estimators.SSNMFClassifier
    _readouts: ClassVar[tuple[str, ...]] = ("auto", "refit", "joint")
    _auto_readout = "refit"

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        side: Any = None,
        client: Client | None = None,
        checkpoint: str | Path | None = None,
        memory: int = MEMORY,
    ) -> SSNMFClassifier:
        """Learn dictionary and classifier from samples and the labels of some of them.

        Parameters
        ----------
        X, X_weights, client, checkpoint, memory
            As in :func:`ssnmf_fast.dask.factorize`.
        y, sample_weight : array_like or dask.array.Array
            Labels of all samples, and their weights, as in memory.
        side : None
            Anything else is refused: side information needs samples in memory.
        """
        weights = {"X_weights": X_weights, "sample_weight": gather(client, sample_weight)}
        return self._fit_data(X, y, client, checkpoint, memory, side=side, **weights)

    def _learn(
        self,
        X: Data,
        y: Any,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        side: Any = None,
    ) -> None:
        require(self, X, y)
        if side is not None:
            raise ValueError(
                "side is given for data on a cluster; side information needs X in memory. Leave "
                "side out, or use ssnmf_fast.SSNMFClassifier."
            )
        for name in ("n_components", "supervision_weight"):
            if getattr(self, name) == "auto":
                raise ValueError(
                    f"{name} must be a number for data on a cluster; got 'auto', which is for "
                    "data in memory. Give what ssnmf_fast.SSNMFClassifier takes: the number of "
                    "classes, and infinity."
                )
        readout = self._chosen_readout()
        targets = labels_of(y, self.unlabeled)
        targets.check_fit()
        chosen = np.flatnonzero(targets.labeled)
        labels = _training_data.labels_for_training(targets, sample_weight, chosen)
        choice, _ = plan_of(self, labels, targets.classes)
        given = {"X": X, "X_weights": X_weights, "labels": labels, "chosen": chosen}
        blocks = LabeledBlocks.of(self, choice.n_components, **given)
        fit = blocks.fit_topics(choice.n_components, choice.supervision_weight)
        self._keep_classes(fit, targets.classes, labels)
        S = self._represent(replace(X, chosen=chosen), X_weights)
        if readout == "refit":
            self._refit_components(S, labels)
        shares = topic_shares(S[labels.known], self.components_)
        self.class_shares_ = labels.class_shares(shares)


@dataclass(frozen=True, kw_only=True)
class LabeledBlocks(LabeledSamples):
    """Samples on a cluster with the labels of some of them, the `chosen` ones."""

    X: Data
    chosen: Array

    @cached_property
    def _data(self) -> Data:
        return self.X.with_weights(self.X_weights, self.options["n_threads"])

    def overall_mean(self) -> Array:
        n = self._data.shape[0]
        sums = self._data.start(_weighted_sums, slice(None), np.full((1, 1), 1 / n))
        return np.asarray(reduce_tasks(self.X.client, sums)[0])

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
        rows, client = self.chosen[self.labels.known], self.X.client
        if isinstance(S, da.Array):
            return np.asarray(result_of(client, client.compute(_sum(S, rows))))
        blocks = replace(self._data, futures=S)
        sums = blocks.start(_sum, parts=blocks.parts(rows, everywhere=True))
        return np.asarray(reduce_tasks(client, sums))

    def targets(self) -> tuple[Any, Any]:
        members, n = sp.coo_array(self.labels.members), self.X.shape[0]
        entries = members.data, (self.chosen[members.row], members.col)
        Y = sp.csr_array(entries, shape=(n, members.shape[1])).astype(self.X.dtype)
        weights = self.labels.entry_weights
        if (weights == weights[:, :1]).all():
            rows = np.zeros(n)
            rows[self.chosen] = weights[:, 0]
            return Y, as_outer(rows)
        parts = self._data.parts(self.chosen, weights, everywhere=True)
        return Y, self._data.start(_spread, parts=parts)

    def factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        arguments |= self.options
        arguments |= {"client": self.X.client, "checkpoint": self.X.checkpoint}
        return factorize(self.X, Y, X_weights=self.X_weights, **arguments)


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


def _sum(S: Any, rows: Array) -> Any:
    return S[rows].sum(axis=0, dtype=np.float64)
