"""Rows of a factor over a dictionary, where some of their entries are given, or are penalized."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._common.arrays import Array, mask_of
from .._data.entries import Target
from .penalties import Penalties
from .problem import Problem
from .relations import Relation
from .terms import Term

_BETWEEN_CHECKS = 5
_FINEST = 1e-4


def solve_known_rows(
    term: Term,
    F: Array,
    G: Array,
    support: Mapping[str, Array],
    penalties: Penalties,
    tol: float,
    most: int,
) -> int:
    """Set every row of F to a minimizer, G fixed; return the number of rows left unsolved.

    By the steps of a fit, until no row has a residual of the optimality conditions above `tol`.
    """
    factors, relations = {"S": F, "A": G}, [Relation(("S", "A"), term)]
    problem = Problem(factors, relations, support, penalties={"S": penalties})
    moves = mask_of(support["S"], F.shape[1]) if "S" in support else np.ones(F.shape, dtype=bool)
    curvature = problem.descends("S", "hals")
    tol = tol if curvature else max(tol, _FINEST)  # multiplicative steps are too slow for less
    statistics = None
    unsolved = len(F)
    for _ in range(0, most, _BETWEEN_CHECKS):
        for _ in range(_BETWEEN_CHECKS):
            if statistics is None or not statistics.parts:  # squares: P is that of the data alone
                statistics = problem.statistics("S", curvature)
            problem.apply("S", statistics, "auto")
        unsolved = int(np.count_nonzero(_residuals(term, F, G, moves, penalties) > tol))
        if not unsolved:
            break
    return unsolved


def _residuals(term: Term, F: Array, G: Array, moves: Array, penalties: Penalties) -> Array:
    """Return the largest residual of each row, as a share of what pulls it up or down."""
    P, N = np.empty_like(F), np.empty_like(F)
    term.P(F, G, Target(P))
    term.N(F, G, Target(N))
    up, down = term.loss.slope * P, term.loss.slope * N
    for bound in penalties.bounds(F):
        down += F.dtype.type(bound.linear)
        if bound.gram is not None:
            down += 2 * (F @ bound.gram)
    tiny = np.finfo(F.dtype).tiny
    inside = np.max(F * np.abs(down - up), axis=1, where=moves, initial=0.0)
    inside /= np.maximum(np.sum(F * down, axis=1, where=moves), tiny)
    at_zero = np.max(up - down, axis=1, where=moves & (F == 0), initial=0.0)
    at_zero /= np.maximum(np.max(up, axis=1, where=moves, initial=0.0), tiny)
    residuals: Array = np.maximum(inside, at_zero)
    return residuals
