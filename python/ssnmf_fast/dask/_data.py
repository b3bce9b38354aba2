"""What a user gives, cut by rows, and the data of a fit: checked blocks on the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from distributed import Client, Future

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.csr_file import open_csr
from .._solver.weights import as_weights
from . import _build
from ._build import BlockInfo
from ._rows import with_title
from ._waiting import result_of

MEMORY = 1 << 28  # bytes of the rows of one file at a time

_BLOCKS = (Delayed, Future, str, Path)


@dataclass(frozen=True)
class Data:
    """Checked data on the workers, by blocks that have rows."""

    client: Client
    futures: list[Any]
    info: list[BlockInfo]
    rows: list[int]  # of all blocks, those without rows too
    positions: list[int]  # of the blocks that have rows

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows), self.info[0].n_columns

    @property
    def n_labels(self) -> int | None:
        return self.info[0].n_labels

    @property
    def dtype(self) -> Any:
        return np.dtype(self.info[0].dtype)

    @property
    def on_disk(self) -> bool:
        return any(each.on_disk for each in self.info)

    @property
    def bounds(self) -> list[int]:
        """First rows of the blocks that have rows, and the number of all rows."""
        before = list(accumulate(self.rows, initial=0))
        return [*(before[position] for position in self.positions), before[-1]]

    @property
    def lengths(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Mean numbers of nonzeros to a row and a column, of X and of Y."""
        n, m = self.shape
        of_X, of_Y = (sum(each.nonzeros[i] for each in self.info) for i in range(2))
        k = self.n_labels
        return (of_X // n, of_X // m), () if k is None else (of_Y // n, of_Y // k)

    def parts(self, chosen: Array) -> list[tuple[slice, Array]]:
        """Return for each block its part of sorted numbers of samples, and these as its rows."""
        places = np.searchsorted(chosen, self.bounds)
        return [
            (slice(begin, end), chosen[begin:end] - first)
            for (begin, end), first in zip(pairwise(places), self.bounds, strict=False)
        ]

    def of_all_blocks(self, futures: Sequence[Any], width: int) -> list[Any]:
        """Return blocks of rows for all blocks of the data, also for those without rows."""
        found = dict(zip(self.positions, futures, strict=True))
        return [
            found[i] if i in found else self.client.submit(np.zeros, (0, width), pure=False)
            for i in range(len(self.rows))
        ]

    def array(self, futures: Sequence[Any], width: int, dtype: Any) -> da.Array:
        """Return blocks of rows as a dask array, cut as the data are."""
        blocks = dict(zip(self.positions, futures, strict=True))
        parts = [
            da.from_delayed(blocks[i], (n, width), dtype)
            if i in blocks
            else da.zeros((n, width), dtype=dtype)
            for i, n in enumerate(self.rows)
        ]
        return da.concatenate(parts)


def load(
    client: Client,
    X: Any,
    threads: int,
    memory: int,
    *,
    Y: Any = None,
    X_weights: Any = None,
    Y_weights: Any = None,
    support: Any = None,
    S: Any = None,
) -> Data:
    """Let the workers load, check and convert the data."""
    if Y is None and Y_weights is not None:
        raise ValueError("Y_weights are given without Y; give Y, or leave them out.")
    blocks, rows = start_blocks(client, X, memory)
    if not sum(rows):
        raise ValueError("X must have at least one row; got none.")
    parts = [
        cut(Y, "Y", rows),
        cut_weights(X_weights, "X_weights", rows),
        cut_weights(Y_weights, "Y_weights", rows),
        cut(support, "S_support", rows),
        cut(S, "init[0] (S)", rows),
    ]
    return _check(client, blocks, rows, parts, threads)


def _check(
    client: Client, blocks: list[Any], rows: list[int], parts: list[list[Any]], threads: int
) -> Data:
    positions = [position for position, n in enumerate(rows) if n]
    mine = _compute(client, [[part[i] for part in parts] for i in positions])
    futures, bounds = [], list(accumulate(rows, initial=0))
    for position, given in zip(positions, mine, strict=True):
        title = f"block {position} (rows {bounds[position]} to {bounds[position + 1] - 1})"
        task = with_title, title, _build.check, blocks[position], *given, threads
        futures.append(client.submit(*task, pure=False))
    info = result_of(client, [client.submit(_build.info, each, pure=False) for each in futures])
    _check_equal(info, positions)
    return Data(client, futures, info, rows, positions)


def _compute(client: Client, parts: list[list[Any]]) -> list[list[Any]]:
    """Start what is lazy among the parts of blocks, also within the tuples of weights."""

    def walk(part: Any) -> Any:
        if isinstance(part, Delayed):
            return client.compute(part)
        if isinstance(part, tuple):
            return tuple(walk(each) for each in part)
        return part

    return [[walk(part) for part in each] for each in parts]


def _check_equal(info: Sequence[BlockInfo], positions: Sequence[int]) -> None:
    """Raise ValueError unless all blocks agree in what must be the same."""
    names = {
        "n_columns": "number of columns",
        "n_labels": "number of columns of Y",
        "dtype": "dtype",
    }
    for name, words in names.items():
        first = getattr(info[0], name)
        for position, each in zip(positions, info, strict=True):
            if getattr(each, name) != first:
                raise ValueError(
                    f"All blocks must have the same {words}; got {first} in block {positions[0]} "
                    f"and {getattr(each, name)} in block {position}."
                )
    if info[0].n_columns == 0 or info[0].n_labels == 0:
        raise ValueError("X, and Y where it is given, must have at least one column.")
    for position, each in zip(positions, info, strict=True):
        if not each.ordinary:
            raise ValueError(
                f"The largest entry of block {position} is too far from 1 for a fit in blocks; "
                "multiply X, or Y, by a constant that brings it nearer to 1."
            )


def shape_of(X: Any) -> tuple[int, int, Any]:
    """Return the numbers of rows and columns of a block, and its dtype."""
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        raise TypeError(
            "X must be a NumPy array, a SciPy sparse matrix or a pydata/sparse array; got "
            f"{type(X).__name__}."
        )
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions; got shape {shape}.")
    return int(shape[0]), int(shape[1]), X.dtype


def start_blocks(client: Client, X: Any, memory: int) -> tuple[list[Any], list[int]]:
    """Start to load X; return its blocks as futures, and the numbers of their rows."""
    given = blocks_of(X, "X")
    if given is None:
        raise TypeError(
            "X must be a dask array cut by rows, or a list of delayed objects, of futures or of "
            f"paths, one for each block of rows; got {type(X).__name__}. For data in memory, use "
            "ssnmf_fast.factorize."
        )
    if not given:
        raise ValueError("X must have at least one block of rows; got an empty list.")
    futures = _start(client, given, memory)
    sizes = X.chunks[0] if isinstance(X, da.Array) else (np.nan,)
    if not np.isnan(sizes).any():
        return futures, [int(size) for size in sizes]
    counted = [
        client.submit(with_title, f"block {i}", shape_of, future, pure=False)
        for i, future in enumerate(futures)
    ]
    return futures, [rows for rows, *_ in result_of(client, counted)]


def _start(client: Client, given: Sequence[Any], memory: int) -> list[Any]:
    """Return futures of blocks; files are opened by the workers."""
    lazy = [block for block in given if isinstance(block, Delayed)]
    computed = iter(client.compute(lazy)) if lazy else iter(())
    found = []
    for number, block in enumerate(given):
        if isinstance(block, Delayed):
            found.append(next(computed))
        elif isinstance(block, (str, Path)):
            task = with_title, f"block {number}", partial(open_csr, memory=memory), str(block)
            found.append(client.submit(*task, pure=False))
        else:
            found.append(block)
    return found


def blocks_of(Z: Any, name: str, columns: bool = True) -> list[Any] | None:
    """Return the blocks of what is cut by rows already, or None for an array of all rows."""
    if isinstance(Z, da.Array):
        Z = whole_rows(Z, name, columns)
        return list(Z.to_delayed(optimize_graph=True).ravel())
    if isinstance(Z, (list, tuple)) and all(isinstance(block, _BLOCKS) for block in Z):
        return list(Z)
    return None


def whole_rows(Z: da.Array, name: str, columns: bool = True) -> da.Array:
    """Return a dask array that is cut by rows only."""
    if Z.ndim != (2 if columns else 1):
        raise ValueError(f"{name} must have {1 + columns} dimensions; got shape {Z.shape}.")
    if not columns or Z.numblocks[1] <= 1:
        return Z
    warn_user(
        f"{name} is cut by columns as well, into {Z.numblocks[1]} pieces of each block of rows; "
        "they are put together, which copies the data and sends them from worker to worker. Use "
        "rechunk({1: -1}) before, once.",
        UserWarning,
    )
    return Z.rechunk({1: -1})


def cut(Z: Any, name: str, rows: Sequence[int], columns: bool = True) -> list[Any]:
    """Return what belongs to each block of X."""
    if Z is None:
        return [None] * len(rows)
    if isinstance(Z, da.Array) and not np.isnan(Z.shape[0]):
        _check_rows(Z.shape[0], name, rows)
        if Z.chunks[0] != tuple(rows):
            Z = Z.rechunk({0: tuple(rows)})
    blocks = blocks_of(Z, name, columns)
    if blocks is not None:
        if len(blocks) != len(rows):
            raise ValueError(
                f"{name} must have the blocks of X, with the same rows; got {len(blocks)} blocks, "
                f"and X has {len(rows)}."
            )
        return blocks
    Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
    _check_rows(Z.shape[0] if Z.ndim else 0, name, rows)
    return [Z[begin:end] for begin, end in pairwise(accumulate(rows, initial=0))]


def _check_rows(found: int, name: str, rows: Sequence[int]) -> None:
    if found != sum(rows):
        raise ValueError(
            f"{name} must have the rows of X; got {found} rows, and X has {sum(rows)}."
        )


def cut_weights(given: Any, name: str, rows: Sequence[int]) -> list[Any]:
    """Return the arguments of `_build.weights_of` for each block: weights, and what has rows."""
    if given is None:
        return [None] * len(rows)
    weights = as_weights(given, name)
    vector = weights.by_vector
    parts = cut(weights.by_rows, f"{name}.rows" if vector else name, rows, columns=not vector)
    return [(weights.with_part(None), part) for part in parts]
