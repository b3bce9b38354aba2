"""Which genes mark a program: regressions of all genes on usages, as cNMF does them."""

from __future__ import annotations

import numpy as np

from .._common.arrays import Array
from .._data.csr import scale_rows
from .._data.threads import one_blas_thread
from ._moments import add_moments, factors_of_size
from ._source import Source

_LEAST_VARIANCE = 1e-12  # as cNMF has it: genes that are constant have scores of 0


@one_blas_thread()
def scores_of_genes(source: Source, usage: Array) -> Array:
    """Return coefficients of the least squares of z-scored genes on usages (n x r), (m, r).

    The genes are those of cells that are scaled to the same sum.
    """
    usage = usage.astype(np.float64)
    n, m = source.shape
    factors = factors_of_size(source)
    sums, squares, products = np.zeros(m), np.zeros(m), np.zeros((m, usage.shape[1]))
    for piece in source.pieces(np.arange(m)):
        block = scale_rows(piece.values.astype(np.float64), factors[piece.rows])
        add_moments(sums, squares, piece.genes, block)
        products[piece.genes] += block.T @ usage[piece.rows]
    means = sums / n
    products -= means[:, None] * usage.sum(axis=0)
    products /= np.sqrt(np.maximum(squares / n - means**2, _LEAST_VARIANCE))[:, None]
    return np.asarray(np.linalg.lstsq(usage.T @ usage, products.T, rcond=None)[0].T)
