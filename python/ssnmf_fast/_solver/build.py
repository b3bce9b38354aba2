"""The models as lists of terms: from what a user gives to relations between stored factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import check_matrix, check_option, check_real
from .._data.csr_file import check_data
from .loop import Current, Run
from .losses import Loss, loss_named
from .relations import Relation, unreached, value
from .result import Factorization
from .terms import Term
from .units import ORDINARY, Units, exponent_of, scaled
from .weights import Outer, build_term

_SPARSE_LABELS = 0.5  # Y with a smaller share of nonzero entries is held as a sparse matrix


def terms(
    X: Any,
    Y: Any,
    loss: str | float | Loss,
    supervision_loss: str | float | Loss,
    X_weights: Any,
    Y_weights: Any,
    threads: int,
    orders: tuple[int | None, int | None] = (None, None),
    dtype: Any = None,
) -> tuple[Any, Term, Term | None, Units]:
    """Check the data and build the term of X and, where there is a Y, that of Y.

    X and the terms are in the units that are returned, in which models of X and Y of the binary
    `orders` of magnitude are in the range.
    """
    losses = loss_named(loss, "loss"), loss_named(supervision_loss, "supervision_loss")
    X = check_data(X, threads, dtype)
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; expected at least one sample and one feature.")
    x = exponent_of(X, "X", orders[0])
    X = scaled(X, -x)
    data = build_term(X, X_weights, losses[0], "X", threads)
    if Y is None:
        if Y_weights is not None:
            raise ValueError("Y_weights are given without Y; give Y, or leave them out.")
        return X, data, None, Units.of(x, 0, losses)
    Y = check_matrix(Y, "Y", dtype=X.dtype)
    if Y.shape[0] != X.shape[0] or Y.shape[1] == 0:
        raise ValueError(
            f"Y has shape {Y.shape} and X has shape {X.shape}; expected one row of Y for each "
            "sample of X, and at least one column."
        )
    Y = sparse_labels(Y)
    y = exponent_of(Y, "Y", orders[1])
    labels = build_term(scaled(Y, -y), Y_weights, losses[1], "Y", threads)
    return X, data, labels, Units.of(x, y, losses, labels=True)


def features_term(given: Any, X: Any, loss: str | float | Loss, threads: int) -> Term | None:
    """Return the term of labels of features, if there are some; a row of NaN has no weight."""
    if given is None:
        return None
    n_features, dtype = X.shape[1], X.dtype
    Y = check_matrix(given, "feature_labels", dtype=dtype)
    if Y.shape[0] != n_features or Y.shape[1] == 0:
        raise ValueError(
            f"feature_labels has shape {Y.shape} and X has {n_features} features; expected one row "
            "for each feature, and at least one column."
        )
    weights = None
    if not sp.issparse(Y):
        labeled = ~np.isnan(Y).all(axis=1)
        if not labeled.any():
            raise ValueError("feature_labels is NaN everywhere; expected at least one label.")
        Y = np.where(labeled[:, None], Y, 1)  # so that the others have one curvature
        weights = None if labeled.all() else Outer(labeled.astype(dtype), None)
    return build_term(Y, weights, loss_named(loss, "supervision_loss"), "feature_labels", threads)


def sparse_labels(Y: Any) -> Any:
    """Return a clean Y as a sparse matrix where most entries are zero, and none is NaN."""
    if not sp.issparse(Y) and np.count_nonzero(Y) < _SPARSE_LABELS * Y.size:
        return Y if np.isnan(Y).any() else sp.csr_array(Y)
    return Y


def check_weight(weight: Any, name: str = "supervision_weight") -> float | None:
    """Return lambda, or None for "balanced"."""
    if isinstance(weight, str):
        check_option(weight, name, ("balanced",))
        return None
    return check_real(weight, name)


def pad_factors(
    S: Array, A: Array, B: Array | None = None, C: Array | None = None
) -> dict[str, Array]:
    """Return the factors as the kernels hold them: by rows (all but S transposed), padded."""
    factors = {"S": padded(S, S.dtype), "A": padded(A.T, S.dtype)}
    others = {"B": B, "C": C}
    return factors | {name: padded(F.T, S.dtype) for name, F in others.items() if F is not None}


def view_factors(factors: Mapping[str, Array], rank: int, units: Units = ORDINARY) -> Current:
    """Return what shows S by rows, and the others, which are stored by rows as well, by columns."""

    def current() -> Mapping[str, Array | None]:
        views = {name: units.factor(name, F[:, :rank]) for name, F in factors.items()}
        return dict.fromkeys("BC") | {name: F if name == "S" else F.T for name, F in views.items()}

    return current


def factorization(run: Run, current: Current, weight: float | None = None) -> Factorization:
    """Return the result of a fit of S, A and, where there are some, B and C."""
    views = current().items()
    factors = {name: None if F is None else np.ascontiguousarray(F) for name, F in views}
    return Factorization(
        **factors,  # type: ignore[arg-type]
        objective=run.objective,
        n_iter=run.n_iter,
        converged=run.converged,
        supervision_weight=weight,
    )


def relations(
    data: Term,
    labels: Term | None,
    weight: float | None,
    factors: dict[str, Array],
    units: Units = ORDINARY,
) -> list[Relation]:
    """Return the relations of X and, where there are labels, of Y."""
    related = [Relation(("S", "A"), data)]
    if labels is None:
        return related
    related.append(Relation(("S", "B"), labels))
    if weight is None:
        return balance_weight(related, weight, factors)
    pairs = zip(related, units.coefficients(weight), strict=True)
    return [replace(relation, coefficient=coefficient) for relation, coefficient in pairs]


def relation_of_features(
    data: Relation, features: Term, weight: float | None, factors: dict[str, Array]
) -> Relation:
    """Return the relation of the labels of features; "balanced" compares it with that of X."""
    weight = None if weight is None else weight * data.coefficient
    return balance_weight([data, Relation(("A", "C"), features)], weight, factors)[1]


def even_weight(loss: float, other: float) -> float:
    """Return the weight of the other loss for which both are equal; 1 where one of them is 0."""
    return float(loss / other) if min(loss, other) > 0 else 1.0


def balance_weight(
    related: list[Relation], weight: float | None, factors: dict[str, Array]
) -> list[Relation]:
    """Weigh the second of two relations: so that both losses are equal, without a weight.

    Entries that no component can reach do not count.
    """
    if weight is None:
        losses = [value([each], factors) - unreached([each], factors) for each in related]
        weight = even_weight(*losses)
    return [related[0], replace(related[1], coefficient=weight)]
