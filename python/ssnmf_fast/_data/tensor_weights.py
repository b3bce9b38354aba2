"""What the weights of a tensor become, unfolded by one mode; see :mod:`weight_forms`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .entries import DenseEntries, Target
from .tensor_entries import RowProducts, SparseTensorEntries, TensorEntries
from .tensors import Coordinates, SparseTensor
from .weight_forms import Quadratic, WeightForm

# A difference below this share of the minuend is not trusted.
_CANCELS = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
_MOST_PLACES = 1 << 40
_AT_ONCE = 1 << 15  # weights of a row that are written out


@dataclass(frozen=True)
class ModeWeights(WeightForm):
    """The product of one vector for each mode, that of the rows first; None stands for ones."""

    vectors: tuple[Array | None, ...]
    threads: int = 1
    separable = True

    @property
    def rows(self) -> Array | None:
        return self.vectors[0]

    @property
    def equal_rows(self) -> bool:  # type: ignore[override]
        return self.rows is None

    def view(self, position: int) -> ModeWeights:
        rest = self.vectors[:position] + self.vectors[position + 1 :]
        return replace(self, vectors=(self.vectors[position], *rest))

    def transposed(self) -> ModeWeights:
        return self.view(1)

    def part(self, rows: slice) -> ModeWeights:
        if self.rows is None:
            return self
        return replace(self, vectors=(self.rows[rows], *self.vectors[1:]))

    def _gram(self, G: Array, weights: Array | None) -> Array:
        K = np.empty((G.shape[1], G.shape[1]), dtype=G.dtype)
        kernels.gram(G, weights, K, self.threads)
        return K

    def _sums(self, G: Array, weights: Array | None) -> Array:
        sums = np.empty(G.shape[1], dtype=G.dtype)
        kernels.column_sums(G, weights, sums, self.threads)
        return sums

    def gram(self, G: RowProducts) -> Array:
        """Return the Gram matrix of G, weighted: the product of those of its factors."""
        pairs = zip(G.factors, self.vectors[1:], strict=True)
        return np.asarray(reduce(np.multiply, (self._gram(F, w) for F, w in pairs)))

    def quadratic(self, G: Any) -> Quadratic:
        return Quadratic(self.gram(G), self.rows)

    def total(self, shape: tuple[int, ...]) -> float:
        sides = zip(self.vectors, shape, strict=True)
        return prod(float(n) if w is None else float(w.sum(dtype=np.float64)) for w, n in sides)

    def squares(self, F: Array, G: Any) -> float:
        return float(kernels.inner(self.gram(G), self._gram(F, self.rows), 1))

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        if exponent == 1:
            kernels.multiply(F, self.gram(G), self.rows, *to, self.threads)
        elif exponent == 0:
            pairs = zip(G.factors, self.vectors[1:], strict=True)
            sums = reduce(np.multiply, (self._sums(F, w) for F, w in pairs))
            kernels.add_row(sums, self.rows, *to, self.threads)
        else:
            to.weighted(self.rows, lambda part: self._by_places(exponent, F, G, part))

    def _by_places(self, exponent: float, F: Array, G: RowProducts, to: Target) -> None:
        """Sum over all places, those of some columns of the unfolding at a time."""
        columns = self._columns(tuple(len(factor) for factor in G.factors), G.dtype)
        if len(F) * G.n_rows > _MOST_PLACES:
            raise ValueError(
                f"the loss passes over all {len(F) * G.n_rows:.2g} places of X, which would take "
                'hours; use "kullback-leibler" or "frobenius", or give weights.observed(...).'
            )
        for first in range(0, G.n_rows, _AT_ONCE):
            last = min(first + _AT_ONCE, G.n_rows)
            V = np.broadcast_to(columns.rows(first, last)[:, 0], (len(F), last - first))
            part = to._replace(accumulate=to.accumulate or first > 0)
            DenseEntries(V, self.threads).power(exponent, F, G.rows(first, last), part)

    def _columns(self, lengths: tuple[int, ...], dtype: Any) -> RowProducts:
        """Return the weights of the columns, as products."""
        pairs = zip(self.vectors[1:], lengths, strict=True)
        return RowProducts(
            tuple((np.ones(n, dtype=dtype) if w is None else w)[:, None] for w, n in pairs)
        )

    def dense(self, rows: slice, G: RowProducts) -> Array:
        lengths = tuple(len(factor) for factor in G.factors)
        columns = self._columns(lengths, G.dtype).rows(0, G.n_rows)[:, 0]
        a = np.ones(rows.stop - rows.start) if self.rows is None else self.rows[rows]
        return np.outer(a, columns)


@dataclass(frozen=True)
class ListedTensor(WeightForm):
    """Weights given entry by entry: an observed pattern, a dense tensor, or a NaN mask."""

    entries: TensorEntries
    curved = False

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.entries.threads

    def view(self, position: int) -> ListedTensor:
        return ListedTensor(self.entries.view(position))

    def transposed(self) -> ListedTensor:
        return self.view(1)

    def part(self, rows: slice) -> WeightForm:
        raise NotImplementedError("a tensor is not cut into blocks")

    def quadratic(self, G: Any) -> Quadratic:
        del G
        return Quadratic(entries=self.entries)

    def dense(self, rows: slice, G: RowProducts) -> Array:
        return self.entries.dense(rows, G.n_rows)

    def total(self, shape: tuple[int, ...]) -> float:
        del shape
        return self.entries.total()

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        self.entries.power(exponent, F, G, to)


@dataclass(frozen=True)
class MissingPlaces(WeightForm):
    """Ones but at some places, which `missing` has as ones."""

    missing: SparseTensorEntries
    curved = False

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.missing.threads

    def dense(self, rows: slice, G: RowProducts) -> Array:
        return np.asarray(1 - self.missing.dense(rows, G.n_rows))

    @property
    def _whole(self) -> ModeWeights:
        return ModeWeights((None,) * len(self.missing.tensor.shape), self.threads)

    def view(self, position: int) -> MissingPlaces:
        return MissingPlaces(self.missing.view(position))

    def transposed(self) -> MissingPlaces:
        return self.view(1)

    def part(self, rows: slice) -> WeightForm:
        raise NotImplementedError("a tensor is not cut into blocks")

    def quadratic(self, G: Any) -> Quadratic:
        """Whole - missing; rows for which that would cancel list what is present instead."""
        indptr, others, values = self.missing.parts()
        squares = RowProducts(tuple(np.square(factor) for factor in G.factors))
        there = np.empty((len(indptr) - 1, G.columns), dtype=G.dtype)
        self._whole.power(0, there, squares, Target(there))
        least = _CANCELS[there.dtype] * there
        self.missing.power(0, None, squares, Target(there, -1.0, accumulate=True))
        doubtful: Array = np.any(there < least, axis=1)
        sure = ~doubtful[rows := np.repeat(np.arange(len(there)), np.diff(indptr))]
        lengths = tuple(len(factor) for factor in G.factors)
        places = [np.vstack([rows, others])[:, sure]]
        for row in np.flatnonzero(doubtful):
            absent = np.ravel_multi_index(tuple(others[:, indptr[row] : indptr[row + 1]]), lengths)
            present = np.setdiff1d(np.arange(prod(lengths)), absent, assume_unique=True)
            tuples = np.unravel_index(present, lengths)
            places.append(np.vstack([np.full(len(present), row), *tuples]))
        every = np.concatenate(places, axis=1).astype(np.int32)
        every = every[:, np.argsort(every[0], kind="stable")]
        signs = np.where(doubtful[every[0]], 1, -1).astype(values.dtype)
        listed = SparseTensor(Coordinates(every, (len(there), *lengths)), signs)
        scale = np.where(doubtful, 0, 1).astype(G.dtype) if doubtful.any() else None
        entries = SparseTensorEntries(listed, self.threads)
        return Quadratic(self._whole.gram(G), scale, entries)

    def total(self, shape: tuple[int, ...]) -> float:
        return self._whole.total(shape) - self.missing.total()

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        """Whole - missing, and the present entries of a row one by one where that would cancel."""
        rest = np.empty_like(to.out)
        self._whole.power(exponent, F, G, Target(rest))
        least = _CANCELS[rest.dtype] * rest
        self.missing.power(exponent, F, G, Target(rest, -1.0, accumulate=True))
        for row in np.flatnonzero((rest < least).any(axis=1)):
            rest[row] = self._present(exponent, F, G, int(row))
        rest *= rest.dtype.type(to.scale)
        if to.accumulate:
            to.out[...] += rest
        else:
            to.out[...] = rest

    def _present(self, exponent: float, F: Array, G: RowProducts, row: int) -> Array:
        """Sum over the present entries of a row."""
        indptr, others, _ = self.missing.parts()
        lengths = tuple(len(factor) for factor in G.factors)
        here = others[:, indptr[row] : indptr[row + 1]]
        absent = np.sort(np.ravel_multi_index(tuple(here), lengths))
        total = np.zeros((1, G.columns), dtype=F.dtype)
        for first in range(0, prod(lengths), _AT_ONCE):
            last = min(first + _AT_ONCE, prod(lengths))
            weights = np.ones((1, last - first), dtype=F.dtype)
            low, high = np.searchsorted(absent, [first, last])
            weights[0, absent[low:high] - first] = 0
            part = Target(total, 1.0, accumulate=True)
            rows = G.rows(first, last)
            DenseEntries(weights, self.threads).power(exponent, F[row : row + 1], rows, part)
        return np.asarray(total[0])
