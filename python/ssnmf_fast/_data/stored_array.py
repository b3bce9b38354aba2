"""One-dimensional arrays in .npy or plain files, or inside of archives, read piece by piece."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._common.arrays import Array

_READ_AT_ONCE = 1 << 16  # entries that are converted
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

State = tuple[int, int]  # size of a file, and when it was last written to


def _state(file: BinaryIO) -> State:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class StoredArray:
    """A one-dimensional array inside of a file, from `offset` on."""

    path: Path
    offset: int
    dtype: np.dtype[Any]
    length: int
    state: State

    def read(self, first: int, last: int, dtype: Any = None) -> Array:
        """Return the values from `first` to `last`, of another dtype if one is given."""
        with self.path.open("rb") as file:
            file.seek(self.offset + first * self.dtype.itemsize)
            if dtype is None or self.dtype == dtype:
                values = np.fromfile(file, self.dtype, count=last - first)
            else:
                values = self._converted(file, last - first, np.dtype(dtype))
            if _state(file) != self.state:
                raise ValueError(
                    f"{self.path} has changed since it was opened. Open it again with open_csr, "
                    "and write to it only when no fit reads it."
                )
        if len(values) != last - first:
            raise ValueError(f"{self.path} ends before entry {last} of its array; save it again.")
        return values

    def _converted(self, file: BinaryIO, count: int, dtype: np.dtype[Any]) -> Array:
        """Read in pieces that stay in a cache: what is stored takes no memory beside the result."""
        values = np.empty(count, dtype=dtype)
        for begin in range(0, count, _READ_AT_ONCE):
            wanted = min(_READ_AT_ONCE, count - begin)
            piece = np.fromfile(file, self.dtype, count=wanted)
            if len(piece) and dtype.kind == "i":
                low, high = int(piece.min()), int(piece.max())
                limits = np.iinfo(dtype)
                if low < limits.min or high > limits.max:
                    raise ValueError(
                        f"{self.path} holds the index {low if low < limits.min else high}; "
                        f"expected 0 to {limits.max}. Save it again."
                    )
            with np.errstate(over="ignore"):  # infinity is refused
                values[begin : begin + len(piece)] = piece
            if len(piece) < wanted:
                return values[: begin + len(piece)]
        return values


def stored_array(path: Path, offset: int) -> StoredArray:
    """Read the header of an array in .npy format that begins at `offset`."""
    with path.open("rb") as file:
        file.seek(offset)
        try:
            shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} does not hold an array in .npy format.") from error
        if len(shape) != 1 or dtype.hasobject:
            raise ValueError(f"{path} holds an array of shape {shape}; expected one dimension.")
        return StoredArray(path, file.tell(), dtype, shape[0], _state(file))


def plain_array(path: Path, dtype: np.dtype[Any]) -> StoredArray:
    """Return the array in a file that holds its values and nothing else."""
    with path.open("rb") as file:
        state = _state(file)
    return StoredArray(path, 0, dtype, state[0] // dtype.itemsize, state)
