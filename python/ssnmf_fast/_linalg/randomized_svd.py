"""Function :func:`randomized_svd`."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array, MatrixLike, Seed
from .._data.border import check_integer, check_matrix, check_random_state
from .._data.threads import resolve_threads
from .operators import MatrixOperator, Operator, SparsePlusLowRank, signed, svd, times

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
