"""Members of a committee: each predicts classes from what it sees of a sample.

All but the neighbors are linear, up to a number that is the same for all classes of a sample: their
weighted sum is one linear function again, so that predictions cost no more than those of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.svm import LinearSVC

from .._common.arrays import Array
from .._data.arrays import scale_rows
from .._data.threads import one_blas_thread
from ._training_data import TrainingLabels
from ._views import Context

LARGEST_LOGIT = 30.0  # probabilities stay above 1e-13
_NEGLIGIBLE = 1e-15  # a weight beside the penalty; LIBLINEAR does not end for subnormal ones
_MAX_ITER = 1000
_IN_SPAN = 1000  # labeled samples up to which the unknowns are as many as these
_SPAN_TOLERANCE = 1e-10  # of the variance, below which a direction of the span is rounding
_SMOOTHING = 0.3


@dataclass(frozen=True)
class Linear:
    """Logits (n, k) as sums over parts of a sample.

    The parts are the Hellinger coordinates of its topic shares (coefficients k x r), its scores in
    the leading directions (k x d), and its row of length 1 (k x m).
    """

    intercepts: Array
    topics: Array | None = None
    scores: Array | None = None
    rows: Array | None = None

    @one_blas_thread()
    def logits(self, context: Context, shares: Array) -> Array:
        """Return the logits of samples."""
        found = np.zeros((len(shares), len(self.intercepts))) + self.intercepts
        if self.topics is not None:
            found += np.sqrt(shares) @ self.topics.T
        if self.scores is not None:
            found += context.scores @ self.scores.T
        if self.rows is not None:
            found += np.asarray(context.rows @ self.rows.T)
        return found

    def scaled(self, weight: float) -> Linear:
        """Return the same, times a weight."""
        parts = (self.topics, self.scores, self.rows)
        scaled = (None if part is None else weight * part for part in parts)
        return Linear(weight * self.intercepts, *scaled)

    def __add__(self, other: Linear) -> Linear:
        own = self.topics, self.scores, self.rows
        others = other.topics, other.scores, other.rows
        pairs = zip(own, others, strict=True)
        added = (b if a is None else a if b is None else a + b for a, b in pairs)
        return Linear(self.intercepts + other.intercepts, *added)


@one_blas_thread()
def fit_readout(
    context: Context,
    shares: Array,
    labels: TrainingLabels,
    row_scale: float = 1.0,
    C: float = 10.0,
    class_weight: Any = None,
) -> Linear:
    """Fit logistic regression on topics, scores and rows to known labels.

    Context and shares are those of the samples with known labels.
    """
    topics, parts = np.sqrt(shares), []
    if context:
        parts = [context.scores, row_scale * context.rows]
    features: Any = topics
    if parts and sp.issparse(parts[1]):
        features = sp.csr_array(sp.hstack([sp.csr_array(part) for part in (topics, *parts)]))
    elif parts:
        features = np.hstack([topics, *parts])
    coefficients, intercepts = fit_logistic(features, labels, C, class_weight)
    r = topics.shape[1]
    if not parts:
        return Linear(intercepts, coefficients)
    d = r + parts[0].shape[1]
    rows = row_scale * coefficients[:, d:]
    return Linear(intercepts, coefficients[:, :r], coefficients[:, r:d], rows)


@one_blas_thread()
def fit_coordinates(
    context: Context, labels: TrainingLabels, C: float, class_weight: Any = None
) -> Linear:
    """Fit logistic regression to the coordinates in all directions, not brought to length 1."""
    coefficients, intercepts = fit_logistic(context.coordinates, labels, C, class_weight)
    return Linear(intercepts, rows=coefficients @ context.directions)


@one_blas_thread()
def fit_margins(context: Context, labels: TrainingLabels, class_weight: Any = None) -> Linear:
    """Fit linear support vector machines to rows, one for each class."""
    codes, weights = labels.codes[labels.known], labels.readout_weights(labels.known)
    present, k = np.unique(codes), labels.members.shape[1]
    if len(present) == 1:
        return _of_classes(present, np.zeros((1, context.rows.shape[1])), np.zeros(1), k)
    # The solver of the dual draws from one random generator for all threads.
    machine = LinearSVC(dual=False, class_weight=class_weight)
    machine.fit(context.rows, codes, sample_weight=weights)
    coefficients, intercepts = _of_both_classes(machine)
    return _of_classes(present, coefficients, intercepts, k)


@one_blas_thread()
def fit_naive_bayes(context: Context, labels: TrainingLabels) -> Linear:
    """Fit naive Bayes to rows: its complement (Rennie 2003), or for several labels the plain."""
    rows, weights = context.rows, labels.readout_weights(labels.known)
    k = labels.members.shape[1]
    if labels.several:
        coefficients, intercepts = np.zeros((k, rows.shape[1])), np.zeros(k)
        for label in range(k):
            truth, used = labels.members[labels.known, label] > 0, weights[:, label] > 0
            intercepts[label] = _log_odds(truth[used], labels.weight[labels.known][used])
            if truth[used].all() or not truth[used].any():
                continue
            machine = MultinomialNB(alpha=_SMOOTHING)
            machine.fit(rows[used], truth[used], weights[used, label])
            coefficients[label] = machine.feature_log_prob_[1] - machine.feature_log_prob_[0]
        return Linear(intercepts, rows=coefficients)
    codes = labels.codes[labels.known]
    machine = ComplementNB(alpha=_SMOOTHING).fit(rows, codes, weights)
    found = machine.feature_log_prob_ - machine.feature_log_prob_.mean(axis=0)
    return _of_classes(machine.classes_, found, np.zeros(len(found)), k)


def fit_logistic(
    features: Any, labels: TrainingLabels, C: float, class_weight: Any, tol: float = 1e-3
) -> tuple[Array, Array]:
    """Return coefficients (k, p) and intercepts (k,) of logistic regression to the known labels.

    Of few samples with many features only the span of the samples counts: there the unknowns are
    as many as the samples, and the penalty is the same.
    """
    back: Any = None
    root = np.sqrt(labels.weight[labels.known])
    if max(len(root), (root**2).sum()) < min(features.shape[1], _IN_SPAN):
        # The axes, and so the steps of the solver, are those of samples as often as they weigh.
        weighed = scale_rows(features, root) if sp.issparse(features) else features * root[:, None]
        products = weighed @ weighed.T
        squares, axes = np.linalg.eigh(products.toarray() if sp.issparse(products) else products)
        kept = squares > squares[-1] * _SPAN_TOLERANCE
        if kept.any():  # not all samples are zero
            axes, lengths = axes[:, kept], np.sqrt(squares[kept])
            features, back = axes * lengths / root[:, None], (axes / lengths, weighed)
    settings = {"C": C, "tol": tol, "max_iter": _MAX_ITER, "class_weight": class_weight}
    fit, rows = _fit_labels if labels.several else _fit_classes, labels.known
    targets, weights = labels.targets(rows), labels.readout_weights(rows)
    k = labels.members.shape[1]
    coefficients, intercepts = fit(features, targets, (weights, labels.weight[rows]), settings, k)
    if back is not None:
        coefficients = np.asarray((back[1].T @ (back[0] @ coefficients.T)).T)
    return coefficients, intercepts


def _fit_classes(
    features: Any, codes: Array, weights: tuple[Array, Array], settings: dict[str, Any], k: int
) -> tuple[Array, Array]:
    present = np.unique(codes)
    if len(present) == 1:
        coefficients, intercepts = np.zeros((1, features.shape[1])), np.zeros(1)
    else:
        machine = LogisticRegression(**settings).fit(features, codes, sample_weight=weights[0])
        coefficients, intercepts = _of_both_classes(machine)
    found = _of_classes(present, coefficients, intercepts, k)
    assert found.rows is not None
    return found.rows, found.intercepts


def _of_both_classes(machine: Any) -> tuple[Array, Array]:
    """Return what a linear machine has for each class; of two classes it has their difference."""
    if len(machine.coef_) > 1:
        return machine.coef_, machine.intercept_
    signs = np.array([[-0.5], [0.5]])
    return signs * machine.coef_, signs[:, 0] * machine.intercept_


def _of_classes(present: Array, coefficients: Array, intercepts: Array, k: int) -> Linear:
    """Return logits of all classes, from those of the classes that are present."""
    if len(present) == k:
        return Linear(intercepts, rows=coefficients)
    everywhere, offsets = np.zeros((k, coefficients.shape[1])), np.full(k, -LARGEST_LOGIT)
    everywhere[present], offsets[present] = coefficients, intercepts
    return Linear(offsets, rows=everywhere)


def _log_odds(truth: Array, weight: Array) -> float:
    """Return log odds of a share of weighted samples, by the rule of succession."""
    share = (weight @ truth + 1) / (weight.sum() + 2)
    return float(np.log(share / (1 - share)))


def _fit_labels(
    features: Any, indicators: Array, weights: tuple[Array, Array], settings: dict[str, Any], k: int
) -> tuple[Array, Array]:
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.zeros(k)
    for label in range(k):
        weight = weights[0][:, label]
        used = weight > _NEGLIGIBLE
        truth = indicators[used, label] > 0
        if truth.all() or not truth.any():
            intercepts[label] = _log_odds(truth, weights[1][used])
            continue
        machine = LogisticRegression(
            solver="liblinear", intercept_scaling=10.0, random_state=0, **settings
        )
        machine.fit(features[used], truth, sample_weight=weight[used])
        coefficients[label], intercepts[label] = machine.coef_[0], machine.intercept_[0]
    return coefficients, intercepts
