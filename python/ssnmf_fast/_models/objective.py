"""Function :func:`objective`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.border import check_matrix, require_finite
from .._data.checks import check_factor, check_real
from .._data.threads import resolve_threads
from .._solver.build import features_term, pad_factors, relation_of_features, relations, terms
from .._solver.known import check_penalties
from .._solver.penalties import value_of
from .._solver.relations import value
from .._solver.units import order_of


def objective(
    X: Any,
    S: Any,
    A: Any,
    *,
    Y: Any = None,
    B: Any = None,
    loss: str | float = "frobenius",
    supervision_loss: str | float = "frobenius",
    supervision_weight: float = 1.0,
    X_weights: Any = None,
    Y_weights: Any = None,
    feature_labels: Any = None,
    C: Any = None,
    feature_weight: float = 1.0,
    penalties: Any = None,
    n_threads: int | None = None,
) -> float:
    """Return the value that :func:`factorize` minimizes.

    Parameters
    ----------
    X, Y, loss, supervision_loss, supervision_weight, X_weights, Y_weights, feature_labels, \
feature_weight, penalties, n_threads
        As in :func:`factorize`.
    S, A, B, C : array_like, shapes (n, r), (r, m), (r, k) and (r, g)
        Nonnegative factors; B is needed where Y is given, and C where feature_labels are.

    Returns
    -------
    float

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.objective([[1, 2], [2, 5]], S=[[1], [2]], A=[[1, 2]])
    1.0
    """
    weight = check_real(supervision_weight, "supervision_weight")
    of_features = check_real(feature_weight, "feature_weight")
    threads = resolve_threads(n_threads)
    for name, data_of, factor in (("Y", Y, "B"), ("feature_labels", feature_labels, "C")):
        if (data_of is None) != ({"B": B, "C": C}[factor] is None):
            raise ValueError(f"{name} and {factor} belong together: give both or neither.")
    S, A, *_ = given = [
        check_matrix(F, name, allow_nan=False, limited=False)
        for F, name in zip((S, A, B), "SAB", strict=True)
        if F is not None
    ]
    order, *others = (order_of(np.max(F, initial=0.0)) for F in given)
    orders = [order + other for other in others]
    X, data, labels, units = terms(
        *(X, Y, loss, supervision_loss, X_weights, Y_weights, threads),
        orders=(orders[0], orders[-1]),
    )
    rank, (n, m) = len(A), X.shape
    S = check_factor(S, "S", (n, rank), X.dtype, "samples x components", limited=False)
    A = check_factor(A, "A", (rank, m), X.dtype, "components x features", limited=False)
    if labels is not None:
        shape = rank, labels.shape[1]
        B = check_factor(B, "B", shape, X.dtype, "components x labels", limited=False)
    units = units if labels is None else units.weighing(weight)
    factors = (S, A) if B is None else (S, A, B)
    if feature_labels is not None or penalties is not None:  # they have a scale
        units.require_trivial("labels of features and penalties")
    else:
        units, factors = units.taking(factors, X.dtype)
    S, A, *rest = factors
    features = features_term(feature_labels, X, supervision_loss, threads)
    if features is not None:
        shape = rank, features.shape[1]
        C = check_factor(C, "C", shape, X.dtype, "components x labels of features", limited=False)
    stored = pad_factors(S, A, rest[0] if rest else None, C)
    related = relations(data, labels, weight, stored, units)
    if features is not None:
        related.append(relation_of_features(related[0], features, of_features, stored))
    lengths = {name: len(F) for name, F in stored.items()}
    unit = related[0].coefficient
    penalized = check_penalties(penalties, lengths, X.shape, None, rank, unit)
    found = units.value(value(related, stored) + value_of(penalized, stored))
    require_finite({"the objective": found})
    return found


__all__ = ["objective"]
