"""A fit of a problem: the parameters of the loop, checked, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from .._common.arrays import Array
from .._data.checks import check_integer, check_option, check_real
from .loop import Run, State, Steps, minimise, steps_of
from .problem import SOLVERS, Problem, Solver
from .progress import verbose_progress
from .units import Units

Shown = Callable[[], Mapping[str, Array | None]]  # the factors as a user knows them

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


@dataclass(frozen=True)
class FitLoop:
    """Parameters of the fit loop."""

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

    def factorize(self, problem: Problem, rank: int, units: Units | None = None) -> Factorization:
        """Fit the factors S, A and, where there is one, B; the result is in the user's units."""
        units = units or Units()
        shown = named(problem.factors, rank, units)
        steps = steps_of(problem, self.solver)
        run = self.run(steps, shown, units=units, unreached=problem.unreached())
        factors = {
            name: None if F is None else np.ascontiguousarray(F) for name, F in shown().items()
        }
        objective = [(step, units.value(value)) for step, value in run.objective]
        return Factorization(
            **factors,  # type: ignore[arg-type]
            objective=objective,
            n_iter=run.n_iter,
            converged=run.converged,
        )

    def run(
        self,
        steps: Steps,
        shown: Shown,
        burn_in: int | None = None,
        units: Units | None = None,
        unreached: float = 0.0,
    ) -> Run:
        """Run the loop; with a burn-in the stopping rule applies to what comes after it."""
        with verbose_progress(self.verbose, self.max_iter) as progress:
            observers = [observer for observer in (self.callback, progress) if observer is not None]

            def check(iteration: int, value: float) -> bool:
                value = value if units is None else units.value(value)
                views = {name: _view(F) for name, F in shown().items()}
                state = State(iteration, value, views)
                answers = [observer(state) for observer in observers]  # of all, before any stops
                return any(answers)

            return minimise(
                steps,
                max_iter=self.max_iter,
                tol=self.tol,
                check_every=CHECK_EVERY,
                check=check if observers else None,
                burn_in=0 if burn_in is None else burn_in + CHECK_EVERY - 1,
                unreached=unreached,
            )


def named(factors: Mapping[str, Array], rank: int, units: Units | None = None) -> Shown:
    """Return what shows S by rows, and A and B, which are stored by rows as well, by columns."""
    units = units or Units()

    def shown() -> Mapping[str, Array | None]:
        views = {name: units.factor(name, F[:, :rank]) for name, F in factors.items()}
        return {"B": None} | {name: F if name == "S" else F.T for name, F in views.items()}

    return shown


def _view(factor: Array | None) -> Array | None:
    if factor is None:
        return None
    view = factor[:]
    view.flags.writeable = False
    return view
