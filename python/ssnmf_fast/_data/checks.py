"""Checks at the border: what the caller passed becomes clean arrays, or a clear error."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .arrays import as_array, floating, native, refuse_annotated, require_real, unmasked
from .csr import DUPLICATES
from .sound import inspected_csr, sound_csr

# Products of three factors with the data must not overflow.
LARGEST = {np.dtype(np.float32): 1e9, np.dtype(np.float64): 1e90}


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """Return `value` if it is one of the options, else raise ValueError that lists them."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")
    return value


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int of at least `minimum`, and at most `maximum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} ({type(value).__name__}).")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}.")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{name} must be at most {maximum}; got {value}.")
    return int(value)


def check_observers(callback: Any, verbose: Any) -> None:
    """Raise TypeError unless a callback can be called and `verbose` is a number."""
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback must be a function of a state, or None; got {callback!r} "
            f"({type(callback).__name__})."
        )
    if not isinstance(verbose, (numbers.Integral, np.bool_)):
        raise TypeError(f"verbose must be 0 or 1; got {verbose!r} ({type(verbose).__name__}).")


def check_real(value: Any, name: str, *, allow_negative: bool = False) -> float:
    """Return `value` as a finite float, nonnegative unless any sign is allowed."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r} ({type(value).__name__}).")
    number = float(value)
    if not np.isfinite(number) or (number < 0 and not allow_negative):
        bound = "" if allow_negative else " and at least 0"
        raise ValueError(f"{name} must be finite{bound}; got {value!r}.")
    return number


def unmasked_labels(labels: Any) -> Any:
    """Return a masked array as one of objects, with None where it is masked; all else as it is."""
    if not isinstance(labels, np.ma.MaskedArray):
        return labels
    if not np.ma.is_masked(labels):
        return labels.data
    objects = labels.data.astype(object)
    objects[np.ma.getmaskarray(labels)] = None
    return objects


def readable(X: Any, name: str, *, allow_nan: bool) -> Any:
    """Return data that scikit-learn may check: sound if sparse, without a mask, native numbers."""
    if sp.issparse(X):
        return sound_csr(X, name)
    refuse_annotated(X, name)
    X = unmasked(X, name, allow_nan=allow_nan)
    if isinstance(X, (list, tuple)):
        X = as_array(X, name)
    return native(X) if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" else X


def check_matrix(
    X: Any,
    name: str,
    *,
    dtype: Any = None,
    allow_nan: bool = True,
    allow_negative: bool = False,
    limited: bool = True,
    n_threads: int = 1,
) -> Any:
    """Return `X` as a float ndarray (2-D, any strides) or a CSR array with summed duplicates.

    The rows of a CSR array need not be sorted.  Unless `limited`, any finite size will do.

    The result may share memory with `X` and must not be written to.
    """
    if sp.issparse(X):
        matrix, allow_nan = _check_sparse(X, name, dtype, n_threads), False
    else:
        matrix = _check_dense(unmasked(X, name, allow_nan=allow_nan), name, dtype)
    check_entries(matrix, name, allow_nan=allow_nan, allow_negative=allow_negative, limited=limited)
    return matrix


def _check_sparse(X: Any, name: str, dtype: Any, n_threads: int) -> sp.csr_array:
    csr, state = inspected_csr(X, name, n_threads)
    target = np.dtype(dtype) if dtype is not None else floating(csr.dtype, name)
    data = csr.data.astype(target, copy=False)
    result = sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=False)
    if state == DUPLICATES:
        result = result.copy()
        result.sum_duplicates()
    return result


def _check_dense(X: Any, name: str, dtype: Any) -> Array:
    array = as_array(X, name)
    require_real(array.dtype, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (samples x features); got shape {array.shape}. "
            f"Reshape one sample with {name}.reshape(1, -1), one feature with "
            f"{name}.reshape(-1, 1)."
        )
    target = np.dtype(dtype) if dtype is not None else floating(array.dtype, name)
    with np.errstate(over="ignore"):  # infinity is refused
        array = native(array).astype(target, copy=False)
    if any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


def check_entries(
    matrix: Any,
    name: str,
    *,
    allow_nan: bool = False,
    allow_negative: bool = False,
    limited: bool = True,
) -> None:
    """Raise ValueError for entries that are negative, infinite, NaN or too large."""
    values: Array = matrix.data if sp.issparse(matrix) else matrix
    if not values.size:
        return
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
            "Nonnegative factorization needs entries >= 0; shift or clip the data."
        )
    if limited and max(high, -low) > LARGEST[values.dtype]:
        largest = high if high > -low else low
        raise ValueError(
            f"{name} contains {largest:.3g}, too large to work with in {values.dtype} (limit "
            f"{LARGEST[values.dtype]:.0e}). Divide the data by a constant."
        )


def _position(matrix: Any, test: Any) -> str:
    """Name the first entry, in row order, that meets the test, as "[i, j] = value"."""
    if sp.issparse(matrix):
        k = int(np.flatnonzero(test(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        return f"[{row}, {int(matrix.indices[k])}] = {matrix.data[k]:g}"
    place = np.unravel_index(int(np.flatnonzero(test(matrix))[0]), matrix.shape)
    return f"[{', '.join(str(int(index)) for index in place)}] = {matrix[place]:g}"


def check_shape(array: Any, shape: tuple[int, int], name: str, of: str) -> None:
    """Raise ValueError unless the shapes agree."""
    if tuple(array.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(array.shape)}; expected {shape}, {of}.")


def check_factor(
    factor: Any,
    name: str,
    shape: tuple[int, int],
    dtype: Any,
    of: str,
    *,
    limited: bool = True,
) -> Array:
    """Return a dense, finite, nonnegative factor of the given shape."""
    if sp.issparse(factor):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix. Use {name}.toarray().")
    array: Array = check_matrix(factor, name, dtype=dtype, allow_nan=False, limited=limited)
    check_shape(array, shape, name, of)
    return array


def pattern_csr(pattern: Any, name: str) -> sp.csr_array:
    """Return the pattern of weights, sparse or dense, as a sound CSR array."""
    if sp.issparse(pattern):
        return sound_csr(pattern, name)
    dense = as_array(pattern, name)
    require_real(dense.dtype, name)
    if dense.ndim != 2:
        raise ValueError(f"{name} must have two dimensions; got shape {dense.shape}.")
    return sp.csr_array(native(dense))


def check_vector(values: Any, name: str, length: int, dtype: Any, *, limited: bool = True) -> Array:
    """Return finite nonnegative weights of the given length; unless `limited`, of any size."""
    vector = as_array(values, name)
    require_real(vector.dtype, name)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}; expected ({length},).")
    vector = vector.astype(dtype)
    if not np.all(np.isfinite(vector)):
        raise ValueError(f"{name} contains NaN or infinity; weights must be finite and >= 0.")
    if np.any(vector < 0):
        k = int(np.flatnonzero(vector < 0)[0])
        raise ValueError(f"{name}[{k}] = {vector[k]:g} is negative; weights must be >= 0.")
    if limited:
        check_entries(vector[None], name)  # what is too large
    return vector


def check_support(support: Any, shape: tuple[int, int], dtype: Any) -> Array:
    """Return S_support as 0 and 1."""
    array = check_factor(support, "S_support", shape, dtype, "samples x components")
    if not np.all((array == 0) | (array == 1)):
        value = array[(array != 0) & (array != 1)][0]
        raise ValueError(f"S_support holds {value:g}; expected 0 or 1, whether S may be positive.")
    return array
