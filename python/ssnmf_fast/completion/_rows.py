"""Means of rows and columns, and new rows over the components of a completion."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels, padded, padded_zeros
from .._common.arrays import Array
from .._data.csr import entry_rows
from .._data.threads import resolve_threads
from ._result import Completion
from ._schedule import ridge

_BIAS_RIDGE = 5.0  # observations that a row or column mean is drawn to zero with
_BIAS_SWEEPS = 5
_LEAST_RIDGE = 1e-10  # rows with fewer entries than components take the shortest solution


class Biases:
    """Means of rows and of columns of what the low-rank part leaves, drawn to zero."""

    def __init__(self, matrix: sp.csr_array) -> None:
        n, m = matrix.shape
        self._raw = matrix.data.astype(np.float64)
        self._rows = entry_rows(matrix.indptr)
        self._columns = matrix.indices
        self._counts = (
            np.bincount(self._rows, minlength=n) + _BIAS_RIDGE,
            np.bincount(self._columns, minlength=m) + _BIAS_RIDGE,
        )
        self.mean = float(self._raw.mean())
        self.rows, self.columns = np.zeros(n), np.zeros(m)

    def refit(self, low_rank: Array | float) -> Array:
        """Fit both to the data minus `low_rank`; return the data minus the biases."""
        left = self._raw - self.mean - low_rank
        for _ in range(_BIAS_SWEEPS):
            self.columns = self._means(left - self.rows[self._rows], 1)
            self.rows = self._means(left - self.columns[self._columns], 0)
        return np.asarray(self._raw - self.at(self._rows, self._columns))

    def _means(self, values: Array, side: int) -> Array:
        places = (self._rows, self._columns)[side]
        counts = self._counts[side]
        means: Array = np.bincount(places, values, minlength=len(counts)) / counts
        return means

    def at(self, rows: Array, columns: Array) -> Array:
        values: Array = self.mean + self.rows[rows] + self.columns[columns]
        return values


def rows_ridge(completion: Completion, p: float) -> Array:
    """Penalties of the components in the least squares of a row (thesis (2.6))."""
    singular, gamma = completion.singular_values / completion.scale, max(completion.gamma, 1e-30)
    penalties = ridge(singular, gamma, p)
    return np.asarray(np.maximum(penalties, _LEAST_RIDGE))


def fitted_rows(
    entries: sp.csr_array, components: Array, penalties: Array, biases: bool, n_threads: Any
) -> Array:
    """The model of rows of which some entries are known, dense."""
    threads = resolve_threads(n_threads)
    G = components.T
    if biases:
        G = np.column_stack([G, np.ones(len(G), dtype=G.dtype)])
        penalties = np.append(penalties, _BIAS_RIDGE)
    stored = padded(G, G.dtype)
    F = padded_zeros(entries.shape[0], G.shape[1], G.dtype)
    kernels.ridge_rows(
        entries.indptr,
        entries.indices,
        entries.data.astype(G.dtype, copy=False),
        stored,
        np.ascontiguousarray(penalties, dtype=np.float64),
        F,
        threads,
    )
    return np.asarray(F @ stored.T)
