"""The matrix that is fitted: chosen genes, divided by their scales, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import scale_rows, with_values
from .._data.border import check_integer
from .._data.csr_file import RowCollector, bytes_of
from ._source import Source

MEMORY = 1 << 30
_OF_BLOCKS = 4  # share of the memory that rows of a file take while a fit reads them


@contextmanager
def read_matrix(
    source: Source, genes: Array, scales: Array | None, memory: Any, folder: Any
) -> Iterator[Any]:
    """Give the matrix of some genes (cells x genes); a file for it is there within the context.

    It is dense or a csr array, or a CsrFile if it would take more than `memory` bytes.
    """
    memory = check_integer(memory, "memory", 1)
    n = source.shape[0]
    if source.in_memory:
        yield _chosen(source, genes, scales)
    elif not source.is_sparse and n * len(genes) * source.dtype.itemsize <= memory:
        yield _dense(source, genes, scales)
    else:
        with _collected(source, genes, memory, folder) as (rows, blocks):
            for block in blocks:
                rows.append(_divided(block, scales, source.dtype))
            yield rows.finish(max(1, memory // _OF_BLOCKS))


@contextmanager
def cells_of_size(source: Source, factors: Array, memory: int, folder: Any) -> Iterator[Any]:
    """Give the matrix of all genes times the factors of cells; else as :func:`read_matrix`."""
    with _collected(source, np.arange(source.shape[1]), memory, folder) as (rows, blocks):
        first = 0
        for block in blocks:
            last = first + block.shape[0]
            rows.append(scale_rows(block, factors[first:last]))
            first = last
        yield rows.finish(max(1, memory // _OF_BLOCKS))


@contextmanager
def _collected(
    source: Source, genes: Array, memory: int, folder: Any
) -> Iterator[tuple[RowCollector, Iterator[sp.csr_array]]]:
    """Give where blocks of rows are collected, and the blocks of some genes."""
    with TemporaryDirectory(prefix="ssnmf_fast_", dir=folder) as place:
        capacity = memory // bytes_of(1, source.dtype)
        most = source.most_entries(genes)
        if most > capacity and source.knows_entries(genes):
            capacity = 0  # all go to a file in any case
        rows = RowCollector(Path(place), len(genes), source.dtype, min(most, capacity))
        yield rows, _row_blocks(source, genes, Path(place), memory)


def _chosen(source: Source, genes: Array, scales: Array | None) -> Any:
    X = source.checked(source.matrix, genes)
    if scales is None:
        return X
    return _divided(X, scales, X.dtype) if sp.issparse(X) else (X / scales).astype(X.dtype)


def _dense(source: Source, genes: Array, scales: Array | None) -> Array:
    X = np.empty((source.shape[0], len(genes)), source.dtype)
    for piece in source.pieces(genes):
        X[piece.rows] = _divided(piece.values, scales, X.dtype).toarray()
    return X


def _divided(block: sp.csr_array, scales: Array | None, dtype: np.dtype[Any]) -> sp.csr_array:
    """Return a block of the dtype, whose columns are divided by their scales."""
    values = block.data if scales is None else block.data / scales[block.indices]
    return with_values(block, values.astype(dtype, copy=False))


def _row_blocks(source: Source, genes: Array, folder: Path, memory: int) -> Iterator[sp.csr_array]:
    """Give blocks of rows, from the first to the last."""
    if not source.by_columns:
        for piece in source.pieces(genes):
            yield piece.values
        return
    entries = np.dtype([("row", np.int32), ("gene", np.int32), ("value", source.dtype)])
    n_bytes = int(source.ends(genes)[-1]) * entries.itemsize
    n_parts = min(source.shape[0], 1 + n_bytes * _OF_BLOCKS // memory)
    cuts = np.linspace(0, source.shape[0], n_parts + 1).astype(np.int64)
    files = [folder / f"rows{number}.bin" for number in range(n_parts)]
    parts = list(zip(files, cuts[:-1], cuts[1:], strict=True))
    for piece in source.pieces(genes):
        for file, first, last in parts:
            _add_entries(file, piece.values[first:last], piece.genes.start, entries)
    for file, first, last in parts:
        found = np.fromfile(file, entries)
        file.unlink()
        places = found["row"], found["gene"]
        yield sp.coo_array((found["value"], places), (last - first, len(genes))).tocsr()


def _add_entries(file: Path, block: sp.csr_array, first: int, entries: np.dtype[Any]) -> None:
    """Write the entries of some columns, of which `first` is the first, below those before."""
    part = block.tocoo()
    found = np.empty(part.nnz, entries)
    found["row"], found["gene"], found["value"] = part.row, part.col + first, part.data
    with file.open("ab") as stream:
        found.tofile(stream)
