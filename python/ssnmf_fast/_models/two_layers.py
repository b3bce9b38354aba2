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
) -> Factorization:
    """Factorize the documents of every slice, and the topics of all slices, by squares [1]_.

    Returns the second layer, whose samples are topics of slices: the largest terms of each, brought
    to length 1.

    References
    ----------
    .. [1] D. Greene, J. P. Cross, "Exploring the political agenda of the European Parliament using
       a dynamic topic modeling approach", Political Analysis 25(1), 2017.
    """
    arguments = arguments | {"random_state": rng, "callback": None}
    topics = []
    for some in slices.members:
        if len(some):
            wanted = {"n_components": min(rank, len(some)), "verbose": 0}
            topics.append(_leading(factorize(CleanMatrix(X[some]), **arguments | wanted).A))
    second = {"n_components": rank, "loss": "frobenius", "init": "auto", "n_starts": _STARTS}
    return factorize(np.concatenate(topics), **arguments | second)


def _leading(A: Array) -> Array:
    """Return the largest terms of topics, of length 1; topics of nothing stay zero."""
    top = np.zeros_like(A)
    largest = np.argsort(-A, axis=1, kind="stable")[:, :_TERMS]
    np.put_along_axis(top, largest, np.take_along_axis(A, largest, axis=1), axis=1)
    # First by the largest, so that no square leaves the range.
    top /= np.where((peak := top.max(axis=1, keepdims=True)) > 0, peak, 1)
    length = np.linalg.norm(top, axis=1, keepdims=True)
    return np.asarray(top / np.where(length > 0, length, 1))
