"""The one fit loop: updates of the factors in turn, the stopping rule, the callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt

from ._dispatch import kernels
from ._problem import Problem, Solver

Array = npt.NDArray[Any]

_ROUNDING = 1e-14  # of the objective
_GROWTH, _LARGEST_GROWTH, _SHRINK = 1.05, 1.01, 1.5  # of the momentum (Ang and Gillis)


@dataclass(frozen=True)
class State:
    """What a callback sees.

    Attributes
    ----------
    iteration : int
        Number of updates of every factor so far.
    objective : float
        The value that is being minimised.
    S, A, B : ndarray or None
        Read-only views of the factors, shapes (n, r), (r, m) and (r, k).
    """

    iteration: int
    objective: float
    S: Array
    A: Array
    B: Array | None = None


@dataclass
class Run:
    """Outcome of :func:`minimise`."""

    objective: list[tuple[int, float]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False


class Objective(Protocol):
    """What :func:`minimise` needs: a value, and updates by name that lower it."""

    def objective(self) -> float: ...
    def update(self, name: str, rule: Solver) -> None: ...
    def balance(self, earlier: dict[str, Array] | None = None) -> None: ...


Check = Callable[[int, float], bool]


class Extrapolation:
    """Momentum for alternating minimisation, with restart (Ang and Gillis 2019, Algorithm 2).

    Every factor sets out from beyond its last update, in the direction in which it has been moving,
    further and further while the objective falls.  An iteration that raises the objective is undone
    and the next one goes without momentum, which coordinate descent lets it fall.  `value` is the
    objective of the factors as they are, and `before` what they were an iteration ago.
    """

    def __init__(self, problem: Problem, order: Sequence[str], value: float) -> None:
        self._problem = problem
        self._order = order
        self.value = value
        self._step = self._step_before = 0.25
        self._largest = 1.0
        self.before = {name: factor.copy() for name, factor in problem.factors.items()}
        self._momentum = False

    def iterate(self) -> None:
        """Update every factor once; afterwards the objective is no larger than before."""
        problem, before = self._problem, self.before
        *others, last = self._order
        accepted = {name: problem.factors[name].copy() for name in others}
        step = self._step if self._momentum else 0.0
        kernels.extrapolate(problem.factors[last], before[last], step, problem.n_threads)
        for name in others:
            problem.update(name, "auto")
            kernels.extrapolate(problem.factors[name], before[name], step, problem.n_threads)
        problem.update(last, "auto")
        value = problem.objective()
        if value > self.value:
            problem.restore({**accepted, last: before[last]})
            self._largest, self._step = self._step_before, self._step / _SHRINK
            self._momentum = False
            return
        self.value, self._momentum = value, True
        self._step_before = self._step
        self._step = min(self._largest, _GROWTH * self._step)
        self._largest = min(1.0, _LARGEST_GROWTH * self._largest)


def minimise(
    problem: Objective,
    order: Sequence[str],
    rule: Solver,
    *,
    max_iter: int,
    tol: float,
    check_every: int,
    check: Check,
    settling: int = 0,
    unreached: float = 0.0,
) -> Run:
    """Update the factors in order until the objective falls by less than `tol` per iteration.

    The rule is eq. 3.10 of the thesis: (F_before - F_now) / |F_0| < tol, divided by the number of
    iterations between two checks; it is not applied up to iteration `settling`, and what is
    `unreached` of the objective does not count in F_0.  `check` is called after each check; it
    returns True to stop.
    """
    run = Run()
    first = before = problem.objective()
    reached = max(abs(first - unreached), _ROUNDING * abs(first))
    run.objective.append((0, first))
    if check(0, first):
        return run
    momentum: Extrapolation | None = None
    if rule == "auto" and isinstance(problem, Problem) and problem.extrapolates():
        momentum = Extrapolation(problem, order, first)
    for iteration in range(1, max_iter + 1):
        if momentum:
            momentum.iterate()
        else:
            for name in order:
                problem.update(name, rule)
        run.n_iter = iteration
        if iteration % check_every and iteration != max_iter:
            continue
        if rule in ("auto", "hals"):
            problem.balance(momentum.before if momentum else None)
        steps = iteration - run.objective[-1][0]
        now = momentum.value if momentum else problem.objective()
        run.objective.append((iteration, now))
        if check(iteration, now):
            break
        if tol > 0 and iteration > settling and (before - now) < tol * steps * reached:
            run.converged = True
            break
        before = now
    return run
