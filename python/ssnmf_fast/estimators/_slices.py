"""Slices of a tensor as `partial_fit` gets them: checked, and before all other modes."""

from __future__ import annotations

import numpy as np

from .._data.checks import check_integer
from .._data.tensors import SparseTensor
from .._solver.tensor_terms import Tensor


def slices_first(
    X: Tensor, mode: int, shape: tuple[int, ...] | None, one_slice: bool | None
) -> tuple[Tensor, int]:
    """Return new slices as the first mode of a tensor, and the mode of slices counted from 0.

    `shape` has the lengths of earlier calls.  `one_slice` says whether X lacks the mode; None
    leaves that to the number of modes, where there were earlier calls.
    """
    n_modes = len(X.shape)
    if one_slice is None:
        if shape is None and n_modes == 2:
            raise ValueError(
                f"X has two modes, shape {X.shape}: say by one_slice=True that it is one slice of "
                "a tensor of three, or by one_slice=False that it is a matrix of slices."
            )
        one_slice = shape is not None and n_modes == len(shape) - 1
    n_modes += one_slice
    mode = counted(mode, "stream_mode", n_modes)
    others = X.shape if one_slice else X.shape[:mode] + X.shape[mode + 1 :]
    if shape is not None and (n_modes != len(shape) or others != shape[:mode] + shape[mode + 1 :]):
        lengths = ", ".join("any" if k == mode else str(n) for k, n in enumerate(shape))
        raise ValueError(
            f"X has shape {X.shape}; expected lengths ({lengths}), those of earlier slices in all "
            f"modes but {mode}, or one slice without that mode."
        )
    if isinstance(X, SparseTensor):
        return X.with_leading_mode() if one_slice else X.leading(mode), mode
    return X[None] if one_slice else np.ascontiguousarray(np.moveaxis(X, mode, 0)), mode


def counted(mode: int, name: str, n_modes: int) -> int:
    """Return a mode counted from 0; raise ValueError if there is no such mode."""
    mode = check_integer(mode, name, -n_modes, n_modes - 1)
    return mode % n_modes
