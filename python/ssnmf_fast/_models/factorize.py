"""Functions :func:`factorize` and :func:`objective`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from .._common.arrays import Array
from .._data.checks import (
    check_factor,
    check_integer,
    check_random_state,
    warn_of_rank,
)
from .._data.threads import resolve_threads
from .._solver.block_problem import problem_of
from .._solver.build import (
    check_weight,
    factorization,
    features_term,
    pad_factors,
    relation_of_features,
    relations,
    terms,
    view_factors,
)
from .._solver.known import Known, check_penalties
from .._solver.loop import FitLoop, steps_of
from .._solver.optimality import Optimality
from .._solver.result import Factorization, FitState
from .._solver.starts import start, start_B, zeros_that_stay
from .._solver.terms import Term
from .._solver.units import scaled
from .receipts import with_receipt


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
    A_support: Any = None,
    S_fixed: Any = None,
    A_fixed: Any = None,
    feature_labels: Any = None,
    feature_weight: float | Literal["balanced"] = 1.0,
    penalties: Any = None,
) -> Factorization:
    """Factorize X ~ S A and, jointly, Y ~ S B with nonnegative factors.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, the four
    semi-supervised models (SSNMF) of [1]_; without Y, plain NMF.  Labels of features Z add
    ``feature_weight * sum d(Z, A.T C)`` [3]_, and penalties add their values.

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
        Start; a tuple holds S (n, r), A (r, m) and, optionally, B (r, k) and C (r, g), of which B
        is None without Y.  Entries that are zero in a given start stay zero.  "least-squares" has
        the squares of factors that 10 iterations of the Frobenius loss, from a random start, fit to
        the square roots of X; "random-acol" takes means of a few random rows of X for A, "nndsvda"
        the singular vectors of X.  "auto" is "least-squares" where `loss` is "kullback-leibler",
        whose topics are more coherent then; it is "random" for "frobenius", and where X is on disk.
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
    A_support : array_like of 0 and 1 or bool, shape (r, m), optional
        Where A may be positive: for example the terms that a topic must not have.
    S_fixed : array_like, shape (n, number of fixed components), optional
        The last columns of S, which stay as they are: known covariates such as indicators of
        batches, or a column of ones.
    A_fixed : array_like, shape (number of fixed components, m), optional
        The first rows of A, which stay as they are: known signatures, or topics of an earlier fit.
    feature_labels : array_like or scipy.sparse, shape (m, g), optional
        Supervision of the features, such as a column of seed words for each group.  NaN = missing;
        a row of NaN is a feature without a label.  Their loss is `supervision_loss`.
    feature_weight : float or "balanced"
        Weight of that loss, at least 0.
    penalties : optional
        Penalties of all factors, or a mapping such as ``{"S": L1(0.1), "A": [L1(0.1), L2(1.0)]}``;
        see :mod:`ssnmf_fast.penalties`.

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
    .. [3] J. Vendrow, J. Haddock, E. Rebrova, D. Needell, "On a guided nonnegative matrix
       factorization", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> fit = sf.factorize(X, n_components=3, random_state=0)
    >>> fit.S.shape, fit.A.shape
    ((20, 3), (3, 8))
    """
    inputs = {"Y": Y, "X_weights": X_weights, "Y_weights": Y_weights, "S_support": S_support}
    inputs |= {"A_support": A_support, "S_fixed": S_fixed, "A_fixed": A_fixed}
    inputs |= {"feature_labels": feature_labels, "penalties": penalties}
    settings = {"loss": loss, "supervision_loss": supervision_loss, "solver": solver, "init": init}
    settings |= {"n_components": n_components, "max_iter": max_iter, "tol": tol}
    rank = check_integer(n_components, "n_components", 1)
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    threads = resolve_threads(n_threads)
    rng = check_random_state(random_state)
    X, data, labels, units = terms(X, Y, loss, supervision_loss, X_weights, Y_weights, threads)
    weight = check_weight(supervision_weight)
    of_features = check_weight(feature_weight, "feature_weight")
    units = units if labels is None else units.weighing(weight)
    given = {"S_support": S_support, "A_support": A_support}
    known = Known.of(X.shape, rank, X.dtype, **given, S_fixed=S_fixed, A_fixed=A_fixed)
    features = features_term(feature_labels, X, supervision_loss, threads)
    if known.fixed or features is not None or penalties is not None:  # they have a scale
        units.require_trivial("fixed components, labels of features and penalties")
    else:
        units, init = units.taking(init, X.dtype)
    if labels is None and features is None and not known and isinstance(init, str):
        warn_of_rank(rank, min(X.shape), "min(n, m)")

    init, C = _without_C(init, features, rank, X.dtype)
    S, A, B = start(init, X, data, labels, rank, rng, known, X_weights)
    if features is not None and C is None:
        C = start_B(A.T, features, rng).astype(X.dtype)
    factors = pad_factors(S, A, B, C)
    related = relations(data, labels, weight, factors, units)
    if features is not None:
        related.append(relation_of_features(related[0], features, of_features, factors))
    kept = {} if isinstance(init, str) else zeros_that_stay(factors, rank)
    stay, moves = sorted(kept), known.moves(factors, X.dtype)
    kept |= {name: T * kept.get(name, 1) for name, T in moves.items()}
    lengths = {name: len(F) for name, F in factors.items()}
    unit = related[0].coefficient
    penalized = check_penalties(penalties, lengths, X.shape, known, rank, unit)
    problem = problem_of(factors, related, kept, penalties=penalized)
    steps, current = steps_of(problem, loop.solver), view_factors(factors, rank, units)
    seen = Optimality(problem, moves, stay)
    run = loop.run(steps, current, units=units, unreached=problem.unreached(), optimality=seen)
    if labels is not None and weight is None:
        weight = units.weight(float(related[1].coefficient))
    result = factorization(run, current, None if labels is None else weight)
    if features is not None:
        result = replace(result, feature_weight=float(related[-1].coefficient / unit))
    settings |= {"random_state": random_state, "zeros_stay": ",".join(stay)}
    return with_receipt(result, scaled(X, units.x), run.residuals, settings, inputs, threads)


def _without_C(init: Any, features: Term | None, rank: int, dtype: Any) -> tuple[Any, Array | None]:
    """Return a start of S, A and B, and the C that was given with them."""
    if not isinstance(init, (tuple, list)) or len(init) != 4:
        return init, None
    *others, C = init
    others = others[:2] if others[2] is None else others
    if features is None:
        raise ValueError(
            "init has a C, the fourth of its factors, and there are no feature_labels."
        )
    shape = rank, features.shape[1]
    return tuple(others), check_factor(C, "init[3] (C)", shape, dtype, "components x labels")


__all__ = ["Factorization", "factorize"]
