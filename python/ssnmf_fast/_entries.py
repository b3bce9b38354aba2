"""Data that the passes run over: stored entries of a sparse matrix, or a dense array.

Data Z (p x q) is approximated by F G^T.  Each class has a transpose, so that one serves the factor
of the rows and that of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._csr import kernel_parts, transposed
from ._dispatch import kernels

Array = npt.NDArray[Any]
Csr = tuple[Array, Array, Array]

_ROWS_PER_CALL = 4096


def row_slices(n_rows: int) -> Iterator[slice]:
    """Cut rows into calls of the kernels that list or solve rows one by one.

    Dense rows are listed a call at a time.
    """
    for begin in range(0, n_rows, _ROWS_PER_CALL):
        yield slice(begin, min(begin + _ROWS_PER_CALL, n_rows))


@dataclass(frozen=True)
class Target:
    """Where a pass leaves its result: ``out = scale * result``, or ``out += scale * result``."""

    out: Array
    scale: float
    n_threads: int
    accumulate: bool = False

    def rows(self, rows: slice) -> Target:
        """Return the place of some rows of the result."""
        return replace(self, out=self.out[rows])

    @property
    def arguments(self) -> tuple[Array, float, bool, int]:
        return self.out, self.scale, self.accumulate, self.n_threads


class Entries(Protocol):
    """Data over which the kernels run."""

    def transposed(self, n_threads: int) -> Entries: ...
    def total(self) -> float: ...
    def csr_rows(self, rows: slice) -> Csr: ...
    def product(self, G: Array, to: Target) -> None: ...
    def ratio(self, F: Array, G: Array, to: Target) -> None: ...
    def sampled(self, F: Array, G: Array, to: Target) -> None: ...
    def kl_loss(self, F: Array, G: Array, n_threads: int) -> float: ...
    def kl_unreached(self, F: Array, G: Array, n_threads: int) -> float: ...


class SparseEntries:
    """Stored entries of a CSR matrix."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix = matrix
        self._csr: Csr = kernel_parts(matrix)

    def transposed(self, n_threads: int) -> SparseEntries:
        return SparseEntries(transposed(self.matrix, n_threads))

    def total(self) -> float:
        return float(self.matrix.data.sum(dtype=np.float64))

    def csr_rows(self, rows: slice) -> Csr:
        """Some rows as indptr, indices and values."""
        first, last = self.matrix.indptr[rows.start], self.matrix.indptr[rows.stop]
        indptr = self.matrix.indptr[rows.start : rows.stop + 1] - first
        return indptr, self.matrix.indices[first:last], self.matrix.data[first:last]

    def product(self, G: Array, to: Target) -> None:
        indptr, indices, data = self._csr
        kernels.sparse_product(indptr, indices, data, G, *to.arguments)

    def ratio(self, F: Array, G: Array, to: Target) -> None:
        indptr, indices, data = self._csr
        kernels.sparse_ratio(indptr, indices, data, F, G, *to.arguments)

    def sampled(self, F: Array, G: Array, to: Target) -> None:
        indptr, indices, data = self._csr
        kernels.sparse_sampled(indptr, indices, data, F, G, *to.arguments)

    def kl_loss(self, F: Array, G: Array, n_threads: int) -> float:
        return float(kernels.sparse_kl_loss(*self._csr, F, G, n_threads))

    def kl_unreached(self, F: Array, G: Array, n_threads: int) -> float:
        return float(kernels.sparse_kl_unreached(*self._csr, F, G, n_threads))


@dataclass(frozen=True)
class DenseEntries:
    """A dense array whose NaN entries count nothing.  With `mask`, its other entries are ones."""

    array: Array
    mask: bool = False

    def transposed(self, n_threads: int) -> DenseEntries:
        del n_threads
        return DenseEntries(self.array.T, self.mask)

    def total(self) -> float:
        if self.mask:
            return float(np.count_nonzero(~np.isnan(self.array)))
        return float(np.nansum(self.array, dtype=np.float64))

    def csr_rows(self, rows: slice) -> Csr:
        """Some rows as indptr, indices and values."""
        block = self.array[rows]
        if self.mask:
            block = (~np.isnan(block)).astype(block.dtype)
        csr = sp.csr_array(np.nan_to_num(block, nan=0.0))
        return csr.indptr, csr.indices, csr.data

    def product(self, G: Array, to: Target) -> None:
        kernels.dense_product(self.array, self.mask, G, *to.arguments)

    def ratio(self, F: Array, G: Array, to: Target) -> None:
        kernels.dense_ratio(self.array, F, G, *to.arguments)

    def sampled(self, F: Array, G: Array, to: Target) -> None:
        kernels.dense_sampled(self.array, self.mask, F, G, *to.arguments)

    def kl_loss(self, F: Array, G: Array, n_threads: int) -> float:
        return float(kernels.dense_kl_loss(self.array, F, G, n_threads))

    def kl_unreached(self, F: Array, G: Array, n_threads: int) -> float:
        return float(kernels.dense_kl_unreached(self.array, F, G, n_threads))
