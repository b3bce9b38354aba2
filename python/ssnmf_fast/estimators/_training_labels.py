"""Labels with their weights, in the form in which classifiers are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import as_array, unmasked
from .._labels import ClassLabels, Targets
from .._solver.weights import Entrywise, Outer, as_weights


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of n samples.

    `members` (n, k) holds 1 for the classes of a sample and 0 elsewhere, `entry_weights` (n, k) how
    much each of these entries counts, 0 where it is unknown; `known` (n,) marks the samples of
    which any counts.
    """

    members: Array
    entry_weights: Array
    several: bool

    @property
    def known(self) -> Array:
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

    def targets(self, rows: Array) -> Array:
        """Return what the readout is fitted to, for some rows: codes, or indicators."""
        return self.members[rows] if self.several else self.codes[rows]

    def readout_weights(self, rows: Array) -> Array:
        """Return weights for the readout, (rows,) or with several labels (rows, k)."""
        chosen = self.entry_weights[rows]
        if self.several:
            return chosen
        own = chosen[np.arange(len(chosen)), self.codes[rows]]
        return np.asarray(own / own.mean() if own.any() else own)


def combined_weights(given: Any, labelled: Array, shape: tuple[int, int]) -> Any:
    """Return the weights of Y: what the caller gave, and 0 in unlabelled rows."""
    if given is None and labelled.all():
        return None
    weights = as_weights(given, "y_weights")
    if isinstance(weights, Entrywise):
        array = as_array(unmasked(given, "y_weights", allow_nan=False), "y_weights")
        if array.shape == labelled.shape:
            weights = Outer(array, None)
        elif array.shape != shape:
            raise ValueError(
                f"y_weights has shape {array.shape}; expected {shape[:1]} for weights of the "
                f"samples, or {shape}, one for each entry of the target matrix."
            )
    return weights.with_rows(labelled.astype(np.float64), "y_weights")


def labels_for_training(
    targets: Targets, y_weights: Any, sample_weight: Any = None, chosen: Any = None
) -> TrainingLabels:
    """Return labels with the weight of each entry; a label of weight 0 is unknown.

    The weights are those of ``fit``; `sample_weight` (n,) is multiplied with `y_weights`.  With
    `chosen`, numbers of samples, the result has these only: all others take no memory.
    """
    Y: Any = targets.matrix(np.float64)
    n, labelled = Y.shape[0], targets.labelled
    combined = combined_weights(y_weights, labelled, Y.shape)
    if chosen is not None:
        Y, labelled = Y[chosen], labelled[chosen]
        combined = None if combined is None else _part(combined, chosen)
    members = Y.toarray() if sp.issparse(Y) else np.array(Y, dtype=np.float64)
    given = np.ones(members.shape) if combined is None else combined.dense(members.shape)
    if sample_weight is not None:
        given_rows = unmasked(sample_weight, "sample_weight", allow_nan=False)
        rows = as_array(given_rows, "sample_weight").astype(np.float64)
        if rows.shape != (n,):
            raise ValueError(
                f"sample_weight has shape {rows.shape}; expected {(n,)}, one weight for each "
                "sample."
            )
        given = given * (rows if chosen is None else rows[chosen])[:, None]
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("y_weights and sample_weight must be finite and at least 0.")
    unknown = np.isnan(members)
    members[unknown] = 0
    given = np.where(labelled[:, None] & ~unknown, given, 0.0)
    if not given.any():
        raise ValueError(
            "The weights of all labels are zero. Give at least one labelled sample a weight "
            "above 0."
        )
    several = not isinstance(targets, ClassLabels)
    if not several:  # the label of a sample counts or does not, as a whole
        given = np.repeat(_own(given, members), members.shape[1], axis=1)
    return TrainingLabels(np.where(given > 0, members, 0), given, several)


def _part(weights: Any, rows: Array) -> Any:
    """Return the weights of some samples, as :func:`combined_weights` made them."""
    if isinstance(weights, Outer):
        return Outer(None if weights.rows is None else weights.rows[rows], weights.columns)
    if isinstance(weights, Entrywise):
        return Entrywise(weights.array[rows])
    return type(weights)(weights.pattern[rows])


def check_classes(labels: TrainingLabels) -> None:
    """Raise ValueError unless labels of two classes count."""
    if not labels.several and (labels.counts > 0).sum() < 2:
        raise ValueError(
            "The labels of one class only have a weight above 0; expected two classes. Give "
            "labelled samples of another class a weight above 0."
        )


def _own(given: Array, members: Array) -> Array:
    return np.asarray((given * members).sum(axis=1, keepdims=True))
