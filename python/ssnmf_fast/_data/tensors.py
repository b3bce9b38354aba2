"""Checks of tensors from callers, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, Matrix, MatrixLike
from .._common.text import short
from .._common.warn import warn_user
from .arrays import MOST, as_array, check_dtype, float_dtype, inspect_sparse, to_native, unmask
from .border import check_entries, check_integer

Parts: TypeAlias = tuple[Any, Any, Any]  # coordinates, values and shape


def check_tensor(X: Any, name: str, dtype: Any = None, *, ordinary: bool = True) -> Tensor:
    """Return a dense tensor as a C-contiguous array, which may have NaN, or a sparse one."""
    if isinstance(X, SparseTensor):
        if check_dtype(dtype, X.dtype) == X.dtype:
            return X
        X = X.at.places, X.values, X.shape
    parts = coordinate_parts(X, name)
    if parts is not None:
        return _check_sparse(parts, name, dtype, ordinary)
    array = as_array(unmask(X, name, allow_nan=True), name)
    if array.ndim < 2:
        raise ValueError(f"{name} must have two modes or more; got shape {array.shape}.")
    _check_lengths(array.shape, name)
    target = check_dtype(dtype, float_dtype(array.dtype, name))
    array = np.ascontiguousarray(to_native(array, target))
    check_entries(array, name, allow_nan=True, ordinary=ordinary)
    return array


def new_tensor(X: Any, dtype: Any = None) -> Tensor:
    """Return a checked tensor; warn if it is a table with one entry per line."""
    array = check_tensor(X, "X", dtype)
    if isinstance(array, np.ndarray) and is_long(array):
        warn_user(
            f"X of shape {array.shape} looks like a table with one entry per line: indices, then a "
            "value. If so, give (coords, values, shape): a row of coords for each column of "
            "indices, the column of values, and the length of each mode.",
            UserWarning,
        )
    return array


def is_long(array: Array, share: float = 0.5) -> bool:
    """Return whether an array looks like a table of indices and a value.

    At least this share of its lines has different indices.
    """
    n, m = array.shape if array.ndim == 2 else (0, 0)
    ids = array[:, : m - 1] if 3 <= m < min(n / 3, _MOST_COLUMNS) else array[:0]
    if not ids.size or not (np.all(ids == np.round(ids)) and np.all(ids >= 0)):  # or NaN
        return False
    repeated = all(len(np.unique(side)) < n for side in ids.T)
    return repeated and len(np.unique(ids, axis=0)) >= share * n


def coordinate_parts(X: Matrix, name: str) -> Parts | None:
    """Return coordinates, values and the shape of a sparse tensor; None for what is dense."""
    if isinstance(X, (tuple, list)):
        depths = [depth(part) for part in X] if len(X) in (2, 3) else []
        column = depths == [2, 2] and np.shape(X[1])[1:] == (1,) != np.shape(X[0])[1:]
        if depths == [2, 1] or column:
            what = "a pair of coordinates and values without a shape"
            raise ValueError(f"{name} is {what}; give (coords, values, shape).")
        return (X[0], X[1], X[2]) if depths in ([2, 1, 1], [2, 2, 1]) else None
    if sp.issparse(X) and len(X.shape) == 2:
        X = inspect_sparse(X, name)[0].tocoo()  # SciPy would follow wrong indices
        return (X.row, X.col), X.data, X.shape
    if hasattr(X, "dims") and hasattr(X, "coords"):  # of xarray: its coords name the entries
        X = X.data
    if hasattr(X, "coords") and hasattr(X, "data") and hasattr(X, "shape"):
        return X.coords, X.data, X.shape
    if hasattr(X, "subs") and hasattr(X, "vals") and hasattr(X, "shape"):  # of pyttb
        return np.transpose(X.subs), np.ravel(X.vals), X.shape
    if hasattr(X, "todense") or hasattr(X, "tocoo"):
        raise TypeError(
            f"{name} is a {type(X).__name__}, whose coordinates cannot be read; give "
            "(coords, values, shape), or an object with the attributes coords, data and shape."
        )
    return None


def _check_sparse(parts: Parts, name: str, dtype: npt.DTypeLike, ordinary: bool) -> SparseTensor:
    coords, values, shape = parts
    lengths = tuple(np.asarray(shape).tolist())
    if len(lengths) < 2 or not all(isinstance(n, int) for n in lengths):
        raise ValueError(f"{name} must have a shape of two or more integers; got {short(shape)}.")
    _check_lengths(lengths, name)
    values = as_array(values, f"the values of {name}")
    target = check_dtype(dtype, float_dtype(values.dtype, f"the values of {name}"))
    values = to_native(values, target)
    places = as_array(coords, f"the coordinates of {name}")
    if values.ndim == 2 and values.shape[1] == 1:  # of pyttb, with one entry per line
        values = values[:, 0]
        places = places.T if places.shape == (len(values), len(lengths)) else places
    if places.shape != (len(lengths), *values.shape) or values.ndim != 1:
        raise ValueError(
            f"{name} has coordinates of shape {places.shape} and values of shape {values.shape}; "
            f"expected ({len(lengths)}, number of entries) and (number of entries,)."
        )
    if places.dtype.kind not in "iu":
        if places.size:
            raise TypeError(f"{name} has coordinates of dtype {places.dtype}; expected integers.")
        places = places.astype(np.int32)
    for mode, (indices, length) in enumerate(zip(places, lengths, strict=True)):
        outside = (indices < 0) | (indices >= length)
        if outside.any():
            entry = int(np.flatnonzero(outside)[0])
            where = f"{places[:, entry].tolist()}; mode {mode} has indices from 0 to {length - 1}"
            raise ValueError(f"entry {entry} of {name} has the coordinates {where}.")
    check_entries(SparseTensor(Coordinates(places, lengths), values), name, ordinary=ordinary)
    if not values.all():  # drop stored zeros
        places, values = places[:, values > 0], values[values > 0]
    return in_order(places.astype(np.int32), np.ascontiguousarray(values), lengths)


def depth(part: object) -> int:
    if hasattr(part, "ndim"):
        return int(part.ndim)
    if not isinstance(part, (tuple, list)):
        return 0
    return 1 + (depth(part[0]) if part else 0)


def _check_lengths(shape: tuple[int, ...], name: str) -> None:
    if min(shape) < 1 or max(shape) > MOST:
        raise ValueError(f"{name} has shape {shape}; expected lengths from 1 to {MOST}.")


def check_mode(mode: object, name: str, n_modes: int) -> int:
    """Return a mode counted from 0; negative modes count from the last."""
    return check_integer(mode, name, -n_modes, n_modes - 1) % n_modes


_KEYS = np.iinfo(np.int64).max
_MOST_COLUMNS = 10  # of a table with one entry per line


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Distinct places in a tensor, in lexicographic order."""

    places: Array
    shape: tuple[int, ...]
    _unfolded: dict[int, tuple[Array, Array, Array | None]] = field(
        default_factory=dict, init=False, repr=False
    )

    def unfolded(self, mode: int) -> tuple[Array, Array, Array | None]:
        """Return the entries by their index in a mode: pointers, other indices, order."""
        if mode not in self._unfolded:
            order, others = None, np.delete(self.places, mode, axis=0)
            if mode:  # the stable order of small integers, by counting
                entries = np.arange(self.places.shape[1])
                ones, shape = np.ones(len(entries), np.int8), (self.shape[mode], len(entries))
                order = sp.csr_array((ones, (self.places[mode], entries)), shape).indices
                others = _in_order(others, order)
            counts = np.bincount(self.places[mode], minlength=self.shape[mode])
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            self._unfolded[mode] = indptr, np.ascontiguousarray(others), order
        return self._unfolded[mode]

    def keys(self) -> Array:
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
        return SparseTensor(self.at, values)

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> SparseTensor:
        return self.with_values(self.values.astype(dtype, copy=copy))

    def sampled(self, at: Coordinates) -> SparseTensor:
        own, keys = self.at.keys(), at.keys()
        values = np.zeros(len(keys), dtype=self.values.dtype)
        _, here, there = np.intersect1d(own, keys, assume_unique=True, return_indices=True)
        values[there] = self.values[here]
        return SparseTensor(at, values)

    def without(self, at: Coordinates) -> SparseTensor:
        keep = ~np.isin(self.at.keys(), at.keys(), assume_unique=True)
        return SparseTensor(Coordinates(self.at.places[:, keep], self.shape), self.values[keep])

    def leading(self, mode: int) -> SparseTensor:
        """Return the tensor with a mode moved to the front."""
        if mode == 0:
            return self
        indptr, others, values = self.unfolded(mode)
        rows = np.repeat(np.arange(len(indptr) - 1, dtype=others.dtype), np.diff(indptr))
        shape = self.shape[mode], *self.shape[:mode], *self.shape[mode + 1 :]
        return SparseTensor(Coordinates(np.vstack([rows, others]), shape), values)

    def with_leading_mode(self) -> SparseTensor:
        """Return the tensor as the only slice of a tensor with an additional first mode."""
        places = np.vstack([np.zeros_like(self.at.places[:1]), self.at.places])
        return SparseTensor(Coordinates(places, (1, *self.shape)), self.values)

    def matrix(self, mode: int) -> sp.csr_array:
        """Return the unfolding by a mode as a matrix; a column for each tuple that occurs."""
        indptr, others, values = self.unfolded(mode)
        first, columns = distinct(others, tuple(np.delete(self.shape, mode)))
        shape = self.shape[mode], max(1, len(first))
        return sp.csr_array((values, columns, indptr), shape=shape)


Tensor: TypeAlias = Array | SparseTensor
TensorLike: TypeAlias = MatrixLike | Sequence[npt.ArrayLike] | SparseTensor


def _in_order(places: Array, order: Array) -> Array:
    """Return some places, row by row, which is several times faster than all at once."""
    result = np.empty((len(places), len(order)), dtype=places.dtype)
    for indices, ordered in zip(places, result, strict=True):
        np.take(indices, order, out=ordered, mode="clip")  # which, unlike "raise", has no buffer
    return result


def _keys(places: Array, shape: tuple[int, ...]) -> Array:
    """Return one number for each place, in lexicographic order of the places."""
    if prod(map(int, shape)) > _KEYS:
        what = "more places than an integer can count; leave out indices that do not occur"
        raise ValueError(f"for weights of entries, a tensor of shape {shape} has {what}.")
    key = np.zeros(places.shape[1], dtype=np.int64)
    for indices, length in zip(places, shape, strict=True):
        key *= length
        key += indices
    return key


def distinct(places: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the first index of each distinct place, in order, and the number of every place."""
    options: dict[str, Any] = {"return_index": True, "return_inverse": True}
    if prod(map(int, shape)) <= _KEYS:
        _, first, numbers = np.unique(_keys(places, shape), **options)
    else:
        _, first, numbers = np.unique(places, axis=1, **options)
    return first, numbers.reshape(-1)


def in_order(places: Array, values: Array, shape: tuple[int, ...]) -> SparseTensor:
    """Sort entries lexicographically, and add up entries at the same place."""
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


@dataclass(frozen=True, eq=False)
class RowProducts:
    """G as the factors whose rows are multiplied; the last index runs fastest."""

    factors: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return prod(map(len, self.factors)), self.factors[0].shape[1]

    @property
    def dtype(self) -> Any:
        return self.factors[0].dtype

    def __getitem__(self, rows: slice) -> Array:
        numbers = np.arange(*rows.indices(self.shape[0]))
        return self.at(np.unravel_index(numbers, tuple(map(len, self.factors))))

    def at(self, places: Sequence[Array] | Array) -> Array:
        """Return the rows of G for indices in each mode."""
        rows = (F[i] for F, i in zip(self.factors, places, strict=True))
        return np.asarray(reduce(np.multiply, rows))


Rows: TypeAlias = Array | RowProducts


def factors_of(G: Rows) -> tuple[Array, ...]:
    """Return the factors whose rows are multiplied, or the only one."""
    return G.factors if isinstance(G, RowProducts) else (G,)


def used_columns(G: Rows) -> Array:
    return np.asarray(np.logical_and.reduce([F.any(axis=0) for F in factors_of(G)]))


def mean_sum(G: Rows) -> float:
    if isinstance(G, RowProducts):
        return float(np.prod([F.mean(axis=0, dtype=np.float64) for F in G.factors], axis=0).sum())
    return float(G.sum(axis=1, dtype=np.float64).mean())


def full_columns(G: Rows) -> Array:
    return np.asarray(np.logical_and.reduce([(F > 0).all(axis=0) for F in factors_of(G)]))


def tensor_pattern(pattern: MatrixLike, X: Tensor) -> SparseTensor:
    checked = check_tensor(pattern, "X_weights", X.dtype, ordinary=False)
    if checked.shape != X.shape:
        raise ValueError(f"X_weights has shape {checked.shape}; expected {X.shape}, that of X.")
    if isinstance(checked, SparseTensor):
        return checked
    check_entries(checked, "X_weights")
    places = np.array(np.nonzero(checked), dtype=np.int32)
    return SparseTensor(Coordinates(places, checked.shape), checked[tuple(places)])


def entries_at(X: Tensor, at: Coordinates) -> Array:
    return X.sampled(at).values if isinstance(X, SparseTensor) else X[tuple(at.places)]


def as_pattern(places: Array, X: Tensor, values: Any = 1) -> Any:
    """Return a pattern, by default of ones, as a matrix or as coordinates of a tensor."""
    values = np.broadcast_to(values, places.shape[1]).astype(X.dtype)
    if len(X.shape) > 2:
        return places, values, X.shape
    return sp.csr_array(sp.coo_array((values, tuple(places)), shape=X.shape))
