"""How far factors are from where no small change lowers the objective: a residual.

The objective is lowest, near where it is, if the Karush-Kuhn-Tucker conditions hold: its gradient,
a multiple of N - P, is zero where a factor F is positive, and not negative where F is zero.  The
residual of a factor is::

    sum |N - P| .* w / sum F .* N,   w = F where N >= P, else max(F, s)

with s the mean of each component in F: the share by which what pulls the entries up and what pulls
them down differ.  Neither the units of the data nor the scale of a component changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array, bits_of
from .losses import added
from .penalties import NONE, Bound
from .problem import Problem
from .relations import Statistics


class Measured(NamedTuple):
    """The residual of a factor, and what pulls it up or down: about as much as the data are."""

    residual: float
    pull: float


@dataclass(frozen=True)
class Optimality:
    """The residuals of the factors of a problem, as they are when they are asked for.

    Entries of a factor do not count that are not in `moves`, nor zeros in those that `stay`.
    """

    problem: Problem
    moves: Mapping[str, Array] = field(default_factory=dict)
    stay: Collection[str] = ()

    def residuals(self, last: bool = False) -> dict[str, float]:
        """Return the residual of every factor; a fit that goes on stays as it is.

        It takes about as long as an iteration.  After the `last` one, memory of the fit is used.
        """
        return {name: found.residual for name, found in self.measured(last).items()}

    def measured(self, last: bool = False) -> dict[str, Measured]:
        """Return the residuals, and what they are shares of."""
        problem = self.problem.beside(last)
        return {name: self._measured(problem, name) for name in problem.factors}

    def _measured(self, problem: Problem, name: str) -> Measured:
        F, moves = problem.factors[name], self.moves.get(name)
        if name in self.stay:
            positive = bits_of(F > 0)
            moves = positive if moves is None else positive & moves
        bounds = problem.penalties.get(name, NONE).bounds(F)
        return measured(F, problem.statistics(name, False), bounds, moves, problem.threads)


def measured(
    F: Array, statistics: Statistics, bounds: list[Bound], moves: Array | None, threads: int
) -> Measured:
    """Return the residual of a factor, 0 where nothing pulls at it."""
    P, N, slope = _pulls(F, statistics, bounds)
    apart, pull = kernels.imbalance(F, P, N, moves, threads)
    return Measured(apart / pull if pull > 0 else 0.0, slope * pull)


def _pulls(F: Array, statistics: Statistics, bounds: list[Bound]) -> tuple[Array, Array, float]:
    """Return what pulls a factor up and down, of all losses and penalties, and its unit."""
    sums = statistics.sums
    if len(sums) == 1 and not bounds:
        ((loss, (P, N)),) = sums.items()
        return P, N, loss.slope
    P, N = np.zeros_like(F), np.zeros_like(F)
    for loss, pair in sums.items():
        added((P, N), pair, loss.slope)
    for bound in bounds:
        N += F.dtype.type(bound.linear)
        if bound.gram is not None:
            quadratic = 2 * (F @ bound.gram)
            N += quadratic if bound.rows is None else quadratic * bound.rows[:, None]
        if bound.up is not None:
            P += 2 * bound.up
    return P, N, 1.0
