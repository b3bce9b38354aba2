"""Several topics a sample: a free start, guided by seeds, whose topics then get their names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._models.factorize import Factorization, factorize
from .._solver.starts import FILLER, roots
from .._topics import divide_by_sums, topic_shares
from ._class_topics import weighted_sums
from ._one_topic import evidence_of_seeds
from ._seeds import Seeds

_HELD = 5  # iterations in which named topics stay, and free ones find what else there is
_FREE = 10  # iterations in which all of them move


def start_of_mixture(
    X: Any, seeds: Seeds, members: Array, n_free: int, rng: np.random.Generator, n_threads: Any
) -> tuple[Array, Array]:
    """Return S (n, r) and A (r, m) to start from, named topics first.

    `members` (n, k) are 1 for the topic of a labeled sample, and 0 elsewhere.  Seeds say where the
    topics begin, and which is which at the end.  In between the data decide, so that wrong seeds
    are left behind.  That is done with least squares of roots: from the same means, fits with the
    Kullback-Leibler loss often end with two topics that share a program, and one that has two.
    """
    weights = _weights(X, seeds, members)
    named = np.sqrt(divide_by_sums(weighted_sums(X, weights))).astype(X.dtype)
    common: dict[str, Any] = {"n_components": len(named) + n_free, "loss": "frobenius", "tol": 0}
    common |= {"n_threads": n_threads, "random_state": rng}
    largest = float(X.max()) or 1.0
    parts = roots(X)
    parts *= largest**-0.5  # fixed components need data of ordinary size
    parts = CleanMatrix(parts)
    held = factorize(parts, A_fixed=named, init="random", max_iter=_HELD, **common)
    fit = factorize(parts, init=(_lifted(held.S), _lifted(held.A)), max_iter=_FREE, **common)
    order = _named_first(fit, seeds, members)
    S, A = (_lifted(F[order].astype(np.float64) ** 2) for F in (fit.S.T, fit.A))
    sizes = A.max(axis=1, keepdims=True)
    half = largest**0.5  # in S and in A, so that neither grows too large
    return (half * sizes * S).T.astype(X.dtype), (half / sizes * A).astype(X.dtype)


def shares_of_named(fit: Factorization, members: Array) -> Array:
    """Return how likely each named topic is in each sample, (n, k); rows sum to 1.

    It is the share that the topic explains; samples that no named topic explains have the mean.
    """
    k = members.shape[1]
    shares = divide_by_sums(topic_shares(fit.S, fit.A)[:, :k])
    labeled = members.any(axis=1, keepdims=True)
    shares = np.where(labeled, members, shares)
    found = shares.any(axis=1, keepdims=True)
    total = shares.sum(axis=0)
    mean = total / total.sum() if total.any() else np.full(k, 1 / k)
    return np.where(found, shares, mean)


def _weights(X: Any, seeds: Seeds, members: Array) -> Array:
    """Return the weight of each sample in the mean that a named topic begins as, (n, k).

    Squares, so that samples of which much is the topic count more than many of which little is.
    """
    evidence = evidence_of_seeds(X, seeds, members)
    labeled = members.any(axis=1, keepdims=True)
    by_seeds = divide_by_sums(np.where(labeled, 0, evidence) ** 2, axis=0)
    return divide_by_sums(by_seeds + divide_by_sums(members, axis=0), axis=0)


def _named_first(fit: Factorization, seeds: Seeds, members: Array) -> Array:
    """Return the numbers of the topics, first those that have most of the seeds and the labels.

    Each seed tells of the topics in proportion to their weights for it, and each label by what
    the topics explain of its sample.
    """
    profiles = divide_by_sums(fit.A.astype(np.float64) ** 2)
    of_seeds = seeds.strengths @ divide_by_sums(profiles, axis=0).T
    of_labels = divide_by_sums(members, axis=0).T @ topic_shares(fit.S**2, fit.A**2)
    _, chosen = linear_sum_assignment(of_seeds + of_labels, maximize=True)
    return np.append(chosen, np.setdiff1d(np.arange(len(profiles)), chosen))


def _lifted(F: Array) -> Array:
    """Return a factor without zeros, which would stay."""
    return np.asarray(np.maximum(F, FILLER * F.mean() or 1.0))
