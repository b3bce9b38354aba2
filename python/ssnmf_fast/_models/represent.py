"""Functions :func:`represent` and :func:`objective`, and other terms at given factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._backend.dispatch import padded, padded_zeros
from .._common.arrays import Array, DType
from .._common.warn import warn_user
from .._data.border import check_factor, check_matrix, check_real, require_finite
from .._data.csr_file import check_data
from .._data.tensor_entries import RowProducts
from .._data.tensors import SparseTensor, Tensor, check_mode, check_tensor
from .._data.threads import resolve_threads
from .._solver.build import features_term, pad_factors, relation_of_features, relations, terms
from .._solver.known import Known, check_penalties, penalties_of_rows, solve_known_rows
from .._solver.losses import Loss, LossOption, loss_named
from .._solver.penalties import Penalties
from .._solver.problem import Problem
from .._solver.relations import Relation
from .._solver.starts import mode_names
from .._solver.terms import Term
from .._solver.units import Units, exponent_of, scaled
from .._solver.weights import build_tensor_term, build_term

__all__ = ["objective"]


@dataclass(frozen=True)
class TensorTerms:
    """A clean tensor in its units, and its relations with the factors F0, F1, .. and B0, B1, ..."""

    X: Tensor
    units: Units
    relations: list[Relation]
    labels: dict[int, Term]  # by mode


def terms_of_tensor(
    X: Any,
    X_weights: Any,
    labels: Mapping[int, Any] | None,
    losses: tuple[Loss, Loss],
    weight: float,
    threads: int,
    dtype: DType | None = None,
) -> TensorTerms:
    """Check a tensor, its weights and labels, and return what they are to be near to."""
    X = check_tensor(X, "X", dtype)
    exponent = exponent_of(X, "X")
    X = scaled(X, -exponent)
    term = build_tensor_term(X, X_weights, losses[0], threads)
    names = mode_names(len(X.shape))
    labeled = _labeled(labels, X, losses[1], threads)
    units = Units.of(exponent, 0, losses, bool(labeled))
    units = units.weighing(weight) if labeled else units
    of_data, of_labels = units.coefficients(weight) if labeled else (1.0, 1.0)
    relations = [Relation(names, term, of_data)]
    relations += [Relation((names[k], f"B{k}"), Y, of_labels) for k, Y in labeled.items()]
    return TensorTerms(X, units, relations, labeled)


def _labeled(
    labels: Mapping[int, Any] | None, X: Tensor, loss: Loss, threads: int
) -> dict[int, Term]:
    """Return the terms of labels by mode."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        raise TypeError(
            f"labels must be a mapping of modes to matrices, such as {{0: Y}}; got "
            f"{type(labels).__name__}."
        )
    found: dict[int, Term] = {}
    for mode, given in labels.items():
        mode = check_mode(mode, "a mode of labels", len(X.shape))
        if mode in found:
            raise ValueError(f"labels has mode {mode} twice, counted from the first and the last.")
        Y = check_matrix(given, f"labels[{mode}]", dtype=X.dtype)
        if Y.shape[0] != X.shape[mode] or Y.shape[1] == 0:
            raise ValueError(
                f"labels[{mode}] has shape {Y.shape}; expected {X.shape[mode]} rows, one for each "
                f"index of mode {mode}, and at least one column."
            )
        found[mode] = build_term(Y, None, loss, "Y", threads)
    return found


def objective(
    X: Any,
    S: Any,
    A: Any,
    *,
    Y: Any = None,
    B: Any = None,
    loss: LossOption = "frobenius",
    supervision_loss: LossOption = "frobenius",
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
    >>> sf.extend.objective([[1, 2], [2, 5]], S=[[1], [2]], A=[[1, 2]])
    1.0
    """
    for name, data_of, factor in (("Y", Y, "B"), ("feature_labels", feature_labels, "C")):
        if (data_of is None) != ({"B": B, "C": C}[factor] is None):
            raise ValueError(f"{name} and {factor} belong together: give both or neither.")
    found = problem_at(
        *(X, {"S": S, "A": A, "B": B, "C": C}),
        Y=Y,
        loss=loss,
        supervision_loss=supervision_loss,
        supervision_weight=supervision_weight,
        X_weights=X_weights,
        Y_weights=Y_weights,
        feature_labels=feature_labels,
        feature_weight=feature_weight,
        penalties=penalties,
        threads=resolve_threads(n_threads),
    ).objective()
    require_finite({"the objective": found})
    return found


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
    loss: LossOption,
    supervision_loss: LossOption,
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


_ROUNDING = 64.0


def explained_deviance(
    X: Tensor,
    factors: Sequence[Array],
    *,
    loss: LossOption,
    X_weights: Any = None,
    n_threads: int | None = None,
) -> float:
    """Return 1 - the loss of a model over that of the mean of X, D^2.

    X is a tensor of :func:`check_tensor`, and the model is the sum of the products of the columns
    of its factors.  0 for an X that is constant.
    """
    divergence = loss_named(loss, "loss")
    parts = (X.at.places, X.values, X.shape) if isinstance(X, SparseTensor) else X
    losses = divergence, divergence
    terms = terms_of_tensor(parts, X_weights, None, losses, 1.0, resolve_threads(n_threads))
    (relation,), dtype = terms.relations, terms.X.dtype

    def value(first: Array, *others: Array) -> float:
        pairs = zip(relation.names, (first, *others), strict=True)
        return Problem({name: padded(F, dtype) for name, F in pairs}, [relation]).objective()

    first, *others = factors
    mean = relation.term.mean()
    of_model = value(np.ldexp(first, -terms.units.x), *others)
    of_mean = value(*(np.ones((n, 1)) for n in X.shape[:-1]), np.full((X.shape[-1], 1), mean))
    # A constant X, whose loss is rounding alone; losses grow like a power of the data.
    size = mean ** (divergence.degree or 0) * relation.term.form.total(X.shape)
    if of_mean <= _ROUNDING * np.finfo(dtype).eps * size:
        return 0.0
    return float(1 - of_model / of_mean)


_HINT = (
    "The components (A, or the other factors) are too small beside the data: multiply the "
    "components, or divide the data, by a constant, or use float64 data."
)
_LARGEST_START = 1e15  # in units in which data and components are about 1
_MAX_SWEEPS = 1000
_FINEST_TOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def represent(
    X: Any,
    A: Any,
    *,
    loss: LossOption = "frobenius",
    X_weights: Any = None,
    init: Any = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    S_fixed: Any = None,
    penalties: Any = None,
    dtype: DType | None = None,
) -> Array:
    """Represent samples over a given dictionary: argmin over S >= 0 of sum W .* d(X, S A).

    The problem is convex; every row is solved until it meets the Karush-Kuhn-Tucker conditions to
    `tol` (section 2.3 of the SSNMF paper, step 2).

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m)
        Samples by features, nonnegative; NaN in a dense X means missing.
    A : array_like, shape (r, m)
        Nonnegative dictionary.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, as in :func:`factorize`.  Below 1 the problem is not convex, and
        the solution is a stationary point.  Registered losses are solved to a `tol` of 1e-4 at
        best.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of every entry.
    init : array_like, shape (n, r), optional
        Nonnegative start, for example the representation over a dictionary that has changed a
        little since.  It does not change the solution, where that is unique, only the time.
    tol : float
        Largest residual of the optimality conditions, relative to the pull of the data.  Tolerances
        finer than the dtype resolves are raised to 1e-12 (float64) or 1e-5 (float32).  With
        `S_fixed` or penalties, losses other than "frobenius" are solved to 1e-4 at best, unless
        sparse data have "kullback-leibler" and no penalty but L1.
    n_threads : int, optional
        Number of threads; it does not change the result.
    S_fixed : array_like, shape (n, number of fixed components), optional
        The last columns of S, which are given, as in :func:`factorize`.
    penalties : optional
        Penalties of S, or a mapping with them, as in :func:`factorize`; those between samples
        (graphs, smoothness over time) have no say here.  With ``Orthogonal`` the problem is not
        convex, and the solution is a stationary point.
    dtype : {"float32", "float64"}, optional
        Of S, as in :func:`factorize`.  None: that of X.

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
    divergence = loss_named(loss, "loss")
    tol = check_real(tol, "tol")
    threads = resolve_threads(n_threads)
    X = check_data(X, threads, dtype)
    # A dictionary may be larger than data may: it is brought to size 1.
    A = check_matrix(A, "A", allow_nan=False, limited=False)
    wanted = (A.shape[0], X.shape[1])
    A = check_factor(A, "A", wanted, A.dtype, "components x features of X", limited=False)
    rank = A.shape[0]
    if rank < 1:
        raise ValueError("A has no rows; expected at least one component.")
    shape = X.shape[0], rank
    if not X.shape[0]:
        return np.empty(shape, dtype=X.dtype)
    size = exponent_of(X, "X")
    known = Known.of(X.shape, rank, X.dtype, S_fixed=S_fixed)
    own = Penalties(penalties_of_rows(penalties, A.shape[1]), rank)
    if known or own:
        Units(size).require_trivial("fixed components and penalties")
    term = build_term(scaled(X, -size), X_weights, divergence, "X", threads)
    if known or own:
        A = check_factor(A, "A", wanted, X.dtype, "components x features of X")
        return _solve_known(term, A, init, known, own, tol)
    (A,), exponents = _of_size_one([A.T])
    if init is None:
        F = padded_zeros(*shape, X.dtype)
    else:
        of = "samples x components of A"
        F = padded(check_factor(init, "init", shape, X.dtype, of), X.dtype)
        with np.errstate(over="ignore"):
            F[:, :rank] = np.minimum(np.ldexp(F[:, :rank], exponents - size), _LARGEST_START)
    return _solve_rows(term, F, padded(A, X.dtype), tol, size - exponents)


def _solve_known(
    term: Term, A: Array, init: Any, known: Known, penalties: Penalties, tol: float
) -> Array:
    """Return the rows where some components are given, or penalties see the scale of S."""
    shape, dtype = (term.shape[0], len(A)), A.dtype
    if init is None:
        size = float(A.mean())
        S = np.full(shape, term.mean() / (len(A) * size) if size > 0 else 1.0, dtype=dtype)
    else:
        S = check_factor(init, "init", shape, dtype, "samples x components of A")
    F = padded(known.restore("S", S), dtype)
    tol, moves = max(tol, _FINEST_TOL[F.dtype]), known.moves({"S": F})
    G = padded(A.T, dtype)
    unsolved = solve_known_rows(term, F, G, moves, penalties, tol, _MAX_SWEEPS)
    return _solved(F, np.zeros(len(A), dtype=np.int64), unsolved, tol)


def represent_tensor(
    X: Tensor,
    others: Sequence[Array],
    mode: int,
    *,
    loss: LossOption = "frobenius",
    X_weights: Any = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
) -> Array:
    """Return argmin over F >= 0 of sum W .* d(X, M), with F (n_mode x r) the factor of a mode.

    X is a tensor of :func:`check_tensor`, `others` are the factors of the other modes, in their
    order; the rest is as in :func:`represent`.
    """
    divergence = loss_named(loss, "loss")
    tol = check_real(tol, "tol")
    size = exponent_of(X, "X")
    threads = resolve_threads(n_threads)
    term = build_tensor_term(scaled(X, -size), X_weights, divergence, threads).view(mode)
    dtype = others[0].dtype
    factors, exponents = _of_size_one(others)
    F = padded_zeros(X.shape[mode], len(exponents), dtype)
    G = RowProducts(tuple(padded(factor, dtype) for factor in factors))
    return _solve_rows(term, F, G, tol, size - exponents)


def _of_size_one(factors: Sequence[Array]) -> tuple[list[Array], Array]:
    """Return factors with components of one size, and the binary exponents of their products.

    That rounds nothing, and one residual of the optimality conditions stands for all components.
    """
    exponents = [np.frexp(factor.max(axis=0))[1] for factor in factors]
    sized = [np.ldexp(factor, -each) for factor, each in zip(factors, exponents, strict=True)]
    return sized, np.sum(exponents, axis=0)


def _solve_rows(term: Term, F: Array, G: Any, tol: float, exponents: Array) -> Array:
    """Solve for rows from a start, and return them times powers of two, (rows, r)."""
    tol = max(tol, _FINEST_TOL[F.dtype])
    return _solved(F, exponents, term.loss.solve_rows(term, F, G, tol, _MAX_SWEEPS), tol)


def _solved(F: Array, exponents: Array, unsolved: int, tol: float) -> Array:
    """Return solved rows times powers of two; warn if some are not."""
    if unsolved:
        warn_user(
            f"{unsolved} of {len(F)} rows do not meet the optimality conditions to {tol:g}; they "
            "are approximate.",
            RuntimeWarning,
        )
    with np.errstate(over="ignore"):
        S = np.ascontiguousarray(np.ldexp(F[:, : len(exponents)], exponents))
    require_finite({"the representation": S}, _HINT)
    return S
