"""One topic a sample: a mixture of topics that starts from the evidence of seeds.

Factorizations leave their start behind, since a topic may explain anything.  A mixture in which
every sample has one topic stays near its seeds: words that go with them are found, nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from .._common.arrays import Array
from .._common.text import short
from .._data.threads import one_blas_thread
from .._linalg.operators import unit_rows
from .._topics import divide_by_sums
from ._context import row_sums
from ._seeds import Seeds

LABEL_WEIGHT = 20.0  # of a given label, beside 1 for a predicted one
_STEPS = 5  # more of them may leave the seeds behind
_TOTAL = 20.0  # of the features of a sample: long samples are no surer than short ones
_SMOOTHING = 0.05


@one_blas_thread()
def topics_of_samples(X: Any, seeds: Seeds, members: Array) -> Array:
    """Return how likely each topic is in each sample, (n, k); rows sum to 1.

    `members` (n, k) are 1 for the topic of a labeled sample, and 0 elsewhere.  A seed counts in
    inverse proportion to its sum over the samples, so that all topics have the same evidence.  A
    feature that a topic may not have speaks neither for it nor against it.
    """
    parts = _shares(X)
    columns = np.asarray(parts.sum(axis=0)).ravel()
    everywhere = np.log((columns + _SMOOTHING) / (columns + _SMOOTHING).sum())
    labeled = np.any(members, axis=1, keepdims=True)
    evidence = _evidence(parts, columns, seeds)
    likely = np.where(labeled, members, divide_by_sums(evidence))
    _check_found(likely, seeds)
    for _ in range(_STEPS):
        weights = np.where(labeled, LABEL_WEIGHT * members, likely)
        counts = _TOTAL * np.asarray((parts.T @ weights).T) + _SMOOTHING
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        logs = np.where(seeds.allowed, logs, everywhere)
        prior = np.log((likely.sum(axis=0) + 1) / (likely.sum() + len(counts)))
        found = softmax(_TOTAL * np.asarray(parts @ logs.T) + prior, axis=1)
        likely = np.where(labeled, members, found)
    return np.asarray(likely)


@one_blas_thread()
def evidence_of_seeds(X: Any, seeds: Seeds, members: Array) -> Array:
    """Return the evidence of seeds for each topic in each sample, (n, k).

    ValueError for a topic that has neither seeds in the samples nor labels.
    """
    parts = _shares(X)
    evidence = _evidence(parts, np.asarray(parts.sum(axis=0)).ravel(), seeds)
    _check_found(np.where(np.any(members, axis=1, keepdims=True), members, evidence), seeds)
    return evidence


def _evidence(parts: Any, columns: Array, seeds: Seeds) -> Array:
    """Return the sums of seeds, each in inverse proportion to its sum over the samples, (n, k)."""
    once = np.divide(1.0, columns, out=np.zeros_like(columns), where=columns > 0)
    return np.asarray(parts @ seeds.strengths.multiply(once[None, :]).T.toarray())


def _shares(X: Any) -> Any:
    """Return X with rows that sum to 1, float64; empty rows stay."""
    rows = unit_rows(X)  # first, so that tiny rows do not vanish
    sums = row_sums(rows)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)[:, None]
    return rows.multiply(scale).tocsr() if sp.issparse(rows) else rows * scale


def _check_found(likely: Array, seeds: Seeds) -> None:
    """Raise ValueError for a topic of which no sample tells anything."""
    absent = np.flatnonzero(~likely.any(axis=0))
    if absent.size:
        raise ValueError(
            f"No sample has a seed of the topic {short(seeds.names[absent[0]])}, or is labeled "
            "with it. Give it seeds that occur in X, or label some samples."
        )
