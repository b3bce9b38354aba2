"""Passes over a matrix on disk, a block of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._csr_file import CsrFile
from ._dispatch import kernels
from ._entries import Csr, Entries, SparseEntries, Target

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class StreamedEntries(Entries):
    """Rows of a file."""

    file: CsrFile
    threads: int

    def transposed(self) -> StreamedColumns:
        return StreamedColumns(self.file, self.threads)

    def total(self) -> float:
        return self.file.total

    def csr_rows(self, rows: slice) -> Csr:
        block = self.file.rows(rows)
        return block.indptr, block.indices, block.data

    def apply(self, name: str, F: Array | None, G: Array, to: Target, *parameters: Any) -> None:
        for rows, block in self.file.blocks():
            part = None if F is None else F[rows]
            SparseEntries(block, self.threads).apply(name, part, G, to.rows(rows), *parameters)

    def sum(self, name: str, F: Array, G: Array, *parameters: Any) -> float:
        return sum(
            SparseEntries(block, self.threads).sum(name, F[rows], G, *parameters)
            for rows, block in self.file.blocks()
        )


@dataclass(frozen=True)
class StreamedColumns(Entries):
    """The same matrix seen from its columns.  There is no transposed copy: rows are scattered."""

    file: CsrFile
    threads: int

    @cached_property
    def bounds(self) -> Array:
        """One range of columns for each thread."""
        return self.file.column_ranges(self.threads)

    def transposed(self) -> StreamedEntries:
        return StreamedEntries(self.file, self.threads)

    def total(self) -> float:
        return self.file.total

    def csr_rows(self, rows: slice) -> Csr:
        """Some columns of the file as indptr, indices and values."""
        stacked = sp.vstack([block[:, rows] for _, block in self.file.blocks()], format="csc")
        return stacked.indptr, stacked.indices, stacked.data

    def apply(self, name: str, F: Array | None, G: Array, to: Target, *parameters: Any) -> None:
        if not to.accumulate:
            np.copyto(to.out, 0)
        for rows, block in self.file.blocks():
            self.scatter(block, name, F, G[rows], to, *parameters)

    def scatter(
        self, block: Any, name: str, F: Array | None, G: Array, to: Target, *parameters: Any
    ) -> None:
        """Add what some rows, and those of the other factor, give to a pass."""
        csr = (block.indptr, block.indices, block.data)
        model = (G,) if F is None else (F, G)
        kernel = getattr(kernels, f"scatter_{name}")
        kernel(*csr, *parameters, *model, self.bounds, to.out, to.scale, self.threads)

    def sum(self, name: str, F: Array, G: Array, *parameters: Any) -> float:
        return self.transposed().sum(name, G, F, *parameters)
