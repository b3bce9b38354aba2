"""Function :func:`complete`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._common.arrays import Array
from .._data.arrays import as_array
from .._data.border import LARGEST, check_matrix, require_finite
from .._data.checks import (
    check_integer,
    check_observers,
    check_option,
    check_random_state,
    check_real,
)
from .._data.threads import resolve_threads
from .._solver.progress import verbose_progress
from ._irls import Check
from ._methods import solve
from ._options import METHODS, Options, check_flag, check_gamma_min, check_share, refuse_unused
from ._read import read_observed
from ._result import Completion, CompletionState
from ._uninformed import warn_of_uninformed

_HINT = "Divide M by a constant that brings its entries, and fill_value, nearer to 1."


def complete(
    M: Any,
    *,
    observed: Any = None,
    shape: tuple[int, int] | None = None,
    method: str = "auto",
    rank: int | None = None,
    p: float | None = None,
    q: float | None = None,
    sparsity: float | None = None,
    sparsity_decay: float | None = None,
    sparsity_step: Literal["proximal", "explicit"] | None = None,
    missing_norm: Literal["l1", "l2"] | None = None,
    gamma_min: float | Literal["validate"] | None = None,
    biases: bool = False,
    fill_value: float = 0.0,
    nonnegative: bool | None = None,
    init: Any = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[CompletionState], Any] | None = None,
    verbose: int = 0,
) -> Completion:
    """Complete a matrix of low rank from some of its entries.

    Whether an entry is observed may depend on its value: in structured problems, missing entries
    tend to be zero (or `fill_value`).

    Parameters
    ----------
    M : array_like, scipy.sparse or tuple, shape (n, m)
        Entries of any sign: a dense array in which NaN is missing; a sparse matrix whose stored
        entries, explicit zeros among them, are observed; or ``(rows, columns, values)``.  float32
        and float64 are kept.
    observed : array_like or scipy.sparse of bool, shape (n, m), optional
        True where an entry of a dense or sparse M is observed, if not as above.
    shape : tuple of int, optional
        (n, m), for triplets; by default just large enough.
    method : str
        "auto": MatrixIRLS [2]_ with two additional weights on missing entries, which draw them to
        zero and keep them from being negative; the most accurate method on hard problems, and the
        default.
        "sirls", "structured-sirls": gradient steps on the smoothed Schatten-p function, the latter
        with steps towards sparsity of the missing entries [1]_ (2.2.3, Algorithm 2).
        "irls", "structured-irls": the weighted least-squares problems solved exactly
        ([1]_ (2.6), Algorithm 1).  The latter stores an n x m array, the iterate X of Algorithm 1;
        the completion is its low-rank part, and its attribute `iterate` is X.
        "nnm", "structured-nnm": nuclear norm minimization ([1]_ (2.2), (2.7)) by ADMM, for small
        matrices; n x m arrays.
    rank : int, optional
        Rank r; the nuclear norm methods determine it themselves and do not take it.  None estimates
        it: by the number of singular values above a hundredth of the largest while the regularizer
        falls (for "structured-sirls" in a run of "sirls" before), or, where `gamma_min` is
        "validate", by the error at held-out entries.
    p : float, 0 to 1, optional
        Exponent of the Schatten function; by default 1, and 0 (log-determinant) for "auto", which
        takes no other value unless `gamma_min` is given.
    q : float, 0 to 1, optional
        Exponent of the sparsity of missing entries, for "structured-sirls" and "structured-irls";
        by default 1.
    sparsity : float, optional
        Strength of the sparsity of missing entries; 0 turns it off.  For "structured-sirls" the
        step c (default 1e-6), for "structured-irls" and "structured-nnm" alpha (default 1 and
        0.01), for "auto" lambda (default 200); all in units of data of spectral norm 1.
    sparsity_decay : float, 0 to 1, optional
        The step c of "structured-sirls" is multiplied by it in every iteration; by default 1, as
        in the thesis.
    sparsity_step : {"proximal", "explicit"}, optional
        Form of that step; by default "proximal".  "explicit" is that of the thesis, which
        overshoots late in long runs and diverges for q < 1.
    missing_norm : {"l1", "l2"}, optional
        Norm of the missing entries in "structured-nnm"; by default "l1".
    gamma_min : float or "validate", optional
        Smallest regularizer, relative to the squared spectral norm of the observed entries.  None
        lets it vanish, for exact data.  For noisy data, a larger value prevents the model from
        fitting the noise; "validate" chooses it by the error at a tenth of the observed entries.
        The methods "auto", "sirls" and "irls" then go through levels of the regularizer with
        solutions of (2.6) ("sirls": gradient steps), without `sparsity` and `init`.
    biases : bool
        Whether to fit means of rows and columns together with the low-rank part (ratings, tables).
        Needs `gamma_min` and method "auto", "sirls" or "irls".
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
        Called with a :class:`CompletionState` after every check, those of the search of
        ``gamma_min="validate"`` included.  Returning True stops everything; the result is then that
        of the current fit, which during the search uses nine tenths of the entries.
    verbose : int
        1 shows progress on standard error: a bar on a terminal, otherwise lines.

    Returns
    -------
    Completion

    Warns
    -----
    UserWarning
        If a row or a column has no observed entry: its values are then `fill_value`, with biases
        the mean plus the biases of the other side.  If all observed entries are equal: these may
        be implicit feedback (clicks, purchases), which has no missing entries; see :class:`NMF`.

    Raises
    ------
    ValueError, TypeError
        For bad input: no observed entry, repeated entries, infinities, a mask of another shape, a
        rank above min(n, m), an option that the method does not use; the message names the
        argument.

    Notes
    -----
    Only "structured-irls" and the nuclear norm methods hold an n x m array; the others work on the
    observed entries and thin factors.  "structured-sirls" goes through all entries, tile by tile,
    once they are large enough for its weights to differ; "auto" samples missing entries instead.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, Colorado State University, 2021, chapter 2.
    .. [2] C. Kuemmerle, C. Mayrink Verdun, "A scalable second order method for ill-conditioned
       matrix completion from few samples", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> M = rng.random((40, 2)) @ rng.random((2, 30))
    >>> holes = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    >>> fit = sf.complete(holes, rank=2, random_state=0)
    >>> bool(np.abs(fit.to_dense() - M).max() < 1e-6)
    True
    """
    check_option(method, "method", METHODS)
    choices = {
        "rank": rank,
        "p": p,
        "q": q,
        "sparsity": sparsity,
        "sparsity_decay": sparsity_decay,
        "sparsity_step": sparsity_step,
        "missing_norm": missing_norm,
        "gamma_min": gamma_min,
        "init": init,
    }
    refuse_unused(method, choices)
    options = Options(
        method=method,
        rank=None if rank is None else check_integer(rank, "rank", 1),
        p=None if p is None else check_share(p, "p"),
        q=1.0 if q is None else check_share(q, "q"),
        sparsity=None if sparsity is None else check_real(sparsity, "sparsity"),
        sparsity_decay=1.0
        if sparsity_decay is None
        else check_share(sparsity_decay, "sparsity_decay"),
        proximal=sparsity_step is None
        or check_option(sparsity_step, "sparsity_step", ("proximal", "explicit")) == "proximal",
        missing_norm="l1"
        if missing_norm is None
        else check_option(missing_norm, "missing_norm", ("l1", "l2")),
        gamma_min=check_gamma_min(gamma_min),
        biases=check_flag(biases, "biases"),
        nonnegative=None if nonnegative is None else check_flag(nonnegative, "nonnegative"),
        fill_value=check_real(fill_value, "fill_value", allow_negative=True),
        max_iter=None if max_iter is None else check_integer(max_iter, "max_iter", 1),
        tol=None if tol is None else check_real(tol, "tol"),
        rng=check_random_state(random_state),
        n_threads=resolve_threads(n_threads),
    )
    options.check()
    check_observers(callback, verbose)
    matrix = read_observed(M, observed, shape, options.n_threads)
    if abs(options.fill_value) > LARGEST[matrix.dtype]:
        raise ValueError(
            f"fill_value must be at most {LARGEST[matrix.dtype]:g} in size for M of dtype "
            f"{matrix.dtype}; got {fill_value!r}."
        )
    warn_of_uninformed(matrix, options.fill_value, biases=options.biases)
    most = min(matrix.shape)
    if options.rank is not None and options.rank > most:
        raise ValueError(f"rank must be at most min(n, m) = {most} of M; got {options.rank}.")
    start = None if init is None else _start(init, matrix.shape, options.fill_value, matrix.dtype)
    with verbose_progress(verbose, options.max_iter, "complete", "change") as progress:
        found = solve(matrix, options, start, _check(callback, progress))
    names = ("left", "right", "singular_values", "iterate")
    require_finite({name: getattr(found, name) for name in names}, _HINT)
    return found


def _start(init: Any, shape: tuple[int, int], fill_value: float, dtype: Any) -> tuple[Array, Array]:
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
        raise ValueError(
            f"init is a {len(left)} x {right.shape[1]} matrix; expected {n} x {m}, that of M."
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ValueError("init contains NaN or infinity.")
    Q, R = np.linalg.qr(right.T)
    with np.errstate(over="ignore", invalid="ignore"):
        F = left @ R.T
    if not np.isfinite(F).all():
        raise ValueError("init has factors whose product is too large to work with.")
    return F, Q


def _check(*callbacks: Callable[[Any], Any] | None) -> Check:
    observers = [callback for callback in callbacks if callback is not None]
    if not observers:
        return lambda *_: False

    def check(progress: CompletionState, F: Array, G: Array, scale: float) -> bool:
        rank = progress.rank
        left, right = F[:, :rank] * F.dtype.type(scale), G[:, :rank].T
        left.flags.writeable = right.flags.writeable = False
        state = replace(progress, left=left, right=right)
        answers = [observer(state) for observer in observers]  # all of them, before any stops
        return any(answers)

    return check
