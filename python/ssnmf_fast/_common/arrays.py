"""Types in signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Seed = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
LossName = Literal["frobenius", "kullback-leibler", "itakura-saito"]
Solver = Literal["auto", "mm", "mu", "hals"]
InitName = Literal["auto", "random", "least-squares", "nndsvda", "random-acol"]
TensorInit = Literal["auto", "random", "least-squares", "svd"] | Sequence[Array] | tuple[Any, ...]
Init = InitName | tuple[npt.ArrayLike, ...]
DTypeName = Literal["float32", "float64"]
DType = DTypeName | type[np.float32] | type[np.float64] | np.dtype[Any]


def bits_of(mask: Array) -> Array:
    """Return the bits of a mask, bool, (n x r), uint8, (n x ceil(r / 8))."""
    return np.packbits(mask, axis=1, bitorder="little")


def mask_of(bits: Array, n_columns: int) -> Array:
    """Return the mask of bits, bool, with so many columns."""
    return np.unpackbits(bits, axis=1, count=n_columns, bitorder="little").view(bool)
