"""Samples on a cluster, as the estimators see them: blocks of rows, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._models.represent import represent
from ._build import BlockInput
from ._cluster import check_client
from ._data import Data, check_block, load, start_blocks
from ._rows import with_title
from ._waiting import lasting, result_of

MEMORY = 1 << 28  # bytes of the rows of one file at a time


@dataclass(frozen=True)
class Samples:
    """All samples of a fit, or with `chosen` (sorted numbers) some of them.

    `futures` are the blocks as they were given, and `rows` the numbers of their rows.
    """

    client: Client
    futures: list[Any]
    rows: list[int]
    n_columns: int
    dtype: Any
    memory: int = MEMORY
    checkpoint: str | Path | None = None
    chosen: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows) if self.chosen is None else len(self.chosen), self.n_columns

    def only(self, rows: Array) -> Samples:
        """Return some samples, of a mask of all of them."""
        return replace(self, chosen=np.flatnonzero(rows))

    def loaded(self, X_weights: Any, n_threads: int | None) -> Data:
        """Return all blocks that have rows, checked, with their weights."""
        threads = 1 if n_threads is None else n_threads
        return load(self.client, self.futures, threads, self.memory, X_weights=X_weights)

    def represented(
        self, A: Array, loss: str | float, X_weights: Any, n_threads: int | None
    ) -> Array:
        """Return the chosen samples over a dictionary, in the memory of the caller."""
        data = self.loaded(X_weights, n_threads)
        chosen = np.arange(self.shape[0]) if self.chosen is None else self.chosen
        shared = lasting(data.client, A)
        futures = [
            data.client.submit(_represented, given, rows, shared, loss, n_threads, pure=False)
            for given, (_, rows) in zip(data.futures, data.parts(chosen), strict=True)
            if len(rows)
        ]
        return np.vstack(result_of(data.client, futures))

    def array(self) -> da.Array:
        """Return the blocks as a dask array."""
        parts = [
            da.from_delayed(future, (n, self.n_columns), self.dtype)
            for future, n in zip(self.futures, self.rows, strict=True)
        ]
        return da.concatenate(parts)


def samples_of(
    client: Client, X: Any, memory: int = MEMORY, checkpoint: str | Path | None = None
) -> Samples:
    """Start to load what a user gave as X."""
    blocks, rows = start_blocks(client, X, memory)
    task = client.submit(with_title, "block 0", _columns_and_dtype, blocks[0], pure=False)
    n_columns, dtype = result_of(client, task)
    return Samples(client, blocks, rows, n_columns, dtype, memory, checkpoint)


def _columns_and_dtype(X: Any) -> tuple[int, Any]:
    return int(check_block(X).shape[1]), floating(X.dtype)


def floating(dtype: Any) -> Any:
    """Return the dtype in which data are fitted."""
    return np.dtype(dtype if dtype in (np.float32, np.float64) else np.float64)


def gather(client: Client | None, y: Any) -> Any:
    """Return labels in memory."""
    if not isinstance(y, da.Array):
        return y
    client = check_client(client)
    return result_of(client, client.compute(y))


def _represented(
    given: BlockInput, rows: Array, A: Array, loss: str | float, n_threads: int | None
) -> Array:
    """Return some rows of a block over a dictionary."""
    X, weights = given.X, given.X_weights
    few = weights is None and not isinstance(X, CsrFile)
    S = represent(X[rows] if few else X, A, loss=loss, X_weights=weights, n_threads=n_threads or 1)
    return S if few else S[rows]
