"""Dense arrays as callers give them: without a mask, of real numbers, in this machine's order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array


def refuse_annotated(X: Any, name: str) -> None:
    """Raise TypeError for objects of anndata: NumPy would read them element by element."""
    kind = type(X).__name__
    if not type(X).__module__.startswith("anndata") or isinstance(X, np.ndarray):
        return
    if kind == "AnnData":
        way = f"Give one of its matrices, for example {name}.layers['counts'] or {name}.X."
    else:
        way = (
            f"Give {name}.to_memory(), or, for more than memory holds, save it with "
            "scipy.sparse.save_npz(path, matrix, compressed=False) and open the file with "
            "ssnmf_fast.open_csr."
        )
    raise TypeError(f"{name} is an object of anndata ({kind}), not a matrix. {way}")


def as_array(values: Any, name: str) -> Array:
    """Return an array, of any dtype and shape, without a mask.

    Raises
    ------
    ValueError, TypeError
        If rows have different lengths, if entries are masked, or if NumPy finds no array in it.
    """
    refuse_annotated(values, name)
    values = unmasked(values, name, allow_nan=False)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} is no array: its rows have different lengths. Give as many values in each."
        ) from error
    if array.ndim == 0 and array.dtype == object:
        raise TypeError(f"{name} must be an array; got {type(values).__name__}.")
    return array


def unmasked(X: Any, name: str, *, allow_nan: bool) -> Any:
    """Return a masked array without its mask, with NaN where that stands for a missing entry."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    if not allow_nan:
        raise ValueError(
            f"{name} is a masked array with masked entries, which cannot be missing here. Fill "
            "them first, with numpy.ma.filled, or leave them out."
        )
    return np.ma.filled(X.astype(floating(X.dtype, name)), np.nan)


def require_real(dtype: Any, name: str) -> None:
    """Raise TypeError unless a dtype is one of real numbers or bool."""
    if dtype.kind not in "biuf":
        raise TypeError(
            f"{name} has dtype {dtype}; expected a real numeric dtype (float32, float64, integers "
            f"or bool). Convert it first, for example with {name}.astype(float)."
        )


def floating(dtype: Any, name: str) -> np.dtype[Any]:
    """Return the floating dtype to work in: float32 for itself, float64 for all else."""
    require_real(dtype, name)
    single = dtype.newbyteorder("=") == np.float32
    return np.dtype(np.float32 if single else np.float64)


def native(array: Array) -> Array:
    """Return an array in the byte order of this machine, aligned; float16 becomes float64."""
    dtype = array.dtype.newbyteorder("=")
    if dtype == np.float16:
        dtype = np.dtype(np.float64)
    if array.dtype == dtype and array.dtype.isnative and array.flags.aligned:
        return array
    return np.array(array, dtype=dtype)
