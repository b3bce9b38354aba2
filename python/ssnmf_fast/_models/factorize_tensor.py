"""Function :func:`factorize_tensor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._data.border import check_integer, check_random_state
from .._data.threads import resolve_threads
from .._solver.loop import FitLoop
from .._solver.result import FitState, TensorFactorization
from .many_starts import best_start_of_tensor
from .tensor_fits import TensorFits


def factorize_tensor(
    X: Any,
    *,
    n_components: int,
    loss: str | float = "frobenius",
    X_weights: Any = None,
    labels: Mapping[int, Any] | None = None,
    supervision_loss: str | float = "frobenius",
    supervision_weight: float = 1.0,
    solver: str = "auto",
    init: Any = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    n_starts: int = 1,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    penalties: Any = None,
    dtype: Any = None,
) -> TensorFactorization:
    """Decompose a nonnegative tensor into a sum of few products of nonnegative vectors.

    The nonnegative CP decomposition (NCPD): minimizes ``sum W .* d(X, M)`` over the model
    ``M[i, j, ..] = sum_q F_0[i, q] F_1[j, q] ..`` with a nonnegative factor F_k for each mode, for
    squared errors [1]_, for counts the Kullback-Leibler divergence [2]_, or any other loss.  For
    two modes it is the factorization of a matrix, as by :func:`factorize`.

    Parameters
    ----------
    X : array_like, or sparse
        Nonnegative tensor of N >= 2 modes, for example terms x documents x months.  Dense:
        an array, in which NaN means missing.  Sparse: ``(coords, values, shape)`` with integer
        coordinates of shape (N, number of entries), or an object with the attributes `coords`,
        `data` and `shape`, such as ``sparse.COO`` and ``scipy.sparse.coo_array``; entries at the
        same place are added up, and nothing of the size of the dense tensor is made.
    n_components : int
        Number r of components, at least 1.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, as in :func:`factorize`: squared error, the I-divergence, the Itakura-Saito
        divergence, the beta-divergence of a number from 0 to 2, or a registered loss.  Numbers
        other than 1 and 2 pass over all places of the tensor, unless only some are observed.
    X_weights : optional
        Nonnegative weights of the loss of every entry: ``weights.observed(pattern)`` or
        ``weights.missing(pattern)`` with a tensor (in any of the forms of X), a sequence with a
        vector for each mode whose product is the weight (None stands for ones), or a dense tensor.
    labels : mapping of int to array_like, optional
        Supervision: for some modes a nonnegative matrix Y (n_k x number of labels), which is
        approximated by the factor of the mode, ``Y ~ F_k B_k``.  For example classes of documents
        or seed terms of topics.  NaN = unlabeled.
    supervision_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of the labels; the same choices.
    supervision_weight : float
        Weight of the losses of labels, at least 0.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`factorize`: "auto" is coordinate descent with momentum for squared errors
        without labels, with weights by modes or none; over-relaxed multiplicative updates for all
        other losses.  No rule raises the objective.
    init : {"auto", "random", "least-squares", "svd"}, TensorFactorization or sequence of arrays
        Start.  A result continues from where it ended; so does ``(weights, factors)``, as of
        TensorLy.  A sequence holds a factor (n_k x r) for each mode.  Zeros of given factors stay.
        "least-squares" squares a short fit of squared errors to the square roots of X; "svd" takes
        the leading left singular vectors of every unfolding, their larger part of one sign.
        "auto" tries both for three iterations, for "frobenius" and "kullback-leibler", and is the
        one with the smaller objective then; for other losses, and for two modes, it is the start
        of :func:`factorize`.
    max_iter, tol, random_state, n_threads, verbose
        As in :func:`factorize`.
    n_starts : int
        Number of starts, at least 1, of which the result with the smallest objective is returned.
        With several, their seeds are drawn from `random_state`, and fits run side by side.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``F0``, ``F1``, .. up to the
        sizes of their columns) after every check; returning True stops the fit.  Not with several
        starts.
    penalties : optional
        Penalties of the factors of all modes, or a mapping from modes to them, such as
        ``{0: L2(1e-3), 1: L2(1e-3), 2: [L2(1e-3), Temporal(0.1)]}``; see
        :mod:`ssnmf_fast.penalties`.  One of a mode is multiplied by the product of the other
        lengths.  Every mode needs L1 or L2, since components have no scale of their own; so do the
        components of labels, which the mapping calls "B0" for mode 0.
    dtype : {"float32", "float64"}, optional
        Of the factors and of all that the fit works with, as in :func:`factorize`.  None: that of
        X, float64 for integers.

    Returns
    -------
    TensorFactorization

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the argument and how to mend it.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, eq. 4.1.
    .. [2] E. C. Chi, T. G. Kolda, "On tensors, sparsity, and nonnegative factorizations", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk", rng.random((6, 2)), rng.random((5, 2)), rng.random((4, 2)))
    >>> fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    >>> [F.shape for F in fit.factors]
    [(6, 2), (5, 2), (4, 2)]
    >>> coords, values = np.nonzero(X > 0.5), X[X > 0.5]
    >>> sparse = sf.factorize_tensor((coords, values, X.shape), n_components=2, random_state=0)
    """
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    count = check_integer(n_starts, "n_starts", 1)
    rng = check_random_state(random_state)
    arguments: dict[str, Any] = {
        "n_components": n_components,
        "loss": loss,
        "X_weights": X_weights,
        "labels": labels,
        "supervision_loss": supervision_loss,
        "supervision_weight": supervision_weight,
        "init": init,
        "penalties": penalties,
        "dtype": dtype,
    }
    if count > 1:
        return best_start_of_tensor(X, count, rng, loop, n_threads, arguments)
    fits = TensorFits(X, **arguments, threads=resolve_threads(n_threads))
    return fits.fit(rng, loop, random_state)


__all__ = ["TensorFactorization", "factorize_tensor"]
