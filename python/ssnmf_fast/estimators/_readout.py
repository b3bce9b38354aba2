"""The readout: logistic regression from what a model sees of samples whose labels it does not know.

The factor S of a fit knows the labels, and new samples have none: the readout is fitted on features
of the labeled samples that are computed without their labels, as those of new samples will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from .._common.arrays import Array
from .._common.saved import Saved
from .._data.border import require_finite
from .._data.threads import one_blas_thread
from .._topics import topic_shares
from ._base import product
from ._training_data import Context, TrainingLabels, context_of, filled, row_blocks, row_sums

_LARGEST_LOGIT = 30.0  # probabilities stay above 1e-13
_NEGLIGIBLE = 1e-15  # a weight beside the penalty; LIBLINEAR does not end for subnormal ones
_MAX_ITER = 1000
_LEAST_CHANCE = 1e-13  # a threshold of 0 or 1 has no logit
_LEAST_SHARE = 1e-9  # of a class in a probability
_SLOPES = (0.2, 1.5)  # of a calibration: validation of few labels may look too good


@dataclass(frozen=True)
class LogisticReadout:
    """Logistic regression; its scores are logits.

    `coefficients` (k, p) and `intercepts` (k,) are those of the logistic regressions, one of all
    classes or one for each label; `slopes` and `offsets` (k,) calibrate its logits, and a label is
    predicted where its probability lies above that of `thresholds` (k,).  The samples are seen
    along `directions` (d, m) as well, unless they are None.
    """

    coefficients: Array
    intercepts: Array
    row_scale: float
    slopes: Array
    offsets: Array
    thresholds: Array
    directions: Array | None = None

    @one_blas_thread()
    def logits(self, context: Context, shares: Array) -> Array:
        """Return calibrated logits, (n, k), for classes up to a constant of each sample."""
        features = context.features(shares, self.row_scale)
        raw = np.asarray(features @ self.coefficients.T) + self.intercepts
        return np.asarray(raw * self.slopes + self.offsets)

    def scores(self, model: Any, X: Any, X_weights: Any) -> Array:
        """Return the scores of checked samples, (n, k)."""
        S, A = model._represent(X, X_weights), model.components_
        shares = topic_shares(S, A)
        if self.directions is not None and len(self.directions):
            logits = np.zeros((len(shares), len(self.intercepts)))
            for rows, block, absent in row_blocks(X, X_weights):
                context = context_of(filled(block, S[rows], A, absent), self.directions)
                logits[rows] = self.logits(context, shares[rows])
        else:
            logits = self.logits(Context(), shares)
        # An empty sample gets the frequencies of the classes.
        prior = np.clip(model.class_prior_, 1e-9, 1 - 1e-9)
        odds = prior / (1 - prior) if model.multilabel_ else prior
        logits[(row_sums(X) == 0) | ~shares.any(axis=1)] = np.log(odds)
        require_finite({"the decision function": logits})
        return logits

    def decide(self, scores: Array, limits: Array | None) -> Array:
        """Return what `decision_function` returns; for several labels, with their limits."""
        if limits is not None:
            lower, upper = (np.maximum(part, _LEAST_CHANCE) for part in (limits, 1 - limits))
            return np.asarray(scores - np.log(lower / upper))
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 0])

    def proba(self, scores: Array, several: bool) -> Array:
        """Return probabilities, (n, k)."""
        return probabilities(scores, several)

    def arrays(self) -> dict[str, Array]:
        """Return what is saved of it."""
        parts = {name: np.atleast_1d(part) for name, part in vars(self).items() if part is not None}
        return {name: np.asarray(part, dtype=np.float64) for name, part in parts.items()}


@dataclass(frozen=True)
class ComponentReadout:
    """Scores S B, with B (r, k) of the factorization ("joint") or fitted afterwards ("refit")."""

    components: Array

    @property
    def thresholds(self) -> Array:
        return np.full(self.components.shape[1], 0.5)

    def scores(self, model: Any, X: Any, X_weights: Any) -> Array:
        S = model._represent(X, X_weights)
        scores = product(S, self.components, "the predictions")
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

    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """Raise ValueError unless the parts are there and fit together."""
        axes = dict.fromkeys(("intercepts", "slopes", "offsets", "thresholds"), "k")
        axes |= {"coefficients": "kp", "row_scale": "1"}
        if not isinstance(value, dict) or not axes.keys() <= value.keys() <= {*axes, "directions"}:
            raise ValueError(f"{name} has not the parts {sorted(axes)}")
        sizes["1"] = 1
        for part, array in value.items():
            Saved(axes.get(part, "dm"), "finite").check(f"{name}.{part}", array, sizes)
            if array.dtype.kind != "f":
                raise ValueError(f"{name}.{part} holds other than real numbers")
        seen = sizes["d"] + sizes["m"] if len(value.get("directions", ())) else 0
        if sizes["p"] != sizes["r"] + seen:
            raise ValueError(f"{name} has {sizes['p']} columns, which other arrays contradict")

    def restored(self, value: Any) -> LogisticReadout:
        """Return the readout of checked arrays."""
        return LogisticReadout(**value | {"row_scale": float(value["row_scale"][0])})


# What is saved of a readout, and of the classes that it predicts.
READOUT_ATTRIBUTES = {
    "readout_": SavedReadout(optional=True),
    "class_shares_": Saved("rk", optional=True),
    "classes_": Saved("k", optional=True),
    "class_prior_": Saved("k", "finite", optional=True),
    "multilabel_": Saved("", optional=True),
}


def probabilities(logits: Array, several: bool) -> Array:
    """Return probabilities that are never exactly 0 or 1, (n, k)."""
    if several:
        return np.asarray(expit(np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)))
    below = np.maximum(logits - logits.max(axis=1, keepdims=True), -_LARGEST_LOGIT)
    return np.asarray(softmax(below, axis=1))


def _row_shares(scores: Array) -> Array:
    """Divide the rows by their sums; scaled first, so that tiny scores cannot vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


@one_blas_thread()
def fit_readout(
    context: Context,
    shares: Array,
    labels: TrainingLabels,
    C: float = 10.0,
    row_scale: float = 1.0,
    class_weight: Any = None,
    tol: float = 1e-3,
) -> LogisticReadout:
    """Fit logistic regression to known labels; context and shares are those of their samples."""
    features = context.features(shares, row_scale)
    settings = {"C": C, "tol": tol, "max_iter": _MAX_ITER, "class_weight": class_weight}
    fit, rows = _fit_labels if labels.several else _fit_classes, labels.known
    targets, weights = labels.targets(rows), labels.readout_weights(rows)
    coefficients, intercepts = fit(features, targets, weights, settings)
    k = labels.members.shape[1]
    missing = k - len(intercepts)  # classes beyond the last one among the rows
    unlikely = np.full(missing, intercepts.min(initial=0.0) - 10.0)
    coefficients = np.pad(coefficients, ((0, missing), (0, 0)))
    intercepts = np.concatenate([intercepts, unlikely])
    uncalibrated, halves = (np.ones(k), np.zeros(k)), np.full(k, 0.5)
    return LogisticReadout(coefficients, intercepts, row_scale, *uncalibrated, halves)


def _fit_classes(
    features: Any, codes: Array, weights: Array, settings: dict[str, Any]
) -> tuple[Array, Array]:
    present = np.unique(codes)
    k = int(codes.max()) + 1
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.full(k, -_LARGEST_LOGIT)
    if len(present) == 1:
        intercepts[present] = 0.0
        return coefficients, intercepts
    machine = LogisticRegression(**settings).fit(features, codes, sample_weight=weights)
    if len(present) == 2:
        coefficients[present] = np.vstack([-machine.coef_, machine.coef_]) / 2
        intercepts[present] = np.array([-1, 1]) * machine.intercept_ / 2
    else:
        coefficients[present], intercepts[present] = machine.coef_, machine.intercept_
    return coefficients, intercepts


def _fit_labels(
    features: Any, indicators: Array, weights: Array, settings: dict[str, Any]
) -> tuple[Array, Array]:
    k = indicators.shape[1]
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.zeros(k)
    for label in range(k):
        used = weights[:, label] > _NEGLIGIBLE
        truth = indicators[used, label] > 0
        if truth.all() or not truth.any():  # with the rule of succession
            share = (truth.sum() + 1) / (len(truth) + 2)
            intercepts[label] = np.log(share / (1 - share))
            continue
        machine = LogisticRegression(
            solver="liblinear", intercept_scaling=10.0, random_state=0, **settings
        )
        machine.fit(features[used], truth, sample_weight=weights[used, label])
        coefficients[label], intercepts[label] = machine.coef_[0], machine.intercept_[0]
    return coefficients, intercepts


@one_blas_thread()
def calibration(logits: Array, targets: Array, several: bool) -> tuple[float, float]:
    """Return slope and offset that make validated logits probable (Platt 1999; temperature)."""
    if not several:  # a temperature
        slopes, rows = np.geomspace(*_SLOPES, 25), np.arange(len(targets))
        chances = (probabilities(slope * logits, False)[rows, targets] for slope in slopes)
        return float(slopes[np.argmin([-np.log(chance).mean() for chance in chances])]), 0.0
    flat, truth = logits.ravel()[:, None], targets.ravel() > 0
    if truth.all() or not truth.any():
        return 1.0, 0.0
    machine = LogisticRegression(C=1e6, max_iter=_MAX_ITER).fit(flat, truth)
    slope = float(np.clip(machine.coef_[0, 0], *_SLOPES))
    return slope, float(machine.intercept_[0])
