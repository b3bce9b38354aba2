"""How accurate fits with fewer labels are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._common.arrays import Array
from ._errors import UsageError
from ._fitted import Fitted
from ._judged import REGRESSION, SVC, features, simple_guesses, targets
from ._models import Model
from ._quality import Score, accuracy, f_score
from ._sample_labels import SampleLabels

_SIZES = 5
_TEST_SHARE, _MOST_TESTED = 0.3, 1000
_LEAST_TESTED = 10


@dataclass(frozen=True)
class LearningCurve:
    """Scores of fits with growing numbers of labels, of which each has those of the one before.

    All are judged on the same samples, `tested` in number, whose labels no fit has seen.
    """

    tested: int
    metric: str
    sizes: list[int]
    scores: dict[str, list[Score]]

    def summary(self) -> dict[str, Any]:
        """Return it for JSON: score and ends of the interval at every size."""
        return {
            "metric": self.metric,
            "tested": self.tested,
            "labels": self.sizes,
            "scores": {
                name: [[score.value, score.low, score.high] for score in some]
                for name, some in self.scores.items()
            },
        }

    def lines(self) -> list[str]:
        """Return it as text, a line for each size."""
        form = ".1%" if self.metric == "accuracy" else ".3f"
        names = list(self.scores)
        rows = [["labels", *names]]
        for k, size in enumerate(self.sizes):
            cells = [
                f"{s[k].value:{form}} ({s[k].low:{form}} to {s[k].high:{form}})"
                for s in self.scores.values()
            ]
            rows.append([str(size), *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]


def learning_curve(model: Model, fitted: Fitted, options: Any) -> LearningCurve:
    """Fit with growing numbers of labels, and judge each fit on the same samples."""
    labels = fitted.labels
    assert labels is not None
    hidden = _tested(fitted, labels, options)
    order = _order(labels.without(hidden), options.seed)
    k = len(labels.names)
    first = min(max(_covering(labels, order), 2 * k), len(order))
    sizes = np.unique(np.geomspace(first, len(order), _SIZES).round().astype(int)).tolist()
    scores: dict[str, list[Score]] = {model.name: []}
    for size in sizes:
        seen = np.ones(len(hidden), dtype=bool)
        seen[order[:size]] = False
        visible = labels.without(seen)
        for name, score in _scores(model, fitted, options, visible, hidden).items():
            scores.setdefault(name, []).append(score)
    whole = {name: some for name, some in scores.items() if len(some) == len(sizes)}
    metric = "micro F" if labels.several else "accuracy"
    return LearningCurve(int(hidden.sum()), metric, sizes, whole)


def _tested(fitted: Fitted, labels: SampleLabels, options: Any) -> Array:
    """Return the samples that all fits are judged on."""
    hidden = fitted.held_out
    if not hidden.any():
        hidden = labels.hold_out(_TEST_SHARE, options.seed)
    chosen = np.flatnonzero(hidden)
    if len(chosen) > _MOST_TESTED:
        chosen = np.random.default_rng(options.seed).permutation(chosen)[:_MOST_TESTED]
    if len(chosen) < _LEAST_TESTED:
        raise UsageError(
            f"--learning-curve needs more labels: of {labels.known.sum()} only {len(chosen)} can "
            f"be held out to judge the fits; expected at least {_LEAST_TESTED}"
        )
    found = np.zeros(len(hidden), dtype=bool)
    found[chosen] = True
    return found | fitted.held_out


def _order(labels: SampleLabels, seed: int) -> Array:
    """Return the labeled samples so that every beginning has about the same shares of classes.

    The first ones show every label once.
    """
    rng = np.random.default_rng(seed)
    known = rng.permutation(np.flatnonzero(labels.known))
    members = labels.indicators()[known]
    earlier = np.cumsum(members, axis=0) - members
    new = (members * (earlier == 0)).any(axis=1)
    # Where one sample in a class of c stands when all classes are spread evenly.
    place = ((earlier + rng.random(members.shape)) / members.sum(axis=0)).max(
        axis=1, where=members > 0, initial=0
    )
    return np.asarray(known[np.lexsort((place, ~new))])


def _covering(labels: SampleLabels, order: Array) -> int:
    """Return how many of the first samples it takes to show every label."""
    seen = np.cumsum(labels.indicators()[order], axis=0) > 0
    return int(np.argmax(seen.sum(axis=1) == seen[-1].sum())) + 1


def _scores(
    model: Model, fitted: Fitted, options: Any, visible: SampleLabels, hidden: Array
) -> dict[str, Score]:
    """Return the score of one fit, and of the simple method that has the same labels."""
    assert model.targets is not None
    assert fitted.labels is not None
    with warnings.catch_warnings():  # the fit itself has told of them
        warnings.simplefilter("ignore")
        estimator = model.build(options, visible, None).fit(fitted.X, model.targets(visible))
    classes = [str(name) for name in estimator.classes_]
    truth = targets(fitted.labels, classes, fitted.labels.several)
    guessed = np.asarray(estimator.predict(fitted.X[np.flatnonzero(hidden)]))
    guesses = {model.name: guessed if fitted.labels.several else guessed.astype(str)}
    rows = visible.known | hidden
    others = simple_guesses(
        features(fitted)[np.flatnonzero(rows)],
        truth[rows],
        visible.known[rows],
        np.where(hidden, 0, -1)[rows],
    )
    guesses |= {name: guess for name, guess in others.items() if name in (SVC, REGRESSION)}
    score = partial(f_score, average="micro") if fitted.labels.several else accuracy
    return {name: score(truth[hidden], guess) for name, guess in guesses.items()}
