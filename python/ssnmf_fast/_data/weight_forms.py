"""What the weights of a data matrix become: a form for N.

Data Z (p x q) is approximated by F G^T.  Each form has a transpose, so that one class serves the
factor of the rows and that of the columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .csr import entry_rows
from .entries import DenseEntries, Entries, PanelEntries, SparseEntries, Target

_CANCELS = 1e-2  # a difference below this share of the minuend is not trusted
_PRESENT_ENTRIES = 1 << 22  # weights written out at once, where they are summed one by one


@dataclass(frozen=True)
class Quadratic:
    """What row i of F costs under the Frobenius loss: f K_i f^T - 2 p_i f^T.

    K_i = rows_i * gram + sum_j v_ij g_j g_j^T over the entries, which may be negative; None drops a
    part, and ``rows=None`` stands for ones.
    """

    gram: Array | None = None
    rows: Array | None = None
    entries: Entries | None = None


class WeightForm(ABC):
    """Weights V of the entries."""

    separable = False  # of rank 1
    equal_rows = False  # whether all rows are the same
    lists_few = False  # whether the entries that count are those of a sparse matrix
    curved = True  # whether the curvature of a row can be had, see `quadratic`
    threads: int

    @abstractmethod
    def transposed(self) -> WeightForm: ...

    def view(self, position: int) -> WeightForm:
        """Return the weights by the rows of the factor at a position; the first is that of F."""
        return self.transposed() if position else self

    @abstractmethod
    def part(self, rows: slice) -> WeightForm:
        """Return the weights of some rows."""

    @abstractmethod
    def quadratic(self, G: Array) -> Quadratic: ...
    @abstractmethod
    def total(self, shape: tuple[int, ...]) -> float:
        """Sum of all weights."""

    @abstractmethod
    def power(self, exponent: float, F: Array, G: Array, to: Target) -> None:
        """(V .* (F G^T)^exponent) G."""

    def dense(self, rows: slice, G: Any) -> Array:
        """Return the weights of some rows as an array, with a column for each row of G."""
        raise NotImplementedError

    def mapped(self, weights: Array) -> WeightForm | None:
        """Return M^T V for an M with these sums of columns, if all rows of V are equal."""
        del weights
        return None

    def squares(self, F: Array, G: Array) -> float:
        """Return sum V .* (F G^T)^2."""
        N = np.empty_like(F)
        self.power(1, F, G, Target(N))
        return float(kernels.inner(F, N, self.threads))


@dataclass(frozen=True)
class Separable(WeightForm):
    """V = rows columns^T; None stands for ones, so that without both there are no weights."""

    rows: Array | None = None
    columns: Array | None = None
    threads: int = 1
    separable = True

    @property
    def equal_rows(self) -> bool:  # type: ignore[override]
        return self.rows is None

    def transposed(self) -> Separable:
        return Separable(self.columns, self.rows, self.threads)

    def part(self, rows: slice) -> Separable:
        return self if self.rows is None else replace(self, rows=self.rows[rows])

    def mapped(self, weights: Array) -> Separable | None:
        return Separable(weights, self.columns, self.threads) if self.rows is None else None

    def gram(self, G: Array) -> Array:
        """G^T diag(columns) G."""
        K = np.empty((G.shape[1], G.shape[1]), dtype=G.dtype)
        kernels.gram(G, self.columns, K, self.threads)
        return K

    def quadratic(self, G: Array) -> Quadratic:
        return Quadratic(self.gram(G), self.rows)

    def total(self, shape: tuple[int, ...]) -> float:
        sides = zip((self.rows, self.columns), shape, strict=True)
        a, b = (n if side is None else side.sum(dtype=np.float64) for side, n in sides)
        return float(a * b)

    def squares(self, F: Array, G: Array) -> float:
        """By Gram matrices: <F^T diag(rows) F, G^T diag(columns) G>."""
        return float(kernels.inner(self.gram(G), self.transposed().gram(F), 1))

    def power(self, exponent: float, F: Array, G: Array, to: Target) -> None:
        if exponent == 1:
            kernels.multiply(F, self.gram(G), self.rows, *to, self.threads)
        elif exponent == 0:
            sums = np.empty(G.shape[1], dtype=G.dtype)
            kernels.column_sums(G, self.columns, sums, self.threads)
            kernels.add_row(sums, self.rows, *to, self.threads)
        else:
            b = np.ones(1, dtype=G.dtype) if self.columns is None else self.columns
            V = DenseEntries(np.broadcast_to(b, (len(F), len(G))), self.threads)
            to.weighted(self.rows, lambda part: V.power(exponent, F, G, part))

    def at(self, pattern: sp.csr_array) -> Array:
        """Return the weights of the stored entries of a matrix."""
        values = np.ones(pattern.nnz, dtype=pattern.dtype)
        if self.rows is not None:
            values *= np.repeat(self.rows, np.diff(pattern.indptr))
        if self.columns is not None:
            values *= self.columns[pattern.indices]
        return values

    def dense(self, rows: slice, G: Any) -> Array:
        return self.present(rows, (rows.stop, len(G)), np.float64)

    def present(self, rows: Any, shape: tuple[int, int], dtype: Any) -> Array:
        """Return the weights of some rows of a matrix, one by one."""
        some = np.ones(shape[0], dtype=dtype)[rows] if self.rows is None else self.rows[rows]
        every = np.ones(shape[1], dtype=dtype) if self.columns is None else self.columns
        return np.outer(some, every)


@dataclass(frozen=True)
class Listed(WeightForm):
    """V given entry by entry: an observed pattern, a dense array, or the NaN mask of the data."""

    entries: Entries

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.entries.threads

    @property
    def lists_few(self) -> bool:  # type: ignore[override]
        return isinstance(self.entries, (SparseEntries, PanelEntries))

    def transposed(self) -> Listed:
        return Listed(self.entries.transposed())

    def dense(self, rows: slice, G: Any) -> Array:
        return self.entries.dense(rows, G.shape[0])

    def part(self, rows: slice) -> Listed:
        return Listed(self.entries.part(rows))

    def quadratic(self, G: Array) -> Quadratic:
        del G
        return Quadratic(entries=self.entries)

    def total(self, shape: tuple[int, ...]) -> float:
        del shape
        return self.entries.total()

    def power(self, exponent: float, F: Array, G: Array, to: Target) -> None:
        self.entries.power(exponent, F, G, to)


@dataclass(frozen=True)
class Complement(WeightForm):
    """V = rows columns^T but on a sparse pattern of missing entries, which holds these weights."""

    missing: SparseEntries
    whole: Separable

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.missing.threads

    def transposed(self) -> Complement:
        return Complement(self.missing.turned(), self.whole.transposed())

    def dense(self, rows: slice, G: Any) -> Array:
        return self._present(np.arange(rows.start, rows.stop)).array

    def part(self, rows: slice) -> Complement:
        return Complement(self.missing.part(rows), self.whole.part(rows))

    def total(self, shape: tuple[int, ...]) -> float:
        return self.whole.total(shape) - self.missing.total()

    def quadratic(self, G: Array) -> Quadratic:
        part = self.whole.quadratic(G)
        squares = np.square(G)
        there = np.empty((self.missing.matrix.shape[0], G.shape[1]), dtype=G.dtype)
        self.whole.power(0, there, squares, Target(there))
        least = _CANCELS * there
        self.missing.power(0, None, squares, Target(there, -1.0, accumulate=True))
        doubtful = np.flatnonzero((there < least).any(axis=1))
        if len(doubtful) == 0:
            return Quadratic(part.gram, part.rows, self._negative)
        # Rows whose difference would cancel list what is present instead.
        scale = np.ones(len(there), dtype=G.dtype) if part.rows is None else part.rows.copy()
        scale[doubtful] = 0
        sure = np.delete(np.arange(len(there)), doubtful)
        present = [sp.csr_array(self._present(rows).array) for rows in self._portions(doubtful)]
        entries = sp.vstack([self._negative.matrix[sure], *present], format="csr")
        place = np.argsort(np.concatenate([sure, doubtful]))
        return Quadratic(part.gram, scale, SparseEntries(sp.csr_array(entries[place])))

    @cached_property
    def _negative(self) -> SparseEntries:
        missing = self.missing.matrix
        return SparseEntries(
            sp.csr_array((-missing.data, missing.indices, missing.indptr), missing.shape)
        )

    def power(self, exponent: float, F: Array, G: Array, to: Target) -> None:
        """Whole - missing, and the present entries one by one where that would cancel.

        A component may have next to all of its weight where a row is missing.  The difference would
        be rounding noise there, and a step divided by it would leave all bounds.
        """
        rest = np.empty_like(to.out)
        self.whole.power(exponent, F, G, Target(rest))
        least = _CANCELS * rest
        self.missing.power(exponent, F, G, Target(rest, -1.0, accumulate=True))
        empty = np.diff(self.missing.matrix.indptr) == self.missing.matrix.shape[1]
        rest[empty] = 0
        for rows in self._portions(np.flatnonzero((rest < least).any(axis=1) & ~empty)):
            block = np.empty((len(rows), rest.shape[1]), dtype=rest.dtype)
            self._present(rows).power(exponent, F[rows], G, Target(block))
            rest[rows] = block
        rest *= rest.dtype.type(to.scale)
        if to.accumulate:
            to.out[...] += rest
        else:
            to.out[...] = rest

    def _portions(self, rows: Array) -> list[Array]:
        """Cut a list of rows so that their weights, written out, fit in memory."""
        at_once = max(1, _PRESENT_ENTRIES // self.missing.matrix.shape[1])
        return [rows[begin : begin + at_once] for begin in range(0, len(rows), at_once)]

    def _present(self, rows: Array) -> DenseEntries:
        """The weights of some rows, one by one."""
        missing = self.missing.matrix[rows]
        present = self.whole.present(rows, self.missing.matrix.shape, missing.dtype)
        present[entry_rows(missing.indptr), missing.indices] = 0
        return DenseEntries(present, self.threads)
