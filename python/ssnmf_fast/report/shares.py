"""Shares of the classes among samples that are labeled or predicted, with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array
from ..estimators._committee import INDEPENDENT
from .evaluation import QUANTILE


class ClassShare(NamedTuple):
    """A class: numbers of labeled and of predicted samples, and its share of all with its ends."""

    code: str
    labeled: int
    predicted: int
    share: float
    low: float
    high: float


def shares_of_classes(
    model: Any, labels: Array, known: Array, proba: Array, predicted: Array, chosen: Array
) -> list[ClassShare]:
    """Return the share of each class in some samples, in the order of ``model.classes_``.

    `labels` and `predicted` are indicators, (n, k); `known` marks labeled and `chosen` the counted
    samples, (n,).  Mean probabilities of unlabeled samples are corrected by the mean error of those
    that were validated.  The ends count the errors of both, and half of the difference between the
    class shares of labels and of samples that the model assumes; NaN without validation.
    """
    new, old = chosen & ~known, chosen & known
    folds = getattr(model, "validation_folds_", np.full(len(known), -1))
    total, part = max(int(chosen.sum()), 1), int(new.sum())
    sums = labels[old].sum(axis=0) + proba[new].sum(axis=0)
    ends, hidden = np.full((2, proba.shape[1]), np.nan), (folds >= 0) & known
    if not part:
        ends = np.array([sums, sums])
    elif hidden.sum() > 1:
        weight, moved = np.ones(int(hidden.sum())), np.zeros(len(sums))
        if not model.multilabel_:  # each class counts by its share
            counts = labels[hidden].sum(axis=0)
            weight = labels[hidden] @ (model.class_prior_ / np.maximum(counts, 1))
            moved = (model.class_prior_ - labels[known].mean(axis=0)) / 2
        weight /= weight.sum()
        errors = labels[hidden] - model.validation_proba_[hidden]
        mean = weight @ errors
        variance = weight**2 @ (errors - mean) ** 2 / INDEPENDENT + moved**2
        variance += (weight @ weight) ** 2  # one sample more or less, for rare classes
        variance = part**2 * variance + (proba[new] * (1 - proba[new])).sum(axis=0)
        sums = sums + part * mean
        ends = sums + QUANTILE * np.sqrt(variance) * np.array([[-1], [1]])
    shares, (low, high) = np.clip(sums / total, 0, 1), np.clip(ends / total, 0, 1)
    counts = labels[old].sum(axis=0), predicted[new].sum(axis=0)
    rows = zip(map(str, model.classes_), *counts, shares, low, high, strict=True)
    return [ClassShare(name, int(m), int(p), *map(float, ends)) for name, m, p, *ends in rows]
