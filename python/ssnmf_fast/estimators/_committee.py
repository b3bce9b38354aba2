"""Weights of the members of a committee, fitted to predictions of hidden labels; calibration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from .._common.arrays import Array
from .._common.locks import cached_property
from .._common.warn import warn_user
from .._data.threads import one_blas_thread
from ._class_topics import LabeledSamples
from ._readout import LogisticReadout, probabilities
from ._training_data import TrainingLabels, Truth

_LEAST_LABELS = 16  # for validation with fewer than three labels per class, on average
_UNVALIDATED = 0.5  # slope: fits to so few labels are too sure
_FOUR_FOLDS, _ONE_FOLD = 60, 1000  # four folds for fewer than 60 labels, one for 1000 or more
_MOST_VALIDATED = 1000
_PULL, _FEW_HIDDEN = 4.0, 20  # of a weight to its prior, per class; less for more hidden labels
_TEMPERATURES = np.geomspace(0.01, 3.0, 40)
_SMALLEST_WEIGHT = 0.01  # of a member that is kept
_AS_MANY = 150  # hidden labels that correct an estimate by probabilities by one half
_LEARNING = 0.1  # power of the number of labels with which errors fall
_TEMPERED = np.geomspace(0.3, 1.0, 25)  # factors of slopes
INDEPENDENT = 0.75  # share of validated samples that count, as the fits of folds share labels
_FEW_POSITIVE = 10.0  # positive samples at which a label's threshold counts as much as the common
_SLOPES = (0.2, 1.5)  # of a calibration; validation of few labels may look too good
# Variances of the change of class shares, relative to those of the labels, and their probabilities.
_SIZES = [(0.0, 0.9), *((size, 0.02) for size in (0.01, 0.03, 0.1, 0.3, 1.0))]
_LEAST_SHARE = 1e-4


def least_labels(n_classes: int) -> int:
    """Return the number of labeled samples from which there is validation."""
    k = max(n_classes, 2)
    return max(2 * k, min(3 * k, _LEAST_LABELS))


def folds_of(labels: TrainingLabels, seed: int) -> Array:
    """Return the fold in which each label is hidden, (n,); -1 for never, as with few labels."""
    truth, folds = labels.truth, np.full(labels.n, -1)
    counts = truth.counts
    if len(labels.rows) < least_labels(int((counts > 0).sum())):
        return folds
    order = np.random.default_rng(seed).permutation(len(labels.rows))
    if not labels.several:
        # Each class is spread over the folds; the only sample of a class is never hidden.
        order = order[np.argsort(truth.codes[order], kind="stable")]
        order = order[counts[truth.codes[order]] > 1]
    if len(order) < least_labels(2):
        return folds
    numbers = np.arange(len(order)) % (4 if len(order) < _FOUR_FOLDS else 3)
    if len(order) >= _ONE_FOLD:  # one fit is enough then
        every = max(3, -(-len(order) // _MOST_VALIDATED))
        numbers = np.where(np.arange(len(order)) % every == 0, 0, -1)
    folds[labels.rows[order]] = numbers
    return folds


def temperature(
    logits: Array, truth: Truth, factors: Array = _TEMPERATURES, pull: float = 1.0
) -> float:
    """Return the one of some factors that calibrates logits; its logarithm is pulled to 0."""
    pulls = pull * truth.n_outcomes * np.log(factors) ** 2
    losses = [truth.loss(factor * logits)[0] for factor in factors]
    return float(factors[np.argmin(losses + pulls)])


def fit_weights(
    logits: dict[str, Array], truth: Truth, prior: dict[str, float]
) -> dict[str, float]:
    """Return nonnegative weights of members that minimize the log loss, pulled to the prior."""
    if not len(truth.members):
        return dict(prior)
    scales = {name: temperature(each, truth) for name, each in logits.items()}
    each = np.stack([scales[name] * logits[name] for name in prior])
    few = min(1.0, _FEW_HIDDEN / max(1, truth.entry_weights.any(axis=1).sum()))
    start, pull = np.array(list(prior.values())), _PULL * few * truth.n_outcomes

    def objective(weights: Array) -> tuple[float, Array]:
        loss, gradient = truth.loss(np.tensordot(weights, each, 1))
        away = weights - start
        slopes = np.tensordot(each, gradient, 2) + pull * away
        return loss + pull / 2 * float(away @ away), slopes

    bounds = [(0, None)] * len(start)
    best = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    best[best < _SMALLEST_WEIGHT * best.sum()] = 0
    return {name: float(w * scales[name]) for name, w in zip(prior, best, strict=True)}


def cross_fitted(
    logits: dict[str, Array], truth: Truth, prior: dict[str, float], folds: Array
) -> Array:
    """Return the sum of the logits with weights that were fitted without each fold, (n, k)."""
    sums = np.zeros_like(truth.members, dtype=np.float64)
    for fold in np.unique(folds):
        hidden = folds == fold
        seen = {name: each[~hidden] for name, each in logits.items()}
        weights = fit_weights(seen, truth.part(~hidden), prior)
        sums[hidden] = sum(weights[name] * each[hidden] for name, each in logits.items())
    return sums


@dataclass(frozen=True)
class Validation:
    """Result of a validation; if there was none, `scores` is empty and the accuracy is NaN."""

    labels: TrainingLabels
    folds: Array  # in which the label of a sample was hidden, -1 for never
    logits: Array  # predicted for the m hidden labels, (m, k)
    others: tuple[Array, Array]  # logits and weights of unlabeled samples, by the same fits
    known_shares: Array | None = None  # of the classes among the samples to predict, (k,)
    scores: dict[str, float] = field(default_factory=dict)  # of the members and the committee
    weights: dict[str, float] = field(default_factory=dict)  # of the logits of the members

    @cached_property
    def truth(self) -> Truth:
        """The m hidden labels."""
        return self.labels.part(self.folds >= 0).truth

    @cached_property
    def shares(self) -> Array:
        """Shares of the classes, which predictions assume, (k,)."""
        if self.known_shares is not None:
            return self.known_shares
        hidden, prior = (self.logits, self.truth, self.others), self.labels.prior()
        return estimate_shares(*hidden, prior) if self.others[1].any() else prior

    @cached_property
    def calibration(self) -> tuple[float, Array]:
        """Slope and offsets (k,) that calibrate logits and shift them to the class shares."""
        slope, offset = 1.0 if self.labels.several else _UNVALIDATED, 0.0
        if len(self.logits):
            slope, offset = calibration(self.logits, self.truth)
        return slope, offset + log_ratio(self.shares, self.labels.prior())

    def calibrated(self, logits: Array) -> Array:
        """Return calibrated probabilities, not tempered."""
        slope, offsets = self.calibration
        return probabilities(slope * logits + offsets, self.labels.several)

    def attributes(self, samples: LabeledSamples) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that describe the validation."""
        rows = np.flatnonzero(self.folds >= 0)
        scores = {name: self.scores.get(name, float("nan")) for name in self.weights}
        attributes = {
            "committee_": {n: {"weight": w, "score": scores[n]} for n, w in self.weights.items()},
            "validation_scores_": self.scores,
            "validation_accuracy_": self.accuracy[0],
            "validation_interval_": self.accuracy[1:],
            "validation_folds_": samples.of_all(self.folds[rows], rows, -1),
            "validation_proba_": samples.of_all(self.calibrated(self.logits), rows),
        }
        if self.labels.several:
            attributes["validation_predicted_"] = samples.of_all(self.guesses, rows)
        return attributes

    @cached_property
    def guesses(self) -> Array:
        """Labels predicted for validated samples with thresholds chosen without them, (m, k)."""
        guesses = np.zeros(self.logits.shape, dtype=np.int64)
        parts = parts_of(self.folds[self.folds >= 0])
        for part in np.unique(parts):
            old = parts != part
            slope, offset = calibration(self.logits[old], seen := self.truth.part(old))
            chance = probabilities(slope * self.logits + offset, True)
            guesses[~old] = chance[~old] > _thresholds(seen, chance[old])
        return guesses

    @cached_property
    def accuracy(self) -> tuple[float, float, float]:
        """Accuracy and its 95 % interval (Wilson's); NaN without validation."""
        truth, labels, others = self.truth, self.labels, self.others
        weight, of_class = truth.weight, np.ones(len(self.logits))
        if labels.several:
            right = (self.guesses == truth.members).all(axis=1)
            weight = weight * (truth.entry_weights > 0).all(axis=1)
        elif len(self.logits):  # each class counts by its share
            codes, chances = truth.codes, self.calibrated(self.logits)
            right, sure = chances.argmax(axis=1) == codes, chances.max(axis=1)
            of_class = self.shares[codes] / np.bincount(codes, weight)[codes]
        if not weight.any():
            return float("nan"), float("nan"), float("nan")
        weights = of_class * weight
        accuracy = float(np.average(right, weights=weights))
        # The number of samples with equal weights that would give the same variance.
        equal = weights.sum() ** 2 / (of_class * weights).sum()
        sizes = np.bincount(self.folds[self.folds >= 0], truth.weight)
        seen = 1 - float(sizes.mean()) / float(labels.truth.weight.sum())
        if others[1].any():
            # Probabilities of many unlabeled samples vary less than hits among a few labeled ones,
            # which correct them.  The fit to all labels is a little better than those of the folds.
            wrong = np.average(1 - self.calibrated(others[0]).max(axis=1), weights=others[1])
            error = np.average(sure - right, weights=weights)
            wrong += equal / (equal + _AS_MANY) * error
            accuracy = 1 - min(max(float(wrong), 0.0), 1.0) * seen**_LEARNING
        count = max(1, round(INDEPENDENT * equal))
        wilson = binomtest(round(accuracy * count), count).proportion_ci(method="wilson")
        # At best the error rate falls with the root of the number of labels.
        return accuracy, float(wilson.low), float(1 - (1 - wilson.high) * np.sqrt(seen))

    def calibrate(self, readout: LogisticReadout) -> LogisticReadout:
        """Return a readout whose probabilities are calibrated by the validation."""
        slope, offsets = self.calibration
        readout = replace(readout, slopes=np.full(len(offsets), slope), offsets=offsets)
        if self.labels.several and len(self.logits):
            best = _thresholds(self.truth, self.calibrated(self.logits))
            readout = replace(readout, thresholds=best)
        return readout

    def temper(self, readout: LogisticReadout, logits: Array, weight: Array) -> LogisticReadout:
        """Return a readout that is as sure as it is right of unlabeled samples seen by the fit."""
        tempered = readout.slopes * _TEMPERED[:, None]
        chances = (probabilities(each * logits + readout.offsets, False) for each in tempered)
        sure = [np.average(each.max(axis=1), weights=weight) for each in chances]
        best = np.argmin(np.abs(np.array(sure) - self.accuracy[0]))
        return replace(readout, slopes=tempered[best])

    def warn_if_poor(self) -> None:
        """Warn if always predicting the largest class would be better."""
        accuracy, _, high = self.accuracy
        if not self.labels.several and high < (largest := float(self.shares.max())):
            warn_user(
                f"The cross-validated accuracy ({accuracy:.1%}) is below that of always "
                f"predicting the largest class ({largest:.1%}). Label more samples, or check that "
                "X separates the classes.",
                UserWarning,
            )


def _f_measures(truth: Array, chance: Array, grid: Array, weight: Array) -> tuple[Array, Array]:
    """Return micro F for each threshold of a grid, (t,), and F of each label, (t, k)."""
    guesses = chance > grid[:, None, None]
    hits = 2 * (weight @ (truth & guesses))
    counts = weight @ truth + weight @ guesses
    pairs = ((hits.sum(axis=1), counts.sum(axis=1)), (hits, counts))
    micro, each = (over / np.where(under > 0, under, 1) for over, under in pairs)
    return np.asarray(micro), np.asarray(each)


def _thresholds(truth: Truth, chance: Array) -> Array:
    """Return the best thresholds for F, shrunk to a common one for labels with few positives."""
    grid, members = np.linspace(0.05, 0.9, 35), truth.members > 0
    counts = truth.weight @ members
    micro, each = _f_measures(members, chance, grid, truth.weight)
    common, best = float(grid[micro.argmax()]), grid[each.argmax(axis=0)]
    mixed = (counts * best + _FEW_POSITIVE * common) / (counts + _FEW_POSITIVE)
    return np.asarray(np.where(counts > 0, mixed, common))


def parts_of(folds: Array) -> Array:
    """Return the parts for cross-fitting: the folds, or the halves of a single fold."""
    return folds if len(np.unique(folds)) > 1 else np.arange(len(folds)) % 2


def score_of(truth: Truth, logits: Array) -> float:
    """Return the accuracy; for several labels the mean of micro and macro F, at one threshold."""
    if truth.several:
        members, chance = truth.members > 0, probabilities(logits, True)
        weight = truth.counted.max(axis=1)
        micro, each = _f_measures(members, chance, np.linspace(0.05, 0.95, 19), weight)
        return float(((micro + each.mean(axis=1)) / 2).max())
    right = logits.argmax(axis=1) == truth.codes
    return float(np.average(right, weights=truth.counted[:, 0]))


@one_blas_thread()
def calibration(logits: Array, truth: Truth) -> tuple[float, float]:
    """Return slope and offset that calibrate validated logits (Platt 1999; temperature)."""
    if not truth.several:
        return temperature(logits, truth, np.geomspace(*_SLOPES, 25), 0.0), 0.0
    flat, targets = logits.ravel()[:, None], truth.members.ravel() > 0
    if targets.all() or not targets.any():
        return 1.0, 0.0
    model = LogisticRegression(C=1e6, max_iter=1000)
    model.fit(flat, targets, sample_weight=np.repeat(truth.weight, logits.shape[1]))
    return float(np.clip(model.coef_[0, 0], *_SLOPES)), float(model.intercept_[0])


def log_ratio(shares: Array, prior: Array) -> Array:
    """Return the shift of the logits from class shares `prior` to `shares`, (k,)."""
    return np.asarray(np.log(np.maximum(shares, _LEAST_SHARE) / np.maximum(prior, _LEAST_SHARE)))


@one_blas_thread()
def estimate_shares(
    logits: Array, truth: Truth, others: tuple[Array, Array], prior: Array
) -> Array:
    """Return the shares of the classes among unlabeled samples (logits and weights), (k,).

    If class c is 1 + theta[c] times as frequent as in `prior`, mean probabilities differ by C theta
    from those of hidden labeled samples, with their confusion matrix C (Azizzadenesheli et al.
    2019).  Ridge regressions with several variances of theta are averaged by their evidence.
    """
    m, unit = len(logits), truth.weight.mean()

    def loss(v: Array) -> tuple[float, Array]:
        value, errors = truth.loss(np.exp(v[0]) * logits + v[1:])
        slopes = np.append(np.exp(v[0]) * (errors * logits).sum(), errors.sum(axis=0))
        return value / unit + float(v @ v) / 2, slopes / unit + v

    bounds = [tuple(np.log(_SLOPES)), *[(-5.0, 5.0)] * len(prior)]
    best = minimize(loss, np.zeros(len(bounds)), jac=True, bounds=bounds, method="L-BFGS-B").x
    chances = probabilities(np.exp(best[0]) * np.vstack([logits, others[0]]) + best[1:], False)
    known, new = truth.weight / truth.weight.sum(), others[1] / others[1].sum()
    confusion = (truth.members * known[:, None]).T @ chances[:m]
    means = known @ chances[:m], new @ chances[m:]
    chances -= np.repeat(means, (m, len(new)), axis=0)
    pooled = np.cov(chances.T, aweights=np.concatenate([m * known, len(new) * new]), ddof=0)
    variance = known @ known / INDEPENDENT + new @ new
    squares, axes = np.linalg.eigh(variance * pooled)
    kept = squares > 1e-3 * squares[-1]
    whiten = (axes[:, kept] / np.sqrt(squares[kept])).T
    A, z = whiten @ confusion.T, whiten @ (means[1] - means[0])
    evidence, changes = [], []
    for size, chance in _SIZES:
        covariance = size * A @ A.T + np.eye(len(z))
        solved = np.linalg.solve(covariance, z)
        evidence.append(np.log(chance) - (np.linalg.slogdet(covariance)[1] + z @ solved) / 2)
        changes.append(size * A.T @ solved)
    shares = np.maximum(prior * (1 + softmax(evidence) @ np.array(changes)), _LEAST_SHARE)
    return np.asarray(shares / shares.sum())
