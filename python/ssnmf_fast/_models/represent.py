"""Functions :func:`represent` and :func:`objective`, and others for given factors."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from .._backend.dispatch import padded, padded_zeros
from .._common.arrays import Array, LossName, Matrix, MatrixLike
from .._common.docstrings import completing
from .._common.warn import warn_user
from .._data import border
from .._data.arrays import DataLike
from .._data.border import check_data, check_factor, check_matrix, check_real, require_finite
from .._data.tensors import RowProducts, Tensor
from .._data.threads import resolve_threads
from .._solver import build
from .._solver.known import Known, penalties_of_rows, solve_known_rows
from .._solver.losses import loss_named
from .._solver.penalties import Penalties, PenaltiesLike
from .._solver.problem import UNOBSERVED, Problem
from .._solver.relations import Relation, mode_names
from .._solver.terms import Term
from .._solver.weights import WeightsLike
from .factorize import factorize
from .receipts import problem_at

__all__ = ["objective"]


def objective(
    X: DataLike,
    S: npt.ArrayLike,
    A: npt.ArrayLike,
    *,
    y: MatrixLike | None = None,
    B: npt.ArrayLike | None = None,
    loss: LossName | float = "frobenius",
    supervision_loss: LossName | float = "frobenius",
    supervision_weight: float = 1.0,
    X_weights: WeightsLike = None,
    y_weights: WeightsLike = None,
    feature_labels: MatrixLike | None = None,
    C: npt.ArrayLike | None = None,
    feature_weight: float = 1.0,
    penalties: PenaltiesLike = None,
    n_threads: int | None = None,
) -> float:
    """Return the value that :func:`factorize` minimizes.

    Parameters
    ----------
    X, y, loss, supervision_loss, supervision_weight, X_weights, y_weights, feature_labels, \
feature_weight, penalties, n_threads
        As in :func:`factorize`.
    S, A, B, C : array_like, shapes (n, r), (r, m), (r, k) and (r, g)
        Nonnegative factors; B is needed with y, and C with feature_labels.

    Returns
    -------
    float
        Infinite for a loss below 1 if the model is 0 where the data are positive.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.extend.objective([[1, 2], [2, 5]], S=[[1], [2]], A=[[1, 2]])
    1.0
    """
    for name, data_of, factor in (("y", y, "B"), ("feature_labels", feature_labels, "C")):
        if (data_of is None) != ({"B": B, "C": C}[factor] is None):
            raise ValueError(f"{name} and {factor} must be given together; give both or neither.")
    threads = resolve_threads(n_threads)
    arguments = {"X_weights": X_weights, "feature_labels": feature_labels}
    S, A, X_weights, feature_labels = border.by_name(X, S=S, A=A, **arguments).values()
    problem = problem_at(
        *(check_data(X, threads), {"S": S, "A": A, "B": B, "C": C}, threads),
        y=y,
        loss=loss,
        supervision_loss=supervision_loss,
        supervision_weight=supervision_weight,
        X_weights=X_weights,
        y_weights=y_weights,
        feature_labels=feature_labels,
        feature_weight=feature_weight,
        penalties=penalties,
    )
    value = problem.objective()
    if not (value == inf and problem.unreached() == inf):
        require_finite({"the objective": value})
    return value


_ROUNDING = 64.0


def explained_deviance(
    X: Matrix | Tensor,
    factors: Sequence[Array],
    *,
    loss: LossName | float,
    X_weights: WeightsLike = None,
    n_threads: int | None = None,
    tensor: bool = False,
) -> float:
    """Return D^2 of a model of clean data: 1 - its loss over that of the mean."""
    divergence, threads = loss_named(loss, "loss"), resolve_threads(n_threads)
    term = build.build_term(X, X_weights, divergence, "X", threads, tensor)
    relation = Relation(mode_names(len(X.shape)), term)
    if (total := term.form.total(X.shape)) <= 0:
        raise ValueError(UNOBSERVED.format("X"))

    def value(*factors: Array) -> float:
        pairs = zip(relation.names, factors, strict=True)
        return Problem({name: padded(F, X.dtype) for name, F in pairs}, [relation]).objective()

    mean = term.mean()
    of_model = value(*factors)
    of_mean = value(*(np.ones((n, 1)) for n in X.shape[:-1]), np.full((X.shape[-1], 1), mean))
    # If X is constant, its loss is rounding error.  Losses grow like a power of the data.
    size = mean ** (divergence.degree or 0) * total
    if of_mean <= _ROUNDING * np.finfo(X.dtype).eps * size:
        return 0.0
    return float(1 - of_model / of_mean)


_HINT = (
    "The components (A, or the other factors) are too small compared with the data: multiply the "
    "components or divide the data by a constant, or use float64 data."
)
_LARGEST_START = 1e15  # in units of data and components near 1
_MAX_SWEEPS = 1000
_FINEST_TOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


@completing(factorize.__doc__ or "")
def represent(
    X: DataLike,
    A: npt.ArrayLike,
    *,
    loss: LossName | float = "frobenius",
    X_weights: WeightsLike = None,
    init: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    covariates: npt.ArrayLike | None = None,
    penalties: PenaltiesLike = None,
    dtype: npt.DTypeLike | None = None,
) -> Array:
    """Represent samples with a given dictionary: argmin over S >= 0 of sum W .* d(X, S A).

    The problem is convex; every row is solved until it meets the Karush-Kuhn-Tucker conditions to
    `tol` (section 2.3 of the SSNMF paper, step 2).

    Parameters
    ----------
    A : array_like, shape (r, m)
        Nonnegative dictionary.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, as in :func:`factorize`.  Numbers below 1 are not convex: the solution is a
        stationary point.  Registered losses are solved to a `tol` of 1e-4 at best.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of each entry.
    init : array_like, shape (n, r), optional
        Nonnegative start.  It changes the time, and the result only if the solution is not unique.
    tol : float
        Largest residual of the optimality conditions, relative to the pull of the data; at least
        1e-12 (float64) or 1e-5 (float32).  With `covariates` or penalties, losses other than
        "frobenius" are solved to 1e-4 at best, except "kullback-leibler" for sparse data with L1.
    penalties : optional
        Penalties of S, or a mapping with them, as in :func:`factorize`; penalties between samples
        are ignored.  ``Orthogonal`` is not convex: the solution is a stationary point.

    Returns
    -------
    S : ndarray, shape (n, r)

    Warns
    -----
    RuntimeWarning
        If rows are left unsolved after 1000 sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> A = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> sf.represent([[2.0, 3.0, 5.0]], A).round(6)
    array([[2., 3.]])
    """
    divergence, tol = loss_named(loss, "loss"), check_real(tol, "tol")
    threads = resolve_threads(n_threads)
    arguments = {"X_weights": X_weights, "init": init, "covariates": covariates}
    A, X_weights, init, covariates = border.by_name(X, A=A, **arguments).values()
    X = check_data(X, threads, dtype)
    tol = max(tol, _FINEST_TOL[X.dtype])
    # A dictionary may exceed the range of data, because it is scaled to size 1.
    checked = check_matrix(A, "A", allow_nan=False, limited=False)
    expected, of = (checked.shape[0], X.shape[1]), "components x features of X"
    A = check_factor(checked, "A", expected, checked.dtype, of, limited=False)
    rank = A.shape[0]
    if rank < 1:
        raise ValueError("A has no rows; expected at least one component.")
    shape = X.shape[0], rank
    if not X.shape[0]:
        return np.empty(shape, dtype=X.dtype)
    known = Known.of(X.shape, rank, X.dtype, covariates=covariates)
    own = Penalties(penalties_of_rows(penalties, A.shape[1]), rank)
    term = build.build_term(X, X_weights, divergence, "X", threads)
    S = None
    if init is not None:
        S = check_factor(init, "init", shape, X.dtype, "samples x components of A")
    if known or own:  # some components are given, or penalties depend on the scale of S
        A = check_factor(A, "A", expected, X.dtype, of)
        if S is None:
            size = float(A.mean())
            S = np.full(shape, term.mean() / (rank * size) if size > 0 else 1.0, dtype=X.dtype)
        F, G = padded(known.restore("S", S), X.dtype), padded(A.T, X.dtype)
        unsolved = solve_known_rows(term, F, G, known.moves({"S": F}), own, tol, _MAX_SWEEPS)
        return _solved(F, np.zeros(rank, dtype=np.int64), unsolved, tol)
    return _solve(term, [A.T], X.dtype, tol, S)


def represent_tensor(
    X: Tensor,
    others: Sequence[Array],
    mode: int,
    *,
    loss: LossName | float = "frobenius",
    X_weights: WeightsLike = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
) -> Array:
    """Return argmin over F >= 0 of the loss of a clean tensor; `others` are the other factors."""
    divergence, dtype = loss_named(loss, "loss"), others[0].dtype
    tol = max(check_real(tol, "tol"), _FINEST_TOL[dtype])
    threads = resolve_threads(n_threads)
    term = build.build_term(X, X_weights, divergence, "X", threads, tensor=True).view(mode)
    return _solve(term, others, dtype, tol)


def _solve(
    term: Term, others: Sequence[Array], dtype: Any, tol: float, start: Array | None = None
) -> Array:
    """Return the best rows for other factors, which are scaled to components of size 1/2 to 1."""
    sizes = [np.frexp(factor.max(axis=0))[1] for factor in others]
    factors = [padded(np.ldexp(F, -size), dtype) for F, size in zip(others, sizes, strict=True)]
    exponents = np.sum(sizes, axis=0)
    F = padded_zeros(term.shape[0], len(exponents), dtype)
    if start is not None:
        with np.errstate(over="ignore"):
            F[:, : len(exponents)] = np.minimum(np.ldexp(start, exponents), _LARGEST_START)
    G: Any = RowProducts(tuple(factors)) if term.entries.by_factors else factors[0]
    unsolved = term.loss.solve_rows(term, F, G, tol, _MAX_SWEEPS)
    return _solved(F, -exponents, unsolved, tol)


def _solved(F: Array, exponents: Array, unsolved: int, tol: float) -> Array:
    """Return rows times powers of two; warn if some are unsolved."""
    if unsolved:
        warn_user(
            f"{unsolved} of {len(F)} rows do not meet the optimality conditions to {tol:g}.",
            RuntimeWarning,
        )
    with np.errstate(over="ignore"):
        S = np.ascontiguousarray(np.ldexp(F[:, : len(exponents)], exponents))
    require_finite({"the representation": S}, _HINT)
    return S
