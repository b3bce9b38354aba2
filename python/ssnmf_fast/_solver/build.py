"""Models as lists of terms: from the user's input to relations between stored factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array, Factors, LossName, Matrix
from .._data.arrays import on_disk_error
from .._data.border import check_matrix, check_option, check_real
from .._data.csr_file import CsrFile
from .._data.tensors import Tensor, check_mode, coordinate_parts
from .loop import Current, Run
from .losses import loss_named
from .relations import Relation, mode_names, unreached, value
from .result import Factorization
from .term_forms import on_disk
from .terms import Loss, Term
from .weights import TWO_WAYS, ByMode, Entrywise, Outer, Weights, WeightsLike

_SPARSE_LABELS = 0.5  # Y with a smaller share of nonzero entries is held as a sparse matrix


def as_weights(given: object, name: str, n_modes: int = 0) -> Weights:
    """Return given weights as `Weights`, for a matrix or a tensor with `n_modes` modes."""
    if isinstance(given, Weights):
        return given.of_tensor() if n_modes else given
    if given is None:
        return ByMode(vectors=(None,) * n_modes) if n_modes else Outer(None, None)
    if n_modes and isinstance(given, (list, tuple)) and coordinate_parts(given, name) is None:
        return ByMode(vectors=tuple(given))
    if sp.issparse(given) and not n_modes:
        raise TypeError(TWO_WAYS.format(f"{name} is a sparse matrix"))
    return Entrywise(given)


def build_term(
    Z: Any, given: object, loss: Loss, name: str, threads: int, tensor: bool = False
) -> Term:
    """Check the weights of clean data, "X" or "y", and return their term."""
    title = f"{name}_weights"
    if not isinstance(Z, CsrFile):
        weights = as_weights(given, title, len(Z.shape) if tensor else 0)
        term = weights.term(Z, loss, title, threads, tensor)
    elif given is None:
        term = on_disk(Z, loss, threads)
    else:
        raise on_disk_error(title, name)
    loss.check(term, name)
    return term


def check_rows(given: Any, name: str, dtype: npt.DTypeLike, n: int, of: str, **checks: Any) -> Any:
    """Return a checked matrix with a row for each sample, feature or index of a mode."""
    Y = check_matrix(given, name, dtype=dtype, **checks)
    if Y.shape[0] != n or Y.shape[1] == 0:
        expected = f"expected {n} rows, one row for each {of}, not empty."
        hint = " If the columns are samples, give X.T and y.T." if name == "y" else ""
        raise ValueError(f"{name} has shape {Y.shape}; {expected}{hint}")
    return Y


def collapse(
    X: Matrix, X_weights: WeightsLike, groups: Array, n_groups: int, loss: Loss
) -> tuple[Any, Weights, float]:
    """Merge the rows of a clean X by groups 0 ... n_groups - 1, which must all occur."""
    n = X.shape[0]
    G = sp.csr_array((np.ones(n, dtype=X.dtype), (groups, np.arange(n))), shape=(n_groups, n))
    return as_weights(X_weights, "X_weights").grouped(X, G, loss, "X_weights")


def terms(
    X: Any,
    y: Any,
    loss: LossName | float,
    supervision_loss: LossName | float,
    X_weights: WeightsLike,
    y_weights: WeightsLike,
    threads: int,
) -> tuple[Term, Term | None]:
    """Return the term of clean data and, if y is given, check it and return its term."""
    losses = loss_named(loss, "loss"), loss_named(supervision_loss, "supervision_loss")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; expected at least one sample and one feature.")
    data = build_term(X, X_weights, losses[0], "X", threads)
    if y is None:
        if y_weights is not None:
            raise ValueError("y_weights are given without y; give y, or leave them out.")
        return data, None
    y = check_rows(y, "y", X.dtype, X.shape[0], "sample of X", ordinary=True)
    return data, build_term(sparse_labels(y), y_weights, losses[1], "y", threads)


def tensor_relations(
    X: Tensor,
    X_weights: WeightsLike,
    y: Mapping[int, Any] | None,
    losses: Sequence[LossName | float],
    weight: float,
    threads: int,
) -> tuple[list[Relation], dict[int, Term]]:
    """Return the relations of a clean tensor and its labels, and the terms of the labels."""
    names, labeled = mode_names(len(X.shape)), {}
    of_X, of_Y = map(loss_named, losses, ("loss", "supervision_loss"))
    if y is not None and not isinstance(y, Mapping):
        raise TypeError(
            f"y must be a mapping of modes to matrices, such as {{0: Y}}; got {type(y).__name__}."
        )
    related = [Relation(names, build_term(X, X_weights, of_X, "X", threads, tensor=True))]
    for key, given in (y or {}).items():
        mode = check_mode(key, "a mode of y", len(names))
        if mode in labeled:
            raise ValueError(f"y has mode {mode} twice, counted from the first and the last.")
        Y = check_rows(given, f"y[{mode}]", X.dtype, X.shape[mode], f"index of mode {mode}")
        labeled[mode] = build_term(Y, None, of_Y, "y", threads)
        related.append(Relation((names[mode], f"B{mode}"), labeled[mode], weight))
    return related, labeled


def features_term(given: object, X: Matrix, loss: LossName | float, threads: int) -> Term | None:
    """Return the term of labels of features, if any; a row of NaN has weight 0."""
    if given is None:
        return None
    Y, weights = check_rows(given, "feature_labels", X.dtype, X.shape[1], "feature"), None
    if not sp.issparse(Y):
        labeled = ~np.isnan(Y).all(axis=1)
        if not labeled.any():
            raise ValueError("feature_labels is NaN everywhere; expected at least one label.")
        Y = np.where(labeled[:, None], Y, 1)  # no NaN, so that all rows have one curvature
        weights = None if labeled.all() else Outer(labeled.astype(X.dtype), None)
    return build_term(Y, weights, loss_named(loss, "supervision_loss"), "feature_labels", threads)


def sparse_labels(Y: Any) -> Any:
    """Return a clean Y as a sparse matrix if most entries are zero and none is NaN."""
    if not sp.issparse(Y) and np.count_nonzero(Y) < _SPARSE_LABELS * Y.size:
        return Y if np.isnan(Y).any() else sp.csr_array(Y)
    return Y


def check_weight(
    weight: Any, name: str = "supervision_weight", dtype: np.dtype[Any] | None = None
) -> float | None:
    """Return a weight, None for "balanced"; refuse weights that make the other loss vanish."""
    if isinstance(weight, str):
        check_option(weight, name, ("balanced",))
        return None
    number = check_real(weight, name)
    # Leaves room for the squares of the largest data.
    most = math.inf if dtype is None else {4: 2.0**60, 8: 2.0**100}[dtype.itemsize]
    if number > most:
        hint = f"got {number:.3g}. Scale the data and the labels to a similar size."
        raise ValueError(f"{name} must be at most {most:.0e} in {dtype}; {hint}")
    return number


def pad_factors(
    S: Array, A: Array, B: Array | None = None, C: Array | None = None, threads: int = 1
) -> dict[str, Array]:
    """Return the factors in the storage of the kernels: A, B and C transposed, all padded."""
    factors = {"S": padded(S, S.dtype, threads), "A": padded(A.T, S.dtype, threads)}
    others = {"B": B, "C": C}
    return factors | {name: padded(F.T, S.dtype) for name, F in others.items() if F is not None}


def view_factors(factors: Factors, rank: int) -> Current:
    """Return a function that returns views of S, A, B and C in the shapes of the user."""

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
    data: Term,
    labels: Term | None,
    weight: float | None,
    factors: dict[str, Array],
    features: Term | None = None,
    feature_weight: float | None = 1.0,
) -> list[Relation]:
    """Return the relations X ~ S A, Y ~ S B and Z ~ A^T C; weight None makes losses equal."""
    related, others = [Relation(("S", "A"), data)], {("S", "B"): (labels, weight)}
    others["A", "C"] = features, feature_weight
    for names, (term, coefficient) in others.items():
        if term is not None:
            other = balance_weight(related[0], Relation(names, term), coefficient, factors)
            related.append(other)
    return related


def even_weight(loss: float, other: float) -> float:
    """Return the factor that makes the other loss, or mean, equal; 1 if one of them is 0."""
    return float(loss / other) if min(loss, other) > 0 else 1.0


def balance_weight(
    first: Relation, other: Relation, weight: float | None, factors: dict[str, Array]
) -> Relation:
    """Return the other relation with its weight; None makes the reachable losses equal."""
    if weight is None:
        losses = [value([each], factors) - unreached([each], factors) for each in (first, other)]
        weight = even_weight(*losses)
    return replace(other, coefficient=weight)
