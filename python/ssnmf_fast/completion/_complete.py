"""Function :func:`complete`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, MatrixLike, Seed
from .._common.text import short
from .._data.arrays import as_array
from .._data.border import (
    LARGEST,
    check_integer,
    check_matrix,
    check_observers,
    check_random_state,
    check_real,
    require_finite,
)
from .._data.threads import resolve_threads
from .._solver.loop import verbose_progress
from ._matrix_irls import MatrixIRLS
from ._methods import MethodName, check_method
from ._noisy import BIAS_WEIGHTS
from ._problem import Fit, Method, Problem
from ._read import read_observed, warn_of_uninformed
from ._result import Completion, CompletionState

_HINT = "Divide M by a constant that brings its entries, and fill_value, nearer to 1."


def complete(
    M: MatrixLike | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    *,
    observed: MatrixLike | None = None,
    shape: tuple[int, int] | None = None,
    method: MethodName | Method = "auto",
    n_components: int | None = None,
    gamma_min: float | Literal["validate"] | None = None,
    biases: bool = False,
    fill_value: float = 0.0,
    nonnegative: bool | None = None,
    init: Completion | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Seed = None,
    n_threads: int | None = None,
    callback: Callable[[CompletionState], Any] | None = None,
    verbose: int = 0,
    dtype: npt.DTypeLike | None = None,
) -> Completion:
    """Complete a matrix of low rank from some of its entries.

    In structured problems, missing entries tend to be zero (or `fill_value`).

    Parameters
    ----------
    M : array_like, scipy.sparse or tuple, shape (n, m)
        Entries of any sign: a dense array in which NaN is missing; a sparse matrix whose stored
        entries, explicit zeros among them, are observed; or ``(rows, columns, values)``.
    observed : array_like or scipy.sparse of bool, shape (n, m), optional
        True where an entry of a dense or sparse M is observed, if not as above.
    shape : tuple of int, optional
        (n, m), for triplets; by default just large enough.
    method : str or object of ssnmf_fast.completion
        An object holds the parameters of its method; a name stands for one with the defaults:

        - "auto": :class:`MatrixIRLS <completion.MatrixIRLS>`, which draws missing entries to zero
          and keeps them from being negative, the most accurate method on hard problems; with
          `gamma_min` ``IRLS(p=0)``.
        - "sirls", "structured-sirls": :class:`SIRLS <completion.SIRLS>` and
          :class:`StructuredSIRLS <completion.StructuredSIRLS>`, gradient steps on the smoothed
          Schatten-p function [1]_ (2.2.3, Algorithm 2).
        - "irls", "structured-irls": :class:`IRLS <completion.IRLS>` and
          :class:`StructuredIRLS <completion.StructuredIRLS>`, weighted least squares solved exactly
          [1]_ ((2.6), Algorithm 1).
        - "nnm", "structured-nnm": :class:`NNM <completion.NNM>` and
          :class:`StructuredNNM <completion.StructuredNNM>`, nuclear norm minimization [1]_ ((2.2),
          (2.7)), for small matrices.
    n_components : int, optional
        Rank r; the nuclear norm methods determine it themselves and do not take it.  None estimates
        it: by the number of singular values above a hundredth of the largest while the regularizer
        falls (for "structured-sirls" in a run of "sirls" before), or, where `gamma_min` is
        "validate", by the error at held-out entries.
    gamma_min : float or "validate", optional
        Smallest regularizer, relative to the squared spectral norm of the observed entries.  None
        lets it vanish, for exact data.  For noisy data, a larger value prevents the model from
        fitting the noise; "validate" chooses it by the error at a tenth of the observed entries.
        The methods "auto", "sirls" and "irls" then go through levels of the regularizer with
        solutions of (2.6) ("sirls": gradient steps), without `init`.
    biases : bool
        Whether to fit means of rows and columns together with the low-rank part (ratings, tables),
        drawn to the overall mean by at most the weight of five entries, hardly where they are far
        from it.  Needs `gamma_min` and method "auto", "sirls" or "irls".
    fill_value : float
        Value that missing entries tend to.
    nonnegative : bool, optional
        Whether completed entries are at least 0.  None means True for "auto" without `gamma_min` if
        no observed entry is negative, and otherwise False.
    init : Completion or (left, right), optional
        Warm start: a completion, or factors (n, r) and (r, m) of M - fill_value.
    max_iter : int, optional
        Largest number of outer iterations, at least 1; by default that of the method.
    tol : float, optional
        Stop when an iteration changes the matrix by less than this, relatively; by default 1e-9 for
        "auto" and 1e-5 for the others.  With `gamma_min`: go on to the next level of the
        regularizer; 1e-3.
    random_state : None, int, Generator or RandomState
        Seed of the randomized SVD and of the sampled missing entries.
    n_threads : int, optional
        Number of threads; it does not change the result.  None uses all cores that are available to
        the process.
    callback : callable, optional
        Called with a :class:`ssnmf_fast.results.CompletionState` after every check, those of the
        search of ``gamma_min="validate"`` included.  Returning True stops everything; the result is
        then that of the current fit, which during the search uses nine tenths of the entries.
    verbose : int
        1 shows progress on standard error: a bar on a terminal, otherwise lines.
    dtype : {"float32", "float64"}, optional
        Of all that is computed from M, whose values are converted.  None: that of M, float64 for
        integers.

    Returns
    -------
    Completion

    Warns
    -----
    UserWarning
        If a row or a column has no observed entry (its values are `fill_value`, or by the biases);
        if all observed entries are equal, as of implicit feedback (see :class:`NMF`); if no entry
        is missing; if M looks like a table of row, column and value, which is given as a tuple.

    Raises
    ------
    ValueError, TypeError
        For bad input, such as repeated entries or an option that the method does not use.

    Notes
    -----
    Only "structured-irls" and the nuclear norm methods hold an n x m array; the others work on the
    observed entries and thin factors.  "structured-sirls" goes through all entries, tile by tile,
    once they are large enough for its weights to differ; "auto" samples missing entries instead.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, Colorado State University, 2021, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> M = rng.random((40, 2)) @ rng.random((2, 30))
    >>> holes = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    >>> fit = sf.complete(holes, n_components=2, random_state=0)
    >>> bool(np.abs(fit.to_dense() - M).max() < 1e-6)
    True
    """
    chosen = check_method(method, noisy=gamma_min is not None)
    rank = None if n_components is None else check_integer(n_components, "n_components", 1)
    gamma_min = check_gamma_min(gamma_min)
    biases = _check_flag(biases, "biases")
    nonnegative = None if nonnegative is None else _check_flag(nonnegative, "nonnegative")
    fill_value = check_real(fill_value, "fill_value", allow_negative=True)
    max_iter = None if max_iter is None else check_integer(max_iter, "max_iter", 1)
    tol = None if tol is None else check_real(tol, "tol")
    rng, threads = check_random_state(random_state), resolve_threads(n_threads)
    noisy = gamma_min is not None and chosen.by_levels
    _check_together(chosen, noisy, {"n_components": rank, "gamma_min": gamma_min, "init": init})
    if biases and not noisy:
        raise ValueError(
            "biases=True needs gamma_min (a number or 'validate') and method 'auto', 'sirls' or "
            f"'irls'; got gamma_min={short(gamma_min)} and {type(chosen).__name__}."
        )
    if biases and fill_value != 0:
        raise ValueError("fill_value belongs to a fit without biases; leave it at 0.")
    check_observers(callback, verbose)
    entries = read_observed(M, observed, shape, threads, dtype)
    if abs(fill_value) > LARGEST[entries.dtype]:
        raise ValueError(
            f"fill_value must be at most {LARGEST[entries.dtype]:g} in size for M of dtype "
            f"{entries.dtype}; got {short(fill_value)}."
        )
    if rank is not None and rank > min(entries.shape):
        raise ValueError(f"n_components must be at most min{entries.shape}, of M; got {rank}.")
    if nonnegative is None:
        nonnegative = chosen.nonnegative and not noisy and bool(entries.data.min() >= 0)
    problem = Problem(
        entries=entries,
        rank=rank,
        gamma_min=gamma_min,
        biases=BIAS_WEIGHTS if biases else None,
        fill_value=fill_value,
        lower=0.0 if nonnegative else -np.inf,
        init=None if init is None else _start(init, entries.shape, fill_value, entries.dtype),
        max_iter=max_iter,
        tol=tol,
        rng=rng,
        n_threads=threads,
    )
    warn_of_uninformed(entries, fill_value, biases=biases, listed=isinstance(M, tuple))
    return solve(chosen, problem, callback, verbose)


def solve(
    method: Method, problem: Problem, callback: Callable[..., Any] | None, verbose: int
) -> Completion:
    with verbose_progress(verbose, problem.max_iter, "complete", "change") as progress:
        observers = [one for one in (callback, progress) if one is not None]
        found = _solved(method, problem, observers).completion(problem)
    names = ("left", "right", "singular_values", "iterate")
    require_finite({name: getattr(found, name) for name in names}, _HINT)
    return found


def _solved(method: Method, problem: Problem, observers: list[Any]) -> Fit:
    """The last fit of a method, or the first at which an observer returns True."""
    noisy, observations = problem.gamma_min is not None and method.by_levels, problem.observations
    if not noisy and observations.norm == 0:  # all entries are equal to `fill_value`
        (n, m), dtype = observations.shape, observations.dtype
        F, G = np.zeros((n, 1), dtype), np.zeros((m, 1), dtype)
        iterate = np.zeros((n, m), dtype) if method.dense else None
        return Fit(observations, F, G, np.zeros(1), [], True, iterate=iterate)
    for fit in method._fits(problem):
        if not observers:
            continue
        state, scale = fit.history[-1], fit.F.dtype.type(fit.observations.scale)
        left, right = fit.F[:, : state.n_components] * scale, fit.G[:, : state.n_components].T
        left.flags.writeable = right.flags.writeable = False
        state = replace(state, left=left, right=right)
        answers = [observer(state) for observer in observers]  # all of them, before any stops
        if any(answers):
            return fit._replace(converged=fit.converged and not noisy)
    return fit


def _check_together(method: Method, noisy: bool, given: dict[str, Any]) -> None:
    """Raise ValueError for n_components, gamma_min or init where the method does not use them."""
    kind = type(method).__name__
    unused = [name for name, value in given.items() if value is not None]
    if unused and not method.takes_rank:
        raise ValueError(f"method {kind} determines the rank itself and does not use {unused[0]}.")
    if given["gamma_min"] is not None and isinstance(method, MatrixIRLS):
        raise ValueError(
            "method MatrixIRLS is for exact data and does not use gamma_min; 'auto' and IRLS do."
        )
    if given["gamma_min"] == "validate" and not noisy:
        raise ValueError(
            f"gamma_min='validate' needs method 'auto', 'sirls' or 'irls'; got {kind}."
        )
    if noisy and given["init"] is not None:
        raise ValueError("init has no part in a fit with gamma_min; leave one of them out.")


def _check_flag(value: object, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {short(value)}.")
    return bool(value)


def check_gamma_min(value: object) -> float | Literal["validate"] | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value == "validate":
            return "validate"
        raise ValueError(f"gamma_min must be a number, 'validate' or None; got {short(value)}.")
    number = check_real(value, "gamma_min")
    if number == 0:
        raise ValueError("gamma_min must be above 0; None lets the regularizer vanish.")
    return number


def _start(
    init: object, shape: tuple[int, int], fill_value: float, dtype: npt.DTypeLike
) -> tuple[Array, Array]:
    """The factors of a warm start, F (n x r) and G (m x r) with orthonormal columns."""
    if isinstance(init, Completion):
        if init.offset != fill_value:
            what = f"fill_value (or mean) {init.offset:g}, now it is {fill_value:g}"
            raise ValueError(f"init was completed with {what}; they must agree.")
        left, right = (factor.astype(dtype, copy=False) for factor in (init.left, init.right))
    elif isinstance(init, (tuple, list)) and len(init) == 2:
        left, right = (
            check_matrix(as_array(one, name), name, dtype=dtype, allow_negative=True, limited=False)
            for one, name in zip(init, ("init[0]", "init[1]"), strict=True)
        )
    else:
        raise TypeError("init must be a Completion or a pair (left, right) of arrays.")
    n, m = shape
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"init has factors of shapes {left.shape} and {right.shape}.")
    if (len(left), right.shape[1]) != shape:
        raise ValueError(f"init is a {len(left)} x {right.shape[1]} matrix, and M {n} x {m}.")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ValueError("init contains NaN or infinity.")
    Q, R = np.linalg.qr(right.T)
    with np.errstate(over="ignore", invalid="ignore"):
        F = left @ R.T
    if not np.isfinite(F).all():
        raise ValueError("init has factors whose product is too large to work with.")
    return F, Q
