"""Forms of the weights of data, which compute N.

Data Z are approximated by F G^T, where G is a factor or, for a tensor that is unfolded by the mode
of F, the products of the rows of several.  Each form has a view for every factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array, Matrix
from .._common.locks import cached_property
from .arrays import with_values
from .entries import Csr, DenseEntries, Entries, SparseEntries, Target, row_slices
from .tensor_entries import SparseTensorEntries
from .tensors import RowProducts, Rows, factors_of

_MOST_PLACES = 1 << 40
_AT_ONCE = 1 << 15  # weights of a row in memory


@dataclass(frozen=True)
class Quadratic:
    """The Frobenius loss of row i of F: f K_i f^T - 2 p_i f^T.

    K_i = rows_i * gram + sum_j v_ij g_j g_j^T over the entries, which may be negative; None omits a
    part, and ``rows=None`` stands for ones.
    """

    gram: Array | None = None
    rows: Array | None = None
    entries: Entries | None = None


class WeightForm(ABC):
    """Weights V of the entries."""

    separable = False  # of rank 1
    equal_rows = False  # whether all rows are the same
    plain = False  # whether all weights are the same
    lists_few = False  # whether only entries of a sparse matrix have weights
    cover: Separable | None = None  # weights that are nowhere smaller, for `fill`
    marks_missing = False  # whether dense data have weight 0 where they are NaN, else 1
    entries: Any

    @property
    def curved(self) -> bool:
        """Whether the curvature of a row is available, see `quadratic`."""
        return not self.entries.by_factors

    @property
    def threads(self) -> int:
        return int(self.entries.threads)

    def view(self, position: int) -> Any:
        """Return the weights by the rows of the factor at a position; position 0 is F."""
        return self._each(lambda part: part.view(position))

    def part(self, rows: slice) -> Any:
        """Return the weights of some rows."""
        return self._each(lambda part: part.part(rows))

    def _each(self, of: Callable[[Any], Any]) -> Any:
        form = cast(Any, self)
        parts = {part.name: getattr(form, part.name) for part in fields(form)}
        return replace(form, **{k: None if part is None else of(part) for k, part in parts.items()})

    @abstractmethod
    def quadratic(self, G: Rows) -> Quadratic: ...
    @abstractmethod
    def total(self, shape: tuple[int, ...]) -> float:
        """Sum of all weights."""

    @abstractmethod
    def power(self, exponent: float, F: Array, G: Rows, to: Target) -> None:
        """(V .* (F G^T)^exponent) G."""

    @abstractmethod
    def dense(self, rows: slice, G: Rows) -> Array:
        """Return the weights of some rows as an array, with a column for each row of G."""

    def fill(self, F: Array, G: Rows, to: Target) -> None:
        """Add ((C - V) .* (F G^T)) G to P, for the weights C of the cover.

        Then P and C are those of data in which the model fills in what V leaves out.
        """
        assert self.cover is not None
        self.cover.power(1, F, G, to._replace(accumulate=True))
        self.power(1, F, G, to._replace(scale=-to.scale, accumulate=True))

    def observed(self, n_rows: int, ones: Rows) -> Array:
        """Return which rows have an entry with weight, by a G of ones."""
        sums = np.zeros((n_rows, ones.shape[1]), dtype=ones.dtype)
        self.power(0, sums, ones, Target(sums))
        return np.asarray(sums[:, 0] > 0)

    def squares(self, F: Array, G: Rows, gram: Array | None = None) -> float:
        """Return sum V .* (F G^T)^2; the Gram matrix of separable weights may be known."""
        N = np.empty_like(F)
        self.power(1, F, G, Target(N))
        return float(kernels.inner(F, N, self.threads))


Kernel = Callable[[Array, Array | None, Array, int], None]


def _run(kernel: Kernel, n_axes: int, F: Array, weights: Array | None, threads: int) -> Array:
    out = np.empty((F.shape[1],) * n_axes, dtype=F.dtype)
    kernel(F, weights, out, threads)
    return out


@dataclass(frozen=True)
class Separable(WeightForm):
    """The product of one vector per mode, beginning with the rows; None stands for ones."""

    vectors: tuple[Array | None, ...]
    threads: int = 1
    separable = True
    curved = True

    @property
    def rows(self) -> Array | None:
        return self.vectors[0]

    @property
    def equal_rows(self) -> bool:  # type: ignore[override]
        return self.vectors[0] is None

    @property
    def plain(self) -> bool:  # type: ignore[override]
        return all(vector is None for vector in self.vectors)

    def view(self, position: int) -> Separable:
        rest = self.vectors[:position] + self.vectors[position + 1 :]
        return Separable((self.vectors[position], *rest), self.threads)

    def part(self, rows: slice) -> Separable:
        return self if self.rows is None else self.with_rows(self.rows[rows])

    def with_rows(self, weights: Array) -> Separable:
        return replace(self, vectors=(weights, *self.vectors[1:]))

    def gram(self, G: Rows) -> Array:
        """Return the Gram matrix of G, weighted: the product of those of its factors."""
        return self._product(kernels.gram, 2, G)

    def _product(self, kernel: Kernel, n_axes: int, G: Rows) -> Array:
        """Multiply what a kernel computes from each factor of G and its weights."""
        pairs = zip(factors_of(G), self.vectors[1:], strict=True)
        return reduce(np.multiply, (_run(kernel, n_axes, *pair, self.threads) for pair in pairs))

    def quadratic(self, G: Rows) -> Quadratic:
        return Quadratic(self.gram(G), self.vectors[0])

    def total(self, shape: tuple[int, ...]) -> float:
        sides = zip(self.vectors, shape, strict=True)
        return prod(float(n) if w is None else float(w.sum(dtype=np.float64)) for w, n in sides)

    def squares(self, F: Array, G: Rows, gram: Array | None = None) -> float:
        """By Gram matrices: <F^T diag(rows) F, G^T diag(columns) G>."""
        own = _run(kernels.gram, 2, F, self.vectors[0], self.threads)
        return float(kernels.inner(self.gram(G) if gram is None else gram, own, 1))

    def power(self, exponent: float, F: Array, G: Rows, to: Target) -> None:
        if exponent == 1:
            kernels.multiply(F, self.gram(G), self.vectors[0], *to, self.threads)
        elif exponent == 0:
            sums = self._product(kernels.column_sums, 1, G)
            kernels.add_row(sums, self.vectors[0], *to, self.threads)
        else:
            to.weighted(self.rows, lambda part: self._by_places(exponent, F, G, part))

    def _by_places(self, exponent: float, F: Array, G: Rows, to: Target) -> None:
        """Sum over all places, some columns at a time."""
        n_columns = G.shape[0]
        if len(F) * n_columns > _MOST_PLACES:
            raise ValueError(
                f"the loss passes over all {len(F) * n_columns:.2g} places of X, which would take "
                'hours; use "kullback-leibler" or "frobenius", or give weights.observed(...).'
            )
        columns = self._columns(tuple(map(len, factors_of(G))), G.dtype)
        for some in row_slices(n_columns, _AT_ONCE):
            V = np.broadcast_to(columns[some][:, 0], (len(F), some.stop - some.start))
            part = to._replace(accumulate=to.accumulate or some.start > 0)
            DenseEntries(V, self.threads).power(exponent, F, G[some], part)

    def _columns(self, lengths: Sequence[int], dtype: npt.DTypeLike) -> RowProducts:
        """Return the weights of the columns, as products."""
        pairs = zip(self.vectors[1:], lengths, strict=True)
        return RowProducts(
            tuple((np.ones(n, dtype=dtype) if w is None else w)[:, None] for w, n in pairs)
        )

    def at(self, places: Sequence[Array], dtype: npt.DTypeLike) -> Array:
        """Return the weights of single entries, from their indices in each mode."""
        values = np.ones(len(places[0]), dtype=dtype)
        for vector, indices in zip(self.vectors, places, strict=True):
            if vector is not None:
                values *= vector[indices]
        return values

    def dense(self, rows: slice, G: Rows) -> Array:
        return self.present(rows, (rows.stop, *map(len, factors_of(G))), np.float64)

    def present(
        self, rows: Matrix, shape: tuple[int, ...], dtype: npt.DTypeLike, columns: Any = None
    ) -> Array:
        """Return the weights of some rows and columns (a slice, or None for all)."""
        some = np.ones(shape[0], dtype=dtype)[rows] if self.rows is None else self.rows[rows]
        return np.outer(some, self._columns(shape[1:], dtype)[columns or slice(None)][:, 0])


@dataclass(frozen=True)
class Listed(WeightForm):
    """V given entry by entry: an observed pattern, a dense array, or the NaN mask of the data."""

    entries: Entries
    cover: Separable | None = None

    @property
    def marks_missing(self) -> bool:  # type: ignore[override]
        return self.entries.mask and self.entries.unweighted

    @property
    def lists_few(self) -> bool:  # type: ignore[override]
        return isinstance(self.entries, SparseEntries)

    def dense(self, rows: slice, G: Rows) -> Array:
        return self.entries.dense(rows, G.shape[0])

    def quadratic(self, G: Rows) -> Quadratic:
        del G
        return Quadratic(entries=self.entries)

    def total(self, shape: tuple[int, ...]) -> float:
        del shape
        return self.entries.total()

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        self.entries.power(exponent, F, G, to)


_PRESENT_ENTRIES = 1 << 20  # weights in memory where they are summed one by one


@dataclass(frozen=True)
class MissingEntries(WeightForm):
    """The weights `whole` (for a tensor: ones) except on missing entries, which hold these weights.

    A component may have nearly all of its weight where a row is missing.  The difference of both
    sums would be rounding noise there, and a step divided by it would be unbounded: rows in which
    the sums would cancel add up their present entries one by one.
    """

    entries: SparseEntries | SparseTensorEntries
    whole: Separable
    part_of_whole: Separable | None = None  # the cover, if it has fewer rows

    def view(self, position: int) -> MissingEntries:
        if isinstance(self.entries, SparseTensorEntries):
            return replace(self, entries=self.entries.view(position))
        if position == 0:
            return self
        some = None if self.part_of_whole is None else self.part_of_whole.view(position)
        return MissingEntries(self.entries.turned(), self.whole.view(position), some)

    @property
    def cover(self) -> Separable:  # type: ignore[override]
        return self.whole if self.part_of_whole is None else self.part_of_whole

    @property
    def marks_missing(self) -> bool:  # type: ignore[override]
        return self.whole.plain

    def fill(self, F: Array, G: Rows, to: Target) -> None:
        if self.part_of_whole is None:
            self.entries.power(1, F, cast(Any, G), to._replace(accumulate=True))
        else:
            super().fill(F, G, to)

    def total(self, shape: tuple[int, ...]) -> float:
        return float(self.whole.total(shape) - self.entries.total())

    def dense(self, rows: slice, G: Rows) -> Array:
        return self.present(np.arange(rows.start, rows.stop), G)

    def observed(self, n_rows: int, ones: Rows) -> Array:
        if not self.whole.plain:
            return super().observed(n_rows, ones)
        return np.asarray(np.diff(self.entries.unfolded()[0]) < ones.shape[0])

    def quadratic(self, G: Rows) -> Quadratic:
        part = self.whole.quadratic(G)
        there = np.empty((len(self.entries.unfolded()[0]) - 1, G.shape[1]), dtype=G.dtype)
        squares = tuple(map(np.square, factors_of(G)))
        far = RowProducts(squares) if isinstance(G, RowProducts) else squares[0]
        doubtful = self._difference(0, None, far, there)
        if not doubtful.any():
            return Quadratic(part.gram, part.rows, self._negative)
        scale = np.where(doubtful, 0, 1 if part.rows is None else part.rows).astype(G.dtype)
        return Quadratic(part.gram, scale, SignedEntries(self, doubtful, G))

    def power(self, exponent: float, F: Array, G: Rows, to: Target) -> None:
        rest = np.empty_like(to.out)
        doubtful = np.flatnonzero(self._difference(exponent, F, G, rest))
        empty = np.diff(self.entries.unfolded()[0]) == G.shape[0]
        rest[empty] = 0
        by_rows = isinstance(G, RowProducts)  # a row of a tensor may have too many places
        step = _AT_ONCE if by_rows else G.shape[0]
        doubtful = doubtful[~empty[doubtful]]
        at_once = 1 if by_rows else max(1, _PRESENT_ENTRIES // G.shape[0])
        for rows in (doubtful[some] for some in row_slices(len(doubtful), at_once)):
            block = np.zeros((len(rows), rest.shape[1]), dtype=rest.dtype)
            for columns in row_slices(G.shape[0], step):
                present = DenseEntries(self.present(rows, G, columns), self.threads)
                part = Target(block, 1.0, accumulate=True)
                present.power(exponent, F[rows], G[columns], part)
            rest[rows] = block
        rest *= rest.dtype.type(to.scale)
        if to.accumulate:
            to.out[...] += rest
        else:
            to.out[...] = rest

    @cached_property
    def _negative(self) -> Entries:
        if isinstance(self.entries, SparseTensorEntries):
            tensor = self.entries.tensor
            return replace(self.entries, tensor=tensor.with_values(-tensor.values))
        return SparseEntries(with_values(self.entries.matrix, -self.entries.values))

    def _difference(self, exponent: float, F: Array | None, G: Rows, rest: Array) -> Array:
        """Set `rest` to whole - missing; return for which rows that cancels."""
        # `whole` does not use F if the exponent is 0.
        self.whole.power(exponent, rest if F is None else F, G, Target(rest))
        # A difference below this share of the minuend is not trusted.
        double_tensor = self.entries.by_factors and rest.dtype == np.float64
        least = (1e-6 if double_tensor else 1e-2) * rest
        self.entries.power(exponent, F, cast(Any, G), Target(rest, -1.0, accumulate=True))
        return np.asarray((rest < least).any(axis=1))

    def present(self, rows: Array, G: Rows, some: slice = slice(0, None)) -> Array:
        """Return the weights of some rows and columns as an array."""
        indptr, others, values = self.entries.unfolded()
        lengths = tuple(map(len, factors_of(G)))
        shape = len(indptr) - 1, *lengths
        weights = self.whole.present(rows, shape, values.dtype, some)
        counts = indptr[rows + 1] - indptr[rows]
        begins = np.repeat(indptr[rows] - np.cumsum(counts) + counts, counts)
        absent = others[:, begins + np.arange(len(begins))]
        columns = np.ravel_multi_index(tuple(absent), lengths) - some.start
        inside = (columns >= 0) & (columns < weights.shape[1])
        weights[np.repeat(np.arange(len(rows)), counts)[inside], columns[inside]] = 0
        return weights


class SignedEntries(SparseEntries):
    """Minus the missing entries; in rows where that would cancel, the present entries instead.

    Rows are made when they are read, by portions, because they may have all places.
    """

    def __init__(self, form: MissingEntries, doubtful: Array, G: Rows) -> None:
        self.form, self.doubtful, self.G, self.threads = form, doubtful, G, form.threads
        self.lengths = tuple(map(len, factors_of(G)))

    @property
    def matrix(self) -> sp.csr_array:
        indptr, columns, values = self.csr_rows(slice(0, len(self.doubtful)))
        return sp.csr_array((values, columns, indptr), (len(indptr) - 1, prod(self.lengths)))

    def slices(self, n_rows: int) -> Iterator[slice]:
        most = max(1, _PRESENT_ENTRIES // prod(self.lengths))
        before, end = np.concatenate([[0], np.cumsum(self.doubtful)]), 0
        while end < n_rows:
            begin, last = end, before[end] + most
            end = min(int(np.searchsorted(before, last, "right")) - 1, n_rows, begin + _AT_ONCE)
            yield slice(begin, end)

    def csr_rows(self, rows: slice) -> Csr:
        indptr, others, values = self.form.entries.unfolded()
        indptr = indptr[rows.start : rows.stop + 1]
        entries = slice(indptr[0], indptr[-1])
        doubtful, shape = self.doubtful[rows], (rows.stop - rows.start, prod(self.lengths))
        columns = np.ravel_multi_index(tuple(others[:, entries]), self.lengths)
        signed = np.where(np.repeat(doubtful, np.diff(indptr)), 0, -values[entries])
        sure = sp.csr_array((signed, columns, indptr - entries.start), shape)
        sure.eliminate_zeros()
        chosen = np.flatnonzero(doubtful)
        present = sp.coo_array(self.form.present(rows.start + chosen, self.G))
        more = sp.csr_array((present.data, (chosen[present.row], present.col)), shape)
        both = sp.csr_array(sure + more)
        return both.indptr, both.indices, both.data

    def csr_blocks(self, n_rows: int, G: Any) -> Iterator[tuple[slice, Csr, Array]]:
        for rows in self.slices(n_rows):
            indptr, columns, values = self.csr_rows(rows)
            if not isinstance(G, RowProducts):
                yield rows, (indptr, columns, values), G
                continue
            here = G.at(np.array(np.unravel_index(columns, self.lengths)))
            yield rows, (indptr, np.arange(len(columns), dtype=np.int32), values), here


@dataclass(frozen=True)
class MoreEntries(WeightForm):
    """The weights `whole` of a matrix, plus those at the entries of a sparse matrix."""

    entries: Entries
    whole: Separable | MissingEntries
    lists_few = True

    def total(self, shape: tuple[int, ...]) -> float:
        return float(self.whole.total(shape) + self.entries.total())

    def dense(self, rows: slice, G: Rows) -> Array:
        return np.asarray(self.whole.dense(rows, G) + self.entries.dense(rows, G.shape[0]))

    def quadratic(self, G: Rows) -> Quadratic:
        part, more = self.whole.quadratic(G), self.entries
        if part.entries is not None:  # of missing entries
            signed, matrix = (cast(SparseEntries, e).matrix for e in (part.entries, more))
            more = SparseEntries(sp.csr_array(signed + matrix), self.threads)
        return replace(part, entries=more)

    def power(self, exponent: float, F: Array, G: Rows, to: Target) -> None:
        self.whole.power(exponent, F, G, to)
        self.entries.power(exponent, F, cast(Any, G), to._replace(accumulate=True))
