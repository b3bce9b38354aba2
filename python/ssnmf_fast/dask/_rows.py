"""The rows of S that workers keep for their blocks, the orders for them, and the statistics.

Rows are changed in place, so they are no results of tasks.  For each block there is a
:class:`Keeper` among the data of the worker instead.  When Dask moves it, as it does when a worker
is retired, its rows go with it.

Orders of a fit are numbered.  A task that runs again, since its result was lost with another
worker, finds the rows as it left them and only computes its statistics once more.  Rows that were
lost are found again: given the other factors, each model has one solution for them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from .._backend.dispatch import aligned_zeros
from .._common.arrays import Array
from .._solver.relations import Statistics

_KINDS = (ValueError, TypeError, MemoryError, FileNotFoundError)  # of errors, which stay


def aligned_copy(F: Array) -> Array:
    """Return a factor that came over the network as the kernels hold it."""
    result = aligned_zeros(F.shape, F.dtype)
    result[...] = np.asarray(F)
    return result


class OnePickle:
    """Something whose arrays are sent in one piece, between workers.

    Arrays that are sent by themselves are cut out of a message, where they may be misaligned.
    """

    def __reduce__(self) -> Any:
        return _restore, (type(self), pickle.dumps(vars(self), protocol=5))


def _restore(kind: type, contents: bytes) -> Any:
    result: Any = object.__new__(kind)
    vars(result).update(pickle.loads(contents))
    return result


@dataclass
class BlockStatistics:
    """Sufficient statistics of a block of rows for the other factors; they add up.

    `sums` are numbers or arrays by name; `largest` are the largest entries of the components.
    """

    sums: dict[str, Any]
    factors: dict[str, Statistics] = field(default_factory=dict)
    largest: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def n_bytes(self) -> int:
        """Size of the statistics and sums."""
        pairs = [pair for each in self.factors.values() for pair in each.sums.values()]
        groups = [*pairs, self.sums.values()]
        return sum(np.asarray(part).nbytes for group in groups for part in group)

    def __add__(self, other: BlockStatistics) -> BlockStatistics:
        """Return those of both; neither is changed, since a task may run twice."""
        factors = {name: each.copied() for name, each in self.factors.items()}
        for name, each in factors.items():
            each.add(other.factors[name])
        sums = {name: number + other.sums[name] for name, number in self.sums.items()}
        return BlockStatistics(sums, factors, np.maximum(self.largest, other.largest))


@dataclass
class Kept:
    """What a worker keeps of the rows of a block; `number` is that of the last order."""

    number: int = field(default=0, kw_only=True)
    # A task that was given up may still run, and rows move between tasks only.
    lock: Any = field(default_factory=Lock, kw_only=True, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=Lock())


_kept: dict[tuple[str, int], Any] = {}


def keep(fit: str, number: int, rows: Kept) -> None:
    """Keep rows of a block of a fit."""
    _kept[fit, number] = rows


def find_kept(fit: str, number: int) -> Any:
    """Return the rows of a block, or None if they are not here."""
    return _kept.get((fit, number))


def forget(fit: str) -> None:
    """Drop what this worker keeps for a fit."""
    for key in [key for key in _kept if key[0] == fit]:
        _kept.pop(key, None)


class Keeper:
    """A place among the data of a worker for the rows of a block."""

    def __init__(self, fit: str, number: int) -> None:
        self.fit, self.number = fit, number

    def __reduce__(self) -> Any:
        rows = find_kept(self.fit, self.number)
        if rows is None:
            return Keeper, (self.fit, self.number)
        with rows.lock:
            contents = pickle.dumps(rows, protocol=5)
        return _restore_keeper, (self.fit, self.number, contents)


def _restore_keeper(fit: str, number: int, contents: bytes) -> Keeper:
    rows, here = pickle.loads(contents), find_kept(fit, number)
    if here is None or here.number < rows.number:
        keep(fit, number, rows)
    return Keeper(fit, number)


@dataclass(frozen=True)
class Order:
    """What a task does with the rows of a block, and which statistics it returns.

    A subclass is that of a model.  `names` are those of the other factors, which come with it.
    """

    number: int
    names: tuple[str, ...]

    @property
    def moves(self) -> bool:
        """Whether the rows change."""
        raise NotImplementedError

    def find_again(self, block: Any, others: Mapping[str, Array]) -> Any:
        """Return rows that were lost, as they may have been before this order."""
        raise NotImplementedError

    def for_found_rows(self) -> Order:
        """Return what is left of the order for rows that were found again."""
        return self

    def ready(self, block: Any, rows: Any) -> Any:
        """Return the rows in the form in which the model keeps them."""
        del block
        return rows

    def obey(self, block: Any, rows: Any, others: Mapping[str, Array]) -> BlockStatistics:
        """Change the rows unless they have obeyed it before, and return the statistics."""
        raise NotImplementedError


def work(block: Any, fit: str, order: Order, *factors: Array) -> BlockStatistics:
    """Let the rows of a block obey an order, and return their statistics."""
    others = _named(order, factors)
    rows, order = _rows(block, fit, order, others)
    with rows.lock:
        return order.obey(block, rows, others)


def read(
    block: Any, fit: str, order: Order, what: Callable[..., Array], given: Any, *factors: Array
) -> Array:
    """Return what a function makes of the rows of a block as they are."""
    rows, _ = _rows(block, fit, order, _named(order, factors))
    return what(block, rows, *given)


def _named(order: Order, factors: tuple[Array, ...]) -> dict[str, Array]:
    return dict(zip(order.names, map(aligned_copy, factors), strict=True))


def _rows(block: Any, fit: str, order: Order, others: Mapping[str, Array]) -> tuple[Any, Order]:
    before = order.number - order.moves
    rows = find_kept(fit, block.number)
    if rows is None or rows.number < before:  # lost, or moved before an order obeyed elsewhere
        rows = order.find_again(block, others)
        rows.number = before
        order = order.for_found_rows()
    rows = order.ready(block, rows)
    keep(fit, block.number, rows)
    return rows, order


def make_keeper(block: Any, fit: str) -> Keeper:
    """Return the keeper of the rows of a block."""
    return Keeper(fit, block.number)


def with_title(title: str, task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task; an error names the block."""
    try:
        return task(*arguments)
    except Exception as error:
        kind = type(error) if type(error) in _KINDS else RuntimeError
        raise kind(f"{title}: {error}") from error


def run_task(block: Any, keeper: Keeper, task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task of a fit with a block; an error names the block."""
    return with_title(block.title, task, block, keeper.fit, *arguments)
