"""Types in signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array: TypeAlias = npt.NDArray[Any]
Factors: TypeAlias = Mapping[str, Array]  # by name
Matrix: TypeAlias = Array | sp.csr_array  # clean
MatrixLike: TypeAlias = npt.ArrayLike | sp.sparray | sp.spmatrix  # as users give it
VectorLike: TypeAlias = npt.ArrayLike | None  # weights, or names
LabelsLike: TypeAlias = MatrixLike | Sequence[Any] | None
TablesLike: TypeAlias = Mapping[str, MatrixLike] | None
Seed: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
Solver = Literal["auto", "mm", "mu", "hals"]


class OwnLoss(Protocol):
    """A loss of :mod:`ssnmf_fast.extend`."""

    name: str
    exponents: tuple[float, float]


LossName: TypeAlias = Literal["frobenius", "kullback-leibler", "itakura-saito"] | OwnLoss


def bits_of(mask: Array) -> Array:
    """Return the bits of a mask, bool, (n x r), uint8, (n x ceil(r / 8))."""
    return np.packbits(mask, axis=1, bitorder="little")


def mask_of(bits: Array, n_columns: int) -> Array:
    """Return the boolean mask of packed bits, with `n_columns` columns."""
    return np.unpackbits(bits, axis=1, count=n_columns, bitorder="little").view(bool)
