"""Tensors for the kernels: unfolded by one mode, with the factors of all others.

X_(k) ~ F G^T, where F is the factor of mode k and every row of G is the product, element by
element, of a row of each other factor.  G is never stored as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .csr_file import equal_blocks
from .entries import Csr, Entries, Target, positive, row_slices
from .tensors import RowProducts, SparseTensor

_ROWS_OF_G = 8192  # made at a time for dense tensors
_LISTED = 1 << 16  # entries whose rows of G are made at a time, to solve rows one by one
_IN_ONE_PASS = (0, 1, -1)  # exponents of a pass over entries without their rows of G
_SHORT_LINES = 32  # shorter lines of a dense tensor are copied together

View = TypeVar("View", bound="TensorEntries")


@dataclass(frozen=True, eq=False)
class TensorEntries(Entries):
    """A tensor unfolded by a mode."""

    tensor: Any
    threads: int = 1
    mode: int = 0
    mask: bool = False
    by_factors = True

    def view(self: View, position: int) -> View:
        return replace(self, mode=position)

    def transposed(self) -> TensorEntries:
        return self.view(1)


class SparseTensorEntries(TensorEntries):
    tensor: SparseTensor
    sparse = True

    @property
    def values(self) -> Array:
        return self.tensor.values

    def unfolded(self) -> Csr:
        """Return pointers, indices in the other modes and values."""
        return self.tensor.unfolded(self.mode)

    def csr_rows(self, rows: slice) -> Csr:
        """Return some rows; the columns are numbers of entries, counted from the first."""
        indptr, _, values = self.unfolded()
        first, last = indptr[rows.start], indptr[rows.stop]
        entries = np.arange(last - first, dtype=np.int32)
        return indptr[rows.start : rows.stop + 1] - first, entries, values[first:last]

    def csr_blocks(self, n_rows: int, G: RowProducts) -> Iterator[tuple[slice, Csr, Array]]:
        indptr, others, _ = self.unfolded()
        for rows in equal_blocks(indptr[: n_rows + 1], _LISTED):
            places = others[:, indptr[rows.start] : indptr[rows.stop]]
            yield rows, self.csr_rows(rows), G.at(places)

    def dense(self, rows: slice, n_columns: int) -> Array:
        indptr, others, values = self.unfolded()
        entries = slice(indptr[rows.start], indptr[rows.stop])
        lengths = tuple(np.delete(self.tensor.shape, self.mode))
        columns = np.ravel_multi_index(tuple(others[:, entries]), lengths)
        csr = values[entries], columns, indptr[rows.start : rows.stop + 1] - entries.start
        return np.asarray(sp.csr_array(csr, (rows.stop - rows.start, n_columns)).toarray())

    def weighted(self, w: Any, G: Any) -> Iterator[tuple[slice, Csr, Array, Array]]:
        indptr = self.unfolded()[0]
        for rows, csr, here in self.csr_blocks(len(indptr) - 1, G):
            yield rows, csr, w[indptr[rows.start] : indptr[rows.stop]], here

    def power(self, exponent: float, F: Array | None, G: Any, to: Target) -> None:
        if F is None or exponent in _IN_ONE_PASS:
            kernels.tensor_pass(exponent, *self.unfolded(), F, list(G.factors), *to, self.threads)
            return
        for rows, csr, here in self.csr_blocks(len(to.out), G):
            kernels.sparse_pass(exponent, *csr, F[rows], here, *to.rows(rows), self.threads)

    def sum(self, name: str, F: Array, G: Any, *parameters: Any) -> float:
        kernel = getattr(kernels, f"tensor_{name}", None)
        if kernel is not None:
            return float(kernel(*self.unfolded(), *parameters, F, list(G.factors), self.threads))
        kernel = getattr(kernels, f"sparse_{name}")
        blocks = self.csr_blocks(len(F), G)
        values = (kernel(*csr, *parameters, F[rows], g, self.threads) for rows, csr, g in blocks)
        return float(sum(values))


class DenseTensorEntries(TensorEntries):
    """A dense tensor without its NaN entries.  With `mask`, its other entries are ones."""

    tensor: Array

    @property
    def values(self) -> Array:
        return self.tensor

    def csr_rows(self, rows: slice) -> Csr:
        matrix = np.moveaxis(self.tensor, self.mode, 0)[rows].reshape(rows.stop - rows.start, -1)
        present = ~np.isnan(matrix)
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        values = np.ones(indptr[-1], dtype=matrix.dtype) if self.mask else matrix[present]
        return indptr, np.nonzero(present)[1].astype(np.int32), values

    def weighted(self, w: Any, G: Any) -> Iterator[tuple[slice, Csr, Array, Array]]:
        others = replace(self, tensor=w)
        for (Z, rows), (weights, _) in zip(self._blocks(G), others._blocks(G), strict=True):
            yield slice(None), *positive(Z, weights), rows

    def csr_blocks(self, n_rows: int, G: RowProducts) -> Iterator[tuple[slice, Csr, Array]]:
        n_columns = self.tensor.size // self.tensor.shape[self.mode]
        for rows in row_slices(n_rows, max(1, _LISTED // n_columns)):
            indptr, indices, values = self.csr_rows(rows)
            present, columns = np.unique(indices, return_inverse=True)
            places = np.unravel_index(present, tuple(len(F) for F in G.factors))
            yield rows, (indptr, columns.astype(np.int32).reshape(-1), values), G.at(places)

    def power(self, exponent: float, F: Array | None, G: Any, to: Target) -> None:
        accumulate = to.accumulate
        for Z, rows in self._blocks(G):
            part = to.out, to.scale, accumulate
            kernels.dense_pass(exponent, Z, self.mask, F, rows, *part, self.threads)
            accumulate = True

    def residual(self, F: Array, G: Any, to: Target) -> None:
        accumulate = to.accumulate
        for Z, rows in self._blocks(G):
            kernels.dense_residual_pass(Z, F, rows, to.out, to.scale, accumulate, self.threads)
            accumulate = True

    def sum(self, name: str, F: Array, G: Any, *parameters: Any) -> float:
        kernel = getattr(kernels, f"dense_{name}")
        sums = (kernel(Z, *parameters, F, rows, self.threads) for Z, rows in self._blocks(G))
        return float(sum(sums))

    def _blocks(self, G: RowProducts) -> Iterator[tuple[Array, Array]]:
        """Cut the unfolding into blocks of columns, with their rows of G."""
        lengths = self.tensor.shape
        before, after = prod(lengths[: self.mode]), prod(lengths[self.mode + 1 :])
        array = self.tensor.reshape(before, self.tensor.shape[self.mode], after)
        if self.mode == 0 or after >= _SHORT_LINES:
            outer = RowProducts(G.factors[: self.mode])
            inner = RowProducts(G.factors[self.mode :])
            for places in row_slices(after, _ROWS_OF_G):
                rows = inner[places]
                for i in range(before):
                    here = rows if self.mode == 0 else outer[i : i + 1] * rows
                    yield array[i, :, places], here
            return
        for lines in row_slices(before, max(1, _ROWS_OF_G // after)):
            block = array[lines].transpose(1, 0, 2).reshape(array.shape[1], -1)
            yield block, G[lines.start * after : lines.stop * after]
