"""Two layers of NMF: topics of every slice of time, and topics of these topics."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.times import Slices
from .._solver.result import Factorization
from .factorize import factorize

_TERMS = 20  # of a topic of a slice, by which it is compared
_STARTS = 10  # of the second layer, which is small


def factorize_two_layers(
    X: Any, slices: Slices, rank: int, rng: np.random.Generator, arguments: dict[str, Any]
) -> tuple[Factorization, Array]:
    """Factorize every slice, and the topics of all slices [1]_.

    Returns the factorization of the second layer, and how much of a mean document of every slice
    the topics explain, (slices, r), in the unit of X.  A topic of a slice, of which the largest
    terms are taken, brought to length 1, counts for the topic that has most of it.

    References
    ----------
    .. [1] D. Greene, J. P. Cross, "Exploring the political agenda of the European Parliament using
       a dynamic topic modeling approach", Political Analysis 25(1), 2017.
    """
    order = np.argsort(slices.of, kind="stable")
    places, sizes, topics = [], [], []
    first = arguments | {"callback": None, "verbose": 0, "random_state": rng}
    for t, some in enumerate(np.split(order, np.cumsum(slices.sizes)[:-1])):
        if not len(some):
            continue
        wanted = first | {"n_components": min(rank, len(some))}
        S, A = (fit := factorize(CleanMatrix(X[some]), **wanted)).S, fit.A
        places += [t] * len(A)
        sizes.append(S.mean(axis=0) * A.sum(axis=1))
        topics.append(_leading(A))
    stacked, size = np.concatenate(topics), np.concatenate(sizes)
    second = {"n_components": rank, "loss": "frobenius", "random_state": rng}
    result = factorize(stacked, n_starts=_STARTS, **{**arguments, **second, "callback": None})
    parts = result.S * result.A.sum(axis=1)
    held = parts.any(axis=1)
    prevalence = np.zeros((len(slices.starts), rank), dtype=X.dtype)
    at = np.asarray(places)[held], parts.argmax(axis=1)[held]
    np.add.at(prevalence, at, size[held])
    return result, prevalence


def _leading(A: Array) -> Array:
    """Return the largest terms of topics, of length 1; topics of nothing stay zero."""
    top = np.zeros_like(A)
    largest = np.argsort(-A, axis=1, kind="stable")[:, :_TERMS]
    np.put_along_axis(top, largest, np.take_along_axis(A, largest, axis=1), axis=1)
    # First by the largest, so that no square leaves the range.
    top /= np.where((peak := top.max(axis=1, keepdims=True)) > 0, peak, 1)
    length = np.linalg.norm(top, axis=1, keepdims=True)
    return np.asarray(top / np.where(length > 0, length, 1))
