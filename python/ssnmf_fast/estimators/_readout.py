"""The readout, which predicts labels from features of samples, and the members of a committee.

The factor S of a fit depends on the labels, which new samples lack.  So the readout is fitted to
features of the labeled samples that are computed without their labels, as for new samples.  Each
member of a committee predicts classes from its own features of a sample.  All but the neighbors are
linear, up to a constant that is the same for all classes of a sample, so their weighted sum is one
linear function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.svm import LinearSVC

from .._common.arrays import Array, Matrix
from .._common.saved import Saved
from .._data.arrays import scale_rows
from .._data.border import require_finite
from .._data.threads import one_blas_thread
from .._solver.weights import WeightsLike
from .._topics import topic_shares
from ._base import product
from ._training_data import Truth
from ._views import N_DIRECTIONS, PARTS, Tables, View, Votes, filled, row_blocks, row_sums, view_of

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
        in_span = squares > squares[-1] * _SPAN_TOLERANCE
        if in_span.any():  # unless all samples are zero
            axes, lengths = axes[:, in_span], np.sqrt(squares[in_span])
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
        positive, weights = truth.members[used, label] > 0, truth.weight[used]
        share = (weights @ positive + 1) / (weights.sum() + 2)  # by the rule of succession
        intercepts[label] = np.log(share / (1 - share))
        if positive.all() or not positive.any():
            continue
        model.fit(features[used], positive, sample_weight=weight[used])
        if isinstance(model, MultinomialNB):
            coefficients[label] = model.feature_log_prob_[1] - model.feature_log_prob_[0]
        else:
            coefficients[label], intercepts[label] = model.coef_[0], model.intercept_[0]
    return coefficients, intercepts


# The arrays of a readout that are saved, and their axes.
_AXES = dict.fromkeys(("intercepts", "slopes", "offsets", "thresholds"), "k")
_AXES["coefficients"] = "kp"
_OPTIONAL = {"directions": "dm", "side": "kq"}
_OF_VOTES = {"votes_points": "ve", "votes_scales": "v", "votes_chances": "vk", "votes_weight": "1"}
_LEAST_CHANCE = 1e-13  # thresholds of 0 and 1 have no logit
_LEAST_SHARE = 1e-9  # of a class in a probability


@dataclass(frozen=True)
class LogisticReadout:
    """Weighted sum of the members of a committee; its scores are logits.

    `coefficients` (k, p) of the linear members are for the roots of topic shares and, if there are
    `directions` (d, m), for scores along these and for rows of length 1; `intercepts` are (k,).
    `votes` of neighbors, and `side` (k, q), the coefficients of side tables, are added.  `slopes`
    and `offsets` (k,) calibrate the logits; labels are predicted where their probability exceeds
    `thresholds` (k,).
    """

    coefficients: Array
    intercepts: Array
    slopes: Array
    offsets: Array
    thresholds: Array
    directions: Array | None = None
    votes: Votes | None = None
    side: Array | None = None

    @classmethod
    def of(
        cls, linear: Linear, n_topics: int, view: View, votes: Votes | None = None
    ) -> LogisticReadout:
        """Return an uncalibrated readout for the parts and tables of a view."""
        k = len(linear.intercepts)
        directions = None if view.directions is None else view.directions[:N_DIRECTIONS]
        sizes = (n_topics, *(() if directions is None else directions.shape))
        widths = dict(zip(PARTS, sizes, strict=False))
        widths |= {name: table.shape[1] for name, table in view.tables.items()}
        parts = [linear.parts.get(name, np.zeros((k, width))) for name, width in widths.items()]
        side = np.hstack(parts[len(sizes) :]) if view.tables else None
        calibration = np.ones(k), np.zeros(k), np.full(k, 0.5)
        coefficients = np.hstack(parts[: len(sizes)])
        return cls(coefficients, linear.intercepts, *calibration, directions, votes, side)

    @property
    def linear(self) -> Linear:
        """The linear members without tables."""
        seen = () if self.directions is None else self.directions.shape
        r = self.coefficients.shape[1] - sum(seen)
        parts = np.split(self.coefficients, np.cumsum([r, *seen])[:-1], axis=1)
        return Linear(self.intercepts, dict(zip(PARTS, parts, strict=False)))

    @one_blas_thread()
    def logits(self, view: View, n_threads: int | None = None) -> Array:
        """Return calibrated logits without tables, (n, k)."""
        raw = self.linear.logits(view)
        if self.votes is not None:
            raw += self.votes.weight * self.votes.logits(view, n_threads)
        return np.asarray(raw * self.slopes + self.offsets)

    @one_blas_thread()
    def of_tables(self, tables: Tables) -> dict[str, Array]:
        """Return the logits of each table before calibration, (n, k)."""
        if self.side is None:
            return {}
        ends = np.cumsum([table.shape[1] for table in tables.values()])
        parts = zip(tables.items(), np.split(self.side, ends[:-1], axis=1), strict=True)
        return {name: np.asarray(table @ part.T) for (name, table), part in parts}

    def scores(self, model: Any, X: Matrix, X_weights: WeightsLike, tables: Tables) -> Array:
        S, A = model._represent(X, X_weights), model.components_
        shares = topic_shares(S, A)
        logits = np.zeros((len(shares), len(self.intercepts)))
        for rows, view in self.views(X, X_weights, S, A):
            logits[rows] = self.logits(replace(view, shares=shares[rows]), model.n_threads)
        empty, of_prior = empty_rows(model, X, shares)
        logits[empty] = of_prior
        require_finite({"the decision function": logits})
        logits += self.slopes * sum(self.of_tables(tables).values())
        return logits

    def views(
        self, X: Matrix, X_weights: WeightsLike, S: Array, A: Array
    ) -> Iterator[tuple[slice, View]]:
        """Yield blocks of rows and the views of these samples, without topics."""
        if self.directions is None:
            yield slice(None), View()
            return
        for rows, block, absent in row_blocks(X, X_weights):
            yield rows, view_of(filled(block, S[rows], A, absent), self.directions)

    def decide(self, scores: Array, limits: Array | None) -> Array:
        """Return the result of `decision_function`; several labels have `limits`."""
        if limits is not None:
            lower, upper = (np.maximum(part, _LEAST_CHANCE) for part in (limits, 1 - limits))
            return np.asarray(scores - np.log(lower / upper))
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 0])

    def proba(self, scores: Array, several: bool) -> Array:
        return probabilities(scores, several)

    def arrays(self) -> dict[str, Array]:
        parts = {name: vars(self)[name] for name in (*_AXES, *_OPTIONAL)}
        if self.votes is not None:
            parts |= {f"votes_{name}": part for name, part in vars(self.votes).items()}
        return {name: np.asarray(part) for name, part in parts.items() if part is not None}


def empty_rows(model: Any, X: Matrix, shares: Array) -> tuple[Array, Array]:
    """Return which samples are empty, (n,), and the logits of the prior, (k,)."""
    prior = np.clip(model.class_prior_, 1e-9, 1 - 1e-9)
    logits = np.log(prior / (1 - prior) if model.multilabel_ else prior)
    return (row_sums(X) == 0) | ~shares.any(axis=1), logits


@dataclass(frozen=True)
class ComponentReadout:
    """Scores S B, with B (r, k) of the factorization ("joint") or fitted afterwards ("refit")."""

    components: Array

    def scores(self, model: Any, X: Matrix, X_weights: WeightsLike, tables: Tables) -> Array:
        scores = product(model._represent(X, X_weights), self.components, "the predictions")
        if not model.multilabel_:
            scores[~scores.any(axis=1)] = model.class_prior_
        return scores

    def decide(self, scores: Array, limits: Array | None) -> Array:
        if limits is not None:
            return np.asarray(scores - limits.astype(scores.dtype))
        if scores.shape[1] > 2:
            return scores
        shares = _row_shares(scores)
        return np.asarray(shares[:, 1] - shares[:, 0])

    def proba(self, scores: Array, several: bool) -> Array:
        if several:
            margin = np.finfo(scores.dtype).eps
            return np.clip(scores, margin, 1 - margin)
        shares, least = _row_shares(scores), scores.dtype.type(_LEAST_SHARE)
        return np.asarray((shares + least) / (1 + least * shares.shape[1]))


Readout = LogisticReadout | ComponentReadout


class SavedReadout(Saved):
    """A :class:`LogisticReadout`, saved as its arrays."""

    @property
    def of_numbers(self) -> bool:
        return True

    def check(self, name: str, value: object, sizes: dict[str, int]) -> None:
        axes = _AXES | _OPTIONAL | _OF_VOTES
        if not isinstance(value, dict) or not _AXES.keys() <= value.keys() <= axes.keys():
            raise ValueError(f"{name} lacks the arrays {sorted(_AXES)}")
        if _OF_VOTES.keys() & value.keys() not in (set(), _OF_VOTES.keys()):
            raise ValueError(f"{name} lacks some of the arrays {sorted(_OF_VOTES)}")
        sizes["1"] = 1
        for part, array in value.items():
            Saved(axes[part], "finite").check(f"{name}.{part}", array, sizes)
        seen = sizes["d"] + sizes["m"] if "directions" in value else 0
        if sizes["p"] != sizes["r"] + seen:
            raise ValueError(f"{name} has {sizes['p']} columns, inconsistent with other arrays")
        if "votes_points" in value and sizes["e"] != sizes.get("d"):
            raise ValueError(f"{name} has inconsistent points and directions")

    def restored(self, value: Any) -> LogisticReadout:
        parts = {name: array for name, array in value.items() if name not in _OF_VOTES}
        if "votes_weight" in value:
            points, *others = (value[name] for name in _OF_VOTES)
            parts["votes"] = Votes(points.astype(np.float32, copy=False), *others)
        return LogisticReadout(**parts)


# Saved attributes of the readout and its classes.
READOUT_ATTRIBUTES = {
    "readout_": SavedReadout(optional=True),
    "class_shares_": Saved("rk", optional=True),
    "classes_": Saved("k", optional=True),
    "class_prior_": Saved("k", "nonnegative", optional=True),
    "multilabel_": Saved("", optional=True),
}


def _row_shares(scores: Array) -> Array:
    """Divide the rows by their sums, after scaling them so that tiny scores do not vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))
