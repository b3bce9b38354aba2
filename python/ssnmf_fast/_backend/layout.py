"""Factor storage: rows aligned to cache lines, the rank padded with columns of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .dispatch import kernels

_CACHE_LINE = 64


def aligned_zeros(shape: tuple[int, int], dtype: Any) -> Array:
    """Return a C-contiguous array of zeros that starts at a cache line."""
    dtype = np.dtype(dtype)
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    buffer = np.zeros(n_bytes + _CACHE_LINE, dtype=np.uint8)
    offset = -buffer.ctypes.data % _CACHE_LINE
    aligned: Array = buffer[offset : offset + n_bytes].view(dtype).reshape(shape)
    return aligned


def padded_zeros(n_rows: int, rank: int, dtype: Any) -> Array:
    """Return a factor of zeros, (n_rows, padded rank)."""
    columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
    return aligned_zeros((n_rows, columns), dtype)


def is_padded(factor: Array) -> bool:
    """Whether a factor is stored as :func:`padded` would."""
    columns = kernels.padded_rank(factor.shape[1], factor.dtype.itemsize)
    return bool(
        factor.flags.c_contiguous
        and factor.shape[1] == columns
        and factor.ctypes.data % _CACHE_LINE == 0
    )


def padded(factor: Array, dtype: Any) -> Array:
    """Copy a factor (rows x rank) into padded storage."""
    result = padded_zeros(factor.shape[0], factor.shape[1], dtype)
    result[:, : factor.shape[1]] = factor
    return result
