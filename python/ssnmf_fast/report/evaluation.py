"""Scores of predicted labels, with intervals, compared with those of simple methods."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._common.arrays import Array
from .._common.locks import cached_property
from .._common.text import short, sort_naturally

MODEL, SVC, LARGEST, REGRESSION = "model", "LinearSVC", "largest class", "logistic regression"
_KEYS = {MODEL: "", SVC: "linear_svc_", REGRESSION: "logistic_regression_", LARGEST: "majority_"}
_NAMES = {
    SVC: "LinearSVC, trained on the same labels",
    REGRESSION: "logistic regression (balanced), trained on the same labels",
    LARGEST: "always the largest class",
}
_MOST_ENTRIES = 10_000_000  # of the training samples; LinearSVC takes minutes for more
_LEVEL, QUANTILE = 0.95, 1.96  # of the intervals; quantile of the normal distribution for it
_RESAMPLES = 500
_CAUTION, _FEWEST = 0.5, 10  # standard errors above a target accuracy; samples that show it
_MISSED, _SHOWN = "classes never predicted correctly", 5
NONE_SURE: tuple[float, Score | None] = 2.0, None  # no probability is as large
_AVERAGES = "micro", "macro"
_OF_NEW = (
    "The accuracy of the model is that expected for new samples. If class shares are estimated, "
    "it is the mean probability of predictions for unlabeled samples that the fits of the "
    "validation left out, corrected by the errors at labeled samples; otherwise, the share of "
    "these that is predicted correctly. In its interval only three quarters of the samples count, "
    "as fits share labels; the upper end is raised, as the model has more labels than they."
)
_BY_SHARES = "Each class counts by its share of all samples, not by its number of labels."


@dataclass(frozen=True)
class Measure:
    """A measure of a fit; `meaning` explains the value in a sentence."""

    key: str  # in files that programs read
    name: str
    value: float
    text: str
    meaning: str
    interval: tuple[float, float] | None = None


def values_of(measures: Sequence[Measure]) -> dict[str, Any]:
    """Return what programs read of measures, by key."""
    intervals = {one.key: list(one.interval) for one in measures if one.interval}
    return {"measures": {one.key: one.value for one in measures}, "intervals": intervals}


class ClassScore(NamedTuple):
    """Scores of one class; NaN where nothing was, or could be, predicted."""

    name: str
    precision: float
    recall: float
    f: float
    samples: int


class Confusion(NamedTuple):
    classes: list[str]
    counts: Array


def confusion(truth: Any, predicted: Any, classes: Any) -> Confusion:
    """Count pairs of true and predicted classes, in natural order of their names."""
    from sklearn.metrics import confusion_matrix

    truth, predicted = np.asarray(truth).astype(str), np.asarray(predicted).astype(str)
    names = sort_naturally(sorted({*map(str, classes), *truth.tolist()}))
    return Confusion(names, confusion_matrix(truth, predicted, labels=names))


class Score(NamedTuple):
    value: float
    low: float
    high: float


def format_score(value: float) -> str:
    """Return a score of a class as text, - for NaN."""
    return "-" if np.isnan(value) else f"{value:.2f}"


def _score_accuracy(truth: Array, predicted: Array, weights: Array | None = None) -> Score:
    """Return the share of right predictions, or of their weights, with Wilson's interval.

    Unequal weights count as the number of equal weights with the same variance.
    """
    from scipy.stats import binomtest

    weights = np.ones(len(truth)) if weights is None else weights
    value = float(np.average(predicted == truth, weights=weights))
    count = max(1, round(weights.sum() ** 2 / np.square(weights).sum()))
    ends = binomtest(round(value * count), count).proportion_ci(_LEVEL, method="wilson")
    return Score(value, float(ends.low), float(ends.high))


def _score_f(truth: Array, predicted: Array, average: str) -> Score:
    """Return micro or macro F of indicators, with the interval of resampled samples."""
    hits = (truth * predicted).astype(np.float64)
    sums = (truth + predicted).astype(np.float64)

    def score(weights: Array) -> Array:
        both, total = weights @ hits, weights @ sums
        if average == "micro":
            both, total = both.sum(axis=1, keepdims=True), total.sum(axis=1, keepdims=True)
        ratio = np.divide(2 * both, total, out=np.zeros_like(both), where=total > 0)
        return np.asarray(ratio.mean(axis=1))

    n = len(truth)
    rng = np.random.default_rng(0)
    resampled = score(rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64))
    value = float(score(np.ones((1, n)))[0])
    # Rare labels are missing from many resamples, which lowers macro F.
    resampled = np.clip(resampled + value - resampled.mean(), 0, 1)
    low, high = np.quantile(resampled, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    # Resamples of a perfect score are all perfect: at 0 and 1 the ends are Wilson's.
    part = n / (n + QUANTILE**2)
    return Score(value, min(float(low), value * part), max(float(high), 1 - (1 - value) * part))


@dataclass(frozen=True)
class Evaluation:
    """Predictions for samples whose labels were hidden from the models that predict them."""

    truth: Array
    predictions: dict[str, Array]
    classes: list[str]
    by_validation: bool
    labeled: int = 0  # labeled samples, of which validation hides some
    expected: Score | None = None
    weights: Array | None = None
    chances: Any = None  # the largest probability of each sample

    @property
    def several(self) -> bool:
        return self.truth.ndim == 2

    @property
    def where(self) -> str:
        """The samples that are predicted."""
        count = len(self.truth)
        if not self.by_validation:
            return f"on {count} held-out samples"
        share = f"{count} of {self.labeled}" if self.labeled > count else f"{count}"
        return f"by validation on {share} labeled samples"

    @property
    def note(self) -> str:
        """How the scores were measured, and what to expect for new samples."""
        count, lines = len(self.truth), "Lines: 95 % intervals."
        if not self.by_validation:
            return f"On {count} samples whose labels were hidden from the fit. {lines}"
        part = " The labels of the others were never hidden." if self.labeled > count else ""
        new = f" {_OF_NEW}" if self.expected is not None else ""
        return (
            f"{self.where[0].upper()}{self.where[1:]}: each is predicted by a fit that did not "
            f"know its label.{part} Expect similar scores for new samples. {lines}{new}"
        )

    @property
    def shown(self) -> dict[str, Any]:
        """What the page shows of classes, as parts of a summary."""
        parts = {"class_scores": self.class_scores, "judged": (self.where, self.note)}
        if self.several:
            return parts
        mine = self.predictions[MODEL]
        return parts | {"confusion": confusion(self.truth, mine, self.classes)}

    @cached_property
    def _scores(self) -> dict[tuple[str, str], Score]:
        """Scores by method and kind."""
        scores, truth = dict[tuple[str, str], Score](), self.truth
        for name, one in self.predictions.items():
            if self.several:
                scores |= {(name, f"{kind} F"): _score_f(truth, one, kind) for kind in _AVERAGES}
            else:
                scores[name, "accuracy"] = _score_accuracy(truth, one, self.weights)
        return scores if self.expected is None else scores | {(MODEL, "accuracy"): self.expected}

    @cached_property
    def class_scores(self) -> list[ClassScore]:
        """Scores of each class, in natural order; unknown classes are added."""
        from sklearn.metrics import precision_recall_fscore_support

        truth, predicted, names = self.truth, self.predictions[MODEL], self.classes
        if not self.several:
            truth, predicted = truth.astype(str), predicted.astype(str)
            names = sorted({*names, *truth.tolist()})
        columns = precision_recall_fscore_support(
            truth, predicted, labels=None if self.several else names, zero_division=np.nan
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        scores = dict(zip(names, rows, strict=True))
        return [ClassScore(name, *scores[name]) for name in sort_naturally(names)]

    def _format(self, value: float) -> str:
        return f"{value:.3f}" if self.several else f"{value:.1%}"

    def sure(self, target: float) -> tuple[float, Score | None]:
        """Return the least probability of predictions with an accuracy, for single labels, and it.

        Their mean probability and their accuracy both exceed it by half a standard error: of all
        groups of few samples, the largest that just reaches a target is a lucky one.
        """
        order = np.argsort(-self.chances, kind="stable")
        chances, right = self.chances[order], (self.predictions[MODEL] == self.truth)[order]
        weights = np.ones(len(order)) if self.weights is None else self.weights[order]
        sums, squares = weights.cumsum(), (weights**2).cumsum()
        least = np.minimum((weights * right).cumsum(), (weights * chances).cumsum()) / sums
        error = np.sqrt(target * (1 - target) * squares) / sums
        enough = (least >= target + _CAUTION * error) & (sums**2 >= _FEWEST * squares)
        if not enough.any():
            return NONE_SURE
        end = int(np.flatnonzero(enough)[-1]) + 1
        return float(chances[end - 1]), _score_accuracy(right[:end], np.ones(end), weights[:end])

    def measures(self) -> list[Measure]:
        """Return accuracy or F scores of the model, then those of the simple methods."""
        hidden = "held-out samples"
        if self.by_validation:
            hidden = "labeled samples, each predicted by a fit that did not know its label,"
        shares = "" if self.weights is None else f" {_BY_SHARES}"
        right = f"Share of the {hidden} whose class is predicted correctly."
        meanings = {
            "accuracy": f"{right if self.expected is None else _OF_NEW}{shares}",
            "micro F": f"Harmonic mean of precision and recall of all labels of the {hidden} "
            "together: 1 if all are right; frequent labels count most.",
            "macro F": "The same for each label separately, then averaged: rare labels count as "
            "much as frequent labels; a label that no such sample has or gets counts 0.",
        }
        measures = []
        for (name, kind), score in self._scores.items():
            title, meaning = f"{kind} {self.where}", meanings[kind]
            if name != MODEL:
                title = f"{kind} of {_NAMES[name]}" if self.several else _NAMES[name]
                how = "as the most frequent class of the" if name == LARGEST else "from the"
                which = "The same" if self.expected is None else "Accuracy on the labeled"
                meaning = f"{which} samples, each predicted {how} labels that the model had."
            key = _KEYS[name] + kind.lower().replace(" ", "_")
            value, low, high = map(self._format, score)
            of = " for new samples" if score is self.expected else ""
            text = f"{value} (95% interval{of} {low} to {high})"
            measures.append(Measure(key, title, score.value, text, meaning, score[1:]))
        return measures

    def shortfalls(self) -> list[str]:
        """Return in words what the model misses or does worse than others, and what to do."""
        scores = [one for one in self.class_scores if one.samples and not one.recall]
        missed = [f"{short(one.name)} (0 of {one.samples} samples)" for one in scores]
        shown = ", ".join(missed[:_SHOWN]) + ", ..." * (len(missed) > _SHOWN)
        lines = [f"{_MISSED} {self.where}: {shown}; label more samples of them"] * bool(missed)
        for (name, kind), score in self._scores.items():
            best = self._scores[MODEL, kind]
            mine, others = (self.predictions[one] == self.truth for one in (MODEL, name))
            if best.value >= score.value or (not self.several and mine.sum() >= others.sum()):
                continue  # the same, or only the estimate is below
            advice = "another --model or more labels may do better"
            if name == LARGEST:
                advice = "check that the data separate the classes, or label more samples"
            if score.value < best.high:
                advice = f"on {len(self.truth)} samples such a small difference may be chance"
            method = _NAMES[name].replace("always", "always predicting")
            low, high = self._format(best.value), self._format(score.value)
            wrong = f"the {kind} of the model, {low}, is below the {high} of {method}"
            lines.append(f"{wrong}: {advice}")
        return lines


def name_classes(model: Any, proba: Array) -> Array:
    return np.asarray(model.classes_[proba.argmax(axis=1)]).astype(str)


def evaluate(
    model: Any, X: Any, truth: Array, known: Array, held_out: Array, predicted: Array, proba: Array
) -> Evaluation | None:
    """Return the predictions of a fit and of simple methods trained on the same labels."""
    classes, expected, weights = [str(name) for name in model.classes_], None, None
    by_validation, folds = not held_out.any(), np.where(held_out, 0, -1)
    if by_validation:
        folds = getattr(model, "validation_folds_", folds)
        if not (folds >= 0).any():
            return None
    hidden, several = folds >= 0, truth.ndim == 2
    if not by_validation:
        mine = predicted[hidden]
    elif several:
        mine = model.validation_predicted_[hidden]
    else:
        proba = model.validation_proba_
        mine = name_classes(model, proba[hidden])
        expected = Score(model.validation_accuracy_, *model.validation_interval_)
        codes = np.searchsorted(model.classes_.astype(str), truth[hidden])
        weights = model.class_prior_[codes] / np.bincount(codes)[codes]
    predictions = {MODEL: mine, **predict_simply(X, truth, known, folds)}
    more = by_validation, int((known & ~held_out).sum()), expected, weights
    return Evaluation(truth[hidden], predictions, classes, *more, proba[hidden].max(axis=1))


def predict_simply(X: Any, labels: Array, known: Array, folds: Array) -> dict[str, Array]:
    """Predict each fold by simple methods that learn from the known labels outside of it."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    largest = DummyClassifier(strategy="most_frequent")
    methods: dict[str, BaseEstimator] = {SVC: LinearSVC(random_state=0), LARGEST: largest}
    if labels.ndim == 2:
        balanced = LogisticRegression(class_weight="balanced", solver="liblinear", random_state=0)
        methods = {REGRESSION: OneVsRestClassifier(balanced)}
    predictions: dict[str, Array] = {}
    for fold in range(int(folds.max()) + 1):
        train, test = np.flatnonzero(known & (folds != fold)), np.flatnonzero(folds == fold)
        seen, seen_labels = X[train], labels[train]
        too_large = (seen.nnz if sp.issparse(seen) else seen.size) > _MOST_ENTRIES
        for name, method in methods.items():
            if too_large and name != LARGEST:
                continue
            one_class = name == SVC and len(np.unique(seen_labels)) == 1
            with warnings.catch_warnings():  # a label of all samples, or late convergence
                warnings.simplefilter("ignore")
                fitted = (largest if one_class else method).fit(seen, seen_labels)
                predictions.setdefault(name, np.zeros_like(labels))[test] = fitted.predict(X[test])
    return {name: predictions[name][folds >= 0] for name in methods if name in predictions}


def explain_no_estimate(model: Any, n_labeled: int, n_classes: int) -> str:
    """Return why the accuracy cannot be estimated, and what to do."""
    from ..estimators._committee import least_labels

    if hasattr(model, "validation_folds_"):  # the fit would have validated, with more labels
        needed = max(least_labels(n_classes), n_labeled + 1)
        few = f"too few labels, {n_labeled} of {n_classes} classes"
        return f"the accuracy cannot be estimated from {few}; expected about {needed}"
    size = "--test-size sets their share, and every class needs several labels"
    return f"the accuracy is not known because no labeled sample was held out; {size}"
