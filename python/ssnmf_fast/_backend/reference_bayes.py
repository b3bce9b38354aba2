"""The kernels of variational Bayes in plain NumPy and SciPy: a part of ``_reference``.

Every entry of a factor has a gamma posterior with shape alpha and a rate b that is one number for
each component and group of rows.  E = alpha / b is its expectation; that of its logarithm is
Lg = psi(alpha) - log(b), held as F = exp(Lg).

Common arguments
----------------
prior_shape
    Shape a0 of the prior.
rates, groups
    Posterior rates, float64, groups x R, positive in the first `rank` columns; the group of every
    row, int32, or None for one group.
rank
    Number of columns that are no padding; padding of F and E becomes 0.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from .._common.arrays import Array


def _by_row(values: Array, groups: Array | None, n_rows: int) -> Array:
    """Return the row of its group for every row."""
    return values[np.zeros(n_rows, dtype=np.int32) if groups is None else groups]


def gamma_update(
    F: Array,
    P: Array,
    prior_shape: float,
    rates: Array,
    groups: Array | None,
    E: Array,
    rank: int,
    logs: bool,
    n_threads: int,
) -> float:
    """alpha = prior_shape + F .* P; E <- alpha / rate; F <- exp(psi(alpha)) / rate, in place.

    F stays at or above :func:`tiny`.  Returns the sum of all Lg if `logs` is true, else 0.
    """
    info = np.finfo(F.dtype)
    rate = _by_row(rates[:, :rank], groups, len(F))
    shape = prior_shape + F[:, :rank].astype(float) * P[:, :rank].astype(float)
    digamma = psi(shape)
    E[...] = F[...] = 0
    E[:, :rank] = shape / rate
    F[:, :rank] = np.maximum(np.exp(digamma) / rate, info.tiny / info.eps)
    return float(np.sum(digamma - np.log(rate))) if logs else 0.0


def gamma_bound(
    E: Array, prior_shape: float, rates: Array, groups: Array | None, rank: int, n_threads: int
) -> float:
    """Sum of (prior_shape - alpha) Lg - alpha log(rate) + alpha + log Gamma(alpha), alpha = E rate.

    It is what the entries add to the variational bound, but for the terms with the prior's rate.
    """
    rate = _by_row(rates[:, :rank], groups, len(E))
    shape = E[:, :rank].astype(float) * rate
    logs = psi(shape) - np.log(rate)
    terms = (prior_shape - shape) * logs - shape * np.log(rate) + shape + gammaln(shape)
    return float(np.sum(terms))


def group_sums(E: Array, groups: Array | None, out: Array, n_threads: int) -> None:
    """Sum the rows of every group into `out` (float64, groups x R)."""
    out[...] = 0
    np.add.at(out, np.zeros(len(E), dtype=np.int32) if groups is None else groups, E.astype(float))
