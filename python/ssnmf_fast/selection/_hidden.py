"""Entries that are hidden from fits: which they are, and what the fits see."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import drop_entries, sample, with_values
from .._solver.weights import Weights, as_weights

# Hidden places at most: fits to sparse data go over them in every iteration, zeros among them.
MOST_PLACES = 1 << 22
_SLACK = 8  # standard deviations of a number of places


@dataclass(frozen=True)
class Hidden:
    """Hidden entries of X and their weights, (n, m) in the same order, and what fits see."""

    values: sp.csr_array
    weights: sp.csr_array
    X: Any
    X_weights: Weights


def hide_entries(
    X: Any, X_weights: Any, share: float, zeros: bool, rng: np.random.Generator
) -> Hidden:
    """Hide a random share of the entries of a clean matrix, drawn by :func:`draw_entries`."""
    given = as_weights(X_weights, "X_weights")
    values, weights = draw_entries(X, given, share, zeros, rng)
    ones = with_values(values, np.ones_like(values.data))
    return Hidden(values, weights, *given.without(X, ones))


def draw_entries(
    X: Any, given: Weights, share: float, zeros: bool, rng: np.random.Generator
) -> tuple[sp.csr_array, sp.csr_array]:
    """Return a random share of the entries that have a weight, and their weights.

    Every entry has the same chance: that of sparse data is smaller than `share` where so many
    places would not fit into memory.  Unless `zeros`, only entries above 0 are drawn.
    """
    pattern = _draw(X, given, share, zeros, rng)
    values, weights = sample(X, pattern), given.at(X, pattern)
    left_out = np.isnan(values.data) | ~(weights.data > 0)
    if not zeros:
        left_out |= values.data == 0
    values, weights = (drop_entries(M, left_out) for M in (values, weights))
    if not values.nnz:
        raise ValueError(
            "held_out holds out no entry of X that has a weight; give a larger share, or more data."
        )
    return values, weights


def _draw(
    X: Any, given: Weights, share: float, zeros: bool, rng: np.random.Generator
) -> sp.csr_array:
    """Return a pattern of entries that were drawn, in sorted rows."""
    n, m = X.shape
    listed = given.listed(X)
    if listed is None and sp.issparse(X) and not zeros:
        listed = X
    if listed is not None:
        listed = listed if listed.has_sorted_indices else listed.sorted_indices()
        places = some_of(listed.nnz, share, rng)
        rows = np.searchsorted(listed.indptr, places, side="right") - 1
        columns = listed.indices[places]
    else:
        if sp.issparse(X):
            share = min(share, MOST_PLACES / prod(X.shape))
        rows, columns = np.divmod(some_of(n * m, share, rng), m)
    counts = np.bincount(rows, minlength=n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    data = np.ones(len(columns), dtype=X.dtype)
    return sp.csr_array((data, columns.astype(np.int32), indptr), shape=X.shape)


def some_of(count: int, share: float, rng: np.random.Generator) -> Array:
    """Return numbers below a count, each with the same chance, in their order.

    The gaps between them are drawn: the memory is that of the result.
    """
    expected = count * share
    gaps = rng.geometric(share, int(expected + _SLACK * np.sqrt(expected) + _SLACK))
    places = np.cumsum(gaps) - 1
    return np.asarray(places[places < count])
