"""A look at the padding of stored factors, after every step of every fit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from ssnmf_fast._solver.problem import BlockProblem, Problem

_STEPS = ("apply", "update_rows", "extrapolate", "balance", "restore")


@contextlib.contextmanager
def watched_steps() -> Iterator[tuple[list[str], set[str]]]:
    """Give what moved columns that are zero in all factors at the start, and the names of steps."""
    found: list[str] = []
    steps: set[str] = set()
    begin = Problem.__init__

    def begin_watched(self: Any, factors: Any, *rest: Any, **more: Any) -> None:
        begin(self, factors, *rest, **more)
        self.unused = ~np.any([F.any(axis=0) for F in factors.values()], axis=0)

    def watched(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def look(self: Any, *args: Any, **more: Any) -> Any:
            out = step(self, *args, **more)
            steps.add(name)
            for key, F in self.factors.items():
                if F[:, self.unused].any():
                    found.append(f"{name}: the padding of {key} is not zero")
            return out

        return look

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(Problem, "__init__", begin_watched))
        for kind in (Problem, BlockProblem):
            for name in set(_STEPS) & vars(kind).keys():
                step = watched(name, getattr(kind, name))
                stack.enter_context(mock.patch.object(kind, name, step))
        yield found, steps


@contextlib.contextmanager
def watched_padding(rank: int) -> Iterator[None]:
    """Raise AssertionError if a component beyond `rank` does not stay 0, or no step was seen."""
    starts: list[int] = []
    begin = Problem.__init__

    def begin_watched(self: Any, factors: Any, *rest: Any, **more: Any) -> None:
        starts.extend(F[:, rank:].any(axis=0).sum() for F in factors.values())
        begin(self, factors, *rest, **more)

    with mock.patch.object(Problem, "__init__", begin_watched), watched_steps() as (found, steps):
        yield
    assert not any(starts)
    assert {"apply", "update_rows"} <= steps
    assert not found, found[0]
