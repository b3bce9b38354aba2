"""Sums over the cells of a matrix in pieces: of cells, of genes, and of their squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.arrays import scale_rows
from ._source import COUNTS, Source

_TOTAL = 1e6  # counts of every cell, when genes are compared


class Moments(NamedTuple):
    """Sums over cells: of each gene and of its square, as they are and for cells of one size."""

    counts: Array
    squares: Array
    of_size: Array
    squares_of_size: Array


def cell_sums(source: Source, genes: Array) -> Array:
    """Return the sum of some genes in each cell, (n,)."""
    totals = np.zeros(source.shape[0])
    for piece in source.pieces(genes):
        totals[piece.rows] += piece.values.sum(axis=1, dtype=np.float64)
    return totals


def factors_of_size(source: Source) -> Array:
    """Return what the counts of each cell are to be multiplied by for a sum of a million, (n,)."""
    totals = cell_sums(source, np.arange(source.shape[1]))
    return np.divide(_TOTAL, totals, out=np.zeros(len(totals)), where=totals > 0)


def moments_of(source: Source) -> Moments:
    """Read the counts twice: for the sums of cells, and for those of genes."""
    m = source.shape[1]
    factors = factors_of_size(source)
    moments = Moments(*np.zeros((4, m)))
    whole = True
    for piece in source.pieces(np.arange(m)):
        counts = piece.values.astype(np.float64)
        whole = whole and bool((counts.data == np.floor(counts.data)).all())
        add_moments(moments.counts, moments.squares, piece.genes, counts)
        of_size = scale_rows(counts, factors[piece.rows])
        add_moments(moments.of_size, moments.squares_of_size, piece.genes, of_size)
    if not whole:
        warn_user(
            f"{source.name} has numbers that are not whole, and prepare is for counts. {COUNTS}.",
            UserWarning,
        )
    return moments


def deviations_of(source: Source, genes: Array) -> Array:
    """Return the standard deviation of each of some genes, 1 for one that does not vary."""
    sums, squares = np.zeros((2, len(genes)))
    for piece in source.pieces(genes):
        add_moments(sums, squares, piece.genes, piece.values.astype(np.float64))
    return deviations(sums, squares, source.shape[0])


def deviations(sums: Array, squares: Array, n: int) -> Array:
    """Return standard deviations of a sample, 1 for what does not vary."""
    variance = (squares - sums**2 / n) / max(n - 1, 1)
    return np.sqrt(np.where(variance > 0, variance, 1))


def add_moments(sums: Array, squares: Array, genes: slice, block: Any) -> None:
    """Add the entries of some genes, and their squares, to the sums of all."""
    sums[genes] += block.sum(axis=0)
    squares[genes] += block.multiply(block).sum(axis=0)
