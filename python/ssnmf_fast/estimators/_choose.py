"""Choice of settings by validation: the labels of the labeled samples are hidden in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.csr_file import CsrFile
from ._class_topics import LabeledSamples
from ._classifier_training import Choice, train
from ._readout import LogisticReadout, calibration, fit_readout, probabilities
from ._training_data import TrainingLabels

LEAST_PER_CLASS = 3  # labeled samples of a class on average, for validation
_MOST_TRIED = 2500  # samples in trials, unless more are labeled
_FOUR_FOLDS, _ONE_FOLD = 60, 400  # four folds below so many labels, one from so many on
_TRIAL_TOLERANCE = 3e-3  # of the readout
_MOST_VALIDATED = 1000
_READOUTS = ((10.0, 1.0), (1.0, 4.0), (10.0, 4.0))  # C and length of the samples
# How much better than the rule a choice must be, in standard errors of an accuracy: few labels
# cannot tell choices apart, and the rule is good for few labels.
_CLEARLY, _LIKELY, _MANY_VALIDATED = 2.0, 0.25, 200
_FEW_POSITIVE = 10.0  # validated samples of a label that count as much as those of all


@dataclass(frozen=True)
class Validation:
    """Outcome of a validation; without one, `scores` is empty and `score` NaN."""

    labels: TrainingLabels
    folds: Array  # in which the label of a sample was hidden, -1 for never
    logits: Array  # what was predicted then, (n, k)
    scores: dict[str, float] = field(default_factory=dict)  # of everything that was tried
    score: float = float("nan")

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


class Outcome(NamedTuple):
    """A choice, its score, and what was predicted for the labels that were hidden, (n, k)."""

    choice: Choice
    score: float
    logits: Array


class Trials:
    """Trials of choices on the folds of the labeled samples."""

    def __init__(self, samples: LabeledSamples, folds: Array) -> None:
        self._samples = samples.for_trials()
        self._hidden = [folds == f for f in range(int(folds.max()) + 1)]
        self._validated = folds >= 0
        self.scores: dict[str, float] = {}

    def _training(self) -> Iterator[tuple[Array, LabeledSamples]]:
        """Yield which samples are hidden, and all samples without their labels."""
        for hidden in self._hidden:
            labels = self._samples.labels.only(~hidden)
            yield hidden, replace(self._samples, labels=labels)

    def readouts(self, choice: Choice, options: list[dict[str, Any]]) -> list[Outcome]:
        """Try several readouts over the same topics."""
        labels, context = self._samples.labels, self._samples.context
        found = [np.zeros(labels.members.shape) for _ in options]
        known = labels.known
        for hidden, samples in self._training():
            fit = samples.fit_topics(choice.n_components, choice.supervision_weight)
            shares = np.zeros((len(known), len(fit.A)))
            shares[known] = samples.shares(fit.A, known)
            rows = samples.labels.known
            given = context[rows], shares[rows], samples.labels
            for logits, option in zip(found, options, strict=True):
                readout = fit_readout(*given, **option, tol=_TRIAL_TOLERANCE)
                logits[hidden] = readout.logits(context[hidden], shares[hidden])
        tried = [replace(choice, readout=option) for option in options]
        return [self._judge(*each) for each in zip(tried, found, strict=True)]

    def whole(self, choice: Choice) -> Outcome:
        """Try a whole training with its rounds."""
        logits = np.zeros(self._samples.labels.members.shape)
        for hidden, samples in self._training():
            fit, readout, _ = train(samples, choice)
            assert readout is not None
            shares = samples.shares(fit.A, hidden)
            logits[hidden] = readout.logits(samples.context[hidden], shares)
        return self._judge(choice, logits)

    def _judge(self, choice: Choice, logits: Array) -> Outcome:
        """Note the score: accuracy, or for several labels the mean of micro and macro F."""
        labels, rows = self._samples.labels, self._validated
        if labels.several:  # at the best threshold in common
            truth, chance = labels.members[rows] > 0, probabilities(logits[rows], True)
            micro, each = _f_measures(truth, chance, np.linspace(0.05, 0.95, 19))
            score = float(((micro + each.mean(axis=1)) / 2).max())
        else:
            score = float(np.mean(logits[rows].argmax(axis=1) == labels.codes[rows]))
        self.scores[_name(choice)] = score
        return Outcome(choice, score, logits)

    def best(self, outcomes: list[Outcome]) -> Outcome:
        """Return the first outcome, or a later one that is clearly better (by its error)."""
        best, *others = outcomes
        count = self._validated.sum()
        margin = _LIKELY if count >= _MANY_VALIDATED else _CLEARLY
        for other in others:
            error = np.sqrt(max(best.score * (1 - best.score), 1e-4) / count)
            best = other if other.score > best.score + margin * error else best
        return best


def choose(
    samples: LabeledSamples, choices: list[Choice], validates: bool, balances: bool
) -> tuple[Choice, Validation]:
    """Choose topics and readout, then whether self-training helps, by label-blind validation.

    The first choice is the rule for too few labels, and stands where nothing is clearly better, or
    if nothing `validates`; `balances` is whether weights of the classes are tried.
    """
    labels = samples.labels
    logits, folds = np.zeros(labels.members.shape), np.full(len(labels.members), -1)
    if validates:
        folds = folds_of(labels, samples.seed)
    if (folds < 0).all():
        return choices[0], Validation(labels, folds, logits)
    rows = _tried_rows(samples)
    trials = Trials(samples if rows.all() else samples.part(rows), folds[rows])
    rule = replace(choices[0], rounds=0)
    options = [rule.readout | {"C": C, "row_scale": scale} for C, scale in _READOUTS]
    if balances:
        options.append(options[-1] | {"class_weight": "balanced"})
    best = trials.best(trials.readouts(rule, options))
    topics = [replace(choice, rounds=0) for choice in choices[1:]]
    readout = [best.choice.readout]
    best = trials.best([best, *(trials.readouts(choice, readout)[0] for choice in topics)])
    if choices[0].rounds and not labels.known[rows].all():
        trained = trials.whole(replace(best.choice, rounds=choices[0].rounds))
        best = trials.best([trained, best])
    logits[rows] = best.logits
    return best.choice, Validation(labels, folds, logits, trials.scores, best.score)


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


def _name(choice: Choice) -> str:
    weight = choice.supervision_weight
    words = weight if isinstance(weight, str) else f"{weight:g}"
    given = choice.readout
    readout = f"C={given['C']:g}, row_scale={given['row_scale']:g}"
    if given["class_weight"] is not None:
        readout += f", class_weight={given['class_weight']}"
    return (
        f"n_components={choice.n_components}, supervision_weight={words}, {readout}, "
        f"self_training={choice.rounds}"
    )
