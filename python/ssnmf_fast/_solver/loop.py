"""The loop of fits: steps, observers, and progress on standard error."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

from .._backend.dispatch import kernels
from .._common.arrays import Array, Factors, Solver, bits_of
from .._data.border import check_integer, check_observers, check_option, check_real, require_finite
from .plan import Plan
from .problem import LastRows, Momentum, Problem
from .relations import SOLVERS
from .result import FitState

_SECONDS_BETWEEN_LINES = 0.5


class ProgressBar:
    """Show iterations and objective: a bar with tqdm, otherwise up to two lines per second."""

    def __init__(
        self,
        max_iter: int | None,
        label: str = "fit",
        value: str = "objective",
        unit: str = "iteration",
        *,
        lines: bool = False,
    ) -> None:
        self._bar: Any = None
        with suppress(ImportError):
            if sys.stderr.isatty():
                from tqdm import tqdm

                shown = {"file": sys.stderr, "leave": False, "unit": "it"}
                self._bar = tqdm(total=max_iter, desc=label, **shown)
        self._lines, self._unit = lines and self._bar is None, unit
        self._max_iter, self._label, self._value = max_iter, label, value
        self._begin, self._written = time.monotonic(), -float("inf")
        self._waiting: str | None = None

    def __call__(self, state: FitState) -> bool:
        """Move the bar, or write a line now or later; never stop the fit."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._value} {state.objective:.6g}", refresh=False)
            self._bar.update(state.iteration - self._bar.n)
            if self._max_iter is not None and state.iteration >= self._max_iter:
                self.close()
        if self._lines:
            now, total = time.monotonic(), "" if self._max_iter is None else f"/{self._max_iter}"
            self._waiting = (
                f"{self._label}: {self._unit} {state.iteration}{total}, "
                f"{self._value} {state.objective:.6g}, {now - self._begin:.1f} s"
            )
            if self._max_iter is not None and self._unit != "iteration":  # iterations may stop
                left = (now - self._begin) * (self._max_iter / state.iteration - 1)
                self._waiting += f", about {left:.0f} s left"
            if now - self._written >= _SECONDS_BETWEEN_LINES:
                self._written = now
                self.close()
        return False

    def begin(self, plan: Plan) -> None:
        """Show what updates the factors."""
        if self._lines:
            print(f"{self._label}: {plan}", file=sys.stderr, flush=True)

    def end(self, residual: float) -> None:
        """Show the residual of the optimality conditions."""
        self.close()
        if self._lines:
            self._waiting = f"{self._label}: residual of the optimality conditions {residual:.1e}"

    def close(self) -> None:
        """Remove the bar, or write the waiting line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._waiting is not None:
            print(self._waiting, file=sys.stderr, flush=True)
            self._waiting = None


def verbose_progress(
    verbose: int, max_iter: int | None, *texts: str, **unit: str
) -> AbstractContextManager[ProgressBar | None]:
    """Return the callback of ``verbose=1``: a bar on a terminal with tqdm, otherwise lines."""
    if not verbose:
        return nullcontext()
    return closing(ProgressBar(max_iter, *texts, lines=True, **unit))


@dataclass(frozen=True)
class Optimality:
    """Residuals of the factors, without fixed entries and zeros of factors in `stay`."""

    problem: Problem
    moves: Factors = field(default_factory=dict)
    stay: Collection[str] = ()

    def residuals(self, last: LastRows | None = None) -> dict[str, float]:
        """Return the residual of each factor; after the `last` update, in the memory of the fit."""
        return {name: residual for name, (residual, _) in self.measured(last).items()}

    def measured(self, last: LastRows | None = None) -> dict[str, tuple[float, float]]:
        """Return the residual of each factor (0 without a pull), and the pull."""
        problem, found = self.problem.twin(last), {}
        for name, F in problem.factors.items():
            moves = self.moves.get(name)
            if name in self.stay:
                positive = bits_of(F > 0)
                moves = positive if moves is None else positive & moves
            P, N, slope = problem.pulls(name, last)
            apart, pull = kernels.imbalance(F, P, N, moves, problem.threads)
            found[name] = apart / pull if pull > 0 else 0.0, slope * pull
        return found


Current = Callable[[], Mapping[str, Array | None]]  # the factors in the shapes of the user
Observer = Callable[[FitState], Any]

CHECK_EVERY = 10
STOPPING = ("decrease", "relative-error")

_ROUNDING = 1e-14  # of the objective
_GROWTH, _LARGEST_GROWTH, _SHRINK = 1.05, 1.01, 1.5  # of the momentum (Ang and Gillis)


@dataclass
class Run:
    objective: list[tuple[int, float]] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=dict)  # of the objective
    n_iter: int = 0
    converged: bool = False
    plan: Plan | None = None
    optimality: Optimality | None = None
    residuals: dict[str, float] = field(default_factory=dict)

    def observe(
        self, iteration: int, value: float, current: Current, observers: Sequence[Observer]
    ) -> bool:
        """Keep a finite value of the objective; return whether an observer ends the fit."""
        require_finite({"the objective": value})
        self.objective.append((iteration, value))
        parts = {} if self.optimality is None else self.optimality.problem.parts(value)
        for name, part in parts.items():
            self.parts.setdefault(name, []).append(part)
        if not observers:
            return False
        views = {name: None if F is None else F[:] for name, F in current().items()}
        for view in views.values():
            if view is not None:
                view.flags.writeable = False
        residuals = None if self.optimality is None else self.optimality.residuals
        state = FitState(iteration, value, views, _residuals=residuals)
        answers = [observer(state) for observer in observers]  # call all before stopping
        state.end()
        return any(answers)


class Steps(ABC):
    """Interface of a model for the loop: iterations, counted from 1, and the objective."""

    last: LastRows | None = None  # of the last iteration, as long as it is valid
    compiled = False  # whether there is `leap`: a kernel makes several iterations

    @abstractmethod
    def iterate(self, iteration: int) -> None: ...
    @abstractmethod
    def objective(self) -> float: ...

    def leap(self, count: int) -> None:
        raise NotImplementedError

    def advance(self, iterations: range) -> None:
        """Make the iterations until the next check."""
        begun = self.last is not None and len(self.last.ready) > 0  # with the first update
        alone = iterations[: int(begun)] if self.compiled else iterations
        for iteration in alone:
            self.iterate(iteration)
        if count := len(iterations) - len(alone):
            self.leap(count)

    def settle(self) -> None:  # noqa: B027 -- most models have nothing to do
        """Bring factors into shape before a check, without a change of the objective."""


class Alternation(Steps):
    """Updates of the factors of a problem in turn, ending with the rows."""

    def __init__(self, problem: Problem, plan: Plan, last: LastRows | None = None) -> None:
        self.problem, self._plan, self.last = problem, plan, last
        self.compiled = plan.compiled

    def leap(self, count: int) -> None:
        self.last, _ = self.problem.iterations(self._plan, count)

    def iterate(self, iteration: int) -> None:
        problem, plan = self.problem, self._plan
        for name in problem.others:
            problem.apply(name, problem.majorizer(name, plan.by_factor[name], self.last), plan)
        self.last = problem.update_rows(plan)

    def settle(self) -> None:
        if self._plan.balances and self.problem.balance():
            self.last = None

    def objective(self) -> float:
        return self.problem.objective(self.last)


class Extrapolation(Steps):
    """Momentum for alternating minimization, with restart (Ang and Gillis 2019, Algorithm 2).

    Updates start from extrapolated factors.  An iteration that raises the objective is undone, and
    the next iteration has no momentum.  Updates by entries extrapolate to positive factors, because
    the Kullback-Leibler loss is infinite where the model is 0.
    """

    def __init__(self, problem: Problem, plan: Plan, last: LastRows | None = None) -> None:
        self.problem, self._plan, self.last = problem, plan, last
        self.compiled = plan.compiled
        self._value = problem.objective(last)
        self._step = self._step_before = plan.momentum
        self._largest = 1.0
        self._before = {name: factor.copy() for name, factor in problem.factors.items()}
        self._momentum = False

    def settle(self) -> None:
        if self.problem.balance(self._before):
            self.last = None

    def objective(self) -> float:
        return self._value

    def leap(self, count: int) -> None:
        state = self._value, self._step, self._step_before, self._largest, self._momentum
        last, state = self.problem.iterations(self._plan, count, self._before, state)
        self._value, self._step, self._step_before, self._largest, accepted = state
        self._momentum = bool(accepted)
        self.last = last if accepted else None

    def iterate(self, iteration: int) -> None:
        """Update every factor once, without raising the objective."""
        problem, before, rows = self.problem, self._before, self.problem.rows
        plan, positive = self._plan, self._plan.positive
        accepted = {name: problem.factors[name].copy() for name in problem.others}
        step = self._step if self._momentum else 0.0
        problem.extrapolate(rows, before[rows], step, positive)
        for name in problem.others:
            problem.apply(name, problem.majorizer(name, plan.by_factor[name], self.last), plan)
            problem.extrapolate(name, before[name], step, positive)
        onward = min(self._largest, _GROWTH * self._step)
        self.last = problem.update_rows(plan, Momentum(before[rows], onward, positive))
        value = problem.objective(self.last)
        if value > self._value:
            problem.restore({**accepted, rows: before[rows]})
            self._largest, self._step = self._step_before, self._step / _SHRINK
            self._momentum, self.last = False, None
            return
        self._value, self._momentum = value, True
        self._step_before, self._step = self._step, onward
        self._largest = min(1.0, _LARGEST_GROWTH * self._largest)


def steps_of(model: Problem | Steps, plan: Plan | None, last: LastRows | None = None) -> Steps:
    """Return the steps of a plan for a problem; a model with its own steps has no plan."""
    if not isinstance(model, Problem):
        return model
    assert plan is not None
    last = last or model.begin(plan)
    return (Extrapolation if plan.momentum else Alternation)(model, plan, last)


@dataclass
class FitLoop:
    """The loop of every fit, with checked parameters."""

    solver: Solver
    max_iter: int
    tol: float
    callback: Observer | None
    verbose: int
    stopping: str = "decrease"
    check_every: int = CHECK_EVERY

    def __post_init__(self) -> None:
        check_option(self.solver, "solver", SOLVERS)
        check_option(self.stopping, "stopping", STOPPING)
        self.check_every = check_integer(self.check_every, "check_every", 1)
        check_observers(self.callback, self.verbose)
        self.max_iter = check_integer(self.max_iter, "max_iter", 0)
        self.tol = check_real(self.tol, "tol")
        names = "solver", "max_iter", "tol", "stopping", "check_every"
        self.settings = {name: getattr(self, name) for name in names}

    def run(
        self,
        model: Steps | Problem,
        current: Current,
        burn_in: int | None = None,
        optimality: Optimality | None = None,
    ) -> Run:
        """Iterate until the objective meets the stopping rule; see `factorize`.

        The rule applies after a burn-in; its first value excludes unreached entries.  With
        `optimality`, the result has the residuals of the last iterate.
        """
        first_rule = 0 if burn_in is None else burn_in + self.check_every
        plan = model.plan(self.solver, self.tol) if isinstance(model, Problem) else None
        run = Run(plan=plan, optimality=optimality)
        unreached = model.unreached() if isinstance(model, Problem) else 0.0
        if unreached == inf:
            raise ValueError(
                "the loss is infinite: the model is 0, and stays 0, where X or the labels are "
                "positive. Add a small constant to the factors of init, let a component reach all "
                "positive entries, or use a loss of 1 or more."
            )
        steps = steps_of(model, plan)
        with verbose_progress(self.verbose, self.max_iter) as progress:
            observers = [observer for observer in (self.callback, progress) if observer is not None]
            if progress is not None and plan is not None:
                progress.begin(plan)
            first = before = steps.objective()
            reached = max(abs(first - unreached), _ROUNDING * abs(first))
            most = 0 if run.observe(0, first, current, observers) else self.max_iter
            while run.n_iter < most:
                if plan is not None and plan.later is not None and run.n_iter == CHECK_EVERY:
                    steps = steps_of(model, plan.later, steps.last)
                begin = run.n_iter
                stops = [begin - begin % each + each for each in (CHECK_EVERY, self.check_every)]
                run.n_iter = min(most, *stops)
                steps.advance(range(begin + 1, run.n_iter + 1))
                if run.n_iter == most or run.n_iter % CHECK_EVERY == 0:
                    steps.settle()
                if run.n_iter < most and run.n_iter % self.check_every:
                    continue
                passed = run.n_iter - run.objective[-1][0]
                now = steps.objective()
                if run.observe(run.n_iter, now, current, observers):
                    break
                fell = self.stopping == "decrease"
                value, times = (before - now, passed) if fell else (now, 1)
                small = value < self.tol * times * reached
                if self.tol > 0 and run.n_iter >= first_rule and small:
                    run.converged = True
                    break
                before = now
            if optimality is not None:
                run.residuals = optimality.residuals(steps.last or LastRows())
                if progress is not None:
                    progress.end(max(run.residuals.values()))
        require_finite(current())
        return run
