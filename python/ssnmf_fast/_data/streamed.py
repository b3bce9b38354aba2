"""Passes over a matrix on disk, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .csr_file import CsrFile
from .entries import Csr, Entries, SparseEntries, Target


@dataclass(frozen=True)
class StreamedEntries(Entries):
    """Rows of a file."""

    file: CsrFile
    threads: int
    streamed = True

    @cached_property
    def _bounds(self) -> Array:
        """One range of columns for each thread."""
        return self.file.column_ranges(self.threads)

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
