"""Linear operators, used only through products with tall-skinny matrices: for randomized SVDs.

Thin matrices are stored as the kernels want them, with padded columns; see
:mod:`ssnmf_fast._backend.dispatch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import aligned_zeros, is_padded, kernels, padded
from .._common.arrays import Array
from .._data.csr import column_ranges
from .._data.entries import DenseEntries, Entries, SparseEntries, Target
from .tall import add_times, cross


class Operator(Protocol):
    """A matrix (n x m)."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def threads(self) -> int: ...
    def times(self, V: Array) -> Array:
        """X V, (n x C)."""
        ...

    def transposed_times(self, U: Array) -> Array:
        """X^T U, (m x C)."""
        ...


class MatrixOperator:
    """A dense array (NaN counts as 0) or a CSR matrix; the transpose of the latter is a copy."""

    def __init__(self, X: Any, threads: int) -> None:
        self.shape: tuple[int, int] = X.shape
        self.dtype: np.dtype[Any] = X.dtype
        self.threads = threads
        entries: Entries = SparseEntries(X, threads) if sp.issparse(X) else DenseEntries(X, threads)
        self._rows, self._columns = entries, entries.transposed()

    def times(self, V: Array) -> Array:
        return self._product(self._rows, self.shape[0], V)

    def transposed_times(self, U: Array) -> Array:
        return self._product(self._columns, self.shape[1], U)

    def _product(self, entries: Entries, n_rows: int, V: Array) -> Array:
        out = aligned_zeros((n_rows, V.shape[1]), self.dtype)
        entries.power(0, None, V, Target(out))
        return out


@dataclass(frozen=True)
class Pattern:
    """Places of the stored entries of a sparse matrix with sorted rows.

    `ranges` cuts the columns so that each thread has about as many entries.
    """

    shape: tuple[int, int]
    indptr: Array
    indices: Array
    ranges: Array

    @classmethod
    def of(cls, matrix: sp.csr_array, n_threads: int) -> Pattern:
        """The pattern of a CSR matrix whose rows are sorted."""
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        return cls.from_counts(matrix.shape, matrix.indptr, matrix.indices, counts, n_threads)

    @classmethod
    def from_counts(
        cls, shape: tuple[int, int], indptr: Array, indices: Array, counts: Array, n_threads: int
    ) -> Pattern:
        """A pattern whose number of entries in every column is known."""
        pointers = indptr.astype(np.int64, copy=False)
        columns = indices.astype(np.int32, copy=False)
        return cls(shape, pointers, columns, column_ranges(counts, n_threads))


@dataclass(frozen=True)
class SparseOperator:
    """Values on a pattern.  There is no transposed copy: rows are scattered."""

    pattern: Pattern
    values: Array
    threads: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def times(self, V: Array) -> Array:
        out = aligned_zeros((self.shape[0], V.shape[1]), self.dtype)
        csr = (self.pattern.indptr, self.pattern.indices, self.values)
        kernels.sparse_pass(0, *csr, None, V, out, 1.0, False, self.threads)
        return out

    def transposed_times(self, U: Array) -> Array:
        out = aligned_zeros((self.shape[1], U.shape[1]), self.dtype)
        csr = (self.pattern.indptr, self.pattern.indices, self.values)
        kernels.scatter_pass(0, *csr, None, U, self.pattern.ranges, out, 1.0, self.threads)
        return out


@dataclass(frozen=True)
class _SparsePlusThin:
    """A sparse matrix plus something made of two thin factors, stored by rows."""

    sparse: SparseOperator
    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.sparse.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.sparse.dtype

    @property
    def threads(self) -> int:
        return self.sparse.threads


@dataclass(frozen=True)
class SparsePlusLowRank(_SparsePlusThin):
    """``sparse + scale * left @ right.T``."""

    scale: float = 1.0

    def times(self, V: Array) -> Array:
        out = self.sparse.times(V)
        add_times(out, self.left, cross(self.right, V, self.threads), self.threads, self.scale)
        return out

    def transposed_times(self, U: Array) -> Array:
        out = self.sparse.transposed_times(U)
        add_times(out, self.right, cross(self.left, U, self.threads), self.threads, self.scale)
        return out


class LowRankPlusSparse(SparsePlusLowRank):
    """The matrix ``sparse + left @ right``, for :func:`ssnmf_fast.randomized_svd`.

    Parameters
    ----------
    sparse : scipy.sparse, shape (n, m)
        Its stored entries; float32 and float64 are kept.
    left : array_like, shape (n, k)
    right : array_like, shape (k, m)
    n_threads : int
        Number of threads of the products.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import ssnmf_fast as sf
    >>> X = sf.linalg.LowRankPlusSparse(sp.identity(50), np.ones((50, 1)), np.ones((1, 50)))
    >>> U, singular, Vt = sf.linalg.randomized_svd(X, 1, random_state=0)
    >>> float(singular[0].round(6))
    51.0
    """

    def __init__(self, sparse: Any, left: Any, right: Any, n_threads: int | None = None) -> None:
        from .._data.border import check_matrix
        from .._data.checks import check_shape
        from .._data.threads import resolve_threads

        threads = resolve_threads(n_threads)
        if not sp.issparse(sparse):
            raise TypeError(f"sparse must be a scipy.sparse matrix; got {type(sparse).__name__}.")
        matrix = check_matrix(sparse, "sparse", allow_negative=True, n_threads=threads)
        if not matrix.has_sorted_indices:
            matrix = matrix.sorted_indices()
        left = check_matrix(left, "left", dtype=matrix.dtype, allow_nan=False, allow_negative=True)
        right = check_matrix(
            right, "right", dtype=matrix.dtype, allow_nan=False, allow_negative=True
        )
        n, m = matrix.shape
        check_shape(left, (n, left.shape[1]), "left", "as many rows as sparse")
        check_shape(right, (left.shape[1], m), "right", "columns of left x columns of sparse")
        operator = SparseOperator(Pattern.of(matrix, threads), matrix.data, threads)
        super().__init__(operator, padded(left, matrix.dtype), padded(right.T, matrix.dtype))

    def times(self, V: Any) -> Array:
        """Return X V, (n, k), for a dense V (m, k)."""
        given = self._checked(V, "V", self.shape[1], "as many rows as X has columns")
        return super().times(given)[:, : np.shape(V)[1]]

    def transposed_times(self, U: Any) -> Array:
        """Return X^T U, (m, k), for a dense U (n, k)."""
        given = self._checked(U, "U", self.shape[0], "as many rows as X")
        return super().transposed_times(given)[:, : np.shape(U)[1]]

    def _checked(self, V: Any, name: str, n_rows: int, of: str) -> Array:
        """Return a thin matrix as the kernels want it."""
        from .._data.border import check_matrix
        from .._data.checks import check_shape

        if sp.issparse(V):
            raise TypeError(f"{name} must be a dense array; got a sparse matrix.")
        dense: Array = check_matrix(
            V, name, dtype=self.dtype, allow_nan=False, allow_negative=True, limited=False
        )
        check_shape(dense, (n_rows, dense.shape[1]), name, of)
        return dense if is_padded(dense) else padded(dense, self.dtype)


@dataclass(frozen=True)
class MappedLowRank(_SparsePlusThin):
    """``sparse + phi(left @ right.T)`` with an elementwise map phi, formed tile by tile."""

    shrink: tuple[float, float, float, bool, float]  # arguments of the kernel

    def times(self, V: Array) -> Array:
        out = self.sparse.times(V)
        kernels.mapped_product(self.left, self.right, V, *self.shrink, out, self.threads)
        return out

    def transposed_times(self, U: Array) -> Array:
        out = self.sparse.transposed_times(U)
        kernels.mapped_product(self.right, self.left, U, *self.shrink, out, self.threads)
        return out
