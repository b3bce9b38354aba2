"""The problem of :func:`factorize` at factors that are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_factor, check_matrix, check_real
from .._solver.build import features_term, pad_factors, relation_of_features, relations, terms
from .._solver.known import Known, check_penalties
from .._solver.problem import Problem
from .._solver.units import Units

_LEAST = -(1 << 20)  # an order of magnitude below all numbers
_AXES = {"A": "components x features", "B": "components x labels"}


@dataclass(frozen=True)
class AtFactors:
    """A problem, with what is between its units and those of a user; X is in those of the user."""

    problem: Problem
    units: Units
    moves: Mapping[str, Array]

    def objective(self) -> float:
        """Return the value of the objective."""
        return self.units.value(self.problem.objective())


def problem_at(
    X: Any,
    given: Mapping[str, Any],
    *,
    Y: Any,
    loss: str | float,
    supervision_loss: str | float,
    supervision_weight: float,
    X_weights: Any,
    Y_weights: Any,
    feature_labels: Any,
    feature_weight: float,
    penalties: Any,
    threads: int,
    **known: Any,
) -> AtFactors:
    """Return the problem whose factors are those `given`; B and C may be None.

    The rest is as in :func:`factorize`; `known` are supports and fixed components.
    """
    weight = check_real(supervision_weight, "supervision_weight")
    of_features = check_real(feature_weight, "feature_weight")
    S, A, *more = checked = [
        check_matrix(given[name], name, allow_nan=False, limited=False)
        for name in "SAB"
        if given[name] is not None
    ]
    orders = [_order_of_model(S, F) for F in checked[1:]]
    X, data, labels, units = terms(
        *(X, Y, loss, supervision_loss, X_weights, Y_weights, threads),
        orders=(orders[0], orders[-1]),
    )
    rank, (n, m) = len(A), X.shape
    S = check_factor(S, "S", (n, rank), X.dtype, "samples x components", limited=False)
    A = check_factor(A, "A", (rank, m), X.dtype, _AXES["A"], limited=False)
    B = None
    if labels is not None:
        shape = rank, labels.shape[1]
        B = check_factor(more[0], "B", shape, X.dtype, _AXES["B"], limited=False)
    units = units if labels is None else units.weighing(weight)
    factors = (S, A) if B is None else (S, A, B)
    if feature_labels is not None or penalties is not None:  # they have a scale
        units.require_trivial("labels of features and penalties")
    else:
        units, factors = units.taking(factors, X.dtype)
    S, A, *rest = factors
    features, C = features_term(feature_labels, X, supervision_loss, threads), None
    if features is not None:
        shape = rank, features.shape[1]
        of = "components x labels of features"
        C = check_factor(given["C"], "C", shape, X.dtype, of, limited=False)
    stored = pad_factors(S, A, rest[0] if rest else None, C)
    related = relations(data, labels, weight, stored, units)
    if features is not None:
        related.append(relation_of_features(related[0], features, of_features, stored))
    lengths = {name: len(F) for name, F in stored.items()}
    penalized = check_penalties(penalties, lengths, X.shape, rank, related[0].coefficient)
    moves = Known.of(X.shape, rank, X.dtype, **known).moves(stored)
    return AtFactors(Problem(stored, related, penalties=penalized), units, moves)


def _order_of_model(S: Array, A: Array) -> int:
    """Return a binary order of magnitude that no component of S A is above."""
    if S.shape[1] != len(A):
        return _LEAST  # which is refused later
    here, there = S.max(axis=0, initial=0.0), A.max(axis=1, initial=0.0)
    orders = np.frexp(here)[1] + np.frexp(there)[1]
    return int(np.max(orders, where=(here > 0) & (there > 0), initial=_LEAST))
