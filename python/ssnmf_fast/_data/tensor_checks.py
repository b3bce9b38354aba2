"""Tensors as callers give them, dense or sparse, checked before any code that trusts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import short
from .arrays import as_array, check_dtype, float_dtype, read_sparse, to_native, unmask
from .border import check_entries
from .checks import check_integer
from .tensors import SparseTensor, in_order

_MOST = np.iinfo(np.int32).max  # what the indices of the kernels can count


def check_tensor(X: Any, name: str, dtype: Any = None) -> Array | SparseTensor:
    """Return a dense tensor as a C-contiguous array, which may have NaN, or a sparse one.

    The result may share memory with `X` and must not be written to.

    Raises
    ------
    ValueError, TypeError
        For anything that is no nonnegative finite tensor of two modes or more.
    """
    parts = coordinate_parts(X, name)
    if parts is not None:
        return _check_sparse(*parts, name, dtype)
    array = as_array(unmask(X, name, allow_nan=True), name)
    if array.ndim < 2:
        raise ValueError(f"{name} must have two modes or more; got shape {array.shape}.")
    _check_lengths(array.shape, name)
    target = check_dtype(dtype, float_dtype(array.dtype, name))
    array = np.ascontiguousarray(to_native(array, target))
    check_entries(array, name, allow_nan=True)
    return array


def coordinate_parts(X: Any, name: str) -> tuple[Any, Any, Any] | None:
    """Return coordinates, values and the shape of a sparse tensor; None for what is dense."""
    if isinstance(X, (tuple, list)):
        depths = [depth(part) for part in X] if len(X) in (2, 3) else []
        if depths == [2, 1]:
            raise ValueError(
                f"{name} is a pair of coordinates and values without a shape; give "
                "(coords, values, shape)."
            )
        return (X[0], X[1], X[2]) if depths == [2, 1, 1] else None
    if sp.issparse(X) and len(X.shape) == 2:
        X = read_sparse(X, name).tocoo()  # SciPy would follow wrong indices
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


def _check_sparse(coords: Any, values: Any, shape: Any, name: str, dtype: Any) -> SparseTensor:
    lengths = tuple(np.asarray(shape).tolist())
    if len(lengths) < 2 or not all(isinstance(n, int) for n in lengths):
        raise ValueError(f"{name} must have a shape of two or more integers; got {short(shape)}.")
    _check_lengths(lengths, name)
    values = as_array(values, f"the values of {name}")
    target = check_dtype(dtype, float_dtype(values.dtype, f"the values of {name}"))
    values = to_native(values, target)
    places = as_array(coords, f"the coordinates of {name}")
    if places.shape != (len(lengths), *values.shape) or values.ndim != 1:
        raise ValueError(
            f"{name} has coordinates of shape {places.shape} and values of shape {values.shape}; "
            f"expected ({len(lengths)}, number of entries) and (number of entries,) for the shape "
            f"{lengths}."
        )
    if places.dtype.kind not in "iu":
        if places.size:
            raise TypeError(f"{name} has coordinates of dtype {places.dtype}; expected integers.")
        places = places.astype(np.int32)
    for mode, (indices, length) in enumerate(zip(places, lengths, strict=True)):
        outside = (indices < 0) | (indices >= length)
        if outside.any():
            entry = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"entry {entry} of {name} has the coordinates {_listed(places[:, entry])}; mode "
                f"{mode} has indices from 0 to {length - 1}."
            )
    _check_values(values, places, name)
    if not values.all():  # stored zeros are as those that are not
        places, values = places[:, values > 0], values[values > 0]
    return in_order(places.astype(np.int32), np.ascontiguousarray(values), lengths)


def _check_values(values: Array, places: Array, name: str) -> None:
    """Raise ValueError for entries that are negative, infinite or NaN; name the first."""
    for wrong, what, mend in (
        (np.isnan(values), "NaN", "leave the entry out, or name it in weights.missing(...)"),
        (np.isinf(values), "infinity", "replace it by a finite number"),
        (values < 0, "a negative value", "nonnegative factorization needs values >= 0"),
    ):
        if wrong.any():
            entry = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"{name} has {what} at {_listed(places[:, entry])}: {values[entry]:g}; {mend}."
            )
    check_entries(values[None], name)  # what is too large


def depth(part: Any) -> int:
    """Return the number of dimensions of an array or of nested sequences."""
    if hasattr(part, "ndim"):
        return int(part.ndim)
    if not isinstance(part, (tuple, list)):
        return 0
    return 1 + (depth(part[0]) if part else 0)


def _check_lengths(shape: tuple[int, ...], name: str) -> None:
    if min(shape) < 1 or max(shape) > _MOST:
        raise ValueError(
            f"{name} has shape {shape}; expected lengths from 1 to {_MOST} in every mode."
        )


def _listed(place: Array) -> str:
    return f"[{', '.join(str(int(index)) for index in place)}]"


def check_mode(mode: Any, name: str, n_modes: int) -> int:
    """Return a mode counted from 0; negative ones count from the last."""
    return check_integer(mode, name, -n_modes, n_modes - 1) % n_modes
