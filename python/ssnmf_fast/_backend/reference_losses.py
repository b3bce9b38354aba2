"""The kernels of the beta-divergences in plain NumPy; see :mod:`ssnmf_fast._backend.reference`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array


def tiny(dtype: Any) -> float:
    """Return the floor of divisors and of positive factor entries: 1e-292 or 1e-31."""
    info = np.finfo(dtype)
    return float(info.tiny / info.eps)


def power(z: Array, exponent: float) -> Array:
    """z^exponent, and 0 where z vanishes: such an entry pulls at no positive factor entry.

    Kept below the largest number of the dtype divided by 2^20, so that sums stay finite.
    """
    largest = float(np.finfo(z.dtype).max) / 2**20
    logs = exponent * np.log(np.maximum(z.astype(np.float64), tiny(z.dtype)))
    powers = np.exp(np.minimum(logs, np.log(largest)))
    return np.where(z > tiny(z.dtype), powers, 0.0).astype(z.dtype)


def beta_terms(x: Array, z: Array, w: Array | None, beta: float, rest: bool) -> float:
    """Sum of w d(x, z), or of w (d(x, z) - z^beta / beta) with `rest`, in float64.

    With L = log(x / z) the divergence is z^beta (expm1(beta L) / beta - expm1(L)) / (beta - 1), and
    (z^beta + x z^(beta - 1) (expm1((beta - 1) L) / (beta - 1) - 1)) / beta: the first has no
    cancellation near beta = 0, the second none near 1.  Entries with x > 0 that no component
    reaches, z = 0, are left out for beta < 1: their loss is infinite.
    """
    floor = tiny(z.dtype)
    reached = z > floor
    x, z = x.astype(np.float64), np.maximum(z.astype(np.float64), floor)
    counts = (x > 0) & (reached | (beta > 1))
    of_z = np.where(reached, z**beta, 0.0) / beta if beta > 0 else np.zeros_like(z)
    ratio = np.where(counts, x, z) / z
    with np.errstate(over="ignore"):
        logs = np.log(np.minimum(ratio, np.finfo(np.float64).max))
        if beta <= 0.5:
            first = logs if beta == 0 else np.expm1(beta * logs) / beta
            loss = z**beta * (first - np.expm1(logs)) / (beta - 1)
            loss = np.where(counts, loss - of_z, 0.0)
        else:
            second = np.expm1((beta - 1) * logs) / (beta - 1) if beta != 1 else logs
            loss = np.where(counts, x * z ** (beta - 1) * (second - 1) / beta, 0.0)
    if not rest:
        loss = loss + of_z
    return float(np.sum(loss if w is None else w * loss))
