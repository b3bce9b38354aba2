"""The border of the data: what the caller passed becomes a clean matrix, or a clear error.

A clean matrix is a dense array or a CSR array of float32 or float64 whose entries are finite, of
the sign and size that the models take, or NaN where that means missing.  It is checked once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .arrays import (
    as_array,
    float_dtype,
    inspect_csr,
    read_csr,
    refuse_annotated,
    require_real,
    to_native,
    unmask,
)
from .csr import DUPLICATES, with_values

# Products of three factors with the data must not overflow.
LARGEST = {np.dtype(np.float32): 1e9, np.dtype(np.float64): 1e90}
HINT = (
    "Bring the data, their weights, supervision_weight and a given init nearer to 1, by constant "
    "factors, or use float64 data."
)
SHIFT = "shift or clip them"


@dataclass(frozen=True, eq=False)
class CleanMatrix:
    """A matrix that :func:`check_matrix` has returned, for functions that would check it again.

    Those that fit or represent X take it in place of X.
    """

    matrix: Any


def check_matrix(
    X: Any,
    name: str,
    *,
    dtype: Any = None,
    allow_nan: bool = True,
    allow_negative: bool = False,
    limited: bool = True,
    n_threads: int = 1,
    remedy: str = SHIFT,
) -> Any:
    """Return `X` as a float ndarray (2-D, any strides) or a CSR array with summed duplicates.

    The rows of a CSR array need not be sorted.  Unless `limited`, any finite size will do.  Errors
    about negative entries end with a `remedy`.

    The result may share memory with `X` and must not be written to.
    """
    if sp.issparse(X):
        matrix, allow_nan = _check_sparse(X, name, dtype, n_threads), False
    else:
        matrix = _check_dense(as_array(X, name, allow_nan=allow_nan), name, dtype)
    rules: dict[str, Any] = {"allow_nan": allow_nan, "allow_negative": allow_negative}
    check_entries(matrix, name, limited=limited, remedy=remedy, **rules)
    return matrix


def _check_sparse(X: Any, name: str, dtype: Any, n_threads: int) -> sp.csr_array:
    csr, state = inspect_csr(X, name, n_threads)
    target = np.dtype(dtype) if dtype is not None else float_dtype(csr.dtype, name)
    result = with_values(csr, to_native(csr.data, target))
    if state == DUPLICATES:
        result = result.copy()
        result.sum_duplicates()
    return result


def _check_dense(array: Array, name: str, dtype: Any) -> Array:
    target = float_dtype(array.dtype, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (samples x features); got shape {array.shape}. "
            f"Reshape one sample with {name}.reshape(1, -1), one feature with "
            f"{name}.reshape(-1, 1)."
        )
    array = to_native(array, target if dtype is None else dtype)
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
    remedy: str = SHIFT,
) -> None:
    """Raise ValueError for entries that are negative, infinite, NaN or too large."""
    values: Array = matrix.data if sp.issparse(matrix) else matrix
    if not values.size:
        return
    low, high = np.min(values), np.max(values)
    if np.isnan(low):
        if not allow_nan:
            raise ValueError(
                f"{name} contains NaN at {_position(matrix, np.isnan)}. NaN means missing in the "
                "dense X or Y of a model only (for sparse data give weights.observed or "
                "weights.missing); here fill it, or leave it out."
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
            f"Negative values in data passed to {name}: the first is {name}{where}. Entries must "
            f"be nonnegative; {remedy}."
        )
    if limited and max(high, -low) > LARGEST[values.dtype]:
        largest = high if high > -low else low
        raise ValueError(
            f"{name} contains {largest:.3g}, too large to work with in {values.dtype} (limit "
            f"{LARGEST[values.dtype]:.0e}). Divide the data by a constant."
        )


def _position(matrix: Any, test: Callable[[Array], Array]) -> str:
    """Return the place of the first entry, in row order, that meets the test: "[i, j] = value"."""
    if sp.issparse(matrix):
        k = int(np.flatnonzero(test(matrix.data))[0])
        i = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        return f"[{i}, {matrix.indices[k]}] = {matrix.data[k]:g}"
    place = np.argwhere(test(matrix))[0].tolist()
    return f"{place} = {matrix[tuple(place)]:g}"


def readable(X: Any, name: str, allow_nan: bool = False) -> Any:
    """Return dense data that scikit-learn may check: without a mask, native numbers."""
    refuse_annotated(X, name)
    X = unmask(X, name, allow_nan=allow_nan)
    if isinstance(X, (list, tuple)):
        X = as_array(X, name)
    return to_native(X) if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" else X


def read_pattern(pattern: Any, name: str) -> sp.csr_array:
    """Return the pattern of weights, sparse or dense, as :func:`read_csr` does."""
    if sp.issparse(pattern):
        return read_csr(pattern, name)
    dense = as_array(pattern, name)
    require_real(dense.dtype, name)
    if dense.ndim != 2:
        raise ValueError(f"{name} must have two dimensions; got shape {dense.shape}.")
    return sp.csr_array(to_native(dense))


def require_finite(results: Mapping[str, Any], hint: str = HINT) -> None:
    """Raise ValueError for the first of some results that holds NaN or infinity.

    A result is a number, an array, or a list or mapping of them; what is not in memory is left out.
    """
    for name, value in results.items():
        if isinstance(value, Mapping):
            require_finite({f"{name}[{key!r}]": one for key, one in value.items()}, hint)
        elif isinstance(value, list):
            require_finite({f"{name}[{k}]": one for k, one in enumerate(value)}, hint)
        elif not _is_finite(value):
            kind = f"{value.dtype}" if hasattr(value, "dtype") else "float64"
            raise ValueError(
                f"{name} would hold NaN or infinity: numbers are outside of the range of {kind}. "
                f"{hint}"
            )


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    entries = value.data if sp.issparse(value) else value
    if not isinstance(entries, np.ndarray) or entries.dtype.kind != "f" or not entries.size:
        return True
    return bool(np.isfinite(entries.min()) and np.isfinite(entries.max()))  # no array of bools
