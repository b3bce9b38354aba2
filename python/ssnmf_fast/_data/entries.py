"""Data that the passes run over: stored entries of a sparse matrix, or a dense array.

Data Z (p x q) is approximated by F G^T.  Each class has a transpose, so that one serves the factor
of the rows and that of the columns.  The number of threads is bound to the entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .arrays import column_ranges, entry_rows, kernel_parts, transpose, transpose_panels
from .csr_file import CsrFile
from .tensors import Rows

Csr = tuple[Array, Array, Array]

_ROWS_PER_CALL = 4096
_ENTRIES_PER_BLOCK = 1 << 15  # of a dense array whose weighted copy is made part by part
_PANEL_ROWS = 1 << 14  # whose rows of a factor fit the cache that the cores share
_PANEL_RANGES = 256  # of columns, for the threads


def row_slices(n_rows: int, per_call: int = _ROWS_PER_CALL) -> Iterator[slice]:
    """Cut rows into calls of the kernels that list or solve rows one by one."""
    for begin in range(0, n_rows, per_call):
        yield slice(begin, min(begin + per_call, n_rows))


def block_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut the rows of a dense array into blocks that fit a cache."""
    yield from row_slices(shape[0], max(1, _ENTRIES_PER_BLOCK // max(1, shape[1])))


def panels_pay(shape: tuple[int, int], n_entries: int) -> bool:
    """Return whether a sparse matrix is long enough for panels, with entries enough in each."""
    n_panels = -(-shape[0] // _PANEL_ROWS)
    return n_panels > 2 and n_entries >= 2 * n_panels * shape[1]


class Target(NamedTuple):
    """Where a pass leaves its result: ``out = scale * result``, or ``out += scale * result``."""

    out: Array
    scale: float = 1.0
    accumulate: bool = False

    def rows(self, rows: slice) -> Target:
        return self._replace(out=self.out[rows])

    def weighted(self, weights: Array | None, run: Callable[[Target], None]) -> None:
        """Take the result of `run`, with its rows multiplied by weights; None stands for ones."""
        if weights is None:
            run(self)
            return
        part = Target(np.empty_like(self.out), self.scale)
        run(part if self.accumulate else self)
        if self.accumulate:
            self.out[...] += weights[:, None] * part.out
        else:
            self.out[...] *= weights[:, None]


class Entries(ABC):
    """Data over which the kernels run."""

    threads: int
    streamed = False  # whether every pass reads a file
    sparse = False  # whether only stored entries are listed
    by_factors = False  # whether G is given as the factors whose rows are multiplied

    @abstractmethod
    def transposed(self) -> Entries: ...

    def asked(self, support: Array | None) -> Entries:
        """Return the data for passes of which only entries in a support, as bits, are needed."""
        del support
        return self

    def view(self, position: int) -> Entries:
        """Return the data by the rows of the factor at a position; here the first is that of F."""
        return self.transposed() if position else self

    @abstractmethod
    def part(self, rows: slice) -> Entries:
        """Return some rows."""

    def blocks(self) -> Iterator[tuple[slice, Entries]]:
        """Give all rows, in the blocks in which they are read."""
        raise NotImplementedError

    @abstractmethod
    def total(self) -> float:
        """Sum of all entries."""

    @abstractmethod
    def csr_rows(self, rows: slice) -> Csr:
        """Some rows as indptr, indices and values."""

    def listed(self, n_rows: int, G: Any) -> Iterator[tuple[slice, Csr, Array]]:
        """Give all rows by blocks: as :meth:`csr_rows`, with the G that its columns count."""
        for rows in row_slices(n_rows):
            yield rows, self.csr_rows(rows), G

    def dense(self, rows: slice, n_columns: int) -> Array:
        """Return some rows as an array, with 0 for what is not listed."""
        indptr, indices, values = self.csr_rows(rows)
        shape = rows.stop - rows.start, n_columns
        return np.asarray(sp.csr_array((values, indices, indptr), shape=shape).toarray())

    @property
    def values(self) -> Array:
        """The entries in the order of their weights."""
        raise NotImplementedError

    def weighted(self, w: Any, G: Rows) -> Iterator[tuple[slice, Csr, Array, Array]]:
        """Give all rows by blocks: their nonzero entries, the weights `w` of these, and G."""
        raise NotImplementedError

    def squared_residuals(self, F: Array, G: Rows, weights: Array | None) -> float:
        """Return sum w (x - z)^2 over the entries."""
        raise NotImplementedError

    @abstractmethod
    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        """(Z .* (F G^T)^exponent) G; an exponent of 0 needs no F."""

    @abstractmethod
    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
        """Return the sum `name` of the kernels over the entries."""


Asking = TypeVar("Asking", "SparseEntries", "PanelEntries")


def _asking(entries: Asking, support: Array | None) -> Asking:
    """Return the same entries, with the bits that their passes are asked for."""
    if support is None:
        return entries
    found = copy(entries)
    found._asked = support
    return found


class SparseEntries(Entries):
    """Stored entries of a CSR matrix."""

    sparse = True

    def __init__(self, matrix: sp.csr_array, threads: int = 1) -> None:
        self.matrix = matrix
        self.threads = threads
        self.csr: Csr = kernel_parts(matrix)
        self._asked: Array | None = None

    def asked(self, support: Array | None) -> SparseEntries:
        return _asking(self, support)

    def transposed(self) -> Entries:
        if panels_pay(self.matrix.shape, self.matrix.nnz):
            return PanelEntries(self)
        return self.turned()

    def turned(self) -> SparseEntries:
        return SparseEntries(transpose(self.matrix, self.threads), self.threads)

    def part(self, rows: slice) -> SparseEntries:
        indptr, indices, data = self.csr_rows(rows)
        shape = len(indptr) - 1, self.matrix.shape[1]
        return SparseEntries(sp.csr_array((data, indices, indptr), shape, copy=False), self.threads)

    def total(self) -> float:
        return float(self.matrix.data.sum(dtype=np.float64))

    def csr_rows(self, rows: slice) -> Csr:
        first, last = self.matrix.indptr[rows.start], self.matrix.indptr[rows.stop]
        indptr = self.matrix.indptr[rows.start : rows.stop + 1] - first
        return indptr, self.matrix.indices[first:last], self.matrix.data[first:last]

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        kernels.sparse_pass(exponent, *self.csr, F, G, *to, self.threads, self._asked)

    @property
    def values(self) -> Array:
        return np.asarray(self.matrix.data)

    def weighted(self, w: Any, G: Any) -> Iterator[tuple[slice, Csr, Array, Array]]:
        yield slice(None), self.csr, w, G

    def squared_residuals(self, F: Array, G: Any, weights: Array | None) -> float:
        return float(kernels.sparse_frobenius_loss(*self.csr, weights, F, G, self.threads))

    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
        kernel = getattr(kernels, f"sparse_{name}")
        return float(kernel(*self.csr, *parameters, F, G, self.threads))


class PanelEntries(Entries):
    """The transpose of a sparse matrix Z in panels of its rows: long factors stay in the cache."""

    def __init__(self, entries: SparseEntries) -> None:
        self.threads = entries.threads
        self._untransposed = entries
        self._turned: SparseEntries | None = None
        self._asked: Array | None = None
        n_columns = entries.matrix.shape[1]
        counts = np.bincount(entries.csr[1], minlength=n_columns)
        self._bounds = column_ranges(counts, _PANEL_RANGES)
        self._csr = transpose_panels(entries.csr, n_columns, _PANEL_ROWS, self.threads)

    def asked(self, support: Array | None) -> PanelEntries:
        return _asking(self, support)

    def transposed(self) -> SparseEntries:
        return self._untransposed

    def turned(self) -> SparseEntries:
        """Return a copy that is not cut into panels."""
        if self._turned is None:
            self._turned = self._untransposed.turned()
        return self._turned

    def part(self, rows: slice) -> SparseEntries:
        return self.turned().part(rows)

    def total(self) -> float:
        return self._untransposed.total()

    def csr_rows(self, rows: slice) -> Csr:
        return self.turned().csr_rows(rows)

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        arguments = *self._csr, F, G, self._bounds, *to, self.threads, self._asked
        kernels.panel_pass(exponent, *arguments)

    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
        return self._untransposed.sum(name, G, F, *parameters)


def positive(block: Array, weights: Array) -> tuple[Csr, Array]:
    """Return the positive entries of an array, in CSR form, and their weights."""
    csr = sp.csr_array(np.nan_to_num(block))
    return kernel_parts(csr), weights[entry_rows(csr.indptr), csr.indices]


@dataclass(frozen=True)
class DenseEntries(Entries):
    """A dense array whose NaN entries count nothing.  With `mask`, its other entries are ones."""

    array: Array
    threads: int = 1
    mask: bool = False

    def transposed(self) -> DenseEntries:
        return replace(self, array=self.array.T)

    def part(self, rows: slice) -> DenseEntries:
        return replace(self, array=self.array[rows])

    def total(self) -> float:
        if self.mask:
            return float(np.count_nonzero(~np.isnan(self.array)))
        return float(np.nansum(self.array, dtype=np.float64))

    def csr_rows(self, rows: slice) -> Csr:
        block = self.array[rows]
        if self.mask:
            block = (~np.isnan(block)).astype(block.dtype)
        csr = sp.csr_array(np.nan_to_num(block, nan=0.0))
        return csr.indptr, csr.indices, csr.data

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        kernels.dense_pass(exponent, self.array, self.mask, F, G, *to, self.threads)

    @property
    def values(self) -> Array:
        return self.array

    def weighted(self, w: Any, G: Any) -> Iterator[tuple[slice, Csr, Array, Array]]:
        for rows in block_slices(self.array.shape):
            Z, dense = self.array[rows], isinstance(w, np.ndarray)
            weights = w[rows] if dense else w.present(rows, self.array.shape, Z.dtype)
            yield rows, *positive(Z, weights), G

    def squared_residuals(self, F: Array, G: Any, weights: Array | None) -> float:
        del weights  # those of dense arrays are not listed
        return float(kernels.dense_frobenius_loss(self.array, F, G, self.threads))

    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
        kernel = getattr(kernels, f"dense_{name}")
        return float(kernel(self.array, *parameters, F, G, self.threads))


@dataclass(frozen=True)
class StreamedEntries(Entries):
    file: CsrFile
    threads: int
    streamed = True

    @cached_property
    def _bounds(self) -> Array:
        return column_ranges(self.file.column_counts, self.threads)

    def blocks(self) -> Iterator[tuple[slice, BlockEntries]]:
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

    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
        return sum(block.sum(name, F[rows], G, *parameters) for rows, block in self.blocks())


class BlockEntries(SparseEntries):
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
        matrix = self.part(rows).matrix
        return matrix.indptr, matrix.indices, matrix.data

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        if not to.accumulate:
            np.copyto(to.out, 0)
        for rows, block in self.by_rows.blocks():
            model = F, G[rows], self.bounds
            kernels.scatter_pass(exponent, *block.csr, *model, to.out, to.scale, self.threads)

    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
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

    def sum(self, name: str, F: Array, G: Array, *parameters: float) -> float:
        return sum(block.sum(name, F[rows], G, *parameters) for rows, block in self._blocks())
