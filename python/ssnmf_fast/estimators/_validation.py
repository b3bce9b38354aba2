"""Validation: the labels of the labeled samples are hidden in turn, and predicted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import binomtest

from .._common.arrays import Array
from .._common.warn import warn_user
from ._class_topics import SUPPORTS, LabeledSamples, log_ratio, shares_of_classes
from ._classifier_training import (
    Plan,
    Trained,
    logits_without_labels,
    readout_of,
    self_trained,
    train_members,
)
from ._committee import Truth, cross_fitted, fit_weights, folds_of, probabilities, table_logits
from ._readout import LogisticReadout, calibration
from ._training_data import TrainingLabels

# Samples in trials, unless more are labeled, by the number of folds: topics are better the more
# samples there are, and in too small a trial they would look worse than they are.
_MOST_TRIED = {1: 7500, 3: 4000, 4: 3000}
_INDEPENDENT = 0.75  # share of the validated samples; fits of folds share labels
_FEW_POSITIVE = 10.0  # validated samples of a label that count as much as those of all


@dataclass(frozen=True)
class Validation:
    """Outcome of a validation; without one, `scores` is empty and the accuracy NaN."""

    labels: TrainingLabels
    folds: Array  # in which the label of a sample was hidden, -1 for never
    logits: Array  # what was predicted then, (n, k)
    scores: dict[str, float] = field(default_factory=dict)  # of everything that was tried
    weights: dict[str, float] = field(default_factory=dict)  # of the logits of the members
    shares: Array | None = None  # of the classes, where those of the labels mislead, (k,)

    @property
    def rows(self) -> Array:
        """Whether a sample was validated, (n,)."""
        return self.folds >= 0

    def calibrated(self, readout: LogisticReadout) -> Array:
        """Return calibrated probabilities of the validated samples, (samples, k)."""
        logits = self.logits[self.rows] * readout.slopes + readout.offsets
        return probabilities(logits, self.labels.several)

    def attributes(self, readout: LogisticReadout, samples: LabeledSamples) -> dict[str, Any]:
        """Return the attributes of an estimator that tell of the validation of these samples."""
        probability = np.zeros_like(self.logits)
        probability[self.rows] = self.calibrated(readout)
        found = {
            "committee_": {
                name: {"weight": weight, "score": self.scores.get(name, float("nan"))}
                for name, weight in self.weights.items()
            },
            "validation_scores_": self.scores,
            "validation_accuracy_": self.accuracy,
            "validation_interval_": self.interval(),
            "validation_folds_": samples.of_all(self.folds, -1),
            "validation_proba_": samples.of_all(probability, 0),
        }
        if self.labels.several:
            found["validation_predicted_"] = samples.of_all(self.guesses, 0)
        return found

    @cached_property
    def guesses(self) -> Array:
        """Labels predicted for validated samples, by thresholds chosen without them, (n, k)."""
        found, rows = np.zeros(self.logits.shape, dtype=np.int64), np.flatnonzero(self.rows)
        members, parts = self.labels.members, parts_of(self.folds[rows])
        for part in np.unique(parts):
            new, old = rows[parts == part], rows[parts != part]
            weight = self.labels.weight[old]
            slope, offset = calibration(self.logits[old], members[old], True, weight)
            seen, unseen = (
                probabilities(slope * self.logits[each] + offset, True) for each in (old, new)
            )
            found[new] = unseen > _thresholds(members[old] > 0, seen, weight)
        return found

    @cached_property
    def _calibration(self) -> tuple[float, float]:
        """Slope and offset that make the validated logits probable."""
        targets = self.labels.targets(self.rows)
        weight = self.labels.weight[self.rows]
        return calibration(self.logits[self.rows], targets, self.labels.several, weight)

    @cached_property
    def _right(self) -> tuple[Array, Array, Array]:
        """Whether each validated sample is predicted right, all its labels, and what it weighs.

        It is the product of two weights: that of its class, and that of the sample.
        """
        labels, rows = self.labels, self.rows
        if labels.several:
            rows = rows & (labels.entry_weights > 0).all(axis=1)
            right = (self.guesses == labels.members).all(axis=1)
            return np.asarray(right[rows]), np.ones(rows.sum()), labels.weight[rows]
        right, codes = self.logits.argmax(axis=1) == labels.codes, labels.codes[rows]
        weight = labels.weight[rows]
        if self.shares is None or not len(codes):
            return np.asarray(right[rows]), np.ones(len(codes)), weight
        shift = self._calibration[0] * self.logits + log_ratio(self.shares, labels.prior())
        right = shift.argmax(axis=1) == labels.codes
        return right[rows], self.shares[codes] / np.bincount(codes, weight)[codes], weight

    @property
    def accuracy(self) -> float:
        """The share of samples that are predicted right; NaN without validation."""
        right, of_class, weight = self._right
        return float(np.average(right, weights=of_class * weight)) if len(right) else float("nan")

    def interval(self) -> tuple[float, float]:
        """Return a 95 % interval of the accuracy, Wilson's; NaN without validation."""
        _, of_class, weight = self._right
        if not len(weight):
            return float("nan"), float("nan")
        sizes = np.bincount(self.folds[self.rows], self.labels.weight[self.rows])
        # Of unequal weights as many equal ones as have the same variance.
        equal = (of_class * weight).sum() ** 2 / (of_class**2 * weight).sum()
        count = max(1, round(_INDEPENDENT * equal))
        found = binomtest(round(self.accuracy * count), count).proportion_ci(method="wilson")
        # The fit to all labels may be better than those to some: its errors are taken to be rarer
        # by at most the root of the share of labels that they miss.
        unseen = 1 - float(sizes.mean()) / float(self.labels.weight[self.labels.known].sum())
        return float(found.low), float(1 - (1 - found.high) * np.sqrt(unseen))

    def warn_if_poor(self) -> None:
        """Warn if always predicting the largest class would be better."""
        shares = self.labels.prior() if self.shares is None else self.shares
        largest = float(shares.max())
        if not self.labels.several and self.interval()[1] < largest:
            warn_user(
                f"By validation the accuracy to expect is {self.accuracy:.1%}, less than the "
                f"{largest:.1%} of always predicting the largest class. Label more samples, or "
                "look whether X tells the classes apart.",
                UserWarning,
            )

    def calibrate(self, readout: LogisticReadout) -> LogisticReadout:
        """Return a readout as sure of its predictions as the validation was right."""
        rows = self.rows
        if not rows.any():
            return readout
        k, (slope, offset) = len(readout.intercepts), self._calibration
        readout = replace(readout, slopes=np.full(k, slope), offsets=np.full(k, offset))
        if self.labels.several:
            truth = self.labels.members[rows] > 0
            chance, weight = self.calibrated(readout), self.labels.weight[rows]
            readout = replace(readout, thresholds=_thresholds(truth, chance, weight))
        return readout


def _f_measures(truth: Array, chance: Array, grid: Array, weight: Array) -> tuple[Array, Array]:
    """Return micro F for each threshold of a grid, (t,), and F of each label, (t, k)."""
    guesses = chance > grid[:, None, None]
    hits = 2 * (weight @ (truth & guesses))
    counts = weight @ truth + weight @ guesses
    pairs = ((hits.sum(axis=1), counts.sum(axis=1)), (hits, counts))
    micro, each = (over / np.where(under > 0, under, 1) for over, under in pairs)
    return np.asarray(micro), np.asarray(each)


def _thresholds(truth: Array, chance: Array, weight: Array) -> Array:
    """Return the best thresholds for F, drawn to the best one for all labels where few are true."""
    grid, counts = np.linspace(0.05, 0.9, 35), weight @ truth
    micro, each = _f_measures(truth, chance, grid, weight)
    common, best = float(grid[micro.argmax()]), grid[each.argmax(axis=0)]
    found = (counts * best + _FEW_POSITIVE * common) / (counts + _FEW_POSITIVE)
    return np.asarray(np.where(counts > 0, found, common))


def parts_of(folds: Array) -> Array:
    """Return parts of the validated samples that tell of each other: folds, or halves of one."""
    return folds if len(np.unique(folds)) > 1 else np.arange(len(folds)) % 2


def validate(samples: LabeledSamples, plan: Plan, prior: dict[str, float]) -> Validation:
    """Return the weights of the members, and what they predict together for hidden labels.

    Without validation, for too few labels, the weights are those of the prior.
    """
    labels = samples.labels
    folds, found = folds_of(labels, samples.seed), np.zeros(labels.members.shape)
    if (folds < 0).all():
        return Validation(labels, folds, found, weights=prior)
    rows = _tried_rows(samples, _MOST_TRIED[int(folds.max()) + 1])
    part, tried = samples if rows.all() else samples.part(rows), folds[rows]
    predicted = _predicted(part.for_trials(), plan, tried, list(prior))
    hidden = tried >= 0
    given = {name: logits[hidden] for name, logits in predicted.items()}
    truth = Truth.of(part.labels, hidden)
    weights = fit_weights(given, truth, prior)
    together = cross_fitted(given, truth, prior, parts_of(tried[hidden]))
    scores = {name: score_of(truth, logits) for name, logits in given.items()}
    scores["committee"] = score_of(truth, together)
    found[folds >= 0] = together
    return Validation(labels, folds, found, scores, weights)


def calibrated(
    samples: LabeledSamples, plan: Plan, trained: Trained, validation: Validation
) -> tuple[LogisticReadout, Validation]:
    """Return the readout, and the validation with the shares of the classes where labels mislead.

    These are found from predictions for the unlabeled samples, which must be probable.
    """
    weights = {name: weight for name, weight in validation.weights.items() if weight > 0}
    readout = validation.calibrate(readout_of(samples, trained, weights))
    if not plan.corrects or not validation.rows.any():
        return readout, validation
    logits, prior = logits_without_labels(samples, trained, readout), samples.labels.prior()
    shares = shares_of_classes(logits, prior, samples.labels.weight[~samples.labels.known])
    return readout.shifted(log_ratio(shares, prior)), replace(validation, shares=shares)


def _predicted(
    samples: LabeledSamples, plan: Plan, folds: Array, names: list[str]
) -> dict[str, Array]:
    """Return what every member predicts for the samples of a fold, (n, k); 0 for others.

    A fold takes no part in the fits that predict it, not even without labels: self-training would
    make them surer of its samples than they are of new ones.
    """
    labels, context = samples.labels, samples.context
    found = {name: np.zeros(labels.members.shape) for name in names}
    for fold in range(int(folds.max()) + 1):
        hidden = folds == fold
        if samples.divisible:
            seen_by_fit = samples.part(~hidden)
        else:
            seen_by_fit = replace(samples, labels=labels.only(~hidden))
        given, spread = self_trained(seen_by_fit, plan, set(names))
        fit = given.fit_topics(plan.n_components, SUPPORTS)
        trained = train_members(seen_by_fit, given, fit, plan, set(names), spread)
        shares = samples.shares(trained.fit.A, hidden)
        seen = context[hidden]
        for name, member in trained.members.items():
            found[name][hidden] = member.logits(seen, shares)
        for name, member in trained.of_tables.items():
            found[name][hidden] = table_logits(member, samples.side[name][hidden])
        graph = seen_by_fit.graph
        if "neighbors" in found and graph is not None and trained.spread is not None:
            votes = graph.votes(trained.spread, seen_by_fit.labels.known, len(trained.spread))
            found["neighbors"][hidden] = votes.logits(seen.scores, samples.options["n_threads"])
    return found


def score_of(truth: Truth, logits: Array) -> float:
    """Return the accuracy; for several labels the mean of micro and macro F, at one threshold."""
    if truth.several:
        members, chance = truth.members > 0, probabilities(logits, True)
        weight = truth.weights.max(axis=1)
        micro, each = _f_measures(members, chance, np.linspace(0.05, 0.95, 19), weight)
        return float(((micro + each.mean(axis=1)) / 2).max())
    right = logits.argmax(axis=1) == truth.members.argmax(axis=1)
    return float(np.average(right, weights=truth.weights[:, 0]))


def _tried_rows(samples: LabeledSamples, most: int) -> Array:
    """Return which samples take part in trials: the labeled ones, and some of the others."""
    rows = samples.labels.known
    if not samples.divisible:
        return np.ones(len(rows), dtype=bool)
    others = np.random.default_rng(samples.seed).permutation(np.flatnonzero(~rows))
    rows = rows.copy()
    rows[others[: max(0, most - int(rows.sum()))]] = True
    return np.asarray(rows)
