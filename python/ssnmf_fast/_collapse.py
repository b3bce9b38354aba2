"""Samples that share one row of the representation become one sample, their weighted mean.

The sum of ``w_i d(x_i, z)`` over the samples of a group is ``w d(x, z)`` plus a constant, with w
the sum of the weights and x the weighted mean, for both losses: the model of Liu and Wu is a
smaller weighted factorisation, with the same updates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from . import weights
from ._csr import entry_rows, sample, with_values
from ._terms import Loss, checked_pattern, checked_sides
from ._validation import check_matrix, check_shape

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Collapsed:
    """Data with one row for each group, their weights, and the constant left out of the loss."""

    X: Any
    X_weights: Any
    constant: float


def collapse(X: Any, groups: Array, n_groups: int, X_weights: Any, loss: Loss) -> Collapsed:
    """Collapse the rows of `X` (of :func:`check_matrix`) by groups; 0 ... n_groups - 1 all occur.

    Raises ValueError for ``weights.missing``, whose sums over groups are not sparse.
    """
    n = X.shape[0]
    shape = (n_groups, n)
    G = sp.csr_array((np.ones(n, dtype=X.dtype), (groups, np.arange(n))), shape=shape)
    if isinstance(X_weights, weights.Missing):
        raise ValueError(
            "X_weights are weights.missing(...), which samples with a common representation cannot "
            "take; mark missing entries by NaN in a dense X, or give weights.observed(...)."
        )
    if isinstance(X_weights, weights.Observed):
        return _observed(X, G, X_weights.pattern, loss)
    has_nan = not sp.issparse(X) and bool(np.isnan(X).any())
    if not has_nan and (X_weights is None or isinstance(X_weights, weights.Outer)):
        return _by_rows(X, G, X_weights, loss)
    return _dense(X, G, X_weights, loss)


def _by_rows(X: Any, G: sp.csr_array, given: Any, loss: Loss) -> Collapsed:
    """Weights a b^T: those of the groups are the sums of a."""
    n, m = X.shape
    rows, b = (None, None) if given is None else checked_sides(given, X, "X_weights")
    a = np.ones(n, dtype=X.dtype) if rows is None else rows
    total = G @ a
    share = G.copy()
    of_group = total[entry_rows(G.indptr)]
    share.data = np.divide(a[G.indices], of_group, out=np.zeros_like(a), where=of_group > 0)
    mean = share @ X
    columns = np.ones(m) if b is None else b.astype(np.float64)
    entropy = sum(
        sign * float(rows.astype(np.float64) @ (_energy(Z, loss) @ columns))
        for sign, rows, Z in ((1, a, X), (-1, total, mean))
    )
    return Collapsed(mean, weights.outer(total, b), max(entropy, 0.0))


def _dense(X: Any, G: sp.csr_array, given: Any, loss: Loss) -> Collapsed:
    """Any weights, and NaN for missing: arrays as large as X."""
    X = X.toarray() if sp.issparse(X) else X
    if given is None:
        W = np.ones(X.shape, dtype=X.dtype)
    elif isinstance(given, weights.Outer):
        vectors = zip(checked_sides(given, X, "X_weights"), X.shape, strict=True)
        W = np.outer(*(np.ones(k, dtype=X.dtype) if v is None else v for v, k in vectors))
    else:
        W = check_matrix(given, "X_weights", dtype=X.dtype, allow_nan=False)
        check_shape(W, X.shape, "X_weights", "the shape of X")
    absent = np.isnan(X)
    X, W = np.where(absent, 0, X), np.where(absent, 0, W)
    total = G @ W
    mean = np.divide(G @ (W * X), total, out=np.zeros_like(total), where=total > 0)
    whole = float(np.sum(W * _energy(X, loss)) - np.sum(total * _energy(mean, loss)))
    return Collapsed(mean, total, max(whole, 0.0))


def _observed(X: Any, G: sp.csr_array, pattern: Any, loss: Loss) -> Collapsed:
    """Weights of a sparse pattern, all other entries 0."""
    pattern = checked_pattern(pattern, X, "X_weights")
    X = sample(X, pattern)
    total = sp.csr_array(G @ pattern)
    sums = sp.csr_array(G @ with_values(pattern, pattern.data * X.data))
    total.sort_indices()
    sums.sort_indices()
    mean = sample(sums, total)
    mean.data = np.divide(mean.data, total.data, out=np.zeros_like(mean.data), where=total.data > 0)
    whole = float(
        np.sum(pattern.data * _energy(X.data, loss)) - np.sum(total.data * _energy(mean.data, loss))
    )
    return Collapsed(mean, weights.observed(total), max(whole, 0.0))


def _energy(Z: Any, loss: Loss) -> Any:
    """x^2 or x log x, entrywise, float64."""
    if sp.issparse(Z):
        return with_values(Z, _energy(Z.data, loss))
    values = Z.astype(np.float64)
    if loss == "frobenius":
        return values**2
    return values * np.log(np.where(values > 0, values, 1.0))
