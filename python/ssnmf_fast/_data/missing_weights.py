"""Weights that are separable but on missing entries, where they are 0."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .csr import entry_rows
from .entries import DenseEntries, SparseEntries, Target
from .tensor_entries import RowProducts, SparseTensorEntries
from .tensors import Coordinates, SparseTensor
from .weight_forms import Quadratic, Separable, WeightForm

_PRESENT_ENTRIES = 1 << 22  # weights written out at once, where they are summed one by one
_AT_ONCE = 1 << 15  # of a row of a tensor


class Complement(WeightForm):
    """The weights `whole` but on missing entries, which hold these weights.

    A component may have next to all of its weight where a row is missing.  The difference of both
    sums would be rounding noise there, and a step divided by it would leave all bounds: rows where
    the sums would cancel add up their present entries one by one.
    """

    missing: Any
    whole: Separable
    # A difference below this share of the minuend is not trusted.
    _cancels: ClassVar[dict[Any, float]]

    @property
    def threads(self) -> int:  # type: ignore[override]
        return int(self.missing.threads)

    def total(self, shape: tuple[int, ...]) -> float:
        return float(self.whole.total(shape) - self.missing.total())

    def power(self, exponent: float, F: Array, G: Any, to: Target) -> None:
        rest = np.empty_like(to.out)
        doubtful = self._difference(exponent, F, G, rest)
        self._sum_present(exponent, F, G, np.flatnonzero(doubtful), rest)
        rest *= rest.dtype.type(to.scale)
        if to.accumulate:
            to.out[...] += rest
        else:
            to.out[...] = rest

    def _difference(self, exponent: float, F: Array | None, G: Any, rest: Array) -> Array:
        """Set `rest` to whole - missing; return for which rows that cancels."""
        # The whole has no use for F where the exponent is 0.
        self.whole.power(exponent, rest if F is None else F, G, Target(rest))
        least = self._cancels[rest.dtype] * rest
        self.missing.power(exponent, F, G, Target(rest, -1.0, accumulate=True))
        return np.asarray((rest < least).any(axis=1))

    @abstractmethod
    def _sum_present(self, exponent: float, F: Array, G: Any, doubtful: Array, rest: Array) -> None:
        """Sum over the present entries of some rows, into these rows of `rest`."""


@dataclass(frozen=True)
class MissingEntries(Complement):
    """Of a matrix."""

    missing: SparseEntries
    whole: Separable
    _cancels: ClassVar = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-2}

    def view(self, position: int) -> MissingEntries:
        if position == 0:
            return self
        return MissingEntries(self.missing.turned(), self.whole.view(position))

    def dense(self, rows: slice, G: Any) -> Array:
        return self._present(np.arange(rows.start, rows.stop)).array

    def part(self, rows: slice) -> MissingEntries:
        return MissingEntries(self.missing.part(rows), self.whole.part(rows))

    def quadratic(self, G: Array) -> Quadratic:
        part = self.whole.quadratic(G)
        there = np.empty((self.missing.matrix.shape[0], G.shape[1]), dtype=G.dtype)
        doubtful = np.flatnonzero(self._difference(0, None, np.square(G), there))
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

    def _sum_present(
        self, exponent: float, F: Array, G: Array, doubtful: Array, rest: Array
    ) -> None:
        empty = np.diff(self.missing.matrix.indptr) == self.missing.matrix.shape[1]
        rest[empty] = 0
        for rows in self._portions(doubtful[~empty[doubtful]]):
            block = np.empty((len(rows), rest.shape[1]), dtype=rest.dtype)
            self._present(rows).power(exponent, F[rows], G, Target(block))
            rest[rows] = block

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


@dataclass(frozen=True)
class MissingPlaces(Complement):
    """Of a tensor; the whole are ones."""

    missing: SparseTensorEntries
    whole: Separable
    curved = False
    _cancels: ClassVar = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}

    def view(self, position: int) -> MissingPlaces:
        return replace(self, missing=self.missing.view(position))

    def dense(self, rows: slice, G: RowProducts) -> Array:
        return np.asarray(1 - self.missing.dense(rows, G.n_rows))

    def part(self, rows: slice) -> WeightForm:
        raise NotImplementedError("a tensor is not cut into blocks")

    def quadratic(self, G: RowProducts) -> Quadratic:
        """Whole - missing; rows for which that would cancel list what is present instead."""
        indptr, others, values = self.missing.parts()
        squares = RowProducts(tuple(np.square(factor) for factor in G.factors))
        there = np.empty((len(indptr) - 1, G.columns), dtype=G.dtype)
        doubtful = self._difference(0, None, squares, there)
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
        return Quadratic(self.whole.gram(G), scale, entries)

    def _sum_present(
        self, exponent: float, F: Array, G: RowProducts, doubtful: Array, rest: Array
    ) -> None:
        indptr, others, _ = self.missing.parts()
        lengths = tuple(len(factor) for factor in G.factors)
        for row in doubtful:
            here = others[:, indptr[row] : indptr[row + 1]]
            absent = np.sort(np.ravel_multi_index(tuple(here), lengths))
            total = np.zeros((1, G.columns), dtype=F.dtype)
            for first in range(0, prod(lengths), _AT_ONCE):
                last = min(first + _AT_ONCE, prod(lengths))
                weights = np.ones((1, last - first), dtype=F.dtype)
                low, high = np.searchsorted(absent, [first, last])
                weights[0, absent[low:high] - first] = 0
                part = Target(total, 1.0, accumulate=True)
                entries = DenseEntries(weights, self.threads)
                entries.power(exponent, F[row : row + 1], G.rows(first, last), part)
            rest[row] = total[0]
