"""Products of thin matrices on the kernels: the same bits for any number of threads.

BLAS would share them out among threads of its own, and wait for those longer than they take.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .._backend.dispatch import aligned_zeros, kernels
from .._common.arrays import Array


def cross(F: Array, G: Array, n_threads: int) -> Array:
    """F^T G of two matrices with as many rows, (R x C)."""
    out = np.empty((F.shape[1], G.shape[1]), dtype=F.dtype)
    kernels.cross(F, G, out, n_threads)
    return out


def times(F: Array, K: Array, n_threads: int) -> Array:
    """F K with a small K, (n x C)."""
    out = aligned_zeros((len(F), K.shape[1]), F.dtype)
    add_times(out, F, K, n_threads)
    return out


def add_times(out: Array, F: Array, K: Array, n_threads: int, scale: float = 1.0) -> None:
    """Add scale F K to `out`."""
    K = np.ascontiguousarray(K, dtype=F.dtype)
    kernels.multiply(F, K, None, out, scale, True, n_threads)


def square(A: Array) -> float:
    """Sum of squares."""
    flat = A.ravel()
    return float(np.einsum("i,i->", flat, flat))


def inner(A: Array, B: Array) -> float:
    """Sum of A .* B."""
    return float(np.einsum("i,i->", A.ravel(), B.ravel()))


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Thin SVD of a dense matrix.

    LAPACK's divide and conquer fails now and then on a harmless matrix; its plain QR iteration
    does not.

    Raises
    ------
    ValueError
        If the matrix holds NaN or infinity: an iteration has diverged.
    """
    try:
        left, singular, right = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        if not np.isfinite(A).all():
            raise ValueError(
                f"The iteration left the range of {A.dtype}. Give a smaller sparsity or another "
                "init, or divide the data by a constant."
            ) from None
        left, singular, right = scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    return left, singular, right
