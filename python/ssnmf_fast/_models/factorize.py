"""Functions :func:`factorize` and :func:`factorize_tensor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import numpy.typing as npt

from .._common.arrays import LossName, MatrixLike, Seed, Solver
from .._common.docstrings import completing
from .._common.foreign import refuse_foreign
from .._data.arrays import DataLike
from .._data.border import by_name, check_data, check_random_state
from .._data.tensors import TensorLike, new_tensor
from .._data.threads import resolve_threads
from .._solver.loop import FitLoop
from .._solver.penalties import PenaltiesLike
from .._solver.result import Factorization, FitState, TensorFactorization
from .._solver.weights import WeightsLike
from .fits import MatrixFits, TensorFits, best_start, plan_starts

Start: TypeAlias = (
    Literal["auto", "random", "least-squares", "nndsvda", "random-acol"]
    | Sequence[npt.ArrayLike | None]
)
TensorStart: TypeAlias = (
    Literal["auto", "random", "least-squares", "svd"] | TensorFactorization | Sequence[Any]
)

__all__ = ["Factorization", "TensorFactorization", "factorize", "factorize_tensor"]


def factorize(
    X: DataLike,
    y: MatrixLike | None = None,
    *,
    n_components: int,
    loss: LossName | float = "frobenius",
    supervision_loss: LossName | float = "frobenius",
    supervision_weight: float | Literal["balanced"] = 1.0,
    X_weights: WeightsLike = None,
    y_weights: WeightsLike = None,
    solver: Solver = "auto",
    init: Start = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    stopping: Literal["decrease", "relative-error"] = "decrease",
    check_every: int = 10,
    n_starts: int = 1,
    random_state: Seed = None,
    n_threads: int | None = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    S_support: npt.ArrayLike | None = None,
    A_support: npt.ArrayLike | None = None,
    covariates: npt.ArrayLike | None = None,
    fixed_components: npt.ArrayLike | None = None,
    feature_labels: MatrixLike | None = None,
    feature_weight: float | Literal["balanced"] = 1.0,
    penalties: PenaltiesLike = None,
    dtype: npt.DTypeLike | None = None,
    **foreign: NoReturn,
) -> Factorization:
    """Factorize X ~ S A and, jointly, Y ~ S B with nonnegative factors.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, the four
    semi-supervised models (SSNMF) of [1]_; without Y, plain NMF.  Labels of features Z add
    ``feature_weight * sum d(Z, A.T C)`` [3]_, and penalties add their values.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m)
        Samples by features, nonnegative.  NaN in a dense X means missing.
    y : array_like or scipy.sparse, shape (n, k), optional
        Supervision Y: one-hot or multi-label indicators, or nonnegative targets; NaN = missing.
    n_components : int
        Rank r, at least 1.
    loss, supervision_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Losses of X and of Y: squared errors (without a factor 1/2), the I-divergence, or a
        beta-divergence for a number from 0 to 2; 2, 1 and 0 are the three names.  Zeros in the data
        need a number above 0.
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of Y, at least 0; "balanced": the ratio of both losses at the
        start.
    X_weights, y_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights (W and L) of the loss of each entry.  Samples and features without an
        observed entry have loadings of 0, unless they are fixed or penalties join them to others.
    solver : {"auto", "mm", "mu", "hals"}
        Update rule; all but "mu" never raise the objective.  See :doc:`/guide/solvers`.

        - "auto", the fastest: "hals" for Frobenius losses (with momentum if there are no labels);
          the model fills in missing entries and what other weights of single entries leave out.
          With ``weights.observed`` of sparse data and labels, very unequal weights of entries, or
          other losses, over-relaxed "mm".  If `tol` is below 1e-4, the Kullback-Leibler loss of
          sparse data without labels changes to "hals" with momentum after ten iterations.
        - "hals": coordinate descent for factors with only Frobenius losses, and for the
          Kullback-Leibler loss of sparse data in memory without labels; "mm" for others.
        - "mm": majorize-minimize.
        - "mu": the rule of the papers, the same as "mm" unless the two losses differ.
    init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start.  A tuple holds S (n, r), A (r, m) and, optionally, B (r, k; None without y) and
        C (r, g); zeros stay.  "least-squares" squares the factors of 10 iterations of the Frobenius
        loss for the square roots of X; "random-acol" starts A from means of a few random rows of X,
        "nndsvda" from singular vectors of X.  "auto" is "least-squares" for "kullback-leibler" in
        memory, which makes topics more coherent, and otherwise "random".
    max_iter : int
        Largest number of iterations, at least 0.
    tol : float
        Tolerance of the stopping rule, a share of the first value of the objective; 0 never stops
        early.  The first value, and the losses for "balanced", exclude the Kullback-Leibler loss of
        entries that no component can reach.
    stopping : {"decrease", "relative-error"}
        Stop when the objective falls by less than `tol` times its first value per iteration [4]_,
        or when it is below `tol` times its first value ([1]_, eq. 10).
    check_every : int
        Number of iterations between checks, which evaluate `objective`, at least 1.
    n_starts : int
        Number of starts, at least 1; the result with the smallest objective is returned.  Several
        starts have seeds drawn from `random_state`, and run in parallel.
    random_state : None, int, Generator or RandomState
        Seed of the start.
    n_threads : int, optional
        Number of threads; it does not change the result.  None: all available cores.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``S``, ``A``, ``B``) after
        every check; returning True stops the fit.  Not with several starts.
    verbose : int
        1 shows progress on standard error: a bar on a terminal, otherwise lines.
    S_support : array_like of 0 and 1 or bool, shape (n, r), optional
        Where S may be positive, for example the topics that each document may have [2]_.
    A_support : array_like of 0 and 1 or bool, shape (r, m), optional
        Where A may be positive; 0 for example for terms that a topic must not have.
    covariates : array_like, shape (n, number of fixed components), optional
        The last columns of S, which are fixed: batch indicators, or a column of ones.
    fixed_components : array_like, shape (number of fixed components, m), optional
        The first rows of A, which are fixed: known signatures, or topics of an earlier fit.
    feature_labels : array_like or scipy.sparse, shape (m, g), optional
        Supervision Z of the features, with `supervision_loss`, such as a column of seed words for
        each group.  NaN = missing; a row of NaN is a feature without a label.
    feature_weight : float or "balanced"
        Weight of the loss of Z, at least 0.
    penalties : optional
        Penalties of all factors, or a mapping such as ``{"S": L1(0.1), "A": [L1(0.1), L2(1.0)]}``;
        see :mod:`ssnmf_fast.penalties`.
    dtype : {"float32", "float64"}, optional
        Type of the factors and all computations, to which X is converted.  None: the type of X,
        float64 for integers and bool.  "float32" is about twice as fast for large data.

    Returns
    -------
    Factorization

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the argument and suggests a fix.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020, Algorithms 1-3.
    .. [2] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017,
       eq. 2.
    .. [3] J. Vendrow et al., "On a guided nonnegative matrix factorization", 2021.
    .. [4] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", thesis, 2021, eq. 3.10.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> fit = sf.factorize(X, n_components=3, random_state=0)
    >>> fit.S.shape, fit.A.shape
    ((20, 3), (3, 8))
    """
    if foreign:
        refuse_foreign("factorize", foreign)
        raise TypeError(f"factorize() got an unexpected keyword argument {next(iter(foreign))!r}")
    loop = FitLoop(solver, max_iter, tol, callback, verbose, stopping, check_every)
    rng = check_random_state(random_state)
    count, jobs, threads = plan_starts(n_starts, n_threads, init, loop, MatrixFits.starts)
    tables = by_name(
        X,
        X_weights=X_weights,
        init=init,
        S_support=S_support,
        A_support=A_support,
        covariates=covariates,
        fixed_components=fixed_components,
        feature_labels=feature_labels,
    )
    fits = MatrixFits(
        check_data(X, resolve_threads(n_threads), dtype),
        y,
        **tables,
        n_components=n_components,
        loss=loss,
        supervision_loss=supervision_loss,
        supervision_weight=supervision_weight,
        y_weights=y_weights,
        feature_weight=feature_weight,
        penalties=penalties,
        threads=threads,
    )
    if count > 1:
        return best_start(fits, count, rng, loop, jobs)
    return fits.fit(rng, loop, random_state)


@completing(factorize.__doc__ or "")
def factorize_tensor(
    X: TensorLike,
    *,
    n_components: int,
    loss: LossName | float = "frobenius",
    X_weights: WeightsLike = None,
    y: Mapping[int, MatrixLike] | None = None,
    supervision_loss: LossName | float = "frobenius",
    supervision_weight: float = 1.0,
    solver: Solver = "auto",
    init: TensorStart = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    n_starts: int = 1,
    random_state: Seed = None,
    n_threads: int | None = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    penalties: PenaltiesLike = None,
    dtype: npt.DTypeLike | None = None,
) -> TensorFactorization:
    """Decompose a nonnegative tensor into a sum of few products of nonnegative vectors.

    The nonnegative CP decomposition (NCPD) minimizes ``sum W .* d(X, M)`` for the model
    ``M[i, j, ..] = sum_q F_0[i, q] F_1[j, q] ..`` with a nonnegative factor F_k for each mode.  The
    loss is the squared error [1]_, the Kullback-Leibler divergence for counts [2]_, or any other
    loss of :func:`factorize`, which is the same for two modes.

    Parameters
    ----------
    X : array_like, or sparse
        Nonnegative tensor with N >= 2 modes, for example terms x documents x months.  Dense: an
        array, in which NaN means missing.  Sparse: ``(coords, values, shape)`` with integer
        coordinates (N, number of entries), or an object with `coords`, `data` and `shape`, such as
        ``sparse.COO``; entries at the same place are added, and nothing is made dense.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, as in :func:`factorize`.  Numbers other than 1 and 2 compute all places of the
        tensor, unless only some are observed.
    X_weights : optional
        Nonnegative weights of the loss of each entry: a dense tensor; a sequence with a vector (or
        None for ones) for each mode, whose products are the weights; or
        ``weights.observed(pattern)`` or ``weights.missing(pattern)`` with a tensor in any of the
        forms of X.
    y : mapping of int to array_like, optional
        Supervision: for some modes a nonnegative Y (n_k x number of labels), ``Y ~ F_k B_k``,
        for example classes of documents or seed terms of topics.  NaN = unlabeled.
    supervision_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of the labels.
    supervision_weight : float
        Weight of the losses of labels, at least 0.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`factorize`: "auto" is "hals" for squared errors, with momentum if there are no
        labels, and otherwise over-relaxed "mm".
    init : {"auto", "random", "least-squares", "svd"}, TensorFactorization or sequence of arrays
        Start: a result, or ``(weights, factors)`` as in TensorLy, to continue from; or a factor
        (n_k x r) for each mode; zeros stay.  "least-squares" is as in :func:`factorize`; "svd"
        takes the positive or negative parts of the leading left singular vectors of each unfolding.
        "auto" is the better of these after three iterations for "frobenius" and "kullback-leibler";
        for other losses, and two modes, it is as in :func:`factorize`.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``F0``, ``F1``, .. up to the
        sizes of their columns) after every check; returning True stops the fit.  Not with several
        starts.
    penalties : optional
        Penalties of the factors of all modes, or a mapping from modes to penalties, such as
        ``{0: L2(1e-3), 1: [L2(1e-3), Temporal(0.1)]}``; see :mod:`ssnmf_fast.penalties`.  The
        penalty of a mode is multiplied by the product of the other lengths.  All modes, and labels
        ("B0" for those of mode 0), need L1 or L2, which bound the scale of components.

    Returns
    -------
    TensorFactorization

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
    >>> X = np.einsum("ir,jr,kr->ijk", rng.random((6, 2)), rng.random((5, 2)),
    ...               rng.random((4, 2)))
    >>> fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    >>> [F.shape for F in fit.factors]
    [(6, 2), (5, 2), (4, 2)]
    >>> coords, values = np.nonzero(X > 0.5), X[X > 0.5]
    >>> sparse = sf.factorize_tensor((coords, values, X.shape), n_components=2,
    ...                              random_state=0)
    """
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    rng = check_random_state(random_state)
    count, jobs, threads = plan_starts(n_starts, n_threads, init, loop, TensorFits.starts)
    fits = TensorFits(
        new_tensor(X, dtype),
        n_components=n_components,
        loss=loss,
        X_weights=X_weights,
        y=y,
        supervision_loss=supervision_loss,
        supervision_weight=supervision_weight,
        init=init,
        penalties=penalties,
        threads=threads,
    )
    if count > 1:
        return best_start(fits, count, rng, loop, jobs)
    return fits.fit(rng, loop, random_state)
