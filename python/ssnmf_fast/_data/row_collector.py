"""Rows of a sparse matrix that come block by block: in memory, or in a file once they are many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .csr_file import CsrFile
from .stored_array import plain_array

_INDEX = np.dtype(np.int32)


def bytes_of(n_entries: int, dtype: Any) -> int:
    """Return how many bytes so many entries take, with their columns."""
    return n_entries * int(_INDEX.itemsize + np.dtype(dtype).itemsize)


class RowCollector:
    """Blocks of rows (csr arrays, sorted), which go to files of a folder if there is no room.

    There is room in memory for `capacity` entries.  What is not filled of it takes none.
    """

    def __init__(self, folder: Path, n_columns: int, dtype: Any, capacity: int) -> None:
        self._paths = folder / "indices.bin", folder / "data.bin"
        self._arrays = np.empty(capacity, _INDEX), np.empty(capacity, dtype)
        self._n_columns = n_columns
        self._ends = [np.zeros(1, np.int64)]
        self._spilled = False

    def append(self, block: sp.csr_array) -> None:
        """Add rows below those before."""
        first = int(self._ends[-1][-1])
        self._ends.append(first + block.indptr[1:].astype(np.int64))
        parts = block.indices, block.data
        if not self._spilled and first + block.nnz > len(self._arrays[0]):
            self._write(tuple(array[:first] for array in self._arrays))
            self._arrays = np.empty(0, _INDEX), np.empty(0, self._arrays[1].dtype)
            self._spilled = True
        if self._spilled:
            self._write(parts)
            return
        for array, part in zip(self._arrays, parts, strict=True):
            array[first : first + block.nnz] = part

    def finish(self, block_memory: int) -> sp.csr_array | CsrFile:
        """Return all rows; of those on disk, blocks may take so many bytes in memory."""
        indptr = np.concatenate(self._ends)
        if self._spilled:
            files = [
                plain_array(path, array.dtype)
                for path, array in zip(self._paths, self._arrays, strict=True)
            ]
            return CsrFile(indptr, files[0], files[1], self._n_columns, block_memory)
        indices, data = (array[: indptr[-1]] for array in self._arrays)
        if len(data) <= np.iinfo(_INDEX).max:  # SciPy would make the indices long, too
            indptr = indptr.astype(_INDEX)
        return sp.csr_array((data, indices, indptr), (len(indptr) - 1, self._n_columns), copy=False)

    def _write(self, parts: tuple[Array, ...]) -> None:
        for path, array, part in zip(self._paths, self._arrays, parts, strict=True):
            with path.open("ab") as file:
                np.ascontiguousarray(part, array.dtype).tofile(file)
