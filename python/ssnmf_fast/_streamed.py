"""Passes over a matrix on disk, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._csr_file import CsrFile
from ._dispatch import kernels
from ._entries import Csr, SparseEntries, Target

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class StreamedEntries:
    """Rows of a file."""

    file: CsrFile

    def transposed(self, n_threads: int) -> StreamedColumns:
        return StreamedColumns(self.file, self.file.column_ranges(n_threads))

    def total(self) -> float:
        return self.file.total

    def csr_rows(self, rows: slice) -> Csr:
        """Some rows as indptr, indices and values."""
        block = self.file.rows(rows)
        return block.indptr, block.indices, block.data

    def product(self, G: Array, to: Target) -> None:
        for rows, block in self.file.blocks():
            SparseEntries(block).product(G, to.rows(rows))

    def ratio(self, F: Array, G: Array, to: Target) -> None:
        for rows, block in self.file.blocks():
            SparseEntries(block).ratio(F[rows], G, to.rows(rows))

    def sampled(self, F: Array, G: Array, to: Target) -> None:
        for rows, block in self.file.blocks():
            SparseEntries(block).sampled(F[rows], G, to.rows(rows))

    def kl_loss(self, F: Array, G: Array, n_threads: int) -> float:
        return sum(
            SparseEntries(block).kl_loss(F[rows], G, n_threads)
            for rows, block in self.file.blocks()
        )

    def kl_unreached(self, F: Array, G: Array, n_threads: int) -> float:
        return sum(
            SparseEntries(block).kl_unreached(F[rows], G, n_threads)
            for rows, block in self.file.blocks()
        )


@dataclass(frozen=True)
class StreamedColumns:
    """The same matrix seen from its columns.  There is no transposed copy: rows are scattered."""

    file: CsrFile
    bounds: Array  # one range of columns for each thread

    def transposed(self, n_threads: int) -> StreamedEntries:
        del n_threads
        return StreamedEntries(self.file)

    def total(self) -> float:
        return self.file.total

    def csr_rows(self, rows: slice) -> Csr:
        """Some columns of the file as indptr, indices and values."""
        stacked = sp.vstack([block[:, rows] for _, block in self.file.blocks()], format="csc")
        return stacked.indptr, stacked.indices, stacked.data

    def product(self, G: Array, to: Target) -> None:
        self._scatter(kernels.scatter_product, (), G, to)

    def ratio(self, F: Array, G: Array, to: Target) -> None:
        self._scatter(kernels.scatter_ratio, (F,), G, to)

    def sampled(self, F: Array, G: Array, to: Target) -> None:
        self._scatter(kernels.scatter_sampled, (F,), G, to)

    def kl_loss(self, F: Array, G: Array, n_threads: int) -> float:
        return StreamedEntries(self.file).kl_loss(G, F, n_threads)

    def kl_unreached(self, F: Array, G: Array, n_threads: int) -> float:
        return StreamedEntries(self.file).kl_unreached(G, F, n_threads)

    def _scatter(
        self, kernel: Callable[..., None], model: tuple[Array, ...], G: Array, to: Target
    ) -> None:
        if not to.accumulate:
            np.copyto(to.out, 0)
        for rows, block in self.file.blocks():
            csr = (block.indptr, block.indices, block.data)
            kernel(*csr, *model, G[rows], self.bounds, to.out, to.scale, to.n_threads)
