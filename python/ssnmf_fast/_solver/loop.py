"""The one fit loop: iterations, the stopping rule, the callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .problem import Problem, Solver

_ROUNDING = 1e-14  # of the objective
_GROWTH, _LARGEST_GROWTH, _SHRINK = 1.05, 1.01, 1.5  # of the momentum (Ang and Gillis)


@dataclass(frozen=True)
class State:
    """What a callback sees; the factors are attributes, too.

    Attributes
    ----------
    iteration : int
        Number of updates of every factor so far.
    objective : float
        The value that is being minimised.
    factors : mapping of str to ndarray or None
        Read-only views of the factors: of a factorisation S, A and B, of shapes (n, r), (r, m) and
        (r, k).
    """

    iteration: int
    objective: float
    factors: Mapping[str, Array | None] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return a factor."""
        factors = self.__dict__.get("factors", {})
        if name in factors:
            return factors[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@dataclass
class Run:
    """Outcome of :func:`minimise`."""

    objective: list[tuple[int, float]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False


class Steps(Protocol):
    """What :func:`minimise` needs of a model."""

    def iterate(self, iteration: int) -> None:
        """Update everything once; iterations count from 1."""

    def objective(self) -> float:
        """Return the value that is minimised."""


Check = Callable[[int, float], bool]


class Alternation:
    """Updates of the factors of a problem in turn, that of the rows last."""

    def __init__(self, problem: Problem, rule: Solver) -> None:
        self.problem = problem
        self._rule = rule
        self._begun = False

    def iterate(self, iteration: int) -> None:
        self._begun = iteration > 0
        for name in (*self.problem.others, self.problem.hub):
            self.problem.update(name, self._rule)

    def objective(self) -> float:
        if self._begun and self._rule in ("auto", "hals"):
            self.problem.balance()
        return self.problem.objective()


class Extrapolation:
    """Momentum for alternating minimisation, with restart (Ang and Gillis 2019, Algorithm 2).

    Every factor sets out from beyond its last update, in the direction in which it has been moving,
    further and further while the objective falls.  An iteration that raises the objective is undone
    and the next one goes without momentum, which coordinate descent lets it fall.  `before` is what
    the factors were an iteration ago.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._value = problem.objective()
        self._step = self._step_before = 0.25
        self._largest = 1.0
        self._before = {name: factor.copy() for name, factor in problem.factors.items()}
        self._momentum = self._begun = False

    def objective(self) -> float:
        if self._begun:
            self.problem.balance(self._before)
        return self._value

    def iterate(self, iteration: int) -> None:
        """Update every factor once; afterwards the objective is no larger than before."""
        self._begun = iteration > 0
        problem, before, last = self.problem, self._before, self.problem.hub
        accepted = {name: problem.factors[name].copy() for name in problem.others}
        step = self._step if self._momentum else 0.0
        kernels.extrapolate(problem.factors[last], before[last], step, problem.threads)
        for name in problem.others:
            problem.update(name, "auto")
            kernels.extrapolate(problem.factors[name], before[name], step, problem.threads)
        problem.update(last, "auto", self._ahead)
        value = problem.objective()
        if value > self._value:
            problem.restore({**accepted, last: before[last]})
            self._largest, self._step = self._step_before, self._step / _SHRINK
            self._momentum = False
            return
        self._value, self._momentum = value, True
        self._step_before = self._step
        self._step = self._next_step()
        self._largest = min(1.0, _LARGEST_GROWTH * self._largest)

    def _next_step(self) -> float:
        return min(self._largest, _GROWTH * self._step)

    def _ahead(self, rows: slice) -> Array:
        """Return where the next iteration will move rows that have just been updated."""
        F, before = (
            factors[self.problem.hub][rows].copy()
            for factors in (self.problem.factors, self._before)
        )
        kernels.extrapolate(F, before, self._next_step(), self.problem.threads)
        return np.asarray(F)


def steps_of(problem: Problem, rule: Solver) -> Steps:
    """Return the steps of a rule: of "auto" with momentum, where that does good."""
    if rule == "auto" and problem.extrapolates():
        return Extrapolation(problem)
    return Alternation(problem, rule)


def minimise(
    steps: Steps,
    *,
    max_iter: int,
    tol: float,
    check_every: int,
    check: Check | None = None,
    burn_in: int = 0,
    unreached: float = 0.0,
) -> Run:
    """Iterate until the objective falls by less than `tol` per iteration.

    The rule is eq. 3.10 of the thesis: (F_before - F_now) / |F_0| < tol, divided by the number of
    iterations between two checks; it is not applied up to iteration `burn_in`, and what is
    `unreached` of the objective does not count in F_0.  `check` is called after each check; it
    returns True to stop.
    """
    run = Run()
    first = before = steps.objective()
    reached = max(abs(first - unreached), _ROUNDING * abs(first))
    run.objective.append((0, first))
    if check and check(0, first):
        return run
    for iteration in range(1, max_iter + 1):
        steps.iterate(iteration)
        run.n_iter = iteration
        if iteration % check_every and iteration != max_iter:
            continue
        passed = iteration - run.objective[-1][0]
        now = steps.objective()
        run.objective.append((iteration, now))
        if check and check(iteration, now):
            break
        if tol > 0 and iteration > burn_in and (before - now) < tol * passed * reached:
            run.converged = True
            break
        before = now
    return run
