"""Functions :func:`factorize` and :func:`objective`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .._backend.dispatch import padded
from .._data.border import check_matrix, require_finite
from .._data.checks import (
    check_factor,
    check_integer,
    check_random_state,
    check_real,
    check_support,
    warn_of_rank,
)
from .._data.threads import resolve_threads
from .._solver.build import check_weight, factorization, pad_factors, relations, terms, view_factors
from .._solver.loop import FitLoop, steps_of
from .._solver.problem import problem_of
from .._solver.relations import value
from .._solver.result import Factorization, FitState
from .._solver.starts import start, zeros_that_stay
from .._solver.units import order_of


def factorize(
    X: Any,
    Y: Any = None,
    *,
    n_components: int,
    loss: str | float = "frobenius",
    supervision_loss: str | float = "frobenius",
    supervision_weight: float | Literal["balanced"] = 1.0,
    X_weights: Any = None,
    Y_weights: Any = None,
    solver: str = "auto",
    init: Any = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    S_support: Any = None,
) -> Factorization:
    """Factorize X ~ S A and, jointly, Y ~ S B with nonnegative factors.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, the four
    semi-supervised models (SSNMF) of [1]_; without Y, plain NMF.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m)
        Samples by features, nonnegative.  float32 and float64 are kept; integers and bool become
        float64.  NaN in a dense X means missing.
    Y : array_like or scipy.sparse, shape (n, k), optional
        Supervision: one-hot or multi-label indicators, or nonnegative targets.  NaN = missing.
    n_components : int
        Rank r, at least 1.
    loss, supervision_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Losses of X and of Y: squared error, the I-divergence, the Itakura-Saito divergence, or the
        beta-divergence of a number from 0 to 2, of which 2, 1 and 0 are these (squared errors have
        no factor 1/2).  Only a number above 0 allows for zeros in the data.
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of Y, at least 0.  "balanced" takes the ratio of the two losses
        at the start.
    X_weights, Y_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights (W and L) of the loss of every entry.
    solver : {"auto", "mm", "mu", "hals"}
        Rule of the updates; see docs/guide/solvers.md.

        - "auto", the fastest: "hals" where all losses are Frobenius losses without weights or with
          separable ones (with momentum if there are no labels), and with ``weights.observed`` if
          there are no labels; over-relaxed "mm" elsewhere.  With the Kullback-Leibler loss of
          sparse data, without labels, "hals" with momentum takes over where "mm" falls by less than
          1e-4 of the first objective per iteration: for fits with a smaller `tol`.
        - "hals": coordinate descent for factors that meet Frobenius losses only, and for the
          Kullback-Leibler loss of sparse data in memory without labels; "mm" for the others.
        - "mm": majorize-minimize.  None of these three ever raises the objective.
        - "mu": the rule of the papers, the same as "mm" unless the two losses differ.
    init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start; a tuple holds S (n, r), A (r, m) and, optionally, B (r, k).  Entries that are zero in
        a given start stay zero.  "least-squares" has the squares of factors that 10
        iterations of the Frobenius loss, from a random start, fit to the square roots of X;
        "random-acol" takes means of a few random rows of X for A, "nndsvda" the singular vectors
        of X.  "auto" is "least-squares" where `loss` is "kullback-leibler", whose topics
        are more coherent then; it is "random" for "frobenius", and where X is on disk.
    max_iter : int
        Largest number of iterations, at least 0.
    tol : float
        Stop when the objective falls by less than `tol` times its first value per iteration
        (checked every 10 iterations); 0 never stops early.  The Kullback-Leibler loss of entries
        that no component can reach (see `S_support`) is a constant, and is left out of this value
        and of what "balanced" compares.
    random_state : None, int, Generator or RandomState
        Seed of the start.
    n_threads : int, optional
        Number of threads; it does not change the result.  None takes what the machine grants.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``S``, ``A``, ``B``) after
        every check; returning True stops the fit.
    verbose : int
        1 shows progress on standard error: a bar on a terminal, lines elsewhere.
    S_support : array_like of 0 and 1 or bool, shape (n, r), optional
        Where S may be positive: entries that are 0 here stay 0, in random starts too.  For example
        the topics that each document may have [2]_.

    Returns
    -------
    Factorization

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the argument and how to mend it.

    References
    ----------
    .. [1] J. Haddock, L. Kassab, S. Li, A. Kryshchenko, R. Grotheer, E. Sizikova, C. Wang,
       T. Merkh, R. W. M. A. Madushani, M. Ahn, D. Needell, K. Leonard, "Semi-supervised NMF models
       for topic modeling in learning tasks", 2020, Algorithms 1-3.
    .. [2] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> fit = sf.factorize(X, n_components=3, random_state=0)
    >>> fit.S.shape, fit.A.shape
    ((20, 3), (3, 8))
    """
    rank = check_integer(n_components, "n_components", 1)
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    threads = resolve_threads(n_threads)
    rng = check_random_state(random_state)
    X, data, labels, units = terms(X, Y, loss, supervision_loss, X_weights, Y_weights, threads)
    weight = check_weight(supervision_weight)
    if labels is None and S_support is None and isinstance(init, str):
        warn_of_rank(rank, min(X.shape), "min(n, m)")
    units = units if labels is None else units.weighing(weight)
    units, init = units.taking(init, X.dtype)
    support = None if S_support is None else check_support(S_support, (X.shape[0], rank), X.dtype)

    factors = pad_factors(*start(init, X, data, labels, rank, rng, support, X_weights))
    related = relations(data, labels, weight, factors, units)
    kept = {} if isinstance(init, str) else zeros_that_stay(factors, rank)
    if support is not None:
        kept["S"] = padded(support, X.dtype)
    problem, current = problem_of(factors, related, kept), view_factors(factors, rank, units)
    steps = steps_of(problem, loop.solver)
    run = loop.run(steps, current, units=units, unreached=problem.unreached())
    if labels is None:
        return factorization(run, current)
    if weight is None:
        weight = units.weight(float(related[1].coefficient))
    return factorization(run, current, weight)


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
    n_threads: int | None = None,
) -> float:
    """Return the value that :func:`factorize` minimizes.

    Parameters
    ----------
    X, Y, loss, supervision_loss, supervision_weight, X_weights, Y_weights, n_threads
        As in :func:`factorize`.
    S, A, B : array_like, shapes (n, r), (r, m) and (r, k)
        Nonnegative factors; B is needed where Y is given.

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
    threads = resolve_threads(n_threads)
    if (Y is None) != (B is None):
        raise ValueError("Y and B belong together: give both or neither.")
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
    units, (S, A, *rest) = units.taking((S, A) if B is None else (S, A, B), X.dtype)
    factors = pad_factors(S, A, rest[0] if rest else None)
    total = value(relations(data, labels, weight, factors, units), factors)
    found = units.value(total)
    require_finite({"the objective": found})
    return found


__all__ = ["Factorization", "factorize", "objective"]
