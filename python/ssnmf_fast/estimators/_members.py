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
from ._training_data import Truth
from ._views import PARTS, View

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

    The parts are "topics", the roots of its topic shares (coefficients k x r), "directions", its
    scores in these (k x d), "features", its row of length 1 (k x m), and its rows of tables, by
    their names (k x q).
    """

    intercepts: Array
    parts: dict[str, Array] = field(default_factory=dict)

    @one_blas_thread()
    def logits(self, view: View, n_threads: int | None = None) -> Array:
        logits = np.zeros((len(view), len(self.intercepts))) + self.intercepts
        for name, coefficients in self.parts.items():
            logits += np.asarray(view.part(name) @ coefficients.T)
        return logits

    def plus(self, other: Linear, weight: float) -> Linear:
        """Return the sum with the weighted parts of another."""
        parts = self.parts | {name: weight * part for name, part in other.parts.items()}
        for name in self.parts.keys() & other.parts.keys():
            parts[name] = self.parts[name] + parts[name]
        return Linear(self.intercepts + weight * other.intercepts, parts)


@one_blas_thread()
def fit_member(name: str, view: View, truth: Truth, class_weight: ClassWeight = None) -> Linear:
    """Fit a linear member, or that of a table, to a view of samples with known labels."""
    if name in ("topics", "features"):
        return fit_readout(view, truth, 1.0 if name == "topics" else _ROW_SCALE, class_weight)
    part = "features"
    if name == "naive Bayes":  # complement naive Bayes (Rennie 2003), or multinomial
        kind = MultinomialNB if truth.several else ComplementNB
        coefficients, intercepts = _fit(kind(alpha=_SMOOTHING), view.rows, truth)
    elif name == "margins":  # not the dual, whose solver shares a random generator between threads
        model = LinearSVC(dual=False, class_weight=class_weight)
        coefficients, intercepts = _fit(model, view.rows, truth)
    elif name == "directions":
        of_directions = fit_logistic(view.coordinates, truth, _WEAK_PENALTY, class_weight)
        coefficients, intercepts = of_directions[0] @ view.directions, of_directions[1]
    else:
        part = name
        coefficients, intercepts = fit_logistic(view.tables[name], truth, _PENALTY, class_weight)
    return Linear(intercepts, {part: coefficients})


@one_blas_thread()
def fit_readout(
    view: View, truth: Truth, row_scale: float = 1.0, class_weight: ClassWeight = None
) -> Linear:
    """Fit logistic regression on topics, scores and rows of samples with known labels."""
    names, scales = ["topics"], [1.0]
    if view.rows is not None:
        names, scales = [*PARTS], [1.0, 1.0, row_scale]
    parts = [scale * view.part(name) for scale, name in zip(scales, names, strict=True)]
    if sp.issparse(view.rows):
        features = sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts]))
    else:
        features = np.hstack(parts)
    coefficients, intercepts = fit_logistic(features, truth, _PENALTY, class_weight)
    each = np.split(coefficients, np.cumsum([part.shape[1] for part in parts[:-1]]), axis=1)
    return Linear(intercepts, {n: s * c for n, s, c in zip(names, scales, each, strict=True)})


def fit_logistic(
    features: Matrix, truth: Truth, C: float, class_weight: ClassWeight, tol: float = 1e-3
) -> tuple[Array, Array]:
    """Return coefficients (k, p) and intercepts (k,) of logistic regression to the known labels."""
    back: Any = None  # from the span of few samples to their many features
    root = np.sqrt(truth.weight)
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
    if truth.several:
        model.set_params(solver="liblinear", intercept_scaling=10.0, random_state=0)
    coefficients, intercepts = _fit(model, features, truth)
    if back is not None:
        coefficients = np.asarray((back[1].T @ (back[0] @ coefficients.T)).T)
    return coefficients, intercepts


def _fit(model: Any, features: Matrix, truth: Truth) -> tuple[Array, Array]:
    """Return coefficients (k, p) and intercepts (k,) of a linear model of the known labels."""
    return (_fit_labels if truth.several else _fit_classes)(model, features, truth)


def _fit_classes(model: Any, features: Matrix, truth: Truth) -> tuple[Array, Array]:
    """Fit a linear model to one known class per sample; absent classes are improbable."""
    codes, k = truth.codes, truth.members.shape[1]
    present = np.unique(codes)
    coefficients, intercepts = np.zeros((len(present), features.shape[1])), np.zeros(len(present))
    if len(present) > 1:
        model.fit(features, codes, sample_weight=truth.readout_weights())
        if isinstance(model, ComplementNB):
            coefficients = model.feature_log_prob_ - model.feature_log_prob_.mean(axis=0)
        else:
            coefficients, intercepts = model.coef_, model.intercept_
        if len(coefficients) == 1:  # the difference of two classes
            signs = np.array([[-0.5], [0.5]])
            coefficients, intercepts = signs * coefficients, signs[:, 0] * intercepts
    if len(present) == k:
        return coefficients, intercepts
    everywhere, offsets = np.zeros((k, coefficients.shape[1])), np.full(k, -_LARGEST_LOGIT)
    everywhere[present], offsets[present] = coefficients, intercepts
    return everywhere, offsets


def _fit_labels(model: Any, features: Matrix, truth: Truth) -> tuple[Array, Array]:
    """Fit a linear model to each of several labels; a constant label gets an intercept only."""
    k = truth.members.shape[1]
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.zeros(k)
    for label, weight in enumerate(truth.readout_weights().T):
        used = weight > _NEGLIGIBLE
        positive, counted = truth.members[used, label] > 0, truth.weight[used]
        share = (counted @ positive + 1) / (counted.sum() + 2)  # by the rule of succession
        intercepts[label] = np.log(share / (1 - share))
        if positive.all() or not positive.any():
            continue
        model.fit(features[used], positive, sample_weight=weight[used])
        if isinstance(model, MultinomialNB):
            coefficients[label] = model.feature_log_prob_[1] - model.feature_log_prob_[0]
        else:
            coefficients[label], intercepts[label] = model.coef_[0], model.intercept_[0]
    return coefficients, intercepts
