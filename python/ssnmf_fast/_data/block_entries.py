"""Data that the passes run over in blocks of rows: of a file, or with weights put in on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .csr import column_ranges
from .csr_file import CsrFile
from .entries import Csr, DenseEntries, Entries, SparseEntries, Target, block_slices


@dataclass(frozen=True)
class StreamedEntries(Entries):
    """Rows of a file."""

    file: CsrFile
    threads: int
    streamed = True

    @cached_property
    def _bounds(self) -> Array:
        """One range of columns for each thread."""
        return column_ranges(self.file.column_counts, self.threads)

    def blocks(self) -> Iterator[tuple[slice, BlockEntries]]:
        """Read all rows, a block at a time."""
        for rows, block in self.file.blocks():
            yield rows, BlockEntries(block, self.threads, self._bounds)

    def part(self, rows: slice) -> BlockEntries:
        return BlockEntries(self.file.rows(rows), self.threads, self._bounds)

    def transposed(self) -> ScatteredEntries:
        return ScatteredEntries(self, self._bounds)

    def total(self) -> float:
        return self.file.total

    def csr_rows(self, rows: slice) -> Csr:
        block = self.file.rows(rows)
        return block.indptr, block.indices, block.data

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        for rows, block in self.blocks():
            block.power(exponent, None if F is None else F[rows], G, to.rows(rows))

    def sum(self, name: str, F: Array, G: Array, *parameters: Any) -> float:
        return sum(block.sum(name, F[rows], G, *parameters) for rows, block in self.blocks())


class BlockEntries(SparseEntries):
    """Some rows of a file."""

    def __init__(self, matrix: sp.csr_array, threads: int, bounds: Array) -> None:
        super().__init__(matrix, threads)
        self._bounds = bounds

    def blocks(self) -> Iterator[tuple[slice, BlockEntries]]:
        yield slice(0, self.matrix.shape[0]), self

    def transposed(self) -> Entries:
        return ScatteredEntries(self, self._bounds, streamed=False)


@dataclass(frozen=True)
class ScatteredEntries(Entries):
    """Rows seen from their columns.  There is no transposed copy: rows are scattered."""

    by_rows: StreamedEntries | BlockEntries
    bounds: Array
    streamed: bool = True

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.by_rows.threads

    def part(self, rows: slice) -> SparseEntries:
        blocks = [block.matrix[:, rows] for _, block in self.by_rows.blocks()]
        return SparseEntries(sp.csr_array(sp.vstack(blocks).T), self.threads)

    def transposed(self) -> Entries:
        return self.by_rows

    def total(self) -> float:
        return self.by_rows.total()

    def csr_rows(self, rows: slice) -> Csr:
        """Some columns as indptr, indices and values."""
        matrix = self.part(rows).matrix
        return matrix.indptr, matrix.indices, matrix.data

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        if not to.accumulate:
            np.copyto(to.out, 0)
        for rows, block in self.by_rows.blocks():
            model = F, G[rows], self.bounds
            kernels.scatter_pass(exponent, *block.csr, *model, to.out, to.scale, self.threads)

    def sum(self, name: str, F: Array, G: Array, *parameters: Any) -> float:
        return self.by_rows.sum(name, G, F, *parameters)


@dataclass(frozen=True)
class WeightedEntries(Entries):
    """``rows columns^T .* Z`` for a dense Z, without an array of its size; None stands for ones."""

    entries: DenseEntries
    rows: Array | None
    columns: Array | None

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.entries.threads

    def transposed(self) -> WeightedEntries:
        return WeightedEntries(self.entries.transposed(), self.columns, self.rows)

    def part(self, rows: slice) -> WeightedEntries:
        weights = None if self.rows is None else self.rows[rows]
        return WeightedEntries(self.entries.part(rows), weights, self.columns)

    def block(self, rows: slice) -> DenseEntries:
        """Return some rows, weighted."""
        array = self.entries.array[rows]
        if self.entries.mask:
            array = np.where(np.isnan(array), array.dtype.type(0), array.dtype.type(1))
        if self.columns is not None:
            array = array * self.columns
        if self.rows is not None:
            array = array * self.rows[rows, None]
        return DenseEntries(array, self.threads)

    def _blocks(self) -> Iterator[tuple[slice, DenseEntries]]:
        for rows in block_slices(self.entries.array.shape):
            yield rows, self.block(rows)

    def total(self) -> float:
        return sum(block.total() for _, block in self._blocks())

    def csr_rows(self, rows: slice) -> Csr:
        return self.block(rows).csr_rows(slice(0, rows.stop - rows.start))

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        if exponent and self.columns is not None and F is not None:
            for rows, block in self._blocks():
                block.power(exponent, F[rows], G, to.rows(rows))
            return
        if self.columns is not None:
            G = self.columns[:, None] * G
        to.weighted(self.rows, lambda part: self.entries.power(exponent, F, G, part))

    def sum(self, name: str, F: Array, G: Array, *parameters: Any) -> float:
        return sum(block.sum(name, F[rows], G, *parameters) for rows, block in self._blocks())
