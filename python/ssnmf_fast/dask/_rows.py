"""The rows of S that a worker keeps for its blocks, and how they move with Dask's data.

Rows are changed in place, so they are no results of tasks.  For each block there is a
:class:`Keeper` among the data of the worker instead.  When Dask moves it, as it does when a worker
is retired, its rows go with it.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from .._backend.dispatch import aligned_zeros
from .._common.arrays import Array
from .._solver.problem import Workspaces


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


@dataclass
class Rows(Kept):
    """The rows of S of a block, and what they were an iteration ago."""

    S: Array
    before: Array
    sums: dict[str, Any] = field(default_factory=dict)
    workspaces: Workspaces = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"workspaces": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.S, self.before = own(self.S), own(self.before)


_kept: dict[tuple[str, int], Any] = {}


def keep(fit: str, number: int, rows: Kept) -> None:
    """Keep rows of a block of a fit."""
    _kept[fit, number] = rows


def kept(fit: str, number: int) -> Any:
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
        rows = kept(self.fit, self.number)
        if rows is None:
            return Keeper, (self.fit, self.number)
        with rows.lock:
            contents = pickle.dumps(rows, protocol=5)
        return _moved, (self.fit, self.number, contents)


def _moved(fit: str, number: int, contents: bytes) -> Keeper:
    rows, here = pickle.loads(contents), kept(fit, number)
    if here is None or here.number < rows.number:
        keep(fit, number, rows)
    return Keeper(fit, number)


def own(F: Array) -> Array:
    """Return a factor that came over the network as the kernels hold it."""
    result = aligned_zeros(F.shape, F.dtype)
    result[...] = np.asarray(F)
    return result
