"""Structure of CSR matrices: what state it is in, the transpose, entries at given places."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array

SORTED, UNSORTED, DUPLICATES, UNSOUND = range(4)


def inspect_structure(matrix: sp.csr_array, n_threads: int) -> int:
    """Return SORTED, UNSORTED (no duplicates), DUPLICATES, or UNSOUND (indices out of range)."""
    indptr, indices = matrix.indptr, matrix.indices
    return kernels.inspect_csr(indptr, indices, matrix.shape[1], n_threads)


def kernel_parts(matrix: sp.csr_array) -> tuple[Array, Array, Array]:
    """Return indptr, indices and values as the kernels take them without a copy of their own.

    Pointers are int64.  Indices are int32, which makes an entry as short as can be: check_matrix
    refuses matrices with more columns or rows than that.
    """
    indices = matrix.indices.astype(np.int32, copy=False)
    return matrix.indptr.astype(np.int64, copy=False), indices, matrix.data


def transpose(matrix: sp.csr_array, n_threads: int) -> sp.csr_array:
    """Return the transpose, a copy with sorted rows."""
    n_rows, n_columns = matrix.shape
    indptr = np.empty(n_columns + 1, dtype=np.int64)
    indices = np.empty(matrix.nnz, dtype=np.int32)
    values = np.empty(matrix.nnz, dtype=matrix.dtype)
    kernels.transpose(*kernel_parts(matrix), indptr, indices, values, n_threads)
    return sp.csr_array((values, indices, indptr), shape=(n_columns, n_rows), copy=False)


def transpose_panels(
    csr: tuple[Array, Array, Array], n_columns: int, panel_rows: int, n_threads: int
) -> tuple[Array, Array, Array]:
    """Return the transpose cut into panels of rows: a line for each panel and column."""
    n_panels = -(-(len(csr[0]) - 1) // panel_rows)
    indptr = np.empty(n_panels * n_columns + 1, dtype=np.int64)
    indices, values = np.empty_like(csr[1]), np.empty_like(csr[2])
    kernels.transpose_panels(*csr, panel_rows, indptr, indices, values, n_threads)
    return indptr, indices, values


def with_values(Z: sp.csr_array, values: Array) -> sp.csr_array:
    """Return a matrix of the same structure with other values."""
    return sp.csr_array((values, Z.indices, Z.indptr), shape=Z.shape, copy=False)


def scale_rows(matrix: sp.csr_array, factors: Array) -> sp.csr_array:
    """Return the matrix with each row multiplied by its factor, in the same structure."""
    return with_values(matrix, matrix.data * np.repeat(factors, np.diff(matrix.indptr)))


def sample(Z: Any, pattern: sp.csr_array) -> sp.csr_array:
    """The values of Z, sparse or dense, at the stored entries of a pattern, in its order."""
    if sp.issparse(Z) and not Z.has_sorted_indices:
        Z = Z.sorted_indices()  # SciPy would search through the rows
    found = Z[entry_rows(pattern.indptr), pattern.indices]
    values = found.toarray() if sp.issparse(found) else np.asarray(found)  # sparse where empty
    return with_values(pattern, values.ravel())


def entry_rows(indptr: Array) -> Array:
    """Row of every stored entry, int64."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def column_ranges(counts: Array, n_ranges: int) -> Array:
    """Cut columns with these numbers of entries into ranges with about as many entries each."""
    before = np.concatenate([[0], np.cumsum(counts + 1)])
    bounds = np.searchsorted(before, np.linspace(0, before[-1], n_ranges + 1))
    bounds[0], bounds[-1] = 0, len(counts)
    return bounds.astype(np.int64)


def list_entries(array: Array, present: Array) -> sp.csr_array:
    """The entries of a dense array where `present` is true; zeros among them are stored."""
    columns = np.nonzero(present)[1].astype(np.int64)  # NumPy gives a view with gaps
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1), dtype=np.int64)])
    return sp.csr_array((array[present], columns, indptr), shape=array.shape)


def drop_entries(matrix: sp.csr_array, left_out: Array) -> sp.csr_array:
    """Return the matrix without the stored entries that a mask names."""
    kept = ~left_out
    indptr = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr].astype(matrix.indptr.dtype)
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)
