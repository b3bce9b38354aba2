"""Rows of a sparse matrix that come block by block: in memory, or in a file once they are many."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .csr_file import CsrFile
from .stored_array import plain_array

_INDEX = np.dtype(np.int32)


class RowCollector:
    """Blocks of rows, which go to files of a folder when they take more than `memory` bytes.

    The blocks, csr arrays whose rows are sorted, are kept and must not be changed later.
    """

    def __init__(self, folder: Path, n_columns: int, dtype: Any, memory: int) -> None:
        self._paths = {name: folder / f"{name}.bin" for name in ("indices", "data")}
        self._n_columns = n_columns
        self._dtype = np.dtype(dtype)
        self._memory = memory
        self._used = 0
        self._lengths: list[Array] = []
        self._parts: list[tuple[Array, Array]] = []
        self._spilled = False

    def append(self, block: sp.csr_array) -> None:
        """Add rows below those before."""
        self._lengths.append(np.diff(block.indptr))
        part = (block.indices.astype(_INDEX, copy=False), block.data.astype(self._dtype))
        self._parts.append(part)
        self._used += sum(array.nbytes for array in part)
        if self._spilled or self._used > self._memory:
            self._spill()

    def finish(self, block_memory: int) -> sp.csr_array | CsrFile:
        """Return all rows; of those on disk, blocks may take so many bytes in memory."""
        lengths = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        indptr = np.cumsum(lengths, dtype=np.int64)
        if self._spilled:
            indices = plain_array(self._paths["indices"], _INDEX)
            data = plain_array(self._paths["data"], self._dtype)
            return CsrFile(indptr, indices, data, self._n_columns, block_memory)
        arrays = np.empty(indptr[-1], _INDEX), np.empty(indptr[-1], self._dtype)
        self._parts.reverse()
        first = 0
        while self._parts:  # each is given back once it is copied, so that nothing is held twice
            part = self._parts.pop()
            for whole, piece in zip(arrays, part, strict=True):
                whole[first : first + len(piece)] = piece
            first += len(part[0])
        shape = len(indptr) - 1, self._n_columns
        return sp.csr_array((arrays[1], arrays[0], indptr), shape, copy=False)

    def _spill(self) -> None:
        mode = "ab" if self._spilled else "wb"
        self._spilled = True
        with self._paths["indices"].open(mode) as indices, self._paths["data"].open(mode) as data:
            for part in self._parts:
                _write(part[0], indices)
                _write(part[1], data)
        self._parts.clear()


def _write(values: Array, file: IO[bytes]) -> None:
    np.ascontiguousarray(values).tofile(file)
