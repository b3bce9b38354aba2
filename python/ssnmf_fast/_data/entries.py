"""Data for the kernels: stored entries of a sparse matrix, or a dense array.

Data Z (p x q) are approximated by F G^T.  Each class has a transpose, so that the same code updates
the factor of the rows and that of the columns.  Entries hold the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._common.locks import cached_property
from .arrays import Moments, column_ranges, entry_rows, kernel_parts, moments_of, transpose
from .csr_file import CsrFile
from .tensors import Rows

Csr = tuple[Array, Array, Array]
Parameter: TypeAlias = float | Array | None  # of a sum, before its factors

_ROWS_PER_CALL = 4096
_ENTRIES_PER_BLOCK = 1 << 15  # of a dense array that is copied with weights by parts
_PANEL_ROWS = 1 << 14  # so that their rows of a factor fit the shared cache
_PANEL_RANGES = 256  # of columns, for the threads


def row_slices(n_rows: int, per_call: int = _ROWS_PER_CALL) -> Iterator[slice]:
    """Cut rows into calls of the kernels that list or solve rows one by one."""
    for begin in range(0, n_rows, per_call):
        yield slice(begin, min(begin + per_call, n_rows))


def block_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut the rows of a dense array into blocks that fit a cache."""
    yield from row_slices(shape[0], max(1, _ENTRIES_PER_BLOCK // max(1, shape[1])))


class Target(NamedTuple):
    """Where a pass leaves its result: ``out = scale * result``, or ``out += scale * result``."""

    out: Array
    scale: float = 1.0
    accumulate: bool = False

    def rows(self, rows: slice) -> Target:
        return self._replace(out=self.out[rows])

    def weighted(self, weights: Array | None, run: Callable[[Target], None]) -> None:
        """Write the result of `run`, with rows multiplied by weights; None stands for ones."""
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
    """Data for the kernels."""

    threads: int
    streamed = False  # whether every pass reads a file
    sparse = False  # whether only stored entries are listed
    by_factors = False  # whether G is given as the factors whose rows are multiplied
    mask = False  # whether entries are ones where they are not NaN
    unweighted = True  # whether they have no weights of rows and columns
    plain = False  # whether kernels iterate on them without Python, see `iterations`

    @abstractmethod
    def transposed(self) -> Entries: ...

    def asked(self, support: Array | None) -> Entries:
        """Return the data for passes that need only entries in a support, given as bits."""
        del support
        return self

    def view(self, position: int) -> Entries:
        """Return the data by the rows of the factor at a position; position 0 is F."""
        return self.transposed() if position else self

    def part(self, rows: slice) -> Any:
        """Return some rows."""
        raise NotImplementedError("a tensor is not cut into blocks")

    def blocks(self) -> Iterator[tuple[slice, Entries]]:
        """Yield all rows, in the blocks in which they are read."""
        raise NotImplementedError

    @property
    def values(self) -> Array:
        """The entries in the order of their weights."""
        raise NotImplementedError

    @cached_property
    def moments(self) -> Moments:
        return moments_of(self.values, self.threads)

    def total(self) -> float:
        """Sum of all entries."""
        found = self.moments
        return float(self.values.size - found.missing) if self.mask else found.total

    def csr_rows(self, rows: slice) -> Csr:
        """Some rows as indptr, indices and values."""
        matrix = self.part(rows).matrix
        return matrix.indptr, matrix.indices, matrix.data

    def slices(self, n_rows: int) -> Iterator[slice]:
        """Cut all rows into portions for :meth:`csr_rows`."""
        return row_slices(n_rows)

    def csr_blocks(self, n_rows: int, G: Any) -> Iterator[tuple[slice, Csr, Array]]:
        """Yield all rows by blocks: as :meth:`csr_rows`, with the G for its columns."""
        for rows in self.slices(n_rows):
            yield rows, self.csr_rows(rows), G

    def dense(self, rows: slice, n_columns: int) -> Array:
        """Return some rows as an array, with 0 for other entries."""
        indptr, indices, values = self.csr_rows(rows)
        shape = rows.stop - rows.start, n_columns
        return np.asarray(sp.csr_array((values, indices, indptr), shape=shape).toarray())

    def weighted(self, w: Any, G: Rows) -> Iterator[tuple[slice, Csr, Array, Array]]:
        """Yield all rows by blocks: their nonzero entries, the weights `w` of these, and G."""
        raise NotImplementedError

    @abstractmethod
    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        """(Z .* (F G^T)^exponent) G; an exponent of 0 needs no F."""

    def residual(self, F: Array, G: Any, to: Target) -> None:
        """(Z - F G^T) G over the entries of an array that are not missing, without weights."""
        raise NotImplementedError("only of an array")

    def iterations(self, *arguments: Any) -> Any:
        """Update S and A, several times: iterations of the loop in one call of a kernel."""
        raise NotImplementedError("only of plain entries")

    @abstractmethod
    def sum(self, name: str, F: Array, G: Array, *parameters: Parameter) -> float:
        """Return the sum `name` of the kernels over the entries."""


class SparseEntries(Entries):
    """Stored entries of a CSR matrix; with `bounds` of columns there is no transposed copy."""

    sparse = True

    def __init__(self, matrix: sp.csr_array, threads: int = 1, bounds: Array | None = None) -> None:
        self.matrix, self.threads, self._bounds = matrix, threads, bounds
        self.csr: Csr = kernel_parts(matrix)
        self._asked: Array | None = None

    def asked(self, support: Array | None) -> SparseEntries:
        if support is None:
            return self
        entries = copy(self)
        entries._asked = support
        return entries

    def transposed(self) -> Entries:
        if self._bounds is not None:
            return ScatteredEntries(self, self._bounds, streamed=False)
        n_panels = -(-self.matrix.shape[0] // _PANEL_ROWS)  # which need enough entries to pay
        if n_panels > 2 and self.matrix.nnz >= 2 * n_panels * self.matrix.shape[1]:
            return PanelEntries(self)
        return self.turned()

    def turned(self) -> SparseEntries:
        return SparseEntries(transpose(self.matrix, self.threads), self.threads)

    def part(self, rows: slice) -> SparseEntries:
        indptr, indices, data = self.csr_rows(rows)
        shape = len(indptr) - 1, self.matrix.shape[1]
        return SparseEntries(sp.csr_array((data, indices, indptr), shape, copy=False), self.threads)

    def blocks(self) -> Iterator[tuple[slice, SparseEntries]]:
        yield slice(0, self.matrix.shape[0]), self

    @property
    def values(self) -> Array:
        return np.asarray(self.matrix.data)

    def csr_rows(self, rows: slice) -> Csr:
        first, last = self.matrix.indptr[rows.start], self.matrix.indptr[rows.stop]
        indptr = self.matrix.indptr[rows.start : rows.stop + 1] - first
        return indptr, self.matrix.indices[first:last], self.matrix.data[first:last]

    @property
    def plain(self) -> bool:  # type: ignore[override]
        return self.sparse and self._bounds is None

    def iterations(self, turned: Any, *arguments: Any) -> Any:
        return kernels.sparse_iterations(*self.csr, turned.csr, *arguments, self.threads)

    def unfolded(self) -> Csr:
        """Return pointers, indices in the only other mode, and values, as for a tensor."""
        return self.matrix.indptr, self.matrix.indices[None], self.matrix.data

    def weighted(self, w: Any, G: Any) -> Iterator[tuple[slice, Csr, Array, Array]]:
        yield slice(None), self.csr, w, G

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        kernels.sparse_pass(exponent, *self.csr, F, G, *to, self.threads, self._asked)

    def sum(self, name: str, F: Array, G: Array, *parameters: Parameter) -> float:
        kernel = getattr(kernels, f"sparse_{name}")
        return float(kernel(*self.csr, *parameters, F, G, self.threads))


class Turned(Entries):
    """The transpose of entries `by_rows`, which give its sums."""

    by_rows: Any

    def transposed(self) -> Any:
        return self.by_rows

    def total(self) -> float:
        return float(self.by_rows.total())

    def sum(self, name: str, F: Array, G: Array, *parameters: Parameter) -> float:
        return float(self.by_rows.sum(name, G, F, *parameters))


class PanelEntries(Turned, SparseEntries):
    """The transpose of a sparse matrix Z in panels of its rows: long factors stay in the cache."""

    sparse = False

    def __init__(self, entries: SparseEntries) -> None:
        self.threads, self.by_rows, self._asked = entries.threads, entries, None
        n_columns = entries.matrix.shape[1]
        counts = np.bincount(entries.csr[1], minlength=n_columns)
        self._ranges = column_ranges(counts, _PANEL_RANGES)
        n_panels = -(-entries.matrix.shape[0] // _PANEL_ROWS)
        indptr = np.empty(n_panels * n_columns + 1, dtype=np.int64)
        self._panels: Csr = indptr, np.empty_like(entries.csr[1]), np.empty_like(entries.csr[2])
        kernels.transpose_panels(*entries.csr, _PANEL_ROWS, *self._panels, self.threads)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """The transpose, not cut into panels."""
        return self.by_rows.turned().matrix

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        arguments = *self._panels, F, G, self._ranges, *to, self.threads, self._asked
        kernels.panel_pass(exponent, *arguments)


def positive(block: Array, weights: Array) -> tuple[Csr, Array]:
    """Return the positive entries of an array, in CSR form, and their weights."""
    csr = sp.csr_array(np.nan_to_num(block))
    return kernel_parts(csr), weights[entry_rows(csr.indptr), csr.indices]


@dataclass(frozen=True)
class DenseEntries(Entries):
    """A dense array, without its NaN entries, times weights of rows and columns (None: ones).

    With `mask`, its other entries are ones.  Products are never stored as a whole.
    """

    array: Array
    threads: int = 1
    mask: bool = False
    rows: Array | None = None
    columns: Array | None = None

    @property
    def values(self) -> Array:
        return self.array

    @property
    def unweighted(self) -> bool:  # type: ignore[override]
        return self.rows is None and self.columns is None

    @property
    def plain(self) -> bool:  # type: ignore[override]
        return self.unweighted and not self.mask

    def iterations(self, turned: Any, *arguments: Any) -> Any:
        del turned
        return kernels.dense_iterations(self.array, *arguments, self.threads)

    def transposed(self) -> DenseEntries:
        return replace(self, array=self.array.T, rows=self.columns, columns=self.rows)

    def part(self, rows: slice) -> DenseEntries:
        weights = None if self.rows is None else self.rows[rows]
        return replace(self, array=self.array[rows], rows=weights)

    def _block(self, rows: slice) -> Array:
        """Return some rows, as ones with `mask`, times their weights."""
        block = self.array[rows]
        if self.mask:
            block = (~np.isnan(block)).astype(block.dtype)
        if self.columns is not None:
            block = block * self.columns
        return block if self.rows is None else block * self.rows[rows, None]

    def _blocks(self) -> Iterator[tuple[slice, DenseEntries]]:
        """Yield all rows by blocks without weights, or all at once if there are no weights."""
        if self.unweighted:
            yield slice(None), self
            return
        for rows in block_slices(self.array.shape):
            yield rows, DenseEntries(self._block(rows), self.threads)

    def total(self) -> float:
        return sum(super(DenseEntries, block).total() for _, block in self._blocks())

    def csr_rows(self, rows: slice) -> Csr:
        csr = sp.csr_array(np.nan_to_num(self._block(rows), nan=0.0))
        return csr.indptr, csr.indices, csr.data

    def weighted(self, w: Any, G: Any) -> Iterator[tuple[slice, Csr, Array, Array]]:
        for rows in block_slices(self.array.shape):
            Z, dense = self.array[rows], isinstance(w, np.ndarray)
            weights = w[rows] if dense else w.present(rows, self.array.shape, Z.dtype)
            yield rows, *positive(Z, weights), G

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        if self.unweighted:
            kernels.dense_pass(exponent, self.array, self.mask, F, G, *to, self.threads)
        elif exponent and self.columns is not None and F is not None:
            for rows, block in self._blocks():
                block.power(exponent, F[rows], G, to.rows(rows))
        else:
            far = G if self.columns is None else self.columns[:, None] * G
            plain = DenseEntries(self.array, self.threads, self.mask)
            to.weighted(self.rows, lambda part: plain.power(exponent, F, far, part))

    def residual(self, F: Array, G: Any, to: Target) -> None:
        kernels.dense_residual_pass(self.array, F, G, *to, self.threads)

    def sum(self, name: str, F: Array, G: Array, *parameters: Parameter) -> float:
        kernel = getattr(kernels, f"dense_{name}")
        blocks = ((block.array, *parameters, F[rows], G) for rows, block in self._blocks())
        return sum(float(kernel(*block, self.threads)) for block in blocks)


@dataclass(frozen=True)
class StreamedEntries(Entries):
    file: CsrFile
    threads: int
    streamed = True

    @cached_property
    def _bounds(self) -> Array:
        return column_ranges(self.file.column_counts, self.threads)

    def blocks(self) -> Iterator[tuple[slice, SparseEntries]]:
        for rows, block in self.file.blocks():
            yield rows, SparseEntries(block, self.threads, self._bounds)

    def part(self, rows: slice) -> SparseEntries:
        return SparseEntries(self.file.rows(rows), self.threads, self._bounds)

    def transposed(self) -> ScatteredEntries:
        return ScatteredEntries(self, self._bounds)

    def total(self) -> float:
        return self.file.total

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        for rows, block in self.blocks():
            block.power(exponent, None if F is None else F[rows], G, to.rows(rows))

    def sum(self, name: str, F: Array, G: Array, *parameters: Parameter) -> float:
        return sum(block.sum(name, F[rows], G, *parameters) for rows, block in self.blocks())


@dataclass(frozen=True)
class ScatteredEntries(Turned):
    """The transpose of entries by rows, without a transposed copy: rows are scattered."""

    by_rows: StreamedEntries | SparseEntries
    bounds: Array
    streamed: bool = True

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.by_rows.threads

    def part(self, rows: slice) -> SparseEntries:
        blocks = [block.matrix[:, rows] for _, block in self.by_rows.blocks()]
        return SparseEntries(sp.csr_array(sp.vstack(blocks).T), self.threads)

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        if not to.accumulate:
            np.copyto(to.out, 0)
        for rows, block in self.by_rows.blocks():
            model = F, G[rows], self.bounds
            kernels.scatter_pass(exponent, *block.csr, *model, to.out, to.scale, self.threads)
