"""Checks at the border: what the caller passed becomes clean arrays, or a clear error."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._csr import DUPLICATES, UNSOUND, structure

Array = npt.NDArray[Any]

# Products of three factors with the data must not overflow.
_LARGEST = {np.dtype(np.float32): 1e9, np.dtype(np.float64): 1e90}


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """Return `value` if it is one of the options, else raise ValueError that lists them."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")
    return value


def check_integer(value: Any, name: str, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} ({type(value).__name__}).")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}.")
    return int(value)


def check_real(value: Any, name: str, *, allow_negative: bool = False) -> float:
    """Return `value` as a finite float, nonnegative unless any sign is allowed."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r} ({type(value).__name__}).")
    number = float(value)
    if not np.isfinite(number) or (number < 0 and not allow_negative):
        bound = "" if allow_negative else " and at least 0"
        raise ValueError(f"{name} must be finite{bound}; got {value!r}.")
    return number


def _check_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """Return the floating dtype to work in."""
    if dtype in (np.float32, np.float64):
        floating: np.dtype[Any] = np.dtype(dtype)
        return floating
    if dtype.kind in "biu" or dtype == np.float16 or dtype == np.longdouble:
        return np.dtype(np.float64)
    raise TypeError(
        f"{name} has dtype {dtype}; needed is a real numeric dtype (float32, float64, integers or "
        f"bool). Convert it first, for example with {name}.astype(float)."
    )


def check_matrix(
    X: Any,
    name: str,
    *,
    dtype: Any = None,
    allow_nan: bool = True,
    allow_negative: bool = False,
    n_threads: int = 1,
) -> Any:
    """Return `X` as a float ndarray (2-D, any strides) or a CSR array with summed duplicates.

    The rows of a CSR array need not be sorted.

    The result may share memory with `X` and must not be written to.
    """
    if sp.issparse(X):
        matrix = _check_sparse(X, name, dtype, n_threads)
        values = matrix.data
    else:
        matrix = _check_dense(X, name, dtype)
        values = matrix
    if values.size:
        _check_entries(matrix, values, name, allow_nan and values is matrix, allow_negative)
    return matrix


def _check_sparse(X: Any, name: str, dtype: Any, n_threads: int) -> sp.csr_array:
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions; got shape {X.shape}.")
    target = np.dtype(dtype) if dtype is not None else _check_dtype(X.dtype, name)
    _check_dtype(X.dtype, name)
    csr = X if X.format == "csr" else X.tocsr()
    data = csr.data if csr.data.dtype == target else csr.data.astype(target)
    result = sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=False)
    state = structure(result, n_threads)
    if state == UNSOUND:
        raise ValueError(
            f"{name} is not a valid sparse matrix: a column index lies outside of its "
            f"{result.shape[1]} columns, or indptr decreases."
        )
    if state == DUPLICATES:
        result = result.copy()
        result.sum_duplicates()
    if len(result.data) > result.indptr[-1]:
        result.prune()
    return result


def _check_dense(X: Any, name: str, dtype: Any) -> Array:
    array = np.asarray(X)
    if array.dtype.kind in "USOcMmV":
        _check_dtype(array.dtype, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (samples x features); got shape {array.shape}. "
            f"Reshape one sample with {name}.reshape(1, -1), one feature with "
            f"{name}.reshape(-1, 1)."
        )
    target = np.dtype(dtype) if dtype is not None else _check_dtype(array.dtype, name)
    array = array.astype(target, copy=False)
    if not array.dtype.isnative or any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array, dtype=target.newbyteorder("="))
    return array


def _check_entries(
    matrix: Any, values: Array, name: str, allow_nan: bool, allow_negative: bool
) -> None:
    low, high = np.min(values), np.max(values)
    if np.isnan(low):
        if not allow_nan:
            raise ValueError(
                f"{name} contains NaN at {_position(matrix, np.isnan)}. Only a dense X or Y may "
                "hold NaN (missing entries); for sparse data give "
                "weights.observed or weights.missing, and weights themselves must be numbers."
            )
        with np.errstate(invalid="ignore"):
            low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        if np.isnan(low):
            return
    if not np.isfinite(low) or not np.isfinite(high):
        raise ValueError(
            f"{name} contains infinity at {_position(matrix, np.isinf)}. Replace it by a finite "
            "number, or by NaN in a dense array if it is missing."
        )
    if low < 0 and not allow_negative:
        where = _position(matrix, lambda entries: entries < 0)
        raise ValueError(
            f"Negative values in data passed to {name}: the first is {name}{where}. "
            "Nonnegative factorisation needs entries >= 0; shift or clip the data."
        )
    if max(high, -low) > _LARGEST[values.dtype]:
        largest = high if high > -low else low
        raise ValueError(
            f"{name} contains {largest:.3g}, too large to work with in {values.dtype} (limit "
            f"{_LARGEST[values.dtype]:.0e}). Divide the data by a constant."
        )


def _position(matrix: Any, test: Any) -> str:
    """Name the first entry, in row order, that meets the test, as "[i, j]"."""
    if sp.issparse(matrix):
        k = int(np.flatnonzero(test(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        return f"[{row}, {int(matrix.indices[k])}] = {matrix.data[k]:g}"
    row, column = np.argwhere(test(matrix))[0]
    return f"[{row}, {column}] = {matrix[row, column]:g}"


def check_shape(array: Any, shape: tuple[int, int], name: str, of: str) -> None:
    """Raise ValueError unless the shapes agree."""
    if tuple(array.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(array.shape)}; needed is {shape}, {of}.")


def check_factor(factor: Any, name: str, shape: tuple[int, int], dtype: Any, of: str) -> Array:
    """Return a dense, finite, nonnegative factor of the given shape."""
    if sp.issparse(factor):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix. Use {name}.toarray().")
    array: Array = check_matrix(factor, name, dtype=dtype, allow_nan=False)
    check_shape(array, shape, name, of)
    return array


def check_vector(values: Any, name: str, length: int, dtype: Any) -> Array:
    """Return finite nonnegative weights of the given length."""
    vector = np.asarray(values)
    _check_dtype(vector.dtype, name)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}; needed is ({length},).")
    vector = vector.astype(dtype)
    if not np.all(np.isfinite(vector)):
        raise ValueError(f"{name} contains NaN or infinity; weights must be finite and >= 0.")
    if np.any(vector < 0):
        k = int(np.flatnonzero(vector < 0)[0])
        raise ValueError(f"{name}[{k}] = {vector[k]:g} is negative; weights must be >= 0.")
    return vector


def check_support(support: Any, shape: tuple[int, int], dtype: Any) -> Array:
    """Return S_support as 0 and 1."""
    array = check_factor(support, "S_support", shape, dtype, "samples x components")
    if not np.all((array == 0) | (array == 1)):
        value = array[(array != 0) & (array != 1)][0]
        raise ValueError(f"S_support holds {value:g}; needed is 0 or 1, whether S may be positive.")
    return array
