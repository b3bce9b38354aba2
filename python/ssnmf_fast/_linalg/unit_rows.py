"""Rows of length 1, of dense and sparse data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array


def unit_rows(X: Any) -> Any:
    """Return X with rows of Euclidean length 1, float64; rows of zeros stay.

    Rows are divided by their largest entry first: squares can neither overflow nor vanish.
    """
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        if matrix.nnz <= np.iinfo(np.int32).max:  # liblinear takes no other indices
            matrix.indices = matrix.indices.astype(np.int32, copy=False)
            matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
        largest = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
        _divide_rows(matrix, largest)
        _divide_rows(matrix, np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()))
        return matrix
    array = np.array(X, dtype=np.float64)
    for norm in (np.abs(array).max(axis=1, initial=0.0), None):
        length = np.linalg.norm(array, axis=1) if norm is None else norm
        array /= np.where(length > 0, length, 1)[:, None]
    return array


def _divide_rows(matrix: Any, lengths: Array) -> None:
    lengths = np.where(lengths > 0, lengths, 1)
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
