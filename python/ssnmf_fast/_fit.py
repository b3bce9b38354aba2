"""A fit of a problem: the parameters of the loop, checked, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from ._problem import Problem, Solver
from ._progress import verbose_progress
from ._solver import Objective, Run, State, minimise
from ._units import Units
from ._validation import check_integer, check_option, check_real

Array = npt.NDArray[Any]
SOLVERS = ("auto", "mm", "mu", "hals")
CHECK_EVERY = 10


@dataclass(frozen=True, eq=False)
class Factorization:
    """Result of :func:`factorize`.

    Attributes
    ----------
    S : ndarray, shape (n, r)
        Representation of the samples.
    A : ndarray, shape (r, m)
        Dictionary: the components over the features.
    B : ndarray, shape (r, k), or None
        Classifier: the components over the labels.
    objective : list of (int, float)
        Iterations at which the objective was evaluated, and its values.
    n_iter : int
        Number of iterations (updates of every factor).
    converged : bool
        Whether the stopping rule was met before `max_iter`.
    supervision_weight : float or None
        Weight (lambda) of the loss of the labels, as a number also where it was "balanced"; None
        without labels.
    """

    S: Array
    A: Array
    B: Array | None = None
    objective: list[tuple[int, float]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    supervision_weight: float | None = None

    def __repr__(self) -> str:
        factors = {"S": self.S, "A": self.A, "B": self.B}
        shapes = [f"{name}: {M.shape}" for name, M in factors.items() if M is not None]
        last = f"objective={self.objective[-1][1]:.6g}, " if self.objective else ""
        return (
            f"Factorization({', '.join(shapes)}, {last}n_iter={self.n_iter}, "
            f"converged={self.converged})"
        )


class Reported(Objective, Protocol):
    """A problem whose factors a callback may see."""

    @property
    def factors(self) -> dict[str, Array]: ...


@dataclass(frozen=True)
class FitLoop:
    """What every model says of its loop."""

    solver: Solver
    max_iter: int
    tol: float
    callback: Callable[[State], Any] | None
    verbose: int

    @classmethod
    def checked(
        cls,
        solver: str,
        max_iter: Any,
        tol: Any,
        callback: Callable[[State], Any] | None,
        verbose: int,
    ) -> FitLoop:
        """Return the parameters, checked."""
        check_option(solver, "solver", SOLVERS)
        most = check_integer(max_iter, "max_iter", 0)
        return cls(cast(Solver, solver), most, check_real(tol, "tol"), callback, verbose)

    def run(self, problem: Problem, rank: int, units: Units | None = None) -> Factorization:
        """Update A, then B where there is one, then S, until the loop stops.

        What is reported and returned is in the user's units.
        """
        order = ("A", "B", "S") if "B" in problem.factors else ("A", "S")
        units = units or Units()
        run = self.minimise(problem, order, rank, units=units, unreached=problem.unreached())
        return _result(problem.factors, rank, run, units)

    def minimise(
        self,
        problem: Reported,
        order: Sequence[str],
        rank: int,
        burn_in: int | None = None,
        units: Units | None = None,
        unreached: float = 0.0,
    ) -> Run:
        """Run the loop; with a burn-in the stopping rule applies to what comes after it."""
        units = units or Units()
        with verbose_progress(self.verbose, self.max_iter) as progress:
            return minimise(
                problem,
                order,
                self.solver,
                max_iter=self.max_iter,
                tol=self.tol,
                check_every=CHECK_EVERY,
                check=_reporter(problem.factors, rank, units, self.callback, progress),
                settling=0 if burn_in is None else burn_in + CHECK_EVERY - 1,
                unreached=unreached,
            )


def _reporter(
    factors: dict[str, Array],
    rank: int,
    units: Units,
    *callbacks: Callable[[State], Any] | None,
) -> Callable[[int, float], bool]:
    """Return what the loop calls after every evaluation of the objective."""
    observers = [callback for callback in callbacks if callback is not None]
    if not observers:
        return lambda iteration, value: False

    def check(iteration: int, value: float) -> bool:
        views = {name: _view(units.factor(name, F[:, :rank])) for name, F in factors.items()}
        state = State(
            iteration,
            units.value(value),
            views["S"],
            views["A"].T,
            views["B"].T if "B" in views else None,
        )
        answers = [observer(state) for observer in observers]  # all of them, before any stops
        return any(answers)

    return check


def _view(factor: Array) -> Array:
    view = factor[:]
    view.flags.writeable = False
    return view


def _result(factors: dict[str, Array], rank: int, run: Run, units: Units) -> Factorization:
    of = {name: units.factor(name, F[:, :rank]) for name, F in factors.items()}
    return Factorization(
        S=np.ascontiguousarray(of["S"]),
        A=np.ascontiguousarray(of["A"].T),
        B=np.ascontiguousarray(of["B"].T) if "B" in of else None,
        objective=[(step, units.value(value)) for step, value in run.objective],
        n_iter=run.n_iter,
        converged=run.converged,
    )
