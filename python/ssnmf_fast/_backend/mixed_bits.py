"""Fingerprints of entries in NumPy: sums of mixed bits, as in cpp/kernels/fingerprint.hpp."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array

# The golden ratio, and the multipliers of the finalizers of two well-known hash functions.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xFF51AFD7ED558CCD)
_OTHER = np.uint64(0xC4CEB9FE1A85EC53)
_NAN = np.uint64(0x7FF8000000000000)
_HALF, _LESS = np.uint64(32), np.uint64(29)
_AT_ONCE = 1 << 15


def fingerprint_of(rows: Array, columns: Array, values: Array) -> tuple[int, int]:
    """Return the two sums of entries at these places, (number of entries,) or broadcast to it."""
    first = second = 0
    for begin in range(0, len(values), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        once, twice = _sums(rows[part], columns[part], values[part])
        first, second = first + once, second + twice
    return first % 2**64, second % 2**64


def _sums(rows: Array, columns: Array, values: Array) -> tuple[int, int]:
    counts = ~(np.abs(values) < np.finfo(values.dtype).tiny)
    bits = values.astype(np.float64).view(np.uint64)
    bits[np.isnan(values)] = _NAN
    key = _mixed(rows.astype(np.uint64) * _STEP + _MULTIPLIER)
    once = _mixed(bits ^ (key + columns.astype(np.uint64) * _STEP))
    twice = (once + bits) * _STEP
    twice ^= twice >> _HALF
    sums: Any = (np.add.reduce(each, where=counts) for each in (once, twice))
    return tuple(int(each) for each in sums)  # type: ignore[return-value]


def _mixed(x: Array) -> Array:
    x = (x ^ (x >> _HALF)) * _MULTIPLIER
    x = (x ^ (x >> _LESS)) * _OTHER
    return np.asarray(x ^ (x >> _HALF))
