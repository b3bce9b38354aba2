"""Samples on a cluster, as the estimators see them: blocks of rows, and what is asked of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._models.represent import represent
from . import _block
from ._build import Given
from ._cluster import added, check_client
from ._fit import Data, load
from ._sources import check_block, source
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
        none = (None, None, None, None)
        Y, Y_weights, support, S = none
        threads = 1 if n_threads is None else n_threads
        return load(
            self.client, self.futures, Y, X_weights, Y_weights, support, S, threads, self.memory
        )

    def represented(
        self, A: Array, loss: str | float, X_weights: Any, n_threads: int | None
    ) -> Array:
        """Return the chosen samples over a dictionary, in the memory of the caller."""
        data = self.loaded(X_weights, n_threads)
        chosen = np.arange(self.shape[0]) if self.chosen is None else self.chosen
        shared = lasting(data.client, A)
        futures = [
            data.client.submit(_represented, given, rows, shared, loss, n_threads, pure=False)
            for given, rows in zip(data.futures, local(data, chosen), strict=True)
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
    blocks = source(client, X, memory)
    facts = client.submit(_block.titled, "block 0", _facts, blocks.futures[0], pure=False)
    n_columns, dtype = result_of(client, facts)
    return Samples(client, blocks.futures, blocks.rows, n_columns, dtype, memory, checkpoint)


def _facts(X: Any) -> tuple[int, Any]:
    return int(check_block(X).shape[1]), floating(X.dtype)


def floating(dtype: Any) -> Any:
    """Return the dtype in which data are fitted."""
    return np.dtype(dtype if dtype in (np.float32, np.float64) else np.float64)


def local(data: Data, chosen: Array) -> list[Array]:
    """Return which rows of each block are among sorted numbers of samples."""
    bounds = [*data.firsts, data.shape[0]]
    places = np.searchsorted(chosen, bounds)
    return [
        chosen[begin:end] - first
        for begin, end, first in zip(places[:-1], places[1:], data.firsts, strict=True)
    ]


def parts_of(data: Data, chosen: Array, values: Array) -> list[Array]:
    """Return the part of values of the chosen samples that belongs to each block."""
    places = np.searchsorted(chosen, [*data.firsts, data.shape[0]])
    return [values[begin:end] for begin, end in pairwise(places)]


def of_all_blocks(data: Data, futures: Sequence[Any], width: int) -> list[Any]:
    """Return blocks of rows for all blocks of the data, also for those without rows."""
    found = dict(zip(data.positions, futures, strict=True))
    return [
        found[i] if i in found else data.client.submit(np.zeros, (0, width), pure=False)
        for i in range(len(data.rows))
    ]


def summed(client: Client, futures: Sequence[Any]) -> Any:
    """Return the sum of results, added in a fixed tree over the blocks."""
    return result_of(client, added(client, list(futures), operator.add)[0])


def gather(client: Client | None, y: Any) -> Any:
    """Return labels in memory."""
    if not isinstance(y, da.Array):
        return y
    client = check_client(client)
    return result_of(client, client.compute(y))


def _represented(
    given: Given, rows: Array, A: Array, loss: str | float, n_threads: int | None
) -> Array:
    """Return some rows of a block over a dictionary."""
    X, weights = given.X, given.X_weights
    few = weights is None and not isinstance(X, CsrFile)
    S = represent(X[rows] if few else X, A, loss=loss, X_weights=weights, n_threads=n_threads or 1)
    return S if few else S[rows]
