"""Matrices of the metrics: checks, sums, shares, and rows a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import check_matrix
from .._data.csr import entry_rows, with_values
from .._labels import unmask_labels

# Numbers of a dense block of rows: 16 MB.
_BLOCK_ENTRIES = 1 << 21


def read_matrix(Z: Any, name: str, rows: str, columns: str, *, allow_negative: bool = False) -> Any:
    """Return a finite float64 ndarray or CSR array of at least one row and one column.

    It may share memory with `Z` and must not be written to.
    """
    matrix = check_matrix(Z, name, dtype=np.float64, allow_nan=False, allow_negative=allow_negative)
    if 0 in matrix.shape:
        raise ValueError(
            f"{name} has shape {matrix.shape}; expected at least one row ({rows}) and one column "
            f"({columns})."
        )
    return matrix


def as_array(values: Any) -> Array:
    """Return an array, of objects where the lengths of the rows differ; None for masked entries."""
    try:
        return np.asarray(unmask_labels(values))
    except ValueError:
        return np.asarray(values, dtype=object)


def column_sums(Z: Any) -> Array:
    """Return the sums of the columns, (m,)."""
    return np.asarray(Z.sum(axis=0), dtype=np.float64).ravel()


def row_shares(Z: Any) -> Any:
    """Return Z with rows that sum to 1; rows of zeros stay."""
    sums = _divisors(np.asarray(Z.sum(axis=1), dtype=np.float64).ravel())
    if sp.issparse(Z):
        return with_values(Z, Z.data / sums[entry_rows(Z.indptr)])
    return Z / sums[:, None]


def column_shares(Z: Any) -> Any:
    """Return Z with columns that sum to 1; columns of zeros stay."""
    sums = _divisors(column_sums(Z))
    if sp.issparse(Z):
        return with_values(Z, Z.data / sums[Z.indices])
    return Z / sums


def _divisors(sums: Array) -> Array:
    return np.where(sums > 0, sums, 1.0)


def row_blocks(Z: Any, rows: Array | None = None) -> Iterator[tuple[Array, Array]]:
    """Yield (row numbers, these rows as a dense array), a bounded number at a time."""
    chosen = np.arange(Z.shape[0]) if rows is None else rows
    at_once = max(1, _BLOCK_ENTRIES // Z.shape[1])
    for begin in range(0, len(chosen), at_once):
        some = chosen[begin : begin + at_once]
        block = Z[some]
        yield some, block.toarray() if sp.issparse(block) else block
