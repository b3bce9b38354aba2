"""Products of thin matrices, linear operators defined by such products, and the randomized SVD.

The kernels return the same bits for any number of threads, without BLAS threads.  Thin matrices
have padded columns, see :mod:`ssnmf_fast._backend.dispatch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from ._backend.dispatch import aligned_zeros, is_padded, kernels, padded
from ._common.arrays import Array, Matrix, MatrixLike, Seed
from ._data.arrays import column_ranges, kernel_parts
from ._data.border import check_integer, check_matrix, check_random_state, check_shape
from ._data.entries import DenseEntries, Entries, SparseEntries, Target
from ._data.threads import resolve_threads


def cross(F: Array, G: Array, n_threads: int) -> Array:
    """Return F^T G, (R x C)."""
    out = np.empty((F.shape[1], G.shape[1]), dtype=F.dtype)
    kernels.cross(F, G, out, n_threads)
    return out


def times(F: Array, K: Array, n_threads: int) -> Array:
    """Return F K for a small K, (n x C)."""
    out = aligned_zeros((len(F), K.shape[1]), F.dtype)
    add_times(out, F, K, n_threads)
    return out


def add_times(out: Array, F: Array, K: Array, n_threads: int, scale: float = 1.0) -> None:
    K = np.ascontiguousarray(K, dtype=F.dtype)
    kernels.multiply(F, K, None, out, scale, True, n_threads)


def inner(A: Array, B: Array) -> float:
    return float(np.einsum("i,i->", A.ravel(), B.ravel()))


def square(A: Array) -> float:
    return inner(A, A)


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return the thin SVD of a dense matrix, by QR if divide and conquer fails; refuse NaN."""
    try:
        left, singular, right = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        if not np.isfinite(A).all():
            hint = "Give a smaller sparsity or another init, or divide the data by a constant."
            raise ValueError(f"The iteration left the range of {A.dtype}. {hint}") from None
        left, singular, right = scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    return left, singular, right


def signed(U: Array, V: Array) -> tuple[Array, Array]:
    """Return pairs of columns with signs that do not depend on a BLAS.

    The largest entry of a column of V (the first one, up to rounding) is positive.
    """
    sizes = np.abs(V)
    first = (sizes >= 0.999 * sizes.max(axis=0, initial=0)).argmax(axis=0)
    signs = np.where(np.take_along_axis(V, first[None], axis=0) < 0, -1, 1).astype(V.dtype)
    return U * signs, V * signs


class Operator(ABC):
    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], threads: int) -> None:
        self.shape, self.dtype, self.threads = shape, dtype, threads

    @abstractmethod
    def times(self, V: Array) -> Array:
        """X V, (n x C)."""

    @abstractmethod
    def transposed_times(self, U: Array) -> Array:
        """X^T U, (m x C)."""


class MatrixOperator(Operator):
    """A dense array (NaN counts as 0), or a CSR matrix with a transposed copy."""

    def __init__(self, X: Matrix, threads: int) -> None:
        super().__init__(X.shape, X.dtype, threads)
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
    """Places of the stored entries of a sparse matrix with sorted rows."""

    shape: tuple[int, int]
    indptr: Array
    indices: Array
    ranges: Array

    @classmethod
    def of(cls, matrix: sp.csr_array, n_threads: int) -> Pattern:
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        indptr, indices, _ = kernel_parts(matrix)
        return cls(matrix.shape, indptr, indices, column_ranges(counts, n_threads))


class SparseOperator(Operator):
    """Values on a pattern, without a transposed copy: rows are scattered."""

    def __init__(self, pattern: Pattern, values: Array, threads: int) -> None:
        super().__init__(pattern.shape, values.dtype, threads)
        self._csr, self._ranges = (pattern.indptr, pattern.indices, values), pattern.ranges

    def times(self, V: Array) -> Array:
        out = aligned_zeros((self.shape[0], V.shape[1]), self.dtype)
        kernels.sparse_pass(0, *self._csr, None, V, out, 1.0, False, self.threads)
        return out

    def transposed_times(self, U: Array) -> Array:
        out = aligned_zeros((self.shape[1], U.shape[1]), self.dtype)
        kernels.scatter_pass(0, *self._csr, None, U, self._ranges, out, 1.0, self.threads)
        return out


class SparsePlusLowRank(Operator):
    """``sparse + scale * left @ right.T``, or ``sparse + phi(left @ right.T)`` formed by tiles.

    `shrink` is the elementwise map phi: arguments of the kernel.
    """

    def __init__(
        self,
        sparse: SparseOperator,
        left: Array,
        right: Array,
        scale: float = 1.0,
        shrink: tuple[float, float, float, bool, float] | None = None,
    ) -> None:
        super().__init__(sparse.shape, sparse.dtype, sparse.threads)
        self._sparse, self._left, self._right = sparse, left, right
        self._scale, self._shrink = scale, shrink

    def times(self, V: Array) -> Array:
        return self._added(self._sparse.times(V), self._left, self._right, V)

    def transposed_times(self, U: Array) -> Array:
        return self._added(self._sparse.transposed_times(U), self._right, self._left, U)

    def _added(self, out: Array, left: Array, right: Array, V: Array) -> Array:
        if self._shrink is None:
            add_times(out, left, cross(right, V, self.threads), self.threads, self._scale)
        else:
            kernels.mapped_product(left, right, V, *self._shrink, out, self.threads)
        return out


class LowRankPlusSparse(SparsePlusLowRank):
    """The matrix ``sparse + left @ right``, for :func:`ssnmf_fast.randomized_svd`.

    Parameters
    ----------
    sparse : scipy.sparse, shape (n, m)
        Sparse part; float32 and float64 are kept.
    left : array_like, shape (n, k)
    right : array_like, shape (k, m)
    n_threads : int
        Number of threads of the products.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import ssnmf_fast as sf
    >>> X = sf.linalg.LowRankPlusSparse(sp.identity(50), np.ones((50, 1)),
    ...                                 np.ones((1, 50)))
    >>> U, singular, Vt = sf.linalg.randomized_svd(X, 1, random_state=0)
    >>> float(singular[0].round(6))
    51.0
    """

    def __init__(self, sparse: Any, left: Any, right: Any, n_threads: int | None = None) -> None:
        threads = resolve_threads(n_threads)
        if not sp.issparse(sparse):
            raise TypeError(f"sparse must be a scipy.sparse matrix; got {type(sparse).__name__}.")
        matrix = check_matrix(sparse, "sparse", allow_negative=True, n_threads=threads)
        if not matrix.has_sorted_indices:
            matrix = matrix.sorted_indices()
        rules: dict[str, Any] = {"dtype": matrix.dtype, "allow_nan": False, "allow_negative": True}
        left, right = check_matrix(left, "left", **rules), check_matrix(right, "right", **rules)
        n, m = matrix.shape
        check_shape(left, (n, left.shape[1]), "left", "as many rows as sparse")
        check_shape(right, (left.shape[1], m), "right", "columns of left x columns of sparse")
        operator = SparseOperator(Pattern.of(matrix, threads), matrix.data, threads)
        super().__init__(operator, padded(left, matrix.dtype), padded(right.T, matrix.dtype))

    def times(self, V: Array) -> Array:
        """Return X V, (n, k), for a dense V (m, k)."""
        dense = self._checked(V, "V", self.shape[1], "as many rows as X has columns")
        return super().times(dense)[:, : np.shape(V)[1]]

    def transposed_times(self, U: Array) -> Array:
        """Return X^T U, (m, k), for a dense U (n, k)."""
        dense = self._checked(U, "U", self.shape[0], "as many rows as X")
        return super().transposed_times(dense)[:, : np.shape(U)[1]]

    def _checked(self, V: Array, name: str, n_rows: int, of: str) -> Array:
        if sp.issparse(V):
            raise TypeError(f"{name} must be a dense array; got a sparse matrix.")
        dense: Array = check_matrix(
            V, name, dtype=self.dtype, allow_nan=False, allow_negative=True, limited=False
        )
        check_shape(dense, (n_rows, dense.shape[1]), name, of)
        return dense if is_padded(dense) else padded(dense, self.dtype)


def unit_rows(X: Matrix) -> Any:
    """Return X with rows of Euclidean length 1, float64; rows of zeros stay."""
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        if matrix.nnz <= np.iinfo(np.int32).max:  # liblinear takes no other indices
            matrix.indices = matrix.indices.astype(np.int32, copy=False)
            matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
        for step in ("largest", "length"):  # squares of the first could overflow
            if step == "largest":
                lengths = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
            else:
                lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
            matrix.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(matrix.indptr))
        return matrix
    array = np.array(X, dtype=np.float64)
    for norm in (np.abs(array).max(axis=1, initial=0.0), None):
        length = np.linalg.norm(array, axis=1) if norm is None else norm
        array /= np.where(length > 0, length, 1)[:, None]
    return array


Triplets: TypeAlias = tuple[Array, Array, Array]  # left vectors, values and right vectors


def sketch(n_rows: int, columns: int, dtype: npt.DTypeLike, rng: np.random.Generator) -> Array:
    """Return Gaussian columns, padded."""
    return padded(rng.standard_normal((n_rows, columns)), dtype)


def orthonormal(A: Array, columns: int, threads: int) -> Array:
    """Replace the first columns of A by an orthonormal basis, in place; return R."""
    R = np.empty((columns, columns), dtype=A.dtype)
    kernels.tall_qr(A, columns, R, threads)
    return R


def leading_triplets(X: Operator, sketched: Array, columns: int, n_power: int) -> Triplets:
    """Return U (n x C), singular values (`columns`) and V (m x C) of X within a row space."""
    Q = sketched
    for _ in range(n_power):
        Y = X.times(Q)
        orthonormal(Y, columns, X.threads)
        Q = X.transposed_times(Y)
        orthonormal(Q, columns, X.threads)
    if n_power == 0:
        Q = Q.copy()
        orthonormal(Q, columns, X.threads)
    B = X.times(Q)
    R = orthonormal(B, columns, X.threads)
    left, singular, right = svd(R)
    return _rotated(B, left, X.threads), singular, _rotated(Q, right.T, X.threads)


def _rotated(Q: Array, rotation: Array, threads: int) -> Array:
    columns = len(rotation)
    whole = np.zeros((Q.shape[1], Q.shape[1]), dtype=Q.dtype)  # the padding stays zero
    whole[:columns, :columns] = rotation
    return times(Q, whole, threads)


def randomized_svd(
    X: MatrixLike,
    rank: int,
    *,
    n_oversamples: int = 10,
    n_power: int = 4,
    random_state: Seed = None,
    n_threads: int | None = None,
) -> tuple[Array, Array, Array]:
    """Compute leading singular triplets by a randomized range finder with power steps.

    A QR decomposition makes every step stable [1]_.

    Parameters
    ----------
    X : array_like, scipy.sparse or LowRankPlusSparse, shape (n, m)
        Entries of any sign; NaN of a dense X counts as 0.  float32 and float64 are kept.
    rank : int
        Number of triplets r, from 1 to min(n, m).
    n_oversamples : int
        Columns of the sketch beyond r, at least 0.
    n_power : int
        Number of steps with X^T X, at least 0; more steps are more accurate if singular values
        decay slowly.
    random_state : None, int, Generator or RandomState
        Seed of the sketch.
    n_threads : int, optional
        Number of threads; it does not change the result.  None uses all available cores.

    Returns
    -------
    U : ndarray, shape (n, r)
        Left singular vectors, orthonormal columns.
    singular : ndarray, shape (r,)
        Singular values, largest first.
    Vt : ndarray, shape (r, m)
        Right singular vectors, orthonormal rows; the (first) largest entry of each is positive.

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the argument and suggests a fix.

    References
    ----------
    .. [1] N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.outer(np.arange(1.0, 6.0), np.ones(4))
    >>> U, singular, Vt = sf.linalg.randomized_svd(X, 1, random_state=0)
    >>> bool(np.allclose(singular * U @ Vt, X))
    True
    """
    threads = resolve_threads(n_threads)
    operator: Operator
    if isinstance(X, SparsePlusLowRank):
        operator = X
    else:
        matrix = check_matrix(X, "X", allow_negative=True, n_threads=threads)
        operator = MatrixOperator(matrix, threads)
    rank = check_integer(rank, "rank", 1)
    least = min(operator.shape)
    if rank > least:
        raise ValueError(f"rank must be at most min(n, m) = {least} of X; got {rank}.")
    n_oversamples = check_integer(n_oversamples, "n_oversamples", 0)
    n_power = check_integer(n_power, "n_power", 0)
    return truncated_svd(operator, rank, n_oversamples, n_power, check_random_state(random_state))


def truncated_svd(
    X: Operator, rank: int, n_oversamples: int, n_power: int, rng: np.random.Generator
) -> Triplets:
    """Return the result of :func:`randomized_svd` for an operator."""
    n, m = X.shape
    columns = min(rank + n_oversamples, n, m)
    U, singular, V = leading_triplets(X, sketch(m, columns, X.dtype, rng), columns, n_power)
    U, V = signed(U[:, :rank], V[:, :rank])
    return U, singular[:rank], np.ascontiguousarray(V.T)
