"""A committee: the logits of its members are added with weights, fitted to validated predictions.

The weights are drawn to those of a prior, which matter while labels are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from .._common.arrays import Array
from ._members import LARGEST_LOGIT
from ._training_data import TrainingLabels

_PULL = 4.0  # of the prior on a weight, for each class: as much as some labels
_TEMPERATURES = np.geomspace(0.01, 3.0, 40)
_PULL_OF_TEMPERATURE = 1.0  # to 1, on its logarithm, for each class
_SMALLEST_WEIGHT = 0.01  # of a member that is kept


def probabilities(logits: Array, several: bool) -> Array:
    """Return probabilities that are never exactly 0 or 1, (n, k)."""
    if several:
        return np.asarray(expit(np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)))
    below = np.maximum(logits - logits.max(axis=1, keepdims=True), -LARGEST_LOGIT)
    return np.asarray(softmax(below, axis=1))


@dataclass(frozen=True)
class Truth:
    """What validated predictions are compared with."""

    members: Array  # (n, k): 1 for the classes of a sample, 0 elsewhere
    weights: Array  # (n, k), of the samples; 0 for an entry that is not known
    several: bool

    @classmethod
    def of(cls, labels: TrainingLabels, rows: Array) -> Truth:
        """Return the labels of some samples."""
        weights = (labels.entry_weights[rows] > 0) * labels.weight[rows, None]
        return cls(labels.members[rows], weights, labels.several)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes that a prediction chooses from: of each label two."""
        return 2 if self.several else self.members.shape[1]

    def __getitem__(self, rows: Array) -> Truth:
        return Truth(self.members[rows], self.weights[rows], self.several)

    def loss(self, logits: Array) -> tuple[float, Array]:
        """Return the log loss of logits (n, k), summed, and its gradient."""
        if self.several:
            signed = np.where(self.members > 0, logits, -logits)
            losses = np.logaddexp(0, -signed) * self.weights
            return float(losses.sum()), (expit(logits) - self.members) * self.weights
        chances, weight = log_softmax(logits, axis=1), self.weights[:, :1]
        loss = -float((chances * self.members * weight).sum())
        return loss, (np.exp(chances) - self.members) * weight


def temperature(logits: Array, truth: Truth) -> float:
    """Return what to multiply logits by, so that they are as sure as they are right."""
    if not len(logits):
        return 1.0
    pulls = _PULL_OF_TEMPERATURE * truth.n_outcomes * np.log(_TEMPERATURES) ** 2
    losses = [truth.loss(t * logits)[0] for t in _TEMPERATURES]
    return float(_TEMPERATURES[np.argmin(losses + pulls)])


def pooled(logits: dict[str, Array], weights: dict[str, float]) -> Array:
    """Return the weighted sum of logits."""
    return np.asarray(sum(weights[name] * each for name, each in logits.items()))


def fit_weights(
    logits: dict[str, Array], truth: Truth, prior: dict[str, float]
) -> dict[str, float]:
    """Return the weights of the members that minimize the log loss of the sum, from a prior.

    `logits` are the validated ones.  Weights are not negative.
    """
    if not len(truth.members):
        return dict(prior)
    scales = {name: temperature(each, truth) for name, each in logits.items()}
    each = np.stack([scales[name] * logits[name] for name in prior])
    start, pull = np.array(list(prior.values())), _PULL * truth.n_outcomes

    def objective(weights: Array) -> tuple[float, Array]:
        loss, gradient = truth.loss(np.tensordot(weights, each, 1))
        away = weights - start
        slopes = np.tensordot(each, gradient, 2) + pull * away
        return loss + pull / 2 * float(away @ away), slopes

    bounds = [(0, None)] * len(start)
    found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    found[found < _SMALLEST_WEIGHT * found.sum()] = 0
    return {name: float(w * scales[name]) for name, w in zip(prior, found, strict=True)}


def cross_fitted(
    logits: dict[str, Array], truth: Truth, prior: dict[str, float], folds: Array
) -> Array:
    """Return the pooled logits of each fold, with weights that were fitted without it, (n, k)."""
    found = np.zeros_like(truth.members, dtype=np.float64)
    for fold in np.unique(folds):
        hidden = folds == fold
        seen = {name: each[~hidden] for name, each in logits.items()}
        weights = fit_weights(seen, truth[~hidden], prior)
        found[hidden] = pooled({name: each[hidden] for name, each in logits.items()}, weights)
    return found
