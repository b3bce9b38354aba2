"""How good the predictions are: scores with intervals, beside those of simple methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import Array
from ..report import Measure
from ._fitted import Fitted
from ._judged import LARGEST, MODEL, REGRESSION, SVC, Judged

_LEVEL = 0.95
_QUANTILE = 1.96  # of the normal distribution, for that level
_RESAMPLES = 500
_CHANCE = 0.05
_KEYS = {MODEL: "", SVC: "linear_svc_", REGRESSION: "logistic_regression_", LARGEST: "majority_"}
_NAMES = {
    SVC: "LinearSVC, trained on the same labels",
    REGRESSION: "logistic regression (balanced), trained on the same labels",
    LARGEST: "always the largest class",
}


@dataclass(frozen=True)
class Score:
    """A score from 0 to 1 and its 95 % interval."""

    value: float
    low: float
    high: float

    def format(self, form: str) -> str:
        """Return it as text; `form` is a format such as ``.1%``."""
        low, high = format(self.low, form), format(self.high, form)
        return f"{self.value:{form}} (95% interval {low} to {high})"


def accuracy(truth: Array, guess: Array) -> Score:
    """Return the share of right guesses with Wilson's interval."""
    from scipy.stats import binomtest

    right = int((guess == truth).sum())
    found = binomtest(right, len(truth)).proportion_ci(_LEVEL, method="wilson")
    return Score(right / len(truth), float(found.low), float(found.high))


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


def quality_measures(judged: Judged) -> list[Measure]:
    """Return accuracy or F scores of the model, then those of the simple methods."""
    found = []
    for name, guess in judged.guesses.items():
        for kind, what, form, meaning in _kinds(judged):
            score = _score(judged, guess, kind)
            key = f"{_KEYS[name]}{kind}_f" if judged.several else f"{_KEYS[name]}accuracy"
            title = f"{what} {judged.where}"
            if name != MODEL:
                title = f"{what} of {_NAMES[name]}" if judged.several else _NAMES[name]
                meaning = "The same samples, each predicted from the labels that the model had."
                if name == LARGEST:
                    meaning = "The same samples, all predicted as the class of most labels."
            interval = (score.low, score.high)
            found.append(Measure(key, title, score.value, score.format(form), meaning, interval))
    return found


def _kinds(judged: Judged) -> list[tuple[str, str, str, str]]:
    """Return key, name, format and meaning of the scores."""
    hidden = "held-out samples"
    if judged.by_validation:  # of many labels a part, as one fit is enough then
        hidden = "labeled samples, each predicted by a fit that did not know its label,"
    if not judged.several:
        return [("", "accuracy", ".1%", f"Share of the {hidden} whose class is predicted.")]
    micro = (
        f"Harmonic mean of precision and recall of all labels of the {hidden} together: 1 if all "
        "are right; frequent labels count most."
    )
    macro = (
        "The same for each label by itself, then averaged: rare labels count like frequent ones; "
        "one that no such sample has or is given counts 0."
    )
    return [("micro", "micro F", ".3f", micro), ("macro", "macro F", ".3f", macro)]


def shortfalls(judged: Judged) -> list[str]:
    """Say in words where the model does worse than a simple method."""
    truth, guessed = judged.truth, judged.guesses[MODEL]
    found = []
    for name, guess in judged.guesses.items():
        if name == MODEL:
            continue
        for kind, what, form, _ in _kinds(judged):
            mine, other = (_score(judged, g, kind) for g in (guessed, guess))
            if mine.value >= other.value:
                continue
            if judged.several:
                unsure = other.value < mine.high
            else:
                unsure = _may_be_chance(truth, guessed, guess)
            found.append(
                f"the {what} of the model, {mine.value:{form}}, is below the {other.value:{form}} "
                f"of {_NAMES[name].replace('always', 'always predicting')}: "
                + _advice(name, len(truth), unsure)
            )
    return found


def _advice(name: str, count: int, unsure: bool) -> str:
    if unsure:
        return f"on {count} samples so small a difference may be chance"
    if name == LARGEST:
        return "look whether the data tell the classes apart, or label more samples"
    return "another --model or more labels may do better"


def _score(judged: Judged, guess: Array, kind: str) -> Score:
    if judged.several:
        return f_score(judged.truth, guess, kind)
    return accuracy(judged.truth, guess)


def _may_be_chance(truth: Array, guessed: Array, other: Array) -> bool:
    """Whether two methods that are right for different samples may be equally good."""
    from scipy.stats import binomtest

    better, worse = (
        int(((guessed == truth) & (other != truth)).sum()),
        int(((guessed != truth) & (other == truth)).sum()),
    )
    return bool(binomtest(better, better + worse).pvalue >= _CHANCE) if better + worse else True


def not_known(fitted: Fitted) -> str:
    """Say why nothing is known of how good the predictions are, and what to do."""
    from ..estimators._choose import LEAST_PER_CLASS

    assert fitted.labels is not None
    count, k = int(fitted.training.sum()), len(fitted.labels.names)
    if len(getattr(fitted.model, "validation_folds_", ())) and _chose(fitted.model):
        needed = max(LEAST_PER_CLASS * max(k, 2), count + 1)
        return (
            f"the accuracy cannot be estimated from so few labels, {count} of {k} classes; "
            f"expected about {needed}, {LEAST_PER_CLASS} a class on average"
        )
    return (
        "the accuracy is not known, as no labeled sample was held out; --test-size sets how many "
        "are, and every class needs several labels for it"
    )


def _chose(model: Any) -> bool:
    """Whether the fit would have validated, with more labels."""
    chosen = "auto" in (model.n_components, model.supervision_weight)
    return bool(chosen and model.readout in ("auto", "logistic"))


_COHERENT_TERMS = 10


def topic_measures(fitted: Fitted) -> list[Measure]:
    """Return how well named topics of the held-out documents agree with their labels."""
    assert fitted.labels is not None
    if not fitted.held_out.any():
        return []
    names = [str(name) for name in fitted.model.topic_names_]
    S = fitted.amounts[fitted.held_out, : len(names)]
    truth = fitted.labels.indicators(names)[fitted.held_out]
    right = float(np.mean(truth[np.arange(len(S)), S.argmax(axis=1)] * S.any(axis=1)))
    largest = Measure(
        "largest_topic_right",
        f"largest topic among the labels of {len(S)} held-out samples",
        right,
        f"{right:.1%}",
        "Share of the held-out samples whose largest named topic, the one that explains most of "
        "the sample, is one of their labels.",
    )
    return [largest] if len(names) < 2 else [largest, *_matching(S, truth)]


def bound_measures(fitted: Fitted) -> list[Measure]:
    """Return the lower bound of a Bayesian model."""
    bound = float(np.ravel(fitted.model.lower_bound_)[-1])
    meaning = (
        "Lower bound of the log evidence that the fit maximizes, hyperparameters included: of two "
        "fits to the same data, as with other ranks or seeds, the higher is the better model."
    )
    return [Measure("lower_bound", "lower bound", bound, f"{bound:.6g}", meaning)]


def sparsity_measures(fitted: Fitted) -> list[Measure]:
    """Return how sparse the representation is."""
    from .. import metrics

    S = fitted.model.representation_
    if S.size < 2:
        return []
    value = metrics.hoyer_sparsity(S)
    meaning = (
        "Hoyer sparsity of the topics' weights in the samples: near 1 if few weights carry "
        "everything, 0 if all are equal."
    )
    return [Measure("sparsity", "sparsity", value, f"{value:.3f}", meaning)]


def label_sparsity_measures(fitted: Fitted) -> list[Measure]:
    """Return how few classes use each topic."""
    from .. import metrics

    assert fitted.labels is not None
    labeled = fitted.training
    labels = fitted.labels.single()[labeled].astype(str)
    value = metrics.inter_label_sparsity(
        fitted.model.representation_[labeled], labels, unlabeled=None
    ).score
    meaning = (
        "Hoyer sparsity of the topics' weights summed over each class of the labeled samples: "
        "near 1 if each class has few topics of its own, 0 if all classes use all alike; "
        "--rate-shape steers it."
    )
    return [Measure("inter_label_sparsity", "inter-label sparsity", value, f"{value:.3f}", meaning)]


def coherence_measures(fitted: Fitted) -> list[Measure]:
    """Return the coherence of the topics of texts."""
    from .. import metrics

    usable = fitted.model.components_[(fitted.model.components_ > 0).sum(axis=1) >= 2]
    if not fitted.is_text or not len(usable):
        return []
    value = metrics.topic_coherence(fitted.X, usable, n_terms=_COHERENT_TERMS).score
    meaning = (
        f"How often the first {_COHERENT_TERMS} terms of a topic occur in the same texts (NPMI), "
        "averaged over the topics: 1 if always together, 0 if as often as by chance, -1 if never."
    )
    return [Measure("coherence", "topic coherence (NPMI)", value, f"{value:.3f}", meaning)]


def _matching(S: Array, truth: Array) -> list[Measure]:
    """Return similarity and resolved topics of weights and labels, (h, k) each."""
    from .. import metrics

    matching = metrics.match_topics(S, truth)
    k, seen = truth.shape[1], int(truth.any(axis=0).sum())
    similarity = (
        "Weighted Jaccard similarity of the named topics' shares in the held-out samples and of "
        "their labels, matched one to one, on average: 1 if they agree, 0 if they never meet."
    )
    resolved = (
        "Topics whose similarity with the label they are matched with lies above 0.1; the held-out "
        f"samples show {seen} of the {k} labels."
    )
    score, count = matching.score, matching.n_resolved
    return [
        Measure("similarity", "similarity of topics and labels", score, f"{score:.3f}", similarity),
        Measure("resolved_topics", "resolved topics", count, f"{count} of {k}", resolved),
    ]


def as_json(measures: Sequence[Measure]) -> dict[str, float]:
    """Return the values by key."""
    return {measure.key: measure.value for measure in measures}
