"""Shares of the classes among samples that are labeled or predicted, with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array

_QUANTILE = 1.96  # of the normal distribution, for 95 %


class ClassShare(NamedTuple):
    """A class: numbers of labeled and of predicted samples, and its share of all with its ends."""

    name: str
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
    samples, (n,).  Mean probabilities of unlabeled samples are corrected by the errors in the
    validation.  NaN as ends without validation.
    """
    new, old = chosen & ~known, chosen & known
    folds = getattr(model, "validation_folds_", np.full(len(known), -1))
    total, part = max(int(chosen.sum()), 1), int(new.sum())
    sums = labels[old].sum(axis=0) + proba[new].sum(axis=0)
    ends = np.full((2, proba.shape[1]), np.nan)
    hidden = (folds >= 0) & known
    if not part:  # all labels are known
        ends = np.array([sums, sums])
    elif hidden.sum() > 1:
        errors = labels[hidden] - model.validation_proba_[hidden]
        sums = sums + part * errors.mean(axis=0)
        spread = part**2 * errors.var(axis=0) / len(errors)
        spread = np.sqrt(spread + (proba[new] * (1 - proba[new])).sum(axis=0))
        ends = np.array([sums - _QUANTILE * spread, sums + _QUANTILE * spread])
    shares, (low, high) = np.clip(sums / total, 0, 1), np.clip(ends / total, 0, 1)
    counts = labels[old].sum(axis=0), predicted[new].sum(axis=0)
    rows = zip(map(str, model.classes_), *counts, shares, low, high, strict=True)
    return [ClassShare(name, int(m), int(p), *map(float, ends)) for name, m, p, *ends in rows]
