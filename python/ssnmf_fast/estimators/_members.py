"""Members of a committee: each predicts classes from its own features of a sample.

All but the neighbors are linear, up to a constant that is the same for all classes of a sample, so
their weighted sum is one linear function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.svm import LinearSVC

from .._common.arrays import Array, Matrix
from .._data.arrays import scale_rows
from .._data.threads import one_blas_thread
from ._training_data import TrainingLabels
from ._views import View

ClassWeight: TypeAlias = str | Mapping[Any, float] | None
_LARGEST_LOGIT = 30.0  # probabilities stay above 1e-13
_NEGLIGIBLE = 1e-15  # weight of a sample; LIBLINEAR does not terminate for subnormal weights
_MAX_ITER = 1000
_IN_SPAN = 1000  # up to this number of labeled samples, coefficients are sought in their span
_SPAN_TOLERANCE = 1e-10  # of the variance; smaller directions of the span are rounding errors
_SMOOTHING = 0.3
_PENALTY = 10.0  # C, for rows of length 1
_WEAK_PENALTY = 100.0  # C, for coordinates, which are smaller
_ROW_SCALE = 4.0  # of rows relative to topics, for the member that learns from all features


def probabilities(logits: Array, several: bool) -> Array:
    """Return probabilities inside (0, 1), shape (n, k)."""
    if several:
        return np.asarray(expit(np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)))
    below = np.maximum(logits - logits.max(axis=1, keepdims=True), -_LARGEST_LOGIT)
    return np.asarray(softmax(below, axis=1))


@dataclass(frozen=True)
class Linear:
    """Logits (n, k) as sums over parts of a sample.

    The parts are the roots of its topic shares (coefficients k x r), its scores in the leading
    directions (k x d), its row of length 1 (k x m), and its rows of tables (k x q).
    """

    intercepts: Array
    topics: Array | None = None
    scores: Array | None = None
    rows: Array | None = None
    tables: dict[str, Array] = field(default_factory=dict, kw_only=True)

    @one_blas_thread()
    def logits(self, view: View, n_threads: int | None = None) -> Array:
        logits = np.zeros((len(view), len(self.intercepts))) + self.intercepts
        if self.topics is not None and view.shares is not None:
            logits += np.sqrt(view.shares) @ self.topics.T
        if self.scores is not None:
            logits += view.scores @ self.scores.T
        if self.rows is not None:
            logits += np.asarray(view.rows @ self.rows.T)
        for name, coefficients in self.tables.items():
            logits += np.asarray(view.tables[name] @ coefficients.T)
        return logits

    def scaled(self, weight: float) -> Linear:
        parts = (self.topics, self.scores, self.rows)
        scaled = (None if part is None else weight * part for part in parts)
        tables = {name: weight * part for name, part in self.tables.items()}
        return Linear(weight * self.intercepts, *scaled, tables=tables)

    def __add__(self, other: Linear) -> Linear:
        pairs = ((self.topics, other.topics), (self.scores, other.scores), (self.rows, other.rows))
        added = (b if a is None else a if b is None else a + b for a, b in pairs)
        tables = self.tables | other.tables  # which are different
        return Linear(self.intercepts + other.intercepts, *added, tables=tables)


@one_blas_thread()
def fit_member(
    name: str, view: View, labels: TrainingLabels, class_weight: ClassWeight = None
) -> Linear:
    """Fit a linear member, or that of a table, to a view of samples with known labels."""
    if name in ("topics", "features"):
        return fit_readout(view, labels, 1.0 if name == "topics" else _ROW_SCALE, class_weight)
    if name == "naive Bayes":  # complement naive Bayes (Rennie 2003), or multinomial
        if labels.several:
            return _fit_labels(MultinomialNB(alpha=_SMOOTHING), view.rows, labels)
        return _fit_classes(ComplementNB(alpha=_SMOOTHING), view.rows, labels)
    if name == "margins":  # not the dual, whose solver shares a random generator between threads
        return _fit_classes(LinearSVC(dual=False, class_weight=class_weight), view.rows, labels)
    if name == "directions":
        fit = fit_logistic(view.coordinates, labels, _WEAK_PENALTY, class_weight)
        return Linear(fit[1], rows=fit[0] @ view.directions)
    coefficients, intercepts = fit_logistic(view.tables[name], labels, _PENALTY, class_weight)
    return Linear(intercepts, tables={name: coefficients})


@one_blas_thread()
def fit_readout(
    view: View, labels: TrainingLabels, row_scale: float = 1.0, class_weight: ClassWeight = None
) -> Linear:
    """Fit logistic regression on topics, scores and rows of samples with known labels."""
    assert view.shares is not None
    topics: Any = np.sqrt(view.shares)
    if view.rows is None:
        coefficients, intercepts = fit_logistic(topics, labels, _PENALTY, class_weight)
        return Linear(intercepts, coefficients)
    parts = topics, view.scores, row_scale * view.rows
    if sp.issparse(view.rows):
        features = sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts]))
    else:
        features = np.hstack(parts)
    coefficients, intercepts = fit_logistic(features, labels, _PENALTY, class_weight)
    ends = np.cumsum([topics.shape[1], view.scores.shape[1]])
    of_topics, of_scores, of_rows = np.split(coefficients, ends, axis=1)
    return Linear(intercepts, of_topics, of_scores, row_scale * of_rows)


def fit_logistic(
    features: Matrix, labels: TrainingLabels, C: float, class_weight: ClassWeight, tol: float = 1e-3
) -> tuple[Array, Array]:
    """Return coefficients (k, p) and intercepts (k,) of logistic regression to the known labels."""
    back: Any = None  # from the span of few samples to their many features
    root = np.sqrt(labels.weight[labels.known])
    if max(len(root), (root**2).sum()) < min(features.shape[1], _IN_SPAN):
        # Rows times the roots of their weights: the solver steps as with repeated samples.
        weighed = scale_rows(features, root) if sp.issparse(features) else features * root[:, None]
        products = weighed @ weighed.T
        squares, axes = np.linalg.eigh(products.toarray() if sp.issparse(products) else products)
        kept = squares > squares[-1] * _SPAN_TOLERANCE
        if kept.any():  # unless all samples are zero
            axes, lengths = axes[:, kept], np.sqrt(squares[kept])
            features, back = axes * lengths / root[:, None], (axes / lengths, weighed)
    model = LogisticRegression(C=C, tol=tol, max_iter=_MAX_ITER, class_weight=class_weight)
    if labels.several:
        model.set_params(solver="liblinear", intercept_scaling=10.0, random_state=0)
    member = (_fit_labels if labels.several else _fit_classes)(model, features, labels)
    coefficients: Any = member.rows
    if back is not None:
        coefficients = np.asarray((back[1].T @ (back[0] @ coefficients.T)).T)
    return coefficients, member.intercepts


def _fit_classes(model: Any, features: Matrix, labels: TrainingLabels) -> Linear:
    """Fit a linear model to one known class per sample; absent classes are improbable."""
    codes, k = labels.codes[labels.known], labels.members.shape[1]
    present = np.unique(codes)
    coefficients, intercepts = np.zeros((len(present), features.shape[1])), np.zeros(len(present))
    if len(present) > 1:
        model.fit(features, codes, sample_weight=labels.readout_weights(labels.known))
        if isinstance(model, ComplementNB):
            coefficients = model.feature_log_prob_ - model.feature_log_prob_.mean(axis=0)
        else:
            coefficients, intercepts = model.coef_, model.intercept_
        if len(coefficients) == 1:  # the difference of two classes
            signs = np.array([[-0.5], [0.5]])
            coefficients, intercepts = signs * coefficients, signs[:, 0] * intercepts
    if len(present) == k:
        return Linear(intercepts, rows=coefficients)
    everywhere, offsets = np.zeros((k, coefficients.shape[1])), np.full(k, -_LARGEST_LOGIT)
    everywhere[present], offsets[present] = coefficients, intercepts
    return Linear(offsets, rows=everywhere)


def _fit_labels(model: Any, features: Matrix, labels: TrainingLabels) -> Linear:
    """Fit a linear model to each of several labels; a constant label gets an intercept only."""
    rows, k = labels.known, labels.members.shape[1]
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.zeros(k)
    for label, weight in enumerate(labels.readout_weights(rows).T):
        used = weight > _NEGLIGIBLE
        truth, counted = labels.members[rows][used, label] > 0, labels.weight[rows][used]
        share = (counted @ truth + 1) / (counted.sum() + 2)  # by the rule of succession
        intercepts[label] = np.log(share / (1 - share))
        if truth.all() or not truth.any():
            continue
        model.fit(features[used], truth, sample_weight=weight[used])
        if isinstance(model, MultinomialNB):
            coefficients[label] = model.feature_log_prob_[1] - model.feature_log_prob_[0]
        else:
            coefficients[label], intercepts[label] = model.coef_[0], model.intercept_[0]
    return Linear(intercepts, rows=coefficients)
