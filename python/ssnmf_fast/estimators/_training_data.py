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
from .._data.csr_file import CsrFile, chosen_blocks
from .._labels import Targets
from .._solver.build import as_weights
from .._solver.weights import Outer, SampleWeights, WeightsLike
from .._topics import class_means


@dataclass(frozen=True)
class Truth:
    """Weighted labels of samples, some of which may have none."""

    members: Array  # (n, k): whether a sample has a class, or real targets
    entry_weights: Array  # (n, 1), or (n, k): weight of each label, 0 where it is unknown
    several: bool
    sample_weight: Array | None = None  # (n,), of samples; None means ones

    @property
    def codes(self) -> Array:
        """Class of each sample, (n,)."""
        return np.asarray(self.members.argmax(axis=1))

    @property
    def counts(self) -> Array:
        """Number of samples of each class, (k,)."""
        return np.asarray((self.members > 0).sum(axis=0))

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

    def loss(self, logits: Array) -> tuple[float, Array]:
        """Return the log loss of logits (n, k), summed, and its gradient."""
        if self.several:
            signed = np.where(self.members > 0, logits, -logits)
            losses = np.logaddexp(0, -signed) * self.counted
            return float(losses.sum()), (expit(logits) - self.members) * self.counted
        chances, weight = log_softmax(logits, axis=1), self.counted[:, :1]
        loss = -float((chances * self.members * weight).sum())
        return loss, (np.exp(chances) - self.members) * weight

    def part(self, rows: Array) -> Truth:
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Truth(self.members[rows], self.entry_weights[rows], self.several, weight)

    def class_shares(self, shares: Array) -> Array:
        """Return the mean shares of topics per class, (r, k), from those of the samples."""
        return class_means(shares, self.members * (self.entry_weights > 0), self.weight)

    def readout_weights(self) -> Array:
        """Return weights for the readout, (n,) or with several labels (n, k)."""
        weight = self.weight
        if self.several:
            return np.broadcast_to(self.entry_weights * weight[:, None], self.members.shape)
        of_class = self.entry_weights[:, 0]
        mean = np.average(of_class, weights=weight) if of_class.any() else 1.0
        return np.asarray(of_class / mean * weight)


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of some of n samples."""

    rows: Array  # sorted numbers of the samples that have a label with positive weight, (l,)
    truth: Truth  # of these samples
    n: int
    sample_weight: Array | None = None  # of all samples, (n,); None means ones

    @property
    def several(self) -> bool:
        return self.truth.several

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of classes."""
        return self.n, self.truth.members.shape[1]

    @property
    def known(self) -> Array:
        """Whether a sample has a label with positive weight, (n,)."""
        return self.spread(np.ones(len(self.rows), dtype=bool))

    @property
    def weight(self) -> Array:
        """Weights of the samples, (n,)."""
        return np.ones(self.n) if self.sample_weight is None else self.sample_weight

    @property
    def of_all(self) -> Truth:
        """The labels as a :class:`Truth` of all samples."""
        truth = self.truth
        arrays = self.spread(truth.members), self.spread(truth.entry_weights)
        return Truth(*arrays, truth.several, self.sample_weight)

    def spread(self, values: Array) -> Array:
        """Return values of the labeled samples as values of all, 0 for the others."""
        values_of_all = np.zeros((self.n, *values.shape[1:]), dtype=values.dtype)
        values_of_all[self.rows] = values
        return values_of_all

    def prior(self) -> Array:
        """Return the share of each class among the samples for which it is known, (k,)."""
        truth, seen = self.truth, self.spread(self.truth.counted).sum(axis=0)
        sums = (truth.weight[:, None] * (truth.members > 0)).sum(axis=0)
        return np.asarray(sums / np.where(seen > 0, seen, 1))

    def indicators(self) -> sp.csr_array:
        """Return the members of all samples, (n, k)."""
        members = sp.coo_array(self.truth.members)
        places = self.rows[members.row], members.col
        return sp.csr_array((members.data, places), shape=self.shape)

    def inputs(self) -> dict[str, Any]:
        """Return the labels and their weights, as inputs of a receipt."""
        weights = np.broadcast_to(self.spread(self.truth.entry_weights), self.shape)
        return {"labels": self.indicators(), "label_weight": weights}

    def require_two_classes(self) -> None:
        """Raise ValueError if only one class has labels with positive weight."""
        if not self.several and (self.truth.counts > 0).sum() < 2:
            raise ValueError(
                "Only one class has labels with a weight above 0; at least two classes are needed."
            )

    def only(self, chosen: Array) -> TrainingLabels:
        """Return the labels of chosen samples, (n,); the others become unlabeled."""
        is_labeled = chosen[self.rows]
        return replace(self, rows=self.rows[is_labeled], truth=self.truth.part(is_labeled))

    def part(self, chosen: Array) -> TrainingLabels:
        """Return chosen samples, (n,), and their labels."""
        numbers, only = np.flatnonzero(chosen), self.only(chosen)
        weight = None if self.sample_weight is None else self.sample_weight[numbers]
        rows = np.searchsorted(numbers, only.rows)
        return TrainingLabels(rows, only.truth, len(numbers), weight)

    def with_labels(self, rows: Array, members: Array, entry_weights: Array) -> TrainingLabels:
        """Return the labels and those of other samples."""
        all_rows, old = np.concatenate([self.rows, rows]), self.truth
        order = np.argsort(all_rows)
        pairs = (old.members, members), (old.entry_weights, entry_weights)
        members, entry_weights = (np.concatenate(pair)[order] for pair in pairs)
        weight = None if self.sample_weight is None else self.sample_weight[all_rows[order]]
        truth = Truth(members, entry_weights, old.several, weight)
        return replace(self, rows=all_rows[order], truth=truth)


def checked_weight(sample_weight: VectorLike, n: int, name: str = "sample_weight") -> Array | None:
    """Return weights of n samples, float64; None means ones."""
    return None if sample_weight is None else check_vector(sample_weight, name, n, np.float64)


def with_sample_weight(X: Matrix, X_weights: WeightsLike, sample_weight: VectorLike) -> Any:
    """Return the weights of X multiplied by those of the samples."""
    weight = checked_weight(sample_weight, X.shape[0])
    if weight is None:
        return X_weights
    if isinstance(X, CsrFile):
        hint = "Load X into memory, or use label_weight, which weights only the labels."
        raise ValueError(f"sample_weight must be None for a matrix on disk. {hint}")
    if X_weights is None:
        return SampleWeights(weight, None)
    return as_weights(X_weights, "X_weights").with_rows(weight, "X_weights")


def label_weights(
    labeled: Array, label_weight: VectorLike = None, sample_weight: VectorLike = None
) -> Array:
    """Return the weight of the labels of each sample, (n,); 0 for unlabeled samples."""
    weights = labeled.astype(np.float64)
    for name, argument in (("label_weight", label_weight), ("sample_weight", sample_weight)):
        weight = checked_weight(argument, len(labeled), name)
        weights = weights if weight is None else np.where(labeled, weights * weight, 0.0)
    return weights


def as_outer(rows: Array) -> Outer | None:
    """Return weights of samples as weights of Y; None means ones."""
    return None if (rows == 1).all() else Outer(rows, None)


def inputs_of_targets(
    X: Matrix, targets: Targets, X_weights: WeightsLike, **weights: VectorLike
) -> dict[str, Any]:
    """Return targets, their weights and those of X, as inputs of a factorization."""
    y_weights = as_outer(label_weights(targets.labeled, **weights))
    X_weights = with_sample_weight(X, X_weights, weights.get("sample_weight"))
    return {"X_weights": X_weights, "y": targets.matrix(X.dtype), "y_weights": y_weights}


def labels_for_training(
    targets: Targets, label_weight: VectorLike = None, sample_weight: VectorLike = None
) -> TrainingLabels:
    """Return the weighted labels of samples; labels with weight 0 are unknown."""
    weights = label_weights(targets.labeled, label_weight)
    weight = checked_weight(sample_weight, n := len(weights))
    if weight is not None:
        weights = np.where(weight > 0, weights, 0)
    rows = np.flatnonzero(weights)
    if not len(rows):
        raise ValueError("The weights of all labels are zero; at least one must be positive.")
    Y: Any = targets.matrix(np.float64)[rows]
    members = Y.astype(bool).toarray() if sp.issparse(Y) else np.array(Y, dtype=np.float64)
    of_labels, missing = weights[rows, None], np.isnan(members)
    if missing.any():
        of_labels, members = np.where(missing, 0.0, of_labels), np.where(missing, 0.0, members)
    truth = Truth(members, of_labels, targets.several, None if weight is None else weight[rows])
    return TrainingLabels(rows, truth, n, weight)


def weights_of(rows: Array, X_weights: WeightsLike) -> WeightsLike:
    """Return the weights of X of some samples."""
    if X_weights is None:
        return None
    weights = as_weights(X_weights, "X_weights")
    return weights if weights.by_rows is None else weights[rows]


def represented(represent: Any, X: Any, X_weights: WeightsLike, rows: Array) -> Array:
    """Represent some samples, given by their sorted numbers."""
    if len(rows) == X.shape[0]:
        return np.asarray(represent(X, X_weights))
    if isinstance(X, CsrFile):  # which takes no weights
        return np.vstack([represent(part, None) for _, part in chosen_blocks(X, rows)])
    return np.asarray(represent(X[rows], weights_of(rows, X_weights)))


def surest(chance: Array, share: float, among: Array) -> Array:
    """Return which samples have the most certain predictions, (n,): a share of each class."""
    predicted, sureness = chance.argmax(axis=1), chance.max(axis=1)
    is_sure = np.zeros(len(chance), dtype=bool)
    for c in range(chance.shape[1]):
        rows = np.flatnonzero((predicted == c) & among)
        order = np.argsort(-sureness[rows], kind="stable")
        is_sure[rows[order[: math.ceil(share * len(rows))]]] = True
    return is_sure
