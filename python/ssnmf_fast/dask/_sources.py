"""What a user gives, cut by rows: dask arrays, lists of blocks, files, and arrays of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from distributed import Client, Future

from .._common.arrays import Array
from .._common.warn import warn_user
from .._solver.weights import as_weights
from . import _block, _build
from ._waiting import result_of

_BLOCKS = (Delayed, Future, str, Path)


@dataclass(frozen=True)
class Source:
    """The blocks of X as futures, and the numbers of their rows."""

    futures: list[Any]
    rows: list[int]

    @property
    def bounds(self) -> Array:
        """First row of each block, and the number of all rows."""
        return np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)


def rows_in(X: Any) -> int:
    """Return the number of rows of a block."""
    return int(check_block(X).shape[0])


def check_block(X: Any) -> Any:
    """Return a block of X, which must have rows and columns."""
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        raise TypeError(
            f"X is a {type(X).__name__}; expected a NumPy array, a SciPy sparse matrix or a "
            "pydata/sparse array, with two dimensions."
        )
    if len(shape) != 2:
        raise ValueError(f"X has shape {shape}; expected two dimensions.")
    return X


def source(client: Client, X: Any, memory: int) -> Source:
    """Start to load X; return its blocks."""
    given = blocks_of(X, "X")
    if given is None:
        raise TypeError(
            f"X is a {type(X).__name__}; expected a dask array cut by rows, or a list of delayed "
            "objects, of futures or of paths, one for each block of rows. For data in memory, "
            "ssnmf_fast.factorize does the same."
        )
    if not given:
        raise ValueError("X is an empty list; expected at least one block of rows.")
    futures = started(client, given, memory)
    sizes = X.chunks[0] if isinstance(X, da.Array) else (np.nan,)
    if not np.isnan(sizes).any():
        return Source(futures, [int(size) for size in sizes])
    counted = [
        client.submit(_block.titled, f"block {i}", rows_in, f, pure=False)
        for i, f in enumerate(futures)
    ]
    return Source(futures, result_of(client, counted))


def started(client: Client, given: Sequence[Any], memory: int) -> list[Any]:
    """Return futures of blocks; files are opened by the workers."""
    lazy = [block for block in given if isinstance(block, Delayed)]
    computed = iter(client.compute(lazy)) if lazy else iter(())
    found = []
    for number, block in enumerate(given):
        if isinstance(block, Delayed):
            found.append(next(computed))
        elif isinstance(block, (str, Path)):
            task = client.submit(
                _block.titled, f"block {number}", _build.opened, str(block), memory, pure=False
            )
            found.append(task)
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
        raise ValueError(f"{name} has shape {Z.shape}; expected {1 + columns} dimensions.")
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
                f"{name} has {len(blocks)} blocks and X has {len(rows)}; expected as many, with "
                "the same rows."
            )
        return blocks
    Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
    _check_rows(Z.shape[0] if Z.ndim else 0, name, rows)
    bounds = np.concatenate([[0], np.cumsum(rows)]).astype(int)
    return [Z[begin : begin + n] for begin, n in zip(bounds[:-1], rows, strict=True)]


def _check_rows(found: int, name: str, rows: Sequence[int]) -> None:
    if found != sum(rows):
        raise ValueError(f"{name} has {found} rows and X has {sum(rows)}; expected as many.")


def cut_weights(given: Any, name: str, rows: Sequence[int]) -> list[Any]:
    """Return the weights of each block without what has its rows, and that; see `weights_of`."""
    if given is None:
        return [None] * len(rows)
    weights = as_weights(given, name)
    vector = weights.by_vector
    parts = cut(weights.by_rows, f"{name}.rows" if vector else name, rows, columns=not vector)
    return [(weights.with_part(None), part) for part in parts]
