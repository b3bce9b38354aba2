"""One case of the comparison: its solvers, their traces, and its rows in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from adapters import F, Problem, Solver
from common import Point, first_within, lowest, markdown, settled

WITHIN = (0.01, 0.001)  # shares above the best loss
SETTLED_BELOW = 1e-6  # share of the loss that a step of the trace must change it by


@dataclass
class Case:
    """One data set, rank and loss: every solver and its trace."""

    data: str
    rank: int
    problem: Problem
    solvers: dict[str, Solver]
    traces: dict[str, list[Point]]

    @property
    def best(self) -> float:
        return lowest(self.traces)

    def goals(self) -> list[float]:
        return [self.best * (1 + share) for share in WITHIN]

    def loss_of(self, label: str) -> Callable[[Any], float]:
        return lambda result: self.problem.objective(self.solvers[label].factors(result))

    def finish(self) -> None:
        """Put the traces in the order of the solvers; drop these and their dense copies of X."""
        self.traces = {label: without_noise(self.traces[label]) for label in self.solvers}
        self.solvers = {}
        self.problem.__dict__.pop("dense", None)


def without_noise(points: list[Point]) -> list[Point]:
    """Let no fit take longer than one of more iterations: the rest was another program's."""
    cleaned: list[Point] = []
    for found in reversed(points):
        shortest = min([found.seconds, *(later.seconds for later in cleaned[-1:])])
        cleaned.append(found._replace(seconds=shortest))
    return cleaned[::-1]


def per_iteration(points: list[Point]) -> float:
    """Return the seconds of an iteration without set-up, if there is more than one fit.

    The median over the longer fits: the longest was timed once only.
    """
    first, later = points[0], points[1:]
    if not later:
        return first.seconds
    longer = later[len(later) // 2 :]
    return median((p.seconds - first.seconds) / (p.iterations - first.iterations) for p in longer)


def time_cell(points: list[Point], goal: float, best: float, cap: float) -> str:
    """Return the time and iterations to the goal, or how far off the solver stayed."""
    found = first_within(points, goal)
    if found is not None:
        return f"{readable(found.seconds)} ({found.iterations})"
    if not np.isfinite(points[-1].loss):
        return "fails: NaN"
    ratio = min(p.loss for p in points) / best
    above = f"{ratio - 1:.2%}" if ratio < 10 else f"{ratio:.0f} times"
    over = "never" if settled(points, SETTLED_BELOW) else f"> {cap:g} s"
    return f"{over} ({above})"


def readable(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def beside(points: list[Point], our_points: list[Point], goal: float, cap: float) -> str:
    """How many times as long as our default solver?"""
    mine, theirs = first_within(our_points, goal), first_within(points, goal)
    if mine is None or points is our_points:
        return ""
    if theirs is not None:
        return f"{theirs.seconds / mine.seconds:.1f}"
    return "" if settled(points, SETTLED_BELOW) else f"> {cap / mine.seconds:.0f}"


def rows_of(case: Case, cap: float) -> list[list[str]]:
    """Return a row for every solver."""
    mine = case.traces["ssnmf_fast"]
    return [
        [
            case.data,
            str(case.rank),
            "F" if case.problem.loss == F else "D",
            label,
            *(time_cell(points, goal, case.best, cap) for goal in case.goals()),
            beside(points, mine, case.goals()[-1], cap),
            ("" if len(points) > 1 else "at most ") + readable(per_iteration(points)),
        ]
        for label, points in case.traces.items()
    ]


def table(cases: list[Case], cap: float) -> str:
    """Return the markdown table."""
    header = ["data", "rank", "loss", "solver"]
    header += [f"to {share * 100:g} % (iterations)" for share in WITHIN]
    header += ["times ours", "per iteration"]
    return markdown(header, [row for case in cases for row in rows_of(case, cap)])
