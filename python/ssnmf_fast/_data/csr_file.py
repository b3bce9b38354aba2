"""Sparse matrices in files: arrays in .npy or plain files or archives, read piece by piece."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._common.locks import result_of
from .._common.saved import npy_header
from .arrays import SORTED, OnDisk, check_dtype, float_dtype, inspect_csr, kernel_parts
from .border import check_entries, check_integer, require_ordinary

_READ_AT_ONCE = 1 << 16  # entries to convert

State = tuple[int, int]  # size of a file, and time of the last change


def _state(status: os.stat_result) -> State:
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class StoredArray:
    """A one-dimensional array in a file, which begins at `offset`."""

    path: Path
    offset: int
    dtype: np.dtype[Any]
    length: int
    state: State

    def read(self, first: int, last: int, dtype: npt.DTypeLike | None = None) -> Array:
        """Return the values from `first` to `last`, converted if a dtype is given."""
        with self.path.open("rb") as file:
            file.seek(self.offset + first * self.dtype.itemsize)
            if dtype is None or self.dtype == dtype:
                values = np.fromfile(file, self.dtype, count=last - first)
            else:
                values = self._converted(file, last - first, np.dtype(dtype))
            if _state(os.fstat(file.fileno())) != self.state:
                how = "Open it again with open_csr, and write to it only when no fit reads it."
                raise ValueError(f"{self.path} has changed since it was opened. {how}")
        if len(values) != last - first:
            raise ValueError(f"{self.path} ends before entry {last} of its array; save it again.")
        return values

    def _converted(self, file: BinaryIO, count: int, dtype: np.dtype[Any]) -> Array:
        values = np.empty(count, dtype=dtype)
        for begin in range(0, count, _READ_AT_ONCE):
            length = min(_READ_AT_ONCE, count - begin)
            piece = np.fromfile(file, self.dtype, count=length)
            if len(piece) and dtype.kind == "i":
                low, high = int(piece.min()), int(piece.max())
                limits = np.iinfo(dtype)
                if low < limits.min or high > limits.max:
                    index = f"{low if low < limits.min else high}; expected 0 to {limits.max}"
                    raise ValueError(f"{self.path} holds the index {index}. Save it again.")
            with np.errstate(over="ignore"):  # infinity is refused
                values[begin : begin + len(piece)] = piece
            if len(piece) < length:
                return values[: begin + len(piece)]
        return values


def stored_array(path: Path, offset: int) -> StoredArray:
    """Read the header of an array in .npy format that begins at `offset`."""
    with path.open("rb") as file:
        file.seek(offset)
        try:
            shape, dtype = npy_header(file)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} does not hold an array in .npy format.") from error
        if len(shape) != 1 or dtype.hasobject:
            raise ValueError(f"{path} holds an array of shape {shape}; expected one dimension.")
        state = _state(os.fstat(file.fileno()))
        return StoredArray(path.absolute(), file.tell(), dtype, shape[0], state)


_INDEX = np.dtype(np.int32)


def bytes_of(n_entries: int, dtype: npt.DTypeLike) -> int:
    return n_entries * int(_INDEX.itemsize + np.dtype(dtype).itemsize)


class RowCollector:
    """Blocks of sorted rows in memory, or in files of a folder above `capacity` entries."""

    def __init__(self, folder: Path, n_columns: int, dtype: npt.DTypeLike, capacity: int) -> None:
        self._paths = folder / "indices.bin", folder / "data.bin"
        self._arrays = np.empty(capacity, _INDEX), np.empty(capacity, dtype)
        self._n_columns = n_columns
        self._ends = [np.zeros(1, np.int64)]
        self._spilled = False

    def append(self, block: sp.csr_array) -> None:
        first = int(self._ends[-1][-1])
        self._ends.append(first + block.indptr[1:].astype(np.int64))
        arrays = block.indices, block.data
        if not self._spilled and first + block.nnz > len(self._arrays[0]):
            self._write(tuple(array[:first] for array in self._arrays))
            self._arrays = np.empty(0, _INDEX), np.empty(0, self._arrays[1].dtype)
            self._spilled = True
        if self._spilled:
            self._write(arrays)
            return
        for array, part in zip(self._arrays, arrays, strict=True):
            array[first : first + block.nnz] = part

    def finish(self, block_memory: int) -> sp.csr_array | CsrFile:
        """Return all rows; on disk, blocks take at most `block_memory` bytes in memory."""
        indptr = np.concatenate(self._ends)
        if self._spilled:
            pairs, n = zip(self._paths, self._arrays, strict=True), int(indptr[-1])
            indices, data = (StoredArray(p, 0, a.dtype, n, _state(p.stat())) for p, a in pairs)
            return CsrFile((indptr, indices, data), self._n_columns, block_memory)
        columns, values = (array[: indptr[-1]] for array in self._arrays)
        if len(values) <= np.iinfo(_INDEX).max:  # SciPy would make the indices long, too
            indptr = indptr.astype(_INDEX)
        shape = len(indptr) - 1, self._n_columns
        return sp.csr_array((values, columns, indptr), shape, copy=False)

    def _write(self, blocks: tuple[Array, ...]) -> None:
        for path, array, block in zip(self._paths, self._arrays, blocks, strict=True):
            with path.open("ab") as file:
                np.ascontiguousarray(block, array.dtype).tofile(file)


_LOCAL_HEADER = 30  # bytes of a zip member before its name; see the ZIP file format, 4.3.7
_PARTS = ("indptr", "indices", "data", "shape")
_MODULUS = 2**64
Parts: TypeAlias = tuple[Array, StoredArray, StoredArray]  # pointers, column indices, values


class CsrFile(OnDisk):
    """A sparse matrix that stays on disk; made by :func:`open_csr`.

    Attributes
    ----------
    shape : tuple of int
        (n, m).
    dtype : dtype
        float32 or float64; stored numbers are converted when they are read.
    nnz : int
        Number of stored entries.
    memory : int
        Limit of the bytes of rows in memory at a time.
    """

    def __init__(
        self, parts: Parts, n_columns: int, memory: int, dtype: npt.DTypeLike | None = None
    ) -> None:
        self.indptr, self._indices, self._data = self._parts = parts
        self.shape = (len(self.indptr) - 1, n_columns)
        self.dtype = float_dtype(parts[2].dtype, "data") if dtype is None else np.dtype(dtype)
        self.nnz, self.memory = int(self.indptr[-1]), memory
        # Two blocks at a time: one is worked on while the next is read.
        self.slices = equal_blocks(self.indptr, max(1, memory // bytes_of(2, self.dtype)))
        self._whole: sp.csr_array | None = None  # kept where one block holds all
        self.column_counts, self.total, self.squares, self.fingerprint = self._sums()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_whole": None}  # pickles hold no data

    def rows(self, rows: slice) -> sp.csr_array:
        """Read some rows, from start to stop, and check them: others may write to the file."""
        first, last = int(self.indptr[rows.start]), int(self.indptr[rows.stop])
        index = _INDEX if last - first <= np.iinfo(_INDEX).max else np.dtype(np.int64)
        indptr = (self.indptr[rows.start : rows.stop + 1] - first).astype(index)
        data = self._data.read(first, last, self.dtype)
        indices = self._indices.read(first, last, index)
        shape = (rows.stop - rows.start, self.shape[1])
        block = sp.csr_array((data, indices, indptr), shape, copy=False)
        try:
            block, state = inspect_csr(block, "X")
            check_entries(block, "X")
            if state != SORTED:
                what = "the column indices of a row are not sorted, or repeat"
                raise ValueError(f"{what}. Use X.sum_duplicates() before saving.")
        except ValueError as error:
            message = f"{self._data.path}, counting rows from {rows.start}: {error}"
            raise ValueError(message) from error
        return block

    def as_type(self, dtype: npt.DTypeLike) -> CsrFile:
        """Return the file with numbers of another dtype; this reads it again."""
        return CsrFile(self._parts, self.shape[1], self.memory, dtype)

    def blocks(self) -> Iterator[tuple[slice, sp.csr_array]]:
        """Read all rows, a block at a time, and the next block in the background."""
        if self._whole is not None:
            yield self.slices[0], self._whole
            return
        with ThreadPoolExecutor(1) as reader:
            pending = reader.submit(copy_context().run, self.rows, self.slices[0])
            for rows, following in zip_longest(self.slices, self.slices[1:]):
                block = result_of(pending)
                if following is not None:
                    pending = reader.submit(copy_context().run, self.rows, following)
                yield rows, block
        if len(self.slices) == 1:
            self._whole = block

    def _sums(self) -> tuple[Array, float, float, tuple[int, int]]:
        """Read and check everything once: counts of columns, sums, squares and fingerprint."""
        column_counts = np.zeros(self.shape[1], dtype=np.int64)
        total = squares = largest = 0.0
        first = second = 0
        for rows, block in self.blocks():
            hashes = kernels.sparse_fingerprint(*kernel_parts(block), rows.start, 1)
            first, second = (first + hashes[0]) % _MODULUS, (second + hashes[1]) % _MODULUS
            column_counts += np.bincount(block.indices, minlength=self.shape[1])
            largest = max(largest, float(block.data.max(initial=0)))
            total += float(block.data.sum(dtype=np.float64))
            squares += float(np.square(block.data, dtype=np.float64).sum())
        require_ordinary(largest, self.dtype, "X")
        return column_counts, total, squares, (first, second)


def chosen_blocks(X: CsrFile, rows: Array) -> Iterator[tuple[slice, sp.csr_array]]:
    """Read rows by their sorted numbers, a block at a time; yield their places in `rows`, too."""
    for block_rows, block in X.blocks():
        begin, end = np.searchsorted(rows, (block_rows.start, block_rows.stop))
        if begin < end:
            yield slice(begin, end), block[rows[begin:end] - block_rows.start]


def chosen_rows(X: CsrFile, rows: Array) -> sp.csr_array:
    """Read the rows where a boolean array, (n,), is true; they must fit into memory."""
    blocks = [block for _, block in chosen_blocks(X, np.flatnonzero(rows))]
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def equal_blocks(indptr: Array, entries: int) -> list[slice]:
    """Cut rows into blocks of at most `entries` entries, but at least one row."""
    ends = [0]
    while ends[-1] < len(indptr) - 1:
        most = int(np.searchsorted(indptr, indptr[ends[-1]] + entries, side="right")) - 1
        ends.append(max(most, ends[-1] + 1))
    return list(map(slice, ends, ends[1:]))


def open_csr(
    path: str | Path, *, n_features: int | None = None, memory: int = 1 << 28, dtype: Any = None
) -> CsrFile:
    """Open a sparse matrix in a file, to fit it without loading it into memory as a whole.

    :func:`factorize`, :func:`represent` and the estimators take it as X.  They read it once in
    every iteration, block by block; a file that changes during a fit raises ValueError.

    Parameters
    ----------
    path : str or path
        An uncompressed ``.npz`` of ``scipy.sparse.save_npz(path, X, compressed=False)``, or a
        directory with ``indptr.npy``, ``indices.npy`` and ``data.npy`` of a CSR matrix (n x m).
        Column indices of a row must be sorted and must not repeat.
    n_features : int, optional
        Number of columns m, for a directory without a ``shape.npy``.
    memory : int
        Limit of the bytes of rows in memory at a time, at least 1.
    dtype : {"float32", "float64"}, optional
        Dtype of the numbers; None takes that of the file, and float64 for integers.

    Raises
    ------
    ValueError, TypeError
        If it is not such a matrix, is compressed or not sorted, or has entries that are negative,
        infinite or NaN.  The whole file is read once to check this.
    FileNotFoundError
        If a file is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import ssnmf_fast as sf
    >>> X = sp.csr_array(np.random.default_rng(0).poisson(0.05, (1000, 200)))
    >>> sp.save_npz("X.npz", X, compressed=False)
    >>> fit = sf.factorize(sf.io.open_csr("X.npz", memory=100_000), n_components=5,
    ...                    random_state=0)
    >>> fit.S.shape
    (1000, 5)
    """
    memory, dtype = check_integer(memory, "memory", 1), check_dtype(dtype)
    path = Path(path)
    if path.is_dir():
        files = {name: path / f"{name}.npy" for name in _PARTS}
        arrays = {name: stored_array(file, 0) for name, file in files.items() if file.exists()}
    else:
        arrays = _archive(path)
    missing = [name for name in _PARTS[:3] if name not in arrays]
    if missing:
        kind = FileNotFoundError if path.is_dir() else ValueError
        raise kind(f"{path} is not a CSR matrix: it has no array {missing[0]!r}.")
    indptr = arrays["indptr"].read(0, arrays["indptr"].length)
    if "shape" in arrays:
        shape = arrays["shape"].read(0, arrays["shape"].length)
        if len(shape) != 2 or shape.dtype.kind not in "iu":
            raise ValueError(f"{path} has the shape {shape.tolist()}; expected two integers.")
        n_rows, n_columns = map(int, shape)
    elif n_features is not None:
        n_rows, n_columns = len(indptr) - 1, check_integer(n_features, "n_features", 1)
    else:
        raise ValueError(f"{path} has no shape.npy: give n_features, the number of columns.")
    indices, data = arrays["indices"], arrays["data"]
    if indptr.dtype.kind != "i" or indices.dtype not in (np.int32, np.int64):
        dtypes = f"{indptr.dtype} and {indices.dtype}; expected int32 or int64"
        raise TypeError(f"{path}: indptr and indices have dtypes {dtypes}.")
    if data.dtype.kind not in "biuf" or not data.dtype.isnative:
        raise TypeError(f"{path}: data has dtype {data.dtype}; expected a real numeric dtype.")
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{path}: indptr must have {n_rows + 1} values that rise from 0.")
    if not indptr[-1] == indices.length == data.length:
        lengths = f"{indices.length} indices and {data.length} values"
        raise ValueError(f"{path}: indptr ends at {indptr[-1]}, but there are {lengths}.")
    if 0 in (n_rows, n_columns):
        raise ValueError(f"{path} has shape {(n_rows, n_columns)}; expected at least one entry.")
    return CsrFile((indptr, indices, data), n_columns, memory, dtype)


def _archive(path: Path) -> dict[str, StoredArray]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is neither a directory of .npy files nor an .npz file.")
    arrays = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name not in _PARTS:
                continue
            if member.compress_type != zipfile.ZIP_STORED:
                how = "Save it with scipy.sparse.save_npz(path, X, compressed=False)."
                raise ValueError(f"{path} is compressed: no block can be read alone. {how}")
            file.seek(member.header_offset + _LOCAL_HEADER - 4)
            lengths = struct.unpack("<HH", file.read(4))  # of the name and of the extra field
            arrays[name] = stored_array(path, member.header_offset + _LOCAL_HEADER + sum(lengths))
    return arrays
