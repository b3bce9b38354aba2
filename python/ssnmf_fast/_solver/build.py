"""The models as lists of terms: from what a user gives to relations between stored factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array, Matrix
from .._data.arrays import on_disk_error
from .._data.border import check_matrix, check_option, check_real
from .._data.csr_file import CsrFile
from .._data.tensors import Tensor, check_mode, coordinate_parts
from .loop import Current, Run
from .losses import loss_named
from .relations import Relation, mode_names, unreached, value
from .result import Factorization
from .terms import Loss, Term, on_disk
from .weights import TWO_WAYS, Entrywise, Outer, Weights, WeightsLike, by_mode

_SPARSE_LABELS = 0.5  # Y with a smaller share of nonzero entries is held as a sparse matrix


def as_weights(given: object, name: str) -> Weights:
    """Return what a user gave as weights: None stands for ones, an array for its entries."""
    if isinstance(given, Weights):
        return given
    if given is None:
        return Outer(None, None)
    if sp.issparse(given):
        raise TypeError(TWO_WAYS.format(f"{name} is a sparse matrix"))
    return Entrywise(given)


def build_term(Z: Matrix, given: object, loss: Loss, name: str, threads: int) -> Term:
    """Check the weights of clean data, "X" or "y", and return their term."""
    title = f"{name}_weights"
    if not isinstance(Z, CsrFile):
        term = as_weights(given, title).term(Z, loss, title, threads)
    elif given is None:
        term = on_disk(Z, loss, threads)
    else:
        raise on_disk_error(title, name)
    loss.check(term, name)
    return term


def build_tensor_term(X: Tensor, given: object, loss: Loss, threads: int) -> Term:
    """Check the weights of a clean tensor, perhaps vectors by mode, and return its term."""
    vectors = given if given is not None else [None] * len(X.shape)
    if isinstance(given, Weights):
        term = given.tensor_term(X, loss, threads)
    elif isinstance(vectors, (list, tuple)) and coordinate_parts(vectors, "X_weights") is None:
        term = by_mode(X, vectors, loss, threads)
    else:
        term = Entrywise(given).tensor_term(X, loss, threads)
    loss.check(term, "X")
    return term


def collapse(
    X: Matrix, X_weights: WeightsLike, groups: Array, n_groups: int, loss: Loss
) -> tuple[Any, Weights, float]:
    """Merge the rows of a clean X by groups, 0 ... n_groups - 1, which all occur."""
    n = X.shape[0]
    G = sp.csr_array((np.ones(n, dtype=X.dtype), (groups, np.arange(n))), shape=(n_groups, n))
    return as_weights(X_weights, "X_weights").grouped(X, G, loss, "X_weights")


def terms(
    X: Any,
    y: Any,
    loss: str | float,
    supervision_loss: str | float,
    X_weights: WeightsLike,
    y_weights: WeightsLike,
    threads: int,
) -> tuple[Term, Term | None]:
    """Return the term of clean data and, where there is a y, which is checked, that of y."""
    losses = loss_named(loss, "loss"), loss_named(supervision_loss, "supervision_loss")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; expected at least one sample and one feature.")
    data = build_term(X, X_weights, losses[0], "X", threads)
    if y is None:
        if y_weights is not None:
            raise ValueError("y_weights are given without y; give y, or leave them out.")
        return data, None
    y = check_matrix(y, "y", dtype=X.dtype, ordinary=True)
    if y.shape[0] != X.shape[0] or y.shape[1] == 0:
        raise ValueError(
            f"y has shape {y.shape} and X has shape {X.shape}; expected one row of y for each "
            "sample of X, and at least one column."
        )
    return data, build_term(sparse_labels(y), y_weights, losses[1], "y", threads)


def tensor_relations(
    X: Tensor,
    X_weights: WeightsLike,
    y: Mapping[int, Any] | None,
    losses: tuple[Loss, Loss],
    weight: float,
    threads: int,
) -> tuple[list[Relation], dict[int, Term]]:
    """Return the relations of a clean tensor (F0, ..) and its labels (B0, ..), and their terms."""
    names, labeled = mode_names(len(X.shape)), {}
    if y is not None and not isinstance(y, Mapping):
        raise TypeError(
            f"y must be a mapping of modes to matrices, such as {{0: Y}}; got {type(y).__name__}."
        )
    related = [Relation(names, build_tensor_term(X, X_weights, losses[0], threads))]
    for key, given in (y or {}).items():
        mode = check_mode(key, "a mode of y", len(names))
        if mode in labeled:
            raise ValueError(f"y has mode {mode} twice, counted from the first and the last.")
        Y = check_matrix(given, f"y[{mode}]", dtype=X.dtype)
        if Y.shape[0] != X.shape[mode] or Y.shape[1] == 0:
            raise ValueError(
                f"y[{mode}] has shape {Y.shape}; expected {X.shape[mode]} rows, one for each "
                f"index of mode {mode}, and at least one column."
            )
        labeled[mode] = build_term(Y, None, losses[1], "y", threads)
        related.append(Relation((names[mode], f"B{mode}"), labeled[mode], weight))
    return related, labeled


def features_term(given: object, X: Matrix, loss: str | float, threads: int) -> Term | None:
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
    if isinstance(weight, str):
        check_option(weight, name, ("balanced",))
        return None
    return check_real(weight, name)


def require_weight(weight: float | None, dtype: np.dtype[Any], name: str) -> None:
    """Raise ValueError for a weight so large that the other loss is lost in rounding."""
    most = {4: 2.0**60, 8: 2.0**100}[dtype.itemsize]  # the squares of the largest data to fit
    if weight is not None and weight > most:
        raise ValueError(
            f"{name} must be at most {most:.0e} in {dtype}; got {weight:.3g}. Bring the data and "
            f"the labels to one scale, by constant factors."
        )


def pad_factors(
    S: Array, A: Array, B: Array | None = None, C: Array | None = None
) -> dict[str, Array]:
    """Return the factors as the kernels hold them: by rows (all but S transposed), padded."""
    factors = {"S": padded(S, S.dtype), "A": padded(A.T, S.dtype)}
    others = {"B": B, "C": C}
    return factors | {name: padded(F.T, S.dtype) for name, F in others.items() if F is not None}


def view_factors(factors: Mapping[str, Array], rank: int) -> Current:
    """Return what shows S by rows, and the others, which are stored by rows as well, by columns."""

    def current() -> Mapping[str, Array | None]:
        views = {name: F[:, :rank] for name, F in factors.items()}
        return dict.fromkeys("BC") | {name: F if name == "S" else F.T for name, F in views.items()}

    return current


def factorization(
    run: Run, current: Current, weight: float | None = None, feature_weight: float | None = None
) -> Factorization:
    views = current().items()
    factors = {name: None if F is None else np.ascontiguousarray(F) for name, F in views}
    return Factorization(
        **factors,  # type: ignore[arg-type]
        objective=run.objective,
        n_iter=run.n_iter,
        converged=run.converged,
        supervision_weight=weight,
        feature_weight=feature_weight,
    )


def relations(
    data: Term, labels: Term | None, weight: float | None, factors: dict[str, Array]
) -> list[Relation]:
    related = [Relation(("S", "A"), data)]
    if labels is None:
        return related
    return balance_weight([*related, Relation(("S", "B"), labels)], weight, factors)


def relation_of_features(
    data: Relation, features: Term, weight: float | None, factors: dict[str, Array]
) -> Relation:
    """Return the relation of the labels of features; "balanced" compares it with that of X."""
    return balance_weight([data, Relation(("A", "C"), features)], weight, factors)[1]


def even_weight(loss: float, other: float) -> float:
    """Return the weight of the other loss for which both are equal; 1 where one of them is 0."""
    return float(loss / other) if min(loss, other) > 0 else 1.0


def balance_weight(
    related: list[Relation], weight: float | None, factors: dict[str, Array]
) -> list[Relation]:
    """Return two relations with a weight of the second; None makes the reachable losses equal."""
    if weight is None:
        losses = [value([each], factors) - unreached([each], factors) for each in related]
        weight = even_weight(*losses)
    return [related[0], replace(related[1], coefficient=weight)]
