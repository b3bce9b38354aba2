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

from .._common.arrays import Array
from .._data.entries import row_slices
from .penalties import Bound, bounds_of
from .problem import Problem
from .relations import Statistics


class Measured(NamedTuple):
    """The residual of a factor, and what pulls it up or down: about as much as the data are."""

    residual: float
    pull: float


@dataclass(frozen=True)
class Optimality:
    """The residuals of the factors of a problem, as they are when they are asked for.

    Entries of a factor do not count where `moves` has 0, nor, in the factors that `stay`, zeros.
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
            moves = (F > 0) if moves is None else (F > 0) * moves
        bounds = bounds_of(problem.penalties.get(name, ()), F)
        return measured(F, problem.statistics(name, False), bounds, moves)


def measured(
    F: Array, statistics: Statistics, bounds: list[Bound], moves: Array | None = None
) -> Measured:
    """Return the residual of a factor, 0 where nothing pulls at it."""
    sizes = F.mean(axis=0, dtype=np.float64).astype(F.dtype)
    apart = up = down = 0.0
    for rows in row_slices(len(F)):
        here = F[rows]
        P, N = _pulls(here, statistics, [bound.part(rows) for bound in bounds], rows)
        gap = N - P
        weight = np.where(gap < 0, np.maximum(here, sizes), here)
        if moves is not None:
            weight, here = weight * moves[rows], here * moves[rows]
        apart += float(np.sum(np.abs(gap) * weight, dtype=np.float64))
        up += float(np.sum(here * P, dtype=np.float64))
        down += float(np.sum(here * N, dtype=np.float64))
    pull = max(up, down)
    return Measured(apart / pull if pull > 0 else 0.0, pull)


def _pulls(
    here: Array, statistics: Statistics, bounds: list[Bound], rows: slice
) -> tuple[Array, Array]:
    """Return what pulls some rows up and down, of all losses and penalties."""
    P, N = np.zeros_like(here), np.zeros_like(here)
    for loss, (up, down) in statistics.sums.items():
        slope = here.dtype.type(loss.slope)
        P += slope * up[rows]
        N += slope * (down if len(down) == 1 else down[rows])
    for bound in bounds:
        N += here.dtype.type(bound.linear)
        if bound.gram is not None:
            quadratic = 2 * (here @ bound.gram)
            N += quadratic if bound.rows is None else quadratic * bound.rows[:, None]
        if bound.up is not None:
            P += 2 * bound.up
    return P, N
