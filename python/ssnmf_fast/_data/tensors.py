"""Sparse tensors: coordinates in order with values, and their unfoldings."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array

_KEYS = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Places in a tensor in lexicographic order, none twice.

    Attributes
    ----------
    places : ndarray of int32, shape (N, entries)
    shape : tuple of int
        Lengths of the modes.
    """

    places: Array
    shape: tuple[int, ...]
    _unfolded: dict[int, tuple[Array, Array, Array | None]] = field(
        default_factory=dict, init=False, repr=False
    )

    def unfolded(self, mode: int) -> tuple[Array, Array, Array | None]:
        """Return the entries by their index in a mode: pointers, indices in the others, order.

        None stands for the order that they have.  Made once: it is a copy.
        """
        if mode not in self._unfolded:
            order = None if mode == 0 else _stable_order(self.places[mode], self.shape[mode])
            counts = np.bincount(self.places[mode], minlength=self.shape[mode])
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            others = np.delete(self.places, mode, axis=0)
            if order is not None:
                others = _in_order(others, order)
            self._unfolded[mode] = indptr, np.ascontiguousarray(others), order
        return self._unfolded[mode]

    def keys(self) -> Array:
        """Return the place of every entry, counted through the tensor; they rise."""
        return _keys(self.places, self.shape)


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """Values at some places of a tensor; all others are zero."""

    at: Coordinates
    values: Array
    _unfolded: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    def unfolded(self, mode: int) -> tuple[Array, Array, Array]:
        """Return the entries by their index in a mode: pointers, indices in the others, values."""
        indptr, others, order = self.at.unfolded(mode)
        if mode not in self._unfolded:
            self._unfolded[mode] = self.values if order is None else self.values[order]
        return indptr, others, self._unfolded[mode]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def with_values(self, values: Array) -> SparseTensor:
        """Return a tensor with other values at the same places."""
        return SparseTensor(self.at, values)

    def sampled(self, at: Coordinates) -> SparseTensor:
        """Return the values at other places."""
        stored, wanted = self.at.keys(), at.keys()
        values = np.zeros(len(wanted), dtype=self.values.dtype)
        if len(stored):
            place = np.searchsorted(stored, wanted)
            place[place == len(stored)] = 0
            found = stored[place] == wanted
            values[found] = self.values[place[found]]
        return SparseTensor(at, values)

    def without(self, at: Coordinates) -> SparseTensor:
        """Return the tensor without the entries at some places."""
        keep = ~np.isin(self.at.keys(), at.keys(), assume_unique=True)
        return SparseTensor(Coordinates(self.at.places[:, keep], self.shape), self.values[keep])

    def leading(self, mode: int) -> SparseTensor:
        """Return the tensor with a mode before all others."""
        if mode == 0:
            return self
        indptr, others, values = self.unfolded(mode)
        rows = np.repeat(np.arange(len(indptr) - 1, dtype=others.dtype), np.diff(indptr))
        shape = self.shape[mode], *self.shape[:mode], *self.shape[mode + 1 :]
        return SparseTensor(Coordinates(np.vstack([rows, others]), shape), values)

    def with_leading_mode(self) -> SparseTensor:
        """Return the tensor as the only slice of one that has a mode more, before all others."""
        places = np.vstack([np.zeros_like(self.at.places[:1]), self.at.places])
        return SparseTensor(Coordinates(places, (1, *self.shape)), self.values)

    def matrix(self, mode: int) -> sp.csr_array:
        """Return the unfolding by a mode as a matrix; a column for each tuple that occurs."""
        indptr, others, values = self.unfolded(mode)
        first, columns = distinct(others, tuple(np.delete(self.shape, mode)))
        shape = self.shape[mode], max(1, len(first))
        return sp.csr_array((values, columns, indptr), shape=shape)


Tensor = Array | SparseTensor


def _stable_order(indices: Array, length: int) -> Array:
    """Return the stable order of small integers, by counting."""
    entries = np.arange(len(indices))
    ones = np.ones(len(indices), dtype=np.int8)
    return np.asarray(sp.csr_array((ones, (indices, entries)), (length, len(indices))).indices)


def _in_order(places: Array, order: Array) -> Array:
    """Return some places; row by row, which is several times as fast as all at once."""
    result = np.empty((len(places), len(order)), dtype=places.dtype)
    for indices, ordered in zip(places, result, strict=True):
        np.take(indices, order, out=ordered, mode="clip")  # which, unlike "raise", has no buffer
    return result


def _keys(places: Array, shape: tuple[int, ...]) -> Array:
    """Return one number for each place, in lexicographic order of the places."""
    if prod(map(int, shape)) > _KEYS:
        raise ValueError(
            f"a tensor of shape {shape} has more places than an integer can count, which weights "
            "of entries need; leave out indices that do not occur."
        )
    key = np.zeros(places.shape[1], dtype=np.int64)
    for indices, length in zip(places, shape, strict=True):
        key *= length
        key += indices
    return key


def distinct(places: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return where each place stands first, in the order of the places, and its number for all."""
    wanted: dict[str, Any] = {"return_index": True, "return_inverse": True}
    if prod(map(int, shape)) <= _KEYS:
        _, first, numbers = np.unique(_keys(places, shape), **wanted)
    else:
        _, first, numbers = np.unique(places, axis=1, **wanted)
    return first, numbers.reshape(-1)


def in_order(places: Array, values: Array, shape: tuple[int, ...]) -> SparseTensor:
    """Bring entries into lexicographic order, and add up what stands at one place."""
    if prod(shape) <= _KEYS:
        key = _keys(places, shape)
        rises = key[1:] > key[:-1]
        if not rises.all():
            order = np.argsort(key, kind="stable")
            places, values, key = _in_order(places, order), values[order], key[order]
            rises = key[1:] > key[:-1]
    else:
        order = np.lexsort(places[::-1])
        places, values = _in_order(places, order), values[order]
        rises = (places[:, 1:] != places[:, :-1]).any(axis=0)
    if not rises.all():
        first = np.flatnonzero(np.concatenate([[True], rises]))
        places, values = _in_order(places, first), np.add.reduceat(values, first)
    return SparseTensor(Coordinates(np.ascontiguousarray(places), shape), values)


def as_type(X: Tensor, dtype: Any) -> Tensor:
    """Return a tensor of a dtype."""
    if isinstance(X, SparseTensor):
        return X.with_values(X.values.astype(dtype, copy=False))
    return X.astype(dtype, copy=False)
