"""Validation: the labels of the labeled samples are hidden in turn, and predicted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import binomtest

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.csr_file import CsrFile
from ._class_topics import LabeledSamples
from ._classifier_training import Plan, train
from ._committee import Truth, cross_fitted, fit_weights, probabilities
from ._folds import folds_of
from ._neighbors import log_chances
from ._readout import LogisticReadout, calibration
from ._side_members import table_logits
from ._training_data import TrainingLabels

_MOST_TRIED = 2500  # samples in trials, unless more are labeled
_FEW_POSITIVE = 10.0  # validated samples of a label that count as much as those of all


@dataclass(frozen=True)
class Validation:
    """Outcome of a validation; without one, `scores` is empty and `score` NaN."""

    labels: TrainingLabels
    folds: Array  # in which the label of a sample was hidden, -1 for never
    logits: Array  # what was predicted then, (n, k)
    scores: dict[str, float] = field(default_factory=dict)  # of everything that was tried
    score: float = float("nan")
    weights: dict[str, float] = field(default_factory=dict)  # of the logits of the members

    @property
    def rows(self) -> Array:
        """Whether a sample was validated, (n,)."""
        return self.folds >= 0

    def _calibrated(self, readout: LogisticReadout) -> Array:
        """Return calibrated probabilities of the validated samples, (samples, k)."""
        logits = self.logits[self.rows] * readout.slopes + readout.offsets
        return probabilities(logits, self.labels.several)

    def attributes(self, readout: LogisticReadout | None) -> dict[str, Any]:
        """Return the attributes of an estimator that tell of the validation."""
        probability = np.zeros_like(self.logits)
        if readout is not None:
            probability[self.rows] = self._calibrated(readout)
        return {
            "committee_": {
                name: {"weight": weight, "score": self.scores.get(name, float("nan"))}
                for name, weight in self.weights.items()
            },
            "validation_scores_": self.scores,
            "validation_accuracy_": float("nan") if self.labels.several else self.score,
            "validation_interval_": self.interval(),
            "validation_folds_": self.folds,
            "validation_proba_": probability,
        }

    def interval(self) -> tuple[float, float]:
        """Return a 95 % interval of the accuracy, Wilson's; NaN without validation."""
        if not self.rows.any() or self.labels.several:
            return float("nan"), float("nan")
        sizes = np.bincount(self.folds[self.rows])
        count = int(sizes.sum())
        right = round(self.score * count)
        found = binomtest(right, count).proportion_ci(0.95, method="wilson")
        # The fit to all labels may be better than those to some: its errors are taken to be rarer
        # by at most the root of the share of labels that they miss.
        unseen = 1 - float(sizes.mean()) / int(self.labels.known.sum())
        return float(found.low), float(1 - (1 - found.high) * np.sqrt(unseen))

    def warn_if_poor(self) -> None:
        """Warn if always predicting the largest class would be better."""
        largest = float(self.labels.prior().max())
        if self.interval()[1] < largest:
            warn_user(
                f"By validation the accuracy to expect is {self.score:.1%}, less than the "
                f"{largest:.1%} of always predicting the largest class. Label more samples, or "
                "look whether X tells the classes apart.",
                UserWarning,
            )

    def calibrate(self, readout: LogisticReadout) -> LogisticReadout:
        """Return a readout as sure of its predictions as the validation was right."""
        rows = self.rows
        if not rows.any():
            return readout
        targets, k = self.labels.targets(rows), len(readout.intercepts)
        slope, offset = calibration(self.logits[rows], targets, self.labels.several)
        readout = replace(readout, slopes=np.full(k, slope), offsets=np.full(k, offset))
        if self.labels.several:
            truth = self.labels.members[rows] > 0
            readout = replace(readout, thresholds=_thresholds(truth, self._calibrated(readout)))
        return readout


def _f_measures(truth: Array, chance: Array, grid: Array) -> tuple[Array, Array]:
    """Return micro F for each threshold of a grid, (t,), and F of each label, (t, k)."""
    guesses = chance > grid[:, None, None]
    hits = 2 * (truth & guesses).sum(axis=1)
    counts = truth.sum(axis=0) + guesses.sum(axis=1)
    micro = hits.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return np.asarray(micro), np.asarray(hits / np.maximum(counts, 1))


def _thresholds(truth: Array, chance: Array) -> Array:
    """Return the best thresholds for F, drawn to the best one for all labels where few are true."""
    grid, counts = np.linspace(0.05, 0.9, 35), truth.sum(axis=0)
    micro, each = _f_measures(truth, chance, grid)
    common, best = float(grid[micro.argmax()]), grid[each.argmax(axis=0)]
    found = (counts * best + _FEW_POSITIVE * common) / (counts + _FEW_POSITIVE)
    return np.asarray(np.where(counts > 0, found, common))


def validate(
    samples: LabeledSamples, plan: Plan, prior: dict[str, float], validates: bool
) -> Validation:
    """Return the weights of the members, and what they predict together for hidden labels.

    Without validation, as for too few labels, the weights are those of the prior.
    """
    labels = samples.labels
    folds, found = np.full(len(labels.members), -1), np.zeros(labels.members.shape)
    if validates:
        folds = folds_of(labels, samples.seed)
    if (folds < 0).all():
        return Validation(labels, folds, found, weights=prior)
    rows = _tried_rows(samples)
    part, tried = samples if rows.all() else samples.part(rows), folds[rows]
    predicted = _predicted(part.for_trials(), plan, tried, list(prior))
    hidden = tried >= 0
    given = {name: logits[hidden] for name, logits in predicted.items()}
    truth = Truth(
        part.labels.members[hidden], part.labels.entry_weights[hidden] > 0, labels.several
    )
    weights = fit_weights(given, truth, prior)
    numbers = tried[hidden]
    if len(np.unique(numbers)) == 1:  # halves of a single fold tell of each other
        numbers = np.arange(len(numbers)) % 2
    together = cross_fitted(given, truth, prior, numbers)
    scores = {name: score_of(truth, logits) for name, logits in given.items()}
    scores["committee"] = score_of(truth, together)
    found[folds >= 0] = together
    return Validation(labels, folds, found, scores, scores["committee"], weights)


def _predicted(
    samples: LabeledSamples, plan: Plan, folds: Array, names: list[str]
) -> dict[str, Array]:
    """Return what every member predicts for the labels that a fold hides, (n, k); 0 for others."""
    labels, context = samples.labels, samples.context
    found = {name: np.zeros(labels.members.shape) for name in names}
    for fold in range(int(folds.max()) + 1):
        hidden = folds == fold
        trained = train(replace(samples, labels=labels.only(~hidden)), plan, set(names))
        shares = samples.shares(trained.fit.A, hidden)
        seen = context[hidden]
        for name, member in trained.members.items():
            found[name][hidden] = member.logits(seen, shares)
        for name, member in trained.of_tables.items():
            found[name][hidden] = table_logits(member, samples.side[name][hidden])
        if "neighbors" in found and trained.spread is not None:
            found["neighbors"][hidden] = log_chances(trained.spread[hidden])
    return found


def score_of(truth: Truth, logits: Array) -> float:
    """Return the accuracy; for several labels the mean of micro and macro F, at one threshold."""
    if truth.several:
        members, chance = truth.members > 0, probabilities(logits, True)
        micro, each = _f_measures(members, chance, np.linspace(0.05, 0.95, 19))
        return float(((micro + each.mean(axis=1)) / 2).max())
    return float(np.mean(logits.argmax(axis=1) == truth.members.argmax(axis=1)))


def _tried_rows(samples: LabeledSamples) -> Array:
    """Return which samples take part in trials: the labeled ones, and some of the others."""
    rows = samples.labels.known
    plain = samples.X_weights is None and not isinstance(samples.X, CsrFile)
    if not plain or isinstance(samples.init, (tuple, list)):
        return np.ones(len(rows), dtype=bool)
    others = np.random.default_rng(samples.seed).permutation(np.flatnonzero(~rows))
    rows = rows.copy()
    rows[others[: max(0, _MOST_TRIED - int(rows.sum()))]] = True
    return np.asarray(rows)
