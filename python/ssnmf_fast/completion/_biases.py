"""Means of rows and columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.csr import entry_rows

BIAS_RIDGE = 5.0  # observations that a row or column mean is drawn to zero with
_BIAS_SWEEPS = 5


class Biases:
    """Means of rows and of columns of what the low-rank part leaves, drawn to zero."""

    def __init__(self, matrix: sp.csr_array) -> None:
        n, m = matrix.shape
        self._raw = matrix.data.astype(np.float64)
        self._rows = entry_rows(matrix.indptr)
        self._columns = matrix.indices
        self._counts = (
            np.bincount(self._rows, minlength=n) + BIAS_RIDGE,
            np.bincount(self._columns, minlength=m) + BIAS_RIDGE,
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
