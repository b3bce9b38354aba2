"""Structure of CSR matrices: what state it is in, and the transpose."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ._dispatch import kernels

SORTED, UNSORTED, DUPLICATES, UNSOUND = range(4)


def structure(matrix: sp.csr_array, n_threads: int) -> int:
    """Return SORTED, UNSORTED (no duplicates), DUPLICATES, or UNSOUND (indices out of range)."""
    indptr, indices = matrix.indptr, matrix.indices
    return kernels.inspect_csr(indptr, indices, matrix.shape[1], n_threads)


def transposed(matrix: sp.csr_array, n_threads: int) -> sp.csr_array:
    """Return the transpose, a copy with sorted rows."""
    n_rows, n_columns = matrix.shape
    indptr = np.empty(n_columns + 1, dtype=matrix.indptr.dtype)
    indices = np.empty(matrix.nnz, dtype=matrix.indices.dtype)
    values = np.empty(matrix.nnz, dtype=matrix.dtype)
    kernels.transpose(
        matrix.indptr, matrix.indices, matrix.data, indptr, indices, values, n_threads
    )
    return sp.csr_array((values, indices, indptr), shape=(n_columns, n_rows), copy=False)
