"""What the weights of data become: a form for N.

Data Z are approximated by F G^T, where G is a factor, or the products of the rows of several for a
tensor that is unfolded by the mode of F.  Each form gives its view for every factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .entries import DenseEntries, Entries, PanelEntries, SparseEntries, Target
from .tensor_entries import RowProducts, factors_of, some_rows

_MOST_PLACES = 1 << 40
_AT_ONCE = 1 << 15  # weights of a row that are written out


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
    def view(self, position: int) -> WeightForm:
        """Return the weights by the rows of the factor at a position; the first is that of F."""

    @abstractmethod
    def part(self, rows: slice) -> WeightForm:
        """Return the weights of some rows."""

    @abstractmethod
    def quadratic(self, G: Any) -> Quadratic: ...
    @abstractmethod
    def total(self, shape: tuple[int, ...]) -> float:
        """Sum of all weights."""

    @abstractmethod
    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        """(V .* (F G^T)^exponent) G."""

    @abstractmethod
    def dense(self, rows: slice, G: Any) -> Array:
        """Return the weights of some rows as an array, with a column for each row of G."""

    def mapped(self, weights: Array) -> WeightForm | None:
        """Return M^T V for an M with these sums of columns, if all rows of V are equal."""
        del weights
        return None

    def squares(self, F: Array, G: Any) -> float:
        """Return sum V .* (F G^T)^2."""
        N = np.empty_like(F)
        self.power(1, F, G, Target(N))
        return float(kernels.inner(F, N, self.threads))


@dataclass(frozen=True)
class Separable(WeightForm):
    """The product of one vector for each mode, that of the rows first; None stands for ones."""

    vectors: tuple[Array | None, ...]
    threads: int = 1
    separable = True

    @property
    def rows(self) -> Array | None:
        return self.vectors[0]

    @property
    def equal_rows(self) -> bool:  # type: ignore[override]
        return self.vectors[0] is None

    def view(self, position: int) -> Separable:
        rest = self.vectors[:position] + self.vectors[position + 1 :]
        return replace(self, vectors=(self.vectors[position], *rest))

    def part(self, rows: slice) -> Separable:
        return self if self.rows is None else self._with_rows(self.rows[rows])

    def mapped(self, weights: Array) -> Separable | None:
        return self._with_rows(weights) if self.rows is None else None

    def _with_rows(self, weights: Array) -> Separable:
        return replace(self, vectors=(weights, *self.vectors[1:]))

    def gram(self, G: Any) -> Array:
        """Return the Gram matrix of G, weighted: the product of those of its factors."""
        return self._product(self._gram, G)

    def _gram(self, F: Array, weights: Array | None) -> Array:
        K = np.empty((F.shape[1], F.shape[1]), dtype=F.dtype)
        kernels.gram(F, weights, K, self.threads)
        return K

    def _sums(self, F: Array, weights: Array | None) -> Array:
        sums = np.empty(F.shape[1], dtype=F.dtype)
        kernels.column_sums(F, weights, sums, self.threads)
        return sums

    def _product(self, of: Callable[[Array, Array | None], Array], G: Any) -> Array:
        """Multiply what is computed from each factor of G and its weights."""
        if isinstance(G, np.ndarray):
            return of(G, self.vectors[1])
        pairs = zip(G.factors, self.vectors[1:], strict=True)
        return reduce(np.multiply, (of(F, weights) for F, weights in pairs))

    def quadratic(self, G: Any) -> Quadratic:
        return Quadratic(self.gram(G), self.vectors[0])

    def total(self, shape: tuple[int, ...]) -> float:
        sides = zip(self.vectors, shape, strict=True)
        return prod(float(n) if w is None else float(w.sum(dtype=np.float64)) for w, n in sides)

    def squares(self, F: Array, G: Any) -> float:
        """By Gram matrices: <F^T diag(rows) F, G^T diag(columns) G>."""
        return float(kernels.inner(self.gram(G), self._gram(F, self.vectors[0]), 1))

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        if exponent == 1:
            kernels.multiply(F, self.gram(G), self.vectors[0], *to, self.threads)
        elif exponent == 0:
            sums = self._product(self._sums, G)
            kernels.add_row(sums, self.vectors[0], *to, self.threads)
        else:
            to.weighted(self.rows, lambda part: self._by_places(exponent, F, G, part))

    def _by_places(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        """Sum over all places, those of some columns at a time."""
        n_columns = G.shape[0]
        if len(F) * n_columns > _MOST_PLACES:
            raise ValueError(
                f"the loss passes over all {len(F) * n_columns:.2g} places of X, which would take "
                'hours; use "kullback-leibler" or "frobenius", or give weights.observed(...).'
            )
        columns = self._columns(tuple(map(len, factors_of(G))), G.dtype)
        for first in range(0, n_columns, _AT_ONCE):
            last = min(first + _AT_ONCE, n_columns)
            V = np.broadcast_to(columns.rows(first, last)[:, 0], (len(F), last - first))
            part = to._replace(accumulate=to.accumulate or first > 0)
            DenseEntries(V, self.threads).power(exponent, F, some_rows(G, first, last), part)

    def _columns(self, lengths: Sequence[int], dtype: Any) -> RowProducts:
        """Return the weights of the columns, as products."""
        pairs = zip(self.vectors[1:], lengths, strict=True)
        return RowProducts(
            tuple((np.ones(n, dtype=dtype) if w is None else w)[:, None] for w, n in pairs)
        )

    def at(self, places: Sequence[Array], dtype: Any) -> Array:
        """Return the weights of single entries, from their indices in each mode."""
        values = np.ones(len(places[0]), dtype=dtype)
        for vector, indices in zip(self.vectors, places, strict=True):
            if vector is not None:
                values *= vector[indices]
        return values

    def dense(self, rows: slice, G: Any) -> Array:
        return self.present(rows, (rows.stop, *map(len, factors_of(G))), np.float64)

    def present(self, rows: Any, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return the weights of some rows, one by one."""
        some = np.ones(shape[0], dtype=dtype)[rows] if self.rows is None else self.rows[rows]
        columns = self._columns(shape[1:], dtype)
        return np.outer(some, columns.rows(0, columns.n_rows)[:, 0])


@dataclass(frozen=True)
class Listed(WeightForm):
    """V given entry by entry: an observed pattern, a dense array, or the NaN mask of the data."""

    entries: Entries

    @property
    def curved(self) -> bool:  # type: ignore[override]
        return not self.entries.by_factors

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.entries.threads

    @property
    def lists_few(self) -> bool:  # type: ignore[override]
        return isinstance(self.entries, (SparseEntries, PanelEntries))

    def view(self, position: int) -> Listed:
        return Listed(self.entries.view(position))

    def part(self, rows: slice) -> Listed:
        return Listed(self.entries.part(rows))

    def dense(self, rows: slice, G: Any) -> Array:
        return self.entries.dense(rows, G.shape[0])

    def quadratic(self, G: Any) -> Quadratic:
        del G
        return Quadratic(entries=self.entries)

    def total(self, shape: tuple[int, ...]) -> float:
        del shape
        return self.entries.total()

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        self.entries.power(exponent, F, G, to)
