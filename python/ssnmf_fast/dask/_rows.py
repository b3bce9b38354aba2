"""The rows of S that workers keep for their blocks, the orders for them, and the statistics.

Rows are changed in place, so they are no results of tasks.  Each worker keeps those of the blocks
that are there.  When Dask moves a block, as it does when a worker is retired, its rows go with it.

Orders of a fit are numbered.  A task that runs again, since its result was lost with another
worker, finds the rows as it left them and only computes its statistics once more.  Rows that were
lost are found again: given the other factors, each model has one solution for them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from .._backend.dispatch import aligned_zeros, kernels
from .._common.arrays import Array
from .._models.variational_problem import Posterior
from .._solver.problem import Workspaces
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

    def __add__(self, other: BlockStatistics) -> BlockStatistics:
        """Return those of both; neither is changed, since a task may run twice."""
        both = self.copied()
        both.add(other)
        return both

    def copied(self, copy: Callable[[Array], Array] = np.copy) -> BlockStatistics:
        """Return statistics that others can be added to."""
        factors = {name: each.copied(copy) for name, each in self.factors.items()}
        return BlockStatistics(self.sums, factors, self.largest)

    def add(self, other: BlockStatistics) -> None:
        """Add those of other rows."""
        for name, each in self.factors.items():
            each.add(other.factors[name])
        self.sums = {name: number + other.sums[name] for name, number in self.sums.items()}
        self.largest = np.maximum(self.largest, other.largest)


@dataclass
class Rows:
    """What a worker keeps of the rows of a block; `number` is that of the last order.

    With momentum, `before` is what S was an iteration ago; None stands for S as it is.  With a
    posterior, S is its geometric expectation and `before` the arithmetic one.  `sums` are those of
    the last update.
    """

    S: Array
    before: Array | None = None
    posterior: Posterior | None = None
    number: int = 0
    sums: dict[str, Any] = field(default_factory=dict)
    workspaces: Workspaces = field(default_factory=dict)
    # Where S moves next: the step, whether it stays positive, and the rows there.
    ahead: tuple[float, bool, Array] | None = None
    spare: list[Array] = field(default_factory=list)  # as large as S, for what comes next
    # A task that was given up may still run, and rows move between tasks only.
    lock: Any = field(default_factory=Lock, repr=False)

    def earlier(self) -> Array:
        """Return the rows of an iteration ago, which are kept from now on."""
        if self.before is None:
            self.before = aligned_copy(self.S)
        return self.before

    def extrapolate(self, step: float, positive: bool) -> None:
        """Move the rows further in the direction in which they moved; `before` is what they were.

        Three arrays take turns, since what the rows were may have to be restored.
        """
        moved, before = self.ahead_by(step, positive), self.earlier()
        self.S, self.before, self.ahead = moved, self.S, None
        self.spare.append(before)

    def ahead_by(self, step: float, positive: bool, threads: int = 1) -> Array:
        """Return where the rows would move; they stay, and `before` too."""
        if self.ahead is None or self.ahead[:2] != (step, positive):
            before = self.earlier()
            self.forget_ahead()
            now = self.spare.pop() if self.spare else aligned_zeros(before.shape, before.dtype)
            np.copyto(now, before)
            moved = self.S
            kernels.extrapolate(moved, now, step, positive, threads)
            self.S, self.ahead = now, (step, positive, moved)
        return self.ahead[2]

    def forget_ahead(self) -> None:
        """Let go of where the rows would move, after which they change otherwise."""
        if self.ahead is not None:
            self.spare.append(self.ahead[2])
            self.ahead = None

    def restore(self) -> None:
        """Take the rows of an iteration ago."""
        self.forget_ahead()
        np.copyto(self.S, self.earlier())

    def scale(self, scales: Array) -> None:
        """Multiply components by numbers; what they were before no longer counts."""
        self.forget_ahead()
        self.S[:, : len(scales)] *= scales.astype(self.S.dtype)
        self.before = None

    def shift(self, exponents: Array) -> None:
        """Multiply components by powers of two."""
        self.forget_ahead()
        np.ldexp(self.S, exponents, out=self.S)
        if self.before is not None:
            np.ldexp(self.before, exponents, out=self.before)

    def __getstate__(self) -> dict[str, Any]:
        here = ("workspaces", "ahead", "spare", "lock")
        return {name: v for name, v in vars(self).items() if name not in here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, workspaces={}, ahead=None, spare=[], lock=Lock())
        self.S = aligned_copy(self.S)
        self.before = None if self.before is None else aligned_copy(self.before)
        if self.posterior is not None:
            self.posterior.F, self.posterior.E = self.S, self.earlier()


kept: dict[tuple[str, int], Rows] = {}  # of this worker, by fit and number of the block


def forget(fit: str) -> None:
    """Drop what this worker keeps for a fit."""
    for key in [key for key in kept if key[0] == fit]:
        kept.pop(key, None)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a task does with the rows of a block, for a model: a subclass.

    Orders that move rows are numbered, and `names` are those of the other factors that come along.
    Rows that are found again have had the `changes` before an update.  `find_again(block, others)`
    returns rows that were lost as they may have been; `obey(block, rows, others)` changes rows that
    have not obeyed before, and returns the statistics.
    """

    number: int
    names: tuple[str, ...]
    moves: bool = False
    changes: tuple[Callable[[Rows], None], ...] = ()

    find_again: ClassVar[Callable[..., Rows]]
    obey: ClassVar[Callable[..., BlockStatistics]]


def work(block: Any, order: Order, *factors: Array) -> BlockStatistics:
    """Let the rows of a block obey an order, and return their statistics."""
    rows, order, others = _find(block, order, factors)
    with rows.lock:
        return order.obey(block, rows, others)


def read(block: Any, order: Order, what: Callable[..., Array], *factors: Array) -> Array:
    """Return what a function makes of the rows of a block as they are."""
    return what(block, _find(block, order, factors)[0])


def _find(
    block: Any, order: Order, factors: tuple[Array, ...]
) -> tuple[Rows, Order, dict[str, Array]]:
    """Return the rows, what is left of the order for them, and the other factors by name."""
    others = dict(zip(order.names, map(aligned_copy, factors), strict=True))
    rows, before = kept.get(block.key), order.number - order.moves
    if rows is None or rows.number < before:  # lost, or moved before an order obeyed elsewhere
        rows = order.find_again(block, others)
        rows.number = before
        kept[block.key] = rows
        order = replace(order, changes=())
    return rows, order, others


def with_title(title: str, task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task; an error names the block."""
    try:
        return task(*arguments)
    except Exception as error:
        kind = type(error) if type(error) in _KINDS else RuntimeError
        raise kind(f"{title}: {error}") from error


def run_task(block: Any, task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task of a fit with a block; an error names the block."""
    return with_title(block.title, task, block, *arguments)
