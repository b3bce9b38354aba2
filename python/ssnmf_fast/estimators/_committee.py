"""A committee: the logits of its members are added with weights, fitted to validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import binomtest

from .._common.arrays import Array
from .._data.threads import one_blas_thread
from ._members import LARGEST_LOGIT, Linear, fit_logistic
from ._training_data import TrainingLabels
from ._views import Tables

LEAST_PER_CLASS = 3  # labeled samples of a class on average, for validation
_FOUR_FOLDS, _ONE_FOLD = 60, 400  # four folds below so many labels, one from so many on
_MOST_VALIDATED = 1000


def folds_of(labels: TrainingLabels, seed: int) -> Array:
    """Return the fold in which each label is hidden, (n,): -1 for never, as for few labels."""
    rows = np.flatnonzero(labels.known)
    counts = labels.counts
    occurring = counts[counts > 0]
    folds = np.full(len(labels.members), -1)
    if len(rows) < LEAST_PER_CLASS * max(len(occurring), 2):
        return folds
    rows = np.random.default_rng(seed).permutation(rows)
    if labels.several:
        order = rows
    else:  # a class is spread over the folds, and its only sample never hidden
        order = rows[np.argsort(labels.codes[rows], kind="stable")]
        order = order[counts[labels.codes[order]] > 1]
    if len(order) < 2 * LEAST_PER_CLASS:
        return folds
    numbers = np.arange(len(order)) % (4 if len(order) < _FOUR_FOLDS else 3)
    if len(order) >= _ONE_FOLD:  # one fit is enough then
        every = max(3, -(-len(order) // _MOST_VALIDATED))
        numbers = np.where(np.arange(len(order)) % every == 0, 0, -1)
    folds[order] = numbers
    return folds


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


_PENALTY = 10.0  # C, for rows of length 1
_CHANCE = 0.01  # that a table of noise teaches


def fit_tables(
    tables: Tables, names: set[str], labels: TrainingLabels, class_weight: Any
) -> dict[str, Linear]:
    """Fit a member to each table that is among the names."""
    rows, used = labels.known, [name for name in tables if name in names]
    return {name: _fit_table(tables[name][rows], labels, class_weight) for name in used}


@one_blas_thread()
def _fit_table(table: Any, labels: TrainingLabels, class_weight: Any) -> Linear:
    coefficients, intercepts = fit_logistic(table, labels, _PENALTY, class_weight)
    return Linear(intercepts, rows=coefficients)


@one_blas_thread()
def table_logits(member: Linear, table: Any) -> Array:
    """Return the logits of rows of a table, (rows, k)."""
    assert member.rows is not None
    return np.asarray(table @ member.rows.T) + member.intercepts


def joined(
    tables: Tables, members: dict[str, Linear], weights: dict[str, float], k: int
) -> tuple[Array | None, Array]:
    """Return the weighted coefficients of all tables, (k, q) or None, and intercepts, (k,)."""
    intercepts, parts = np.zeros(k), []
    for name, table in tables.items():
        member = members.get(name)
        if member is None or member.rows is None:  # no weight
            parts.append(np.zeros((k, table.shape[1])))
            continue
        parts.append(weights[name] * member.rows)
        intercepts += weights[name] * member.intercepts
    return np.hstack(parts) if parts else None, intercepts


@one_blas_thread()
def products_of_tables(tables: Tables, coefficients: Array) -> dict[str, Array]:
    """Return the product of each table with its part of the coefficients of all, (n, k)."""
    ends = np.cumsum([table.shape[1] for table in tables.values()])
    parts = np.split(coefficients, ends[:-1], axis=1)
    return {
        name: np.asarray(table @ part.T)
        for (name, table), part in zip(tables.items(), parts, strict=True)
    }


def product_of_tables(tables: Tables, coefficients: Array) -> Array:
    """Return the sum of the products, (n, k)."""
    return np.asarray(sum(products_of_tables(tables, coefficients).values()))


def with_tables(scores: Array, readout: Any, tables: Tables) -> Array:
    """Return scores of samples, (n, k), and what their tables add to these."""
    if not tables:
        return scores
    return np.asarray(scores + readout.slopes * product_of_tables(tables, readout.side))


def taught_by_tables(
    tables: Tables, labels: TrainingLabels, seed: int, class_weight: Any
) -> Array | None:
    """Return what tables add to the logits of labels for self-training, (n, k), or None.

    A table teaches only if it predicts hidden labels better than their largest class: even faint
    noise among the labels costs more than a poor table could add.
    """
    folds, taught = folds_of(labels, seed), None
    rows = folds >= 0
    if not rows.any():
        return None
    truth = Truth.of(labels, rows)
    for table in tables.values():
        hidden = _hidden_logits(table, labels, folds, class_weight)[rows]
        if not _is_informative(hidden, truth):
            continue
        member = _fit_table(table[labels.known], labels, class_weight)
        own = temperature(hidden, truth) * table_logits(member, table)
        taught = own if taught is None else taught + own
    return taught


def _hidden_logits(table: Any, labels: TrainingLabels, folds: Array, class_weight: Any) -> Array:
    """Return what a table predicts for the labels that a fold hides, (n, k); 0 for others."""
    found = np.zeros(labels.members.shape)
    for fold in range(int(folds.max()) + 1):
        hidden = folds == fold
        seen = labels.only(~hidden)
        member = _fit_table(table[seen.known], seen, class_weight)
        found[hidden] = table_logits(member, table[hidden])
    return found


def _is_informative(logits: Array, truth: Truth) -> bool:
    weight, right = truth.weights[:, 0], logits.argmax(axis=1) == truth.members.argmax(axis=1)
    largest = float(np.average(truth.members, axis=0, weights=weight).max())
    counts = round(float(weight @ right)), round(float(weight.sum()))
    return bool(binomtest(*counts, largest, alternative="greater").pvalue < _CHANCE)
