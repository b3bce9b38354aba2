"""Function :func:`represent`: new samples over a fixed dictionary, a convex problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backend.dispatch import padded, padded_zeros
from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.border import check_factor, check_matrix, check_real, require_finite
from .._data.csr_file import check_data
from .._data.tensor_entries import RowProducts
from .._data.tensors import Tensor
from .._data.threads import resolve_threads
from .._solver.known import Known, penalties_of_rows, solve_known_rows
from .._solver.losses import loss_named
from .._solver.penalties import Penalties
from .._solver.terms import Term
from .._solver.units import Units, exponent_of, scaled
from .._solver.weights import build_tensor_term, build_term

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
    loss: str | float = "frobenius",
    X_weights: Any = None,
    init: Any = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    S_fixed: Any = None,
    penalties: Any = None,
    dtype: Any = None,
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
    loss: str | float = "frobenius",
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
