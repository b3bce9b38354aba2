"""What classifiers are trained on: labels with weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import check_vector
from .._labels import ClassLabels, Targets
from .._solver.weights import Outer
from .._topics import class_means


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of n samples."""

    members: Array  # (n, k): 1 for the classes of a sample, 0 elsewhere
    entry_weights: Array  # (n, k): how much each of these counts, 0 where it is unknown
    several: bool

    @property
    def known(self) -> Array:
        """Whether any label of a sample counts, (n,)."""
        return np.asarray(self.entry_weights.any(axis=1))

    @property
    def codes(self) -> Array:
        """Class of every sample, (n,); 0 where there is none."""
        return np.asarray(self.members.argmax(axis=1))

    @property
    def counts(self) -> Array:
        """Number of known samples of each class, (k,)."""
        return np.asarray((self.members[self.known] > 0).sum(axis=0))

    def prior(self) -> Array:
        """Return the share of each class among the samples of which it is known, (k,)."""
        seen = (self.entry_weights > 0).sum(axis=0)
        return np.asarray((self.members > 0).sum(axis=0) / np.maximum(seen, 1))

    def only(self, rows: Array) -> TrainingLabels:
        """Return the labels of some samples, all others being unknown."""
        return replace(self, entry_weights=self.entry_weights * rows[:, None])

    def part(self, rows: Array) -> TrainingLabels:
        """Return some samples with their labels."""
        return replace(self, members=self.members[rows], entry_weights=self.entry_weights[rows])

    def with_part(self, rows: Array, part: TrainingLabels) -> TrainingLabels:
        """Return the same with other labels of some samples."""
        members, weights = self.members.copy(), self.entry_weights.copy()
        members[rows], weights[rows] = part.members, part.entry_weights
        return replace(self, members=members, entry_weights=weights)

    def class_shares(self, shares: Array) -> Array:
        """Return the mean shares (r, k) of the classes, of the shares of the known samples."""
        rows = self.known
        return class_means(shares, self.members[rows] * (self.entry_weights[rows] > 0))

    def targets(self, rows: Array) -> Array:
        """Return what the readout is fitted to, for some rows: codes, or indicators."""
        return self.members[rows] if self.several else self.codes[rows]

    def readout_weights(self, rows: Array) -> Array:
        """Return weights for the readout, (rows,) or with several labels (rows, k)."""
        chosen = self.entry_weights[rows]
        if self.several:
            return chosen
        of_class = chosen[np.arange(len(chosen)), self.codes[rows]]
        return np.asarray(of_class / of_class.mean() if of_class.any() else of_class)


def label_weights(sample_weight: Any, labeled: Array) -> Array:
    """Return the weight of the labels of every sample, (n,): 0 where it is unlabeled."""
    if sample_weight is None:
        return labeled.astype(np.float64)
    given = check_vector(sample_weight, "sample_weight", len(labeled), np.float64)
    return np.where(labeled, given, 0.0)


def as_outer(rows: Array) -> Outer | None:
    """Return weights of samples as weights of Y; None stands for ones."""
    return None if (rows == 1).all() else Outer(rows, None)


def labels_for_training(
    targets: Targets, sample_weight: Any = None, chosen: Any = None
) -> TrainingLabels:
    """Return weighted labels, of `chosen` samples if given; those of weight 0 are unknown."""
    Y: Any = targets.matrix(np.float64)
    rows = label_weights(sample_weight, targets.labeled)
    if chosen is not None:
        Y, rows = Y[chosen], rows[chosen]
    members = Y.toarray() if sp.issparse(Y) else np.array(Y, dtype=np.float64)
    weights = np.where(np.isnan(members), 0.0, rows[:, None])
    if not weights.any():
        raise ValueError(
            "The weights of all labels are zero. Give at least one labeled sample a weight above 0."
        )
    members[weights == 0] = 0
    return TrainingLabels(members, weights, not isinstance(targets, ClassLabels))


def surest(chance: Array, share: float, among: Array) -> Array:
    """Return which samples are predicted most surely, (n,): a share of those of each class.

    `chance` (n, k) are the probabilities, and `among` (n,) the samples that are looked at.
    """
    predicted, sureness = chance.argmax(axis=1), chance.max(axis=1)
    chosen = np.zeros(len(chance), dtype=bool)
    for c in range(chance.shape[1]):
        rows = np.flatnonzero((predicted == c) & among)
        order = np.argsort(-sureness[rows], kind="stable")
        chosen[rows[order[: math.ceil(share * len(rows))]]] = True
    return chosen
