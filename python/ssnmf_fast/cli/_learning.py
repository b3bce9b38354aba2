"""Whether more labels would help: what a fit to half of them predicts, beside a fit to most."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._common.arrays import Array
from ..report import Judged
from ._fitted import Fitted
from ._sample_labels import SampleLabels

_LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Learning:
    """Mean scores of labels that were hidden: with half of the labels, and by validation.

    The score of a sample is 1 for the right class, else 0; of several labels it is their F.
    """

    half: float
    full: float
    error: float  # standard error of the difference

    @property
    def helps(self) -> bool:
        """Whether the second half of the labels has gained a point, and more than by chance."""
        return self.full - self.half > max(self.error, _LEAST_GAIN)

    @property
    def text(self) -> str:
        """What this says of more labels, in a line."""
        verdict = "more labels help" if self.helps else "more labels may help little"
        return f"{verdict}: {self.half:.1%} with half of the labels, {self.full:.1%} with most"

    def content(self) -> dict[str, Any]:
        """Return the same for JSON."""
        return {"score_half": self.half, "score": self.full, "more_labels_help": self.helps}


def learning_of(fitted: Fitted, judged: Judged | None) -> Learning | None:
    """Fit to each half of the labels, and predict the other; None without a validation."""
    if judged is None or not judged.by_validation:
        return None
    labels = fitted.labels
    assert labels is not None
    hidden, half = fitted.model.validation_folds_ >= 0, _halves(labels)
    guessed = np.zeros_like(judged.truth)
    for number in (0, 1):
        y = labels.single_or_indicators()
        y[half != number] = np.nan if labels.several else None
        rows = hidden & (half == 1 - number)
        with warnings.catch_warnings():  # of convergence, of what validation finds
            warnings.simplefilter("ignore")
            model = clone(fitted.model).fit(fitted.X, y)
        guessed[rows[hidden]] = Fitted(X=fitted.X[rows], model=model).predicted
    by_half, by_all = (_scores(judged.truth, one) for one in (guessed, judged.guessed))
    error = float((by_all - by_half).std() / np.sqrt(len(by_all)))
    return Learning(float(by_half.mean()), float(by_all.mean()), error)


def _halves(labels: SampleLabels) -> Array:
    """Return in which half a label is, -1 for none; each has half of every class."""
    half = np.full(len(labels.each), -1)
    order = np.random.default_rng(0).permutation(np.flatnonzero(labels.known))
    if not labels.several:
        order = order[np.argsort(labels.single()[order].astype(str), kind="stable")]
    half[order] = np.arange(len(order)) % 2
    return half


def _scores(truth: Array, guessed: Array) -> Array:
    """Return the score of every sample."""
    if truth.ndim == 1:
        return np.asarray(truth == guessed, dtype=np.float64)
    counts = (truth + guessed).sum(axis=1)
    return np.asarray(2 * (truth * guessed).sum(axis=1) / np.maximum(counts, 1))
