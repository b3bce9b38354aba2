"""Sparse matrices as callers give them, checked before any code that trusts their parts.

SciPy, scikit-learn and the kernels follow the indices of a sparse matrix without looking: a wrong
one reads or writes outside of their arrays.  Every sparse argument passes through here first.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .arrays import as_array, native, require_real
from .csr import UNSORTED, UNSOUND, structure

_MOST = np.iinfo(np.int32).max  # what the indices of the kernels can count
_COMPRESSED = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}


def sound(X: Any, name: str, n_threads: int = 1) -> Any:
    """Return a sparse matrix as a csr, csc, bsr or coo array that SciPy can work with safely.

    The formats dia, lil and dok become coo.  Parts are shared where they can be, and must not be
    written to; those that are strided, misaligned or in foreign byte order are copied.

    Raises
    ------
    ValueError
        If the parts of X do not make a matrix of its shape.
    TypeError
        If it does not hold real numbers.
    """
    return _checked(X, name, n_threads)[0]


def inspected_csr(X: Any, name: str, n_threads: int = 1) -> tuple[sp.csr_array, int]:
    """Return a sparse matrix of any format as a sound CSR array, and its :func:`structure`."""
    matrix, state = _checked(X, name, n_threads)
    if matrix.format == "csr":
        return matrix, state
    csr = matrix.tocsr()
    return csr, structure(csr, n_threads)


def sound_csr(X: Any, name: str, n_threads: int = 1) -> sp.csr_array:
    """Return a sparse matrix of any format as a sound CSR array."""
    return inspected_csr(X, name, n_threads)[0]


def _checked(X: Any, name: str, n_threads: int) -> tuple[Any, int]:
    """Return the sound matrix and, of a compressed one, the state of its lines."""
    if len(X.shape) != 2:
        raise ValueError(f"{name} must have two dimensions; got shape {X.shape}.")
    if max(X.shape) > _MOST:
        raise ValueError(f"{name} has shape {X.shape}; expected at most {_MOST} rows and columns.")
    require_real(X.dtype, name)
    if X.format in _COMPRESSED:
        return _compressed(X, name, n_threads)
    parts = {"lil": _from_lists, "dok": _from_pairs, "dia": _from_diagonals}
    data, rows, columns = parts.get(X.format, _from_coordinates)(X, name)
    return _coordinate(data, rows, columns, X.shape, name), UNSORTED


def _compressed(X: Any, name: str, n_threads: int) -> tuple[Any, int]:
    dimensions = 3 if X.format == "bsr" else 1
    data = _numbers(X.data, name, dimensions)
    indptr, indices = _integers(X.indptr, name, "indptr"), _integers(X.indices, name, "indices")
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    lines, width = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        height, breadth = data.shape[1:]
        if 0 in (height, breadth) or lines % height or width % breadth:
            _refuse(name, f"blocks of {height} x {breadth} do not fill the shape {X.shape}")
        lines, width = lines // height, width // breadth
    if len(indptr) != lines + 1:
        _refuse(name, f"indptr has {len(indptr)} values; expected {lines + 1}")
    if len(data) != len(indices):
        _refuse(name, f"it has {len(data)} values, but {len(indices)} indices")
    state = kernels.inspect_csr(indptr, indices, width, n_threads)
    if state == UNSOUND:
        _refuse(name, _fault(indptr, indices, width))
    used = int(indptr[-1])
    parts = (data[:used], indices[:used], indptr)
    return _COMPRESSED[X.format](parts, shape=X.shape, copy=False), state


def _fault(indptr: Array, indices: Array, width: int) -> str:
    """Say what is wrong with the lines of a compressed matrix."""
    if indptr[0] != 0:
        return f"indptr begins with {indptr[0]}; expected 0"
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        return f"indptr falls from {indptr[falls[0]]} to {indptr[falls[0] + 1]}"
    if indptr[-1] > len(indices):
        return f"indptr ends at {indptr[-1]}, but there are {len(indices)} indices"
    return _outside(indices, width, "indices")


def _outside(index: Array, size: int, part: str) -> str:
    place = int(np.flatnonzero((index < 0) | (index >= size))[0])
    return f"{part}[{place}] is {index[place]}; expected 0 to {size - 1}"


def _coordinate(data: Array, rows: Array, columns: Array, shape: Any, name: str) -> sp.coo_array:
    if not len(data) == len(rows) == len(columns):
        _refuse(
            name,
            f"it has {len(data)} values, {len(rows)} rows and {len(columns)} columns of entries",
        )
    for index, size, side in ((rows, shape[0], 0), (columns, shape[1], 1)):
        if len(index) and (index.min() < 0 or index.max() >= size):
            _refuse(name, _outside(index, size, f"coords[{side}]"))
    return sp.coo_array((data, (rows, columns)), shape=shape, copy=False)


Parts = tuple[Array, Array, Array]  # values, rows and columns of entries


def _from_coordinates(X: Any, name: str) -> Parts:
    coordinates = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if len(coordinates) != 2:
        _refuse(name, f"it has {len(coordinates)} vectors of coordinates; expected 2")
    rows, columns = (_integers(index, name, "coords") for index in coordinates)
    return _numbers(X.data, name, 1), rows, columns


def _from_lists(X: Any, name: str) -> Parts:
    """Of the format lil: a list of columns and one of values for every row."""
    n = X.shape[0]
    if np.shape(X.rows) != (n,) or np.shape(X.data) != (n,):
        _refuse(name, f"it has {len(X.rows)} rows of indices and {len(X.data)} of values, not {n}")
    lists = [row for part in (X.rows, X.data) for row in part]
    if not all(isinstance(row, list) for row in lists):
        _refuse(name, "its rows are not lists")
    lengths = [len(row) for row in lists[:n]]
    if lengths != [len(row) for row in lists[n:]]:
        _refuse(name, "a row has not as many values as indices")
    columns = _converted(list(chain.from_iterable(X.rows)), name, "rows", None)
    data = _converted(list(chain.from_iterable(X.data)), name, "data", X.dtype)
    rows = np.repeat(np.arange(n, dtype=np.int64), lengths)
    return _numbers(data, name, 1), rows, _integers(columns, name, "rows")


def _from_pairs(X: Any, name: str) -> Parts:
    """Of the format dok: a value for each pair of row and column."""
    data = _numbers(_converted(list(X.values()), name, "values", X.dtype), name, 1)
    if not len(data):
        return data, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    places = _converted(list(X.keys()), name, "keys", None).reshape(len(data), -1)
    if places.shape[1] != 2:
        _refuse(name, "its keys are not pairs of row and column")
    rows, columns = (_integers(places[:, side], name, "keys") for side in (0, 1))
    return data, rows, columns


def _from_diagonals(X: Any, name: str) -> Parts:
    """Of the format dia: the values of each diagonal, by columns."""
    data, offsets = _numbers(X.data, name, 2), _integers(X.offsets, name, "offsets")
    if len(data) != len(offsets) or len(np.unique(offsets)) < len(offsets):
        _refuse(name, f"its {len(offsets)} offsets are not those of {len(data)} diagonals")
    columns = np.arange(data.shape[1], dtype=np.int64)
    rows = columns - offsets.astype(np.int64)[:, None]
    inside = (rows >= 0) & (rows < X.shape[0]) & (columns < X.shape[1]) & (data != 0)
    return data[inside], rows[inside], np.nonzero(inside)[1].astype(np.int64)


def _converted(values: list[Any], name: str, part: str, dtype: Any) -> Array:
    try:
        return np.array(values, dtype=np.int64 if dtype is None and not values else dtype)
    except (TypeError, ValueError, OverflowError) as error:
        _refuse(name, f"{part} are no numbers ({error})")


def _numbers(values: Any, name: str, dimensions: int) -> Array:
    array = as_array(values, f"the values of {name}")
    require_real(array.dtype, name)
    if array.ndim != dimensions:
        _refuse(name, f"data has {array.ndim} dimensions; expected {dimensions}")
    return np.ascontiguousarray(native(array))


def _integers(values: Any, name: str, part: str) -> Array:
    """Return indices as int32, or int64 where they may need it."""
    array = as_array(values, f"the indices of {name}")
    if array.dtype.kind not in "iu" and array.size:
        _refuse(name, f"{part} has dtype {array.dtype}; expected integers")
    if array.ndim != 1:
        _refuse(name, f"{part} has {array.ndim} dimensions; expected 1")
    small = np.can_cast(array.dtype, np.int32) or not array.size
    return np.ascontiguousarray(native(array), dtype=np.int32 if small else np.int64)


def _refuse(name: str, why: str) -> NoReturn:
    raise ValueError(
        f"{name} is not a valid sparse matrix: {why}. Make it anew from rows, columns and values."
    )
