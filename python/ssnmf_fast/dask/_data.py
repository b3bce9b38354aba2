"""What a user gives, cut by rows, and the data of a fit: checked blocks on the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from .._data.arrays import check_dtype
from .._data.border import check_integer
from .._data.csr_file import open_csr
from .._solver.build import as_weights
from . import _block as _build
from ._block import BlockInfo
from ._rows import with_title
from ._waiting import result_of

MEMORY = 1 << 28  # bytes of the rows of one file at a time

_BLOCKS = (Delayed, Future, str, Path)


@dataclass(frozen=True)
class Data(BlockInfo):
    """Checked data on the workers, by blocks that have rows, and the info of all of them."""

    client: Client
    futures: list[Any]
    rows: list[int]  # of all blocks, those without rows too
    positions: list[int]  # of the blocks that have rows
    checkpoint: str | Path | None = None  # of a fit to them
    chosen: Array | None = None  # sorted numbers of samples, where not all are meant

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows) if self.chosen is None else len(self.chosen), self.n_columns

    @property
    def bounds(self) -> list[int]:
        """First rows of the blocks that have rows, and the number of all rows."""
        before = list(accumulate(self.rows, initial=0))
        return [*(before[position] for position in self.positions), before[-1]]

    @property
    def lengths(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Mean numbers of nonzeros to a row and a column, of X and of Y."""
        n, m = self.shape
        (of_X, of_Y), k = self.nonzeros, self.n_labels
        return (of_X // n, of_X // m), () if k is None else (of_Y // n, of_Y // k)

    def parts(self, chosen: Array, *arrays: Array, everywhere: bool = False) -> list[Any]:
        """Return which rows of each block are chosen, by sorted numbers, and their part of arrays.

        None for a block without such rows, unless parts are asked for `everywhere`.
        """
        places = np.searchsorted(chosen, self.bounds)
        return [
            (chosen[a:b] - first, *(each[a:b] for each in arrays)) if a < b or everywhere else None
            for (a, b), first in zip(pairwise(places), self.bounds, strict=False)
        ]

    def start(self, task: Callable[..., Any], *shared: Any, parts: Any = None) -> list[Any]:
        """Start a task for each block, with its part, a tuple; None leaves a block out."""
        return [
            self.client.submit(task, block, *part, *shared, pure=False)
            for block, part in zip(self.futures, parts or [()] * len(self.futures), strict=True)
            if part is not None
        ]

    def array(self, futures: Sequence[Any], width: int, dtype: Any) -> da.Array:
        """Return blocks of rows as a dask array, cut as the data are."""
        blocks = zip(futures, self.positions, strict=True)
        shapes = [(each, (self.rows[position], width)) for each, position in blocks]
        return da.concatenate([da.from_delayed(*each, dtype) for each in shapes])

    def with_weights(self, X_weights: Any, n_threads: int | None) -> Data:
        """Return the same with weights of X."""
        if X_weights is None:
            return self
        return load(self.client, self, count_threads(n_threads), X_weights=X_weights)


def count_threads(n_threads: int | None) -> int:
    """Return the threads of each task: a worker runs several tasks at a time."""
    return 1 if n_threads is None else check_integer(n_threads, "n_threads", 1)


def load(
    client: Client,
    X: Any,
    threads: int,
    memory: int = MEMORY,
    *,
    Y: Any = None,
    X_weights: Any = None,
    Y_weights: Any = None,
    support: Any = None,
    S: Any = None,
    covariates: Any = None,
    dtype: Any = None,
) -> Data:
    """Let the workers load, check and convert what a user gave, or data without other parts."""
    if Y is None and Y_weights is not None:
        raise ValueError("Y_weights are given without Y; give Y, or leave them out.")
    dtype = check_dtype(dtype)
    if isinstance(X, Data):
        blocks, rows = dict(zip(X.positions, X.futures, strict=True)), X.rows
    else:
        futures, rows = start_blocks(client, X, memory)
        blocks = dict(enumerate(futures))
    if not sum(rows):
        raise ValueError("X must have at least one row; got none.")
    parts = [
        cut(Y, "Y", rows),
        cut_weights(X_weights, "X_weights", rows),
        cut_weights(Y_weights, "Y_weights", rows),
        cut(support, "S_support", rows),
        cut(S, "init[0] (S)", rows),
        cut(covariates, "covariates", rows),
    ]
    positions = [position for position, n in enumerate(rows) if n]
    futures, bounds = [], list(accumulate(rows, initial=0))
    for position in positions:
        title = f"block {position} (rows {bounds[position]} to {bounds[position + 1] - 1})"
        given = [_start_lazy(client, part[position]) for part in parts]
        task = with_title, title, _build.check, blocks[position], *given, threads, dtype
        futures.append(client.submit(*task, pure=False))
    info = result_of(client, [client.submit(_build.info, each, pure=False) for each in futures])
    _check_equal(info, positions)
    on_disk = any(each.on_disk for each in info)
    nonzeros = tuple(sum(each.nonzeros[i] for each in info) for i in range(2))
    of_all = vars(info[0]) | {"on_disk": on_disk, "nonzeros": nonzeros}
    return Data(**of_all, client=client, futures=futures, rows=rows, positions=positions)


def _start_lazy(client: Client, part: Any) -> Any:
    """Return a future of what is lazy, also within the tuple of weights."""
    if isinstance(part, tuple):
        return tuple(_start_lazy(client, each) for each in part)
    return client.compute(part) if isinstance(part, Delayed) else part


def _check_equal(info: Sequence[BlockInfo], positions: Sequence[int]) -> None:
    """Raise ValueError unless all blocks agree in what must be the same."""
    words = {"n_columns": "number of columns", "n_labels": "number of columns of Y"}
    words["n_fixed"] = "number of columns of covariates"
    for name in ("n_columns", "n_labels", "dtype", "n_fixed"):
        first = getattr(info[0], name)
        for position, each in zip(positions, info, strict=True):
            if getattr(each, name) != first:
                raise ValueError(
                    f"All blocks must have the same {words.get(name, name)}; got {first} in block "
                    f"{positions[0]} and {getattr(each, name)} in block {position}."
                )
    if info[0].n_columns == 0 or info[0].n_labels == 0:
        raise ValueError("X, and Y where it is given, must have at least one column.")


def _count_rows(X: Any) -> int:
    """Return the number of rows of a block of X."""
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        raise TypeError(
            "X must be a NumPy array, a SciPy sparse matrix or a pydata/sparse array; got "
            f"{type(X).__name__}."
        )
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions; got shape {shape}.")
    return int(shape[0])


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
    lazy = [block for block in given if isinstance(block, Delayed)]
    computed = iter(client.compute(lazy) if lazy else ())
    futures = []
    for number, block in enumerate(given):
        if isinstance(block, Delayed):
            block = next(computed)
        elif isinstance(block, (str, Path)):  # the workers open files
            task = with_title, f"block {number}", partial(open_csr, memory=memory), str(block)
            block = client.submit(*task, pure=False)
        futures.append(block)
    sizes = X.chunks[0] if isinstance(X, da.Array) else (np.nan,)
    if not np.isnan(sizes).any():
        return futures, [int(size) for size in sizes]
    counted = [
        client.submit(with_title, f"block {i}", _count_rows, future, pure=False)
        for i, future in enumerate(futures)
    ]
    return futures, result_of(client, counted)


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
        if len(blocks) == np.count_nonzero(rows):  # those without rows may be left out
            given = iter(blocks)
            return [next(given) if n else None for n in rows]
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
