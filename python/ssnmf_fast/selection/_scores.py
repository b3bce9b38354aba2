"""What features of any kind have to do with usages: regressions, as cNMF does them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread

_LEAST_VARIANCE = 1e-12  # as cNMF has it: features that are constant have scores of 0
_ROWS = 4096  # of dense data at a time


def blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Give a clean matrix as blocks of rows."""
    if isinstance(X, CsrFile):
        yield from X.blocks()
    elif sp.issparse(X):
        yield slice(0, X.shape[0]), X
    else:
        for begin in range(0, len(X), _ROWS):
            rows = slice(begin, begin + _ROWS)
            yield rows, X[rows]


@one_blas_thread()
def regression_scores(X: Any, usage: Array) -> Array:
    """Return coefficients of the least squares of z-scored features on usages, (r, m).

    Missing entries count as their feature's mean, whose z-score is 0.
    """
    usage = np.asarray(usage, dtype=np.float64)
    means, variances = _moments(X)
    products = np.zeros((usage.shape[1], X.shape[1]))
    for rows, block in blocks(X):
        part = usage[rows]
        if sp.issparse(block):
            products += (block.T @ part).T - part.sum(axis=0)[:, None] * means
        else:
            products += part.T @ np.nan_to_num(block - means)
    products /= np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    return np.asarray(np.linalg.lstsq(usage.T @ usage, products, rcond=None)[0])


def _moments(X: Any) -> tuple[Array, Array]:
    """Return means and variances of the columns, of the entries that are not missing, (m,)."""
    counts, sums = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _, block in blocks(X):
        if sp.issparse(block):
            counts += block.shape[0]
            sums += _by_column(block, block.data)
        else:
            counts += np.isfinite(block).sum(axis=0)
            sums += np.nansum(block, axis=0, dtype=np.float64)
    counts = np.maximum(counts, 1)
    means, squares = sums / counts, np.zeros(X.shape[1])
    for _, block in blocks(X):
        if sp.issparse(block):
            stored = np.square(block.data - means[block.indices])
            zeros = block.shape[0] - np.bincount(block.indices, minlength=X.shape[1])
            squares += _by_column(block, stored) + zeros * means**2
        else:
            squares += np.nansum(np.square(block - means), axis=0)
    return means, squares / counts


def _by_column(block: Any, values: Array) -> Array:
    return np.bincount(block.indices, weights=values, minlength=block.shape[1])
