"""Weighted labels for the training of classifiers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_softmax

from .._common.arrays import Array, Matrix, VectorLike
from .._data.border import check_vector
from .._data.csr_file import CsrFile
from .._labels import Targets
from .._solver.build import as_weights
from .._solver.weights import Outer, SampleWeights, WeightsLike
from .._topics import class_means


@dataclass(frozen=True)
class TrainingLabels:
    members: Array  # (n, k): whether a sample has a class, or real targets
    entry_weights: Array  # (n, 1), or (n, k): weight of each label, 0 where it is unknown
    several: bool
    sample_weight: Array | None = None  # (n,), of samples; None means ones

    @property
    def known(self) -> Array:
        """Whether a sample has a label with positive weight, (n,)."""
        return np.asarray(self.entry_weights.any(axis=1))

    @property
    def codes(self) -> Array:
        """Class of each sample, (n,); 0 if unlabeled."""
        return np.asarray(self.members.argmax(axis=1))

    @property
    def counts(self) -> Array:
        """Number of known samples of each class, (k,)."""
        return np.asarray((self.members[self.known] > 0).sum(axis=0))

    @property
    def weight(self) -> Array:
        """Weights of the samples, (n,)."""
        return np.ones(len(self.members)) if self.sample_weight is None else self.sample_weight

    @property
    def counted(self) -> Array:
        """Weights of the samples, as `entry_weights`; 0 where a label is unknown."""
        return np.asarray((self.entry_weights > 0) * self.weight[:, None])

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes of a prediction: two for each of several labels."""
        return 2 if self.several else self.members.shape[1]

    def prior(self) -> Array:
        """Return the share of each class among the samples for which it is known, (k,)."""
        seen, rows = self.counted.sum(axis=0), self.known
        sums = (self.weight[rows, None] * (self.members[rows] > 0)).sum(axis=0)
        return np.asarray(sums / np.where(seen > 0, seen, 1))

    def loss(self, logits: Array) -> tuple[float, Array]:
        """Return the log loss of logits (n, k), summed, and its gradient."""
        if self.several:
            signed = np.where(self.members > 0, logits, -logits)
            losses = np.logaddexp(0, -signed) * self.counted
            return float(losses.sum()), (expit(logits) - self.members) * self.counted
        chances, weight = log_softmax(logits, axis=1), self.counted[:, :1]
        loss = -float((chances * self.members * weight).sum())
        return loss, (np.exp(chances) - self.members) * weight

    def inputs(self) -> dict[str, Any]:
        """Return the labels and their weights, as inputs of a receipt."""
        weights = np.broadcast_to(self.entry_weights, self.members.shape)
        return {"labels": sp.csr_array(self.members), "label_weight": weights}

    def require_two_classes(self) -> None:
        """Raise ValueError if only one class has labels with positive weight."""
        if not self.several and (self.counts > 0).sum() < 2:
            raise ValueError(
                "Only one class has labels with a weight above 0; at least two classes are needed."
            )

    def only(self, rows: Array) -> TrainingLabels:
        """Return the labels with only some samples known."""
        return replace(self, entry_weights=self.entry_weights * rows[:, None])

    def part(self, rows: Array) -> TrainingLabels:
        members, weights, weight = self.members[rows], self.entry_weights[rows], self.sample_weight
        weight = None if weight is None else weight[rows]
        return replace(self, members=members, entry_weights=weights, sample_weight=weight)

    def with_part(self, rows: Array, members: Array, weights: Array | float) -> TrainingLabels:
        """Return the labels with those of some samples replaced."""
        all_members, all_weights = self.members.copy(), self.entry_weights.copy()
        all_members[rows], all_weights[rows] = members, weights
        return replace(self, members=all_members, entry_weights=all_weights)

    def class_shares(self, shares: Array) -> Array:
        """Return the mean shares of topics per class, (r, k), from those of the known samples."""
        rows = self.known
        indicators = self.members[rows] * (self.entry_weights[rows] > 0)
        return class_means(shares, indicators, self.weight[rows])

    def readout_weights(self, rows: Array) -> Array:
        """Return weights for the readout, (rows,) or with several labels (rows, k)."""
        chosen, weight = self.entry_weights[rows], self.weight[rows]
        if self.several:
            return np.broadcast_to(chosen * weight[:, None], self.members[rows].shape)
        of_class = chosen[:, 0]
        mean = np.average(of_class, weights=weight) if of_class.any() else 1.0
        return np.asarray(of_class / mean * weight)


def checked_weight(sample_weight: VectorLike, n: int, name: str = "sample_weight") -> Array | None:
    """Return weights of n samples, float64; None means ones."""
    return None if sample_weight is None else check_vector(sample_weight, name, n, np.float64)


def with_sample_weight(X: Matrix, X_weights: WeightsLike, sample_weight: Array | None) -> Any:
    """Return the weights of X multiplied by those of the samples."""
    if sample_weight is None:
        return X_weights
    if isinstance(X, CsrFile):
        hint = "Load X into memory, or use label_weight, which weights only the labels."
        raise ValueError(f"sample_weight must be None for a matrix on disk. {hint}")
    if X_weights is None:
        return SampleWeights(sample_weight, None)
    return as_weights(X_weights, "X_weights").with_rows(sample_weight, "X_weights")


def label_weights(
    labeled: Array, label_weight: VectorLike = None, sample_weight: VectorLike = None
) -> Array:
    """Return the weight of the labels of each sample, (n,); 0 for unlabeled samples."""
    found = labeled.astype(np.float64)
    for name, given in (("label_weight", label_weight), ("sample_weight", sample_weight)):
        weight = checked_weight(given, len(labeled), name)
        found = found if weight is None else np.where(labeled, found * weight, 0.0)
    return found


def as_outer(rows: Array) -> Outer | None:
    """Return weights of samples as weights of Y; None means ones."""
    return None if (rows == 1).all() else Outer(rows, None)


def labels_for_training(
    targets: Targets,
    label_weight: VectorLike = None,
    sample_weight: VectorLike = None,
    chosen: Array | slice | None = None,
) -> TrainingLabels:
    """Return the weighted labels of all or `chosen` samples; labels with weight 0 are unknown."""
    Y: Any = targets.matrix(np.float64)
    rows = label_weights(targets.labeled, label_weight)
    weight = checked_weight(sample_weight, len(rows))
    if weight is not None:
        rows = np.where(weight > 0, rows, 0)
    if chosen is not None:
        Y, rows, weight = Y[chosen], rows[chosen], None if weight is None else weight[chosen]
    members = Y.astype(bool).toarray() if sp.issparse(Y) else np.array(Y, dtype=np.float64)
    weights, missing = rows[:, None], np.isnan(members)
    if missing.any():
        weights = np.where(missing, 0.0, weights)
    if not weights.any():
        raise ValueError("The weights of all labels are zero; at least one must be positive.")
    members[np.broadcast_to(weights == 0, members.shape)] = 0
    return TrainingLabels(members, weights, targets.several, weight)


def represented(represent: Any, X: Matrix, X_weights: WeightsLike, rows: Array) -> Array:
    """Represent some samples: they alone if X is in memory and has no weights."""
    in_memory = isinstance(X, np.ndarray) or sp.issparse(X)
    alone = X_weights is None and in_memory and len(np.arange(X.shape[0])[rows]) < X.shape[0]
    return np.asarray(represent(X[rows], None) if alone else represent(X, X_weights)[rows])


def surest(chance: Array, share: float, among: Array) -> Array:
    """Return which samples have the most certain predictions, (n,): a share of each class."""
    predicted, sureness = chance.argmax(axis=1), chance.max(axis=1)
    chosen = np.zeros(len(chance), dtype=bool)
    for c in range(chance.shape[1]):
        rows = np.flatnonzero((predicted == c) & among)
        order = np.argsort(-sureness[rows], kind="stable")
        chosen[rows[order[: math.ceil(share * len(rows))]]] = True
    return chosen
