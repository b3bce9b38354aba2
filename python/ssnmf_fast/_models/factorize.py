"""Function :func:`factorize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from .._data.border import check_integer, check_random_state
from .._data.threads import resolve_threads
from .._solver.loop import FitLoop
from .._solver.result import Factorization, FitState
from .fits import Fits
from .many_starts import best_start


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
    n_starts: int = 1,
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
    dtype: Any = None,
) -> Factorization:
    """Factorize X ~ S A and, jointly, Y ~ S B with nonnegative factors.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, the four
    semi-supervised models (SSNMF) of [1]_; without Y, plain NMF.  Labels of features Z add
    ``feature_weight * sum d(Z, A.T C)`` [3]_, and penalties add their values.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m)
        Samples by features, nonnegative.  NaN in a dense X means missing.
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
          sparse data, without labels, "hals" with momentum takes over after ten iterations in
          fits to a `tol` below 1e-4.
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
    n_starts : int
        Number of starts, at least 1, of which the result with the smallest objective is returned.
        With several, their seeds are drawn from `random_state`, and fits run side by side.
    random_state : None, int, Generator or RandomState
        Seed of the start.
    n_threads : int, optional
        Number of threads; it does not change the result.  None takes what the machine grants.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``S``, ``A``, ``B``) after
        every check; returning True stops the fit.  Not with several starts.
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
    dtype : {"float32", "float64"}, optional
        Of the factors and of all that the fit works with; values of X are converted once.  None:
        float32 and float64 are those of X, integers and bool become float64.  "float32" is about
        twice as fast for large data; see docs/guide/solvers.md.

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
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    count = check_integer(n_starts, "n_starts", 1)
    rng = check_random_state(random_state)
    arguments: dict[str, Any] = {
        "n_components": n_components,
        "loss": loss,
        "supervision_loss": supervision_loss,
        "supervision_weight": supervision_weight,
        "X_weights": X_weights,
        "Y_weights": Y_weights,
        "init": init,
        "S_support": S_support,
        "A_support": A_support,
        "S_fixed": S_fixed,
        "A_fixed": A_fixed,
        "feature_labels": feature_labels,
        "feature_weight": feature_weight,
        "penalties": penalties,
        "dtype": dtype,
    }
    if count > 1:
        return best_start(X, Y, count, rng, loop, n_threads, arguments)
    return Fits(X, Y, **arguments, threads=resolve_threads(n_threads)).fit(rng, loop, random_state)


__all__ = ["Factorization", "factorize"]
