"""Samples on a cluster, as the estimators see them: blocks of rows, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization
from .._models.represent import represent
from ..estimators._class_topics import (
    FitOptions,
    LabeledSamples,
    even_start,
    support_of,
    weighted_sums,
)
from ..estimators._context import visible
from ..estimators._training_labels import TrainingLabels, as_outer
from ._build import BlockInput
from ._cluster import check_client, keep_value, reduce_tasks
from ._data import MEMORY, Data, load, shape_of, start_blocks
from ._factorize import factorize
from ._rows import with_title
from ._waiting import result_of


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

    def select(self, rows: Array) -> Samples:
        """Return some samples, of a mask of all of them."""
        return replace(self, chosen=np.flatnonzero(rows))

    def load(self, X_weights: Any, n_threads: int | None) -> Data:
        """Return all blocks that have rows, checked, with their weights."""
        threads = 1 if n_threads is None else n_threads
        return load(self.client, self.futures, threads, self.memory, X_weights=X_weights)

    def represent(
        self, A: Array, loss: str | float, X_weights: Any, n_threads: int | None
    ) -> Array:
        """Return the chosen samples over a dictionary, in the memory of the caller."""
        data = self.load(X_weights, n_threads)
        chosen = np.arange(self.shape[0]) if self.chosen is None else self.chosen
        shared = keep_value(data.client, A)
        futures = [
            data.client.submit(_represented, given, rows, shared, loss, n_threads, pure=False)
            for given, (_, rows) in zip(data.futures, data.parts(chosen), strict=True)
            if len(rows)
        ]
        return np.vstack(result_of(data.client, futures))

    def factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        """Factorize all samples."""
        given = {"client": self.client, "checkpoint": self.checkpoint, "memory": self.memory}
        return factorize(self.futures, Y, **arguments, **given)

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
    task = client.submit(with_title, "block 0", shape_of, blocks[0], pure=False)
    _, n_columns, dtype = result_of(client, task)
    return Samples(client, blocks, rows, n_columns, floating(dtype), memory, checkpoint)


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


@dataclass(frozen=True)
class LabeledBlocks(LabeledSamples):
    """Samples on a cluster with the labels of some of them, the `chosen` ones."""

    X: Samples
    X_weights: Any
    chosen: Array
    labels: TrainingLabels
    options: FitOptions

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @cached_property
    def _data(self) -> Data:
        return self.X.load(self.X_weights, self.options.n_threads)

    def _each(self, task: Callable[..., Any], parts: Iterable[Any], *shared: Any) -> list[Any]:
        """Start a task for every block with its part, a tuple; None leaves a block out."""
        submit = self._data.client.submit
        return [
            submit(task, given, *part, *shared, pure=False)
            for given, part in zip(self._data.futures, parts, strict=True)
            if part is not None
        ]

    def overall_mean(self) -> Array:
        n = self._data.shape[0]
        part = slice(None), np.full((1, 1), 1 / n)
        sums = self._each(_weighted_sums, [part] * len(self._data.futures))
        return np.asarray(reduce_tasks(self.X.client, sums)[0])

    def sums(self, weights: Array) -> Array:
        parts = self._data.parts(self.chosen)
        mine = [(rows, weights[part]) if len(rows) else None for part, rows in parts]
        return np.asarray(reduce_tasks(self.X.client, self._each(_weighted_sums, mine)))

    def support(self, owner: Array) -> list[Any]:
        members, known = self.labels.members, self.labels.known
        parts = [(rows, members[mine], known[mine]) for mine, rows in self._data.parts(self.chosen)]
        futures = self._each(_support, parts, owner)
        return self._data.of_all_blocks(futures, len(owner))

    def even_start(self, A: Array, support: list[Any] | None) -> list[Any]:
        blocks = [(None if support is None else support[i],) for i in self._data.positions]
        futures = self._each(_even_start, blocks, keep_value(self.X.client, A))
        return self._data.of_all_blocks(futures, len(A))

    def labeled_sums(self, S: Any) -> Array:
        rows = self.chosen[self.labels.known]
        client = self.X.client
        if isinstance(S, da.Array):
            return np.asarray(result_of(client, client.compute(_sum(S, rows))))
        blocks = [S[position] for position in self._data.positions]
        sums = [
            client.submit(_sum, block, mine, pure=False)
            for block, (_, mine) in zip(blocks, self._data.parts(rows), strict=True)
        ]
        return np.asarray(reduce_tasks(client, sums))

    def targets(self) -> tuple[Any, Any]:
        members, n = sp.coo_array(self.labels.members), self.X.shape[0]
        entries = members.data, (self.chosen[members.row], members.col)
        Y = sp.csr_array(entries, shape=(n, members.shape[1])).astype(self.dtype)
        weights = self.labels.entry_weights
        first = weights[:, 0]
        if (weights == first[:, None]).all():
            return Y, as_outer(_spread(n, self.chosen, first))
        bounds, submit = np.cumsum([0, *self.X.rows]), self.X.client.submit
        places = np.searchsorted(self.chosen, bounds)
        return Y, [
            submit(_spread, end - begin, self.chosen[a:b] - begin, weights[a:b], pure=False)
            for (begin, end), (a, b) in zip(pairwise(bounds), pairwise(places), strict=True)
        ]

    def factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        arguments |= self.options.arguments()
        return self.X.factorize(Y, X_weights=self.X_weights, **arguments)


def _spread(n: int, rows: Array | slice, values: Array) -> Array:
    """Return n rows of which some have values, and the others zeros."""
    spread = np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    spread[rows] = values
    return spread


def _weighted_sums(given: BlockInput, rows: Array | slice, weights: Array) -> Array:
    X = visible(given.X, given.X_weights)
    return weighted_sums(X, _spread(X.shape[0], rows, weights))


def _support(given: BlockInput, rows: Array, members: Array, known: Array, owner: Array) -> Array:
    n = given.X.shape[0]
    return support_of(_spread(n, rows, members), _spread(n, rows, known), owner)


def _even_start(given: BlockInput, support: Array | None, A: Array) -> Array:
    """Return a start of the rows of S of a block."""
    S = even_start(visible(given.X, given.X_weights), A, support)
    return np.asarray(S, dtype=given.X.dtype)


def _sum(S: Any, rows: Array) -> Any:
    return S[rows].sum(axis=0, dtype=np.float64)
