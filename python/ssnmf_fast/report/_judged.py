"""How good predictions are: scores with intervals, beside those of simple methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._common.arrays import Array
from .._common.text import sort_naturally

MODEL, SVC, LARGEST, REGRESSION = "model", "LinearSVC", "largest class", "logistic regression"
_KEYS = {MODEL: "", SVC: "linear_svc_", REGRESSION: "logistic_regression_", LARGEST: "majority_"}
_NAMES = {
    SVC: "LinearSVC, trained on the same labels",
    REGRESSION: "logistic regression (balanced), trained on the same labels",
    LARGEST: "always the largest class",
}
_LEVEL = 0.95
_QUANTILE = 1.96  # of the normal distribution, for that level
_RESAMPLES = 500
_CHANCE = 0.05
_OF_NEW = (
    "The interval of the model is wider than those of the others, as it is for new samples: the "
    "fits that predict share labels, so that fewer samples are counted, three quarters of them; "
    "and the model has more labels than they had, so that it may be better: the upper end is "
    "raised."
)
_BY_SHARES = (
    "The labels are more even than the classes: each class counts by its share of all samples, as "
    "the fit estimates it."
)


@dataclass(frozen=True)
class Measure:
    """How good a fit is in one respect; `meaning` explains the value in a sentence."""

    key: str  # in files that programs read
    name: str
    value: float
    text: str
    meaning: str
    interval: tuple[float, float] | None = None


class ClassScore(NamedTuple):
    """How well one class is predicted; NaN where nothing was, or could be, predicted.

    `samples` is the number of those that have the class.
    """

    name: str
    precision: float
    recall: float
    f: float
    samples: int


def format_score(value: float) -> str:
    """Return a score of a class as text, - for NaN."""
    return "-" if np.isnan(value) else f"{value:.2f}"


class Score(NamedTuple):
    """A score from 0 to 1 and its 95 % interval."""

    value: float
    low: float
    high: float


def accuracy(truth: Array, guess: Array, weights: Array | None = None) -> Score:
    """Return the share of right guesses, or of their weights, with Wilson's interval.

    Unequal weights count as so many equal ones as have the same variance.
    """
    from scipy.stats import binomtest

    weights = np.ones(len(truth)) if weights is None else weights
    value = float(np.average(guess == truth, weights=weights))
    count = max(1, round(weights.sum() ** 2 / np.square(weights).sum()))
    found = binomtest(round(value * count), count).proportion_ci(_LEVEL, method="wilson")
    return Score(value, float(found.low), float(found.high))


def f_score(truth: Array, guess: Array, average: str) -> Score:
    """Return micro or macro F of indicators, with the interval of resampled samples."""
    hits = (truth * guess).astype(np.float64)
    sums = (truth + guess).astype(np.float64)

    def score(weights: Array) -> Array:
        both, all_of_it = weights @ hits, weights @ sums
        if average == "micro":
            both, all_of_it = both.sum(axis=1, keepdims=True), all_of_it.sum(axis=1, keepdims=True)
        ratio = np.divide(2 * both, all_of_it, out=np.zeros_like(both), where=all_of_it > 0)
        return np.asarray(ratio.mean(axis=1))

    n = len(truth)
    rng = np.random.default_rng(0)
    resampled = score(rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64))
    value = float(score(np.ones((1, n)))[0])
    # Rare labels are missing from many resamples, which lowers macro F.
    resampled = np.clip(resampled + value - resampled.mean(), 0, 1)
    low, high = np.quantile(resampled, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    # Resamples of a perfect score are all perfect: at 0 and 1 the ends are Wilson's.
    part = n / (n + _QUANTILE**2)
    return Score(value, min(float(low), value * part), max(float(high), 1 - (1 - value) * part))


@dataclass(frozen=True)
class Judged:
    """Predictions for samples whose labels were hidden from whoever predicts them.

    `truth` and each of `guesses` hold names (h,) or, for several labels, 0 and 1 (h, k).  The
    guesses of the model come first.  `by_validation` means that the labels were hidden in turn, by
    the fit itself, rather than from all of the fit.  `expected` is the accuracy of the model for
    new samples as the fit estimates it, and its interval.  `weights` are those of samples whose
    classes have other shares among all samples than among the labeled ones.
    """

    truth: Array
    guesses: dict[str, Array]
    classes: list[str]
    by_validation: bool
    labeled: int = 0  # labeled samples, of which validation hides some
    expected: Score | None = None
    weights: Array | None = None

    @property
    def guessed(self) -> Array:
        """What the model predicts."""
        return self.guesses[MODEL]

    @property
    def several(self) -> bool:
        """Whether a sample may have several labels."""
        return self.truth.ndim == 2

    @property
    def trained(self) -> bool:
        """Whether there are guesses of a simple method that learns."""
        return SVC in self.guesses or REGRESSION in self.guesses

    @property
    def where(self) -> str:
        """On which samples the predictions are."""
        count = len(self.truth)
        if not self.by_validation:
            return f"on {count} held-out samples"
        share = f"{count} of {self.labeled}" if self.labeled > count else f"{count}"
        return f"by validation on {share} labeled samples"

    @property
    def note(self) -> str:
        """What the scores were measured on, and what to expect of new samples."""
        count, lines = len(self.truth), "Lines: 95 % intervals."
        if not self.by_validation:
            return f"On {count} samples whose labels were hidden from the fit. {lines}"
        part = " The labels of the others were never hidden." if self.labeled > count else ""
        new = f" {_OF_NEW}" if self.expected is not None else ""
        return (
            f"{self.where[0].upper()}{self.where[1:]}: each is predicted by a fit that did not "
            f"know its label.{part} Expect about as much for new samples. {lines}{new}"
        )

    @cached_property
    def _scores(self) -> dict[str, dict[str, Score]]:
        """The scores of every method, by their kind."""
        if not self.several:
            found = {
                name: {"accuracy": accuracy(self.truth, guess, self.weights)}
                for name, guess in self.guesses.items()
            }
            if self.expected is not None:
                found[MODEL] = {"accuracy": self.expected}
            return found
        return {
            name: {f"{kind} F": f_score(self.truth, guess, kind) for kind in ("micro", "macro")}
            for name, guess in self.guesses.items()
        }

    @cached_property
    def class_scores(self) -> list[ClassScore]:
        """How well the model predicts each class, in natural order; an unknown class is added."""
        from sklearn.metrics import precision_recall_fscore_support

        truth, guessed, names = self.truth, self.guessed, self.classes
        if not self.several:
            truth, guessed = truth.astype(str), guessed.astype(str)
            names = sorted({*names, *truth.tolist()})
        labels = None if self.several else names
        columns = precision_recall_fscore_support(
            truth, guessed, labels=labels, zero_division=np.nan
        )
        found = zip(*(column.tolist() for column in columns), strict=True)
        scores = dict(zip(names, found, strict=True))
        return [ClassScore(name, *scores[name]) for name in sort_naturally(names)]

    def _format(self, value: float) -> str:
        return f"{value:.3f}" if self.several else f"{value:.1%}"

    def _meaning(self, name: str, kind: str) -> str:
        if name == LARGEST:
            return (
                "The same samples, each predicted as the class of most labels that the model had."
            )
        if name != MODEL:
            return "The same samples, each predicted from the labels that the model had."
        hidden = "held-out samples"
        if self.by_validation:
            hidden = "labeled samples, each predicted by a fit that did not know its label,"
        if kind == "micro F":
            return (
                f"Harmonic mean of precision and recall of all labels of the {hidden} together: 1 "
                "if all are right; frequent labels count most."
            )
        if kind == "macro F":
            return (
                "The same for each label by itself, then averaged: rare labels count like frequent "
                "ones; one that no such sample has or is given counts 0."
            )
        shares = "" if self.weights is None else f" {_BY_SHARES}"
        new = "" if self.expected is None else f" {_OF_NEW}"
        return f"Share of the {hidden} whose class is predicted.{shares}{new}"

    def measures(self) -> list[Measure]:
        """Return accuracy or F scores of the model, then those of the simple methods."""
        found = []
        for name, scores in self._scores.items():
            for kind, score in scores.items():
                key = _KEYS[name] + kind.lower().replace(" ", "_")
                title = f"{kind} {self.where}"
                if name != MODEL:
                    title = f"{kind} of {_NAMES[name]}" if self.several else _NAMES[name]
                value, low, high = map(self._format, score)
                new = " for new samples" if score is self.expected else ""
                text = f"{value} (95% interval{new} {low} to {high})"
                meaning = self._meaning(name, kind)
                found.append(Measure(key, title, score.value, text, meaning, score[1:]))
        return found

    def shortfalls(self) -> list[str]:
        """Return in words where the model does worse than a simple method."""
        found = []
        for name, scores in self._scores.items():
            for kind, score in scores.items():
                mine = self._scores[MODEL][kind].value
                if mine < score.value:
                    other = _NAMES[name].replace("always", "always predicting")
                    found.append(
                        f"the {kind} of the model, {self._format(mine)}, is below the "
                        f"{self._format(score.value)} of {other}: {self._advice(name, kind)}"
                    )
        return found

    def _advice(self, name: str, kind: str) -> str:
        if self._may_be_chance(name, kind):
            return f"on {len(self.truth)} samples so small a difference may be chance"
        if name == LARGEST:
            return "look whether the data tell the classes apart, or label more samples"
        return "another --model or more labels may do better"

    def _may_be_chance(self, name: str, kind: str) -> bool:
        """Whether a method that scores higher may be no better than the model."""
        from scipy.stats import binomtest

        if self.several:
            return self._scores[name][kind].value < self._scores[MODEL][kind].high
        mine, other = self.guessed == self.truth, self.guesses[name] == self.truth
        worse, differ = int((~mine & other).sum()), int((mine != other).sum())
        return bool(binomtest(worse, differ).pvalue >= _CHANCE)
