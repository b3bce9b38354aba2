"""Function :func:`complete` and its inputs: an array with NaN, a sparse matrix, or a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, MatrixLike, Seed
from .._common.text import short
from .._common.warn import UNINFORMED, is_quiet, warn_user
from .._data import arrays, border, tensors
from .._data.threads import resolve_threads
from .._solver.loop import verbose_progress
from ._matrix_irls import MatrixIRLS
from ._methods import MethodName, check_method
from ._noisy import BIAS_WEIGHTS
from ._problem import CompletionProblem, Iterate, Method
from ._result import Completion, CompletionState, Ids, read_frame

_HINT = "Divide M by a constant that brings its entries, and fill_value, nearer to 1."


def complete(
    M: MatrixLike | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    *,
    columns: tuple[str, str, str] | None = None,
    observed: MatrixLike | None = None,
    shape: tuple[int, int] | None = None,
    method: MethodName | Method = "auto",
    n_components: int | None = None,
    gamma_min: float | Literal["validate"] | None = None,
    biases: bool = False,
    fill_value: float = 0.0,
    nonnegative: bool | None = None,
    clip: bool | None = None,
    init: Completion | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    random_state: Seed = None,
    n_threads: int | None = None,
    callback: Callable[[CompletionState], Any] | None = None,
    verbose: int = 0,
    dtype: npt.DTypeLike | None = None,
) -> Completion:
    """Complete a low-rank matrix from some of its entries.

    In structured problems, missing entries tend to be zero (or `fill_value`).  For ratings, this
    predicts the rating of a given item; :class:`ssnmf_fast.Recommender` finds items to recommend.

    Parameters
    ----------
    M : array_like, scipy.sparse or tuple, shape (n, m)
        Entries of any sign: a dense array in which NaN is missing; a sparse matrix whose stored
        entries (including explicit zeros) are observed; or ``(rows, columns, values)``.  Index and
        columns of a DataFrame are ids if they are text, or integers other than 0, 1, 2, ...
    columns : (str, str, str), optional
        Columns of a DataFrame M in long form: row ids, column ids and values, such as
        ``("user", "item", "rating")``.  The result has sorted ids.
    observed : array_like or scipy.sparse of bool, shape (n, m), optional
        True where an entry of a dense or sparse M is observed; by default as described above.
    shape : tuple of int, optional
        (n, m), for triplets; by default just large enough.
    method : str or object of ssnmf_fast.completion
        An object holds the parameters of its method; a name stands for the defaults.  "auto" is
        :class:`MatrixIRLS <completion.MatrixIRLS>`, the most accurate for hard problems, or with
        `gamma_min` ``IRLS(p=0)``.  Others, from [1]_, are "sirls", "irls" and, for small matrices,
        "nnm" (:class:`SIRLS <completion.SIRLS>`, :class:`IRLS <completion.IRLS>`, :class:`NNM
        <completion.NNM>`); with "structured-" before the name, missing entries tend to zero.
    n_components : int, optional
        Rank r; the nuclear norm methods do not use it.  None estimates it from the number of
        singular values above a hundredth of the largest while the regularizer falls (for
        "structured-sirls", in a run of "sirls" before) or, if `gamma_min` is "validate", from the
        error at held-out entries.
    gamma_min : float or "validate", optional
        Smallest regularizer, relative to the squared spectral norm of the observed entries.  None,
        for exact data, lets it vanish.  For noisy data, a larger value prevents the model from
        fitting the noise; "validate" chooses it by the error at a tenth of the observed entries.
        "auto", "sirls" and "irls" then solve (2.6) ("sirls": take gradient steps) at falling levels
        of the regularizer, and do not use `init`.
    biases : bool
        Whether to fit row and column means together with the low-rank part (for ratings, tables).
        They are shrunk to the overall mean, with at most the weight of five entries and less if
        they are far from it.  Needs `gamma_min` and method "auto", "sirls" or "irls".
    fill_value : float
        Value that missing entries tend to.
    nonnegative : bool, optional
        Whether completed entries are at least 0.  None means True for "auto" without `gamma_min` if
        no observed entry is negative, and False otherwise.
    clip : bool, optional
        Whether completed entries stay within the range of the observed entries.  None means False
        for structured methods; for others, True if the observed entries look like ratings (a scale
        of at most 101 equal steps, and more entries than steps).
    init : Completion or (left, right), optional
        Warm start: a completion, or factors (n, r) and (r, m) of M - fill_value.
    max_iter : int, optional
        Largest number of outer iterations, at least 1; the default depends on the method.
    tol : float, optional
        Stop when the relative change of the matrix in an iteration is below this; by default 1e-9
        for "auto" and 1e-5 for the others.  With `gamma_min`, this ends a level; 1e-3.
    random_state : None, int, Generator or RandomState
        Seed of the randomized SVD and of the sampled missing entries.
    n_threads, verbose : int
        As in :func:`ssnmf_fast.factorize`.
    callback : callable, optional
        Called with a :class:`ssnmf_fast.results.CompletionState` after every check, also during the
        search for ``gamma_min="validate"``.  If it returns True, the current fit is the result; in
        the search, that fit uses nine tenths of the entries.
    dtype : {"float32", "float64"}, optional
        Type of all computations, to which M is converted.  None: the type of M, float64 for
        integers.

    Returns
    -------
    Completion

    Warns
    -----
    UserWarning
        If a row or a column has no observed entry (its values are `fill_value`, or follow from the
        biases); if all observed entries are equal, as in implicit feedback; if no entry is missing;
        if M looks like a table of row, column and value.

    Raises
    ------
    ValueError, TypeError
        For bad input, such as repeated entries, or an option that the method does not use.

    Notes
    -----
    Only "structured-irls" and the nuclear norm methods store an n x m array; the others work on the
    observed entries and thin factors.  "structured-sirls" computes all entries, tile by tile, once
    they are large enough for its weights to differ; "auto" samples missing entries instead.

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
    method = check_method(method, noisy=gamma_min is not None)
    kind = type(method).__name__
    rank = None if n_components is None else border.check_integer(n_components, "n_components", 1)
    gamma_min = check_gamma_min(gamma_min)
    for name, flag in (("biases", biases), ("nonnegative", nonnegative), ("clip", clip)):
        if not isinstance(flag, (bool, np.bool_)) and not (flag is None and name != "biases"):
            raise TypeError(f"{name} must be True or False; got {short(flag)}.")
    fill_value = border.check_real(fill_value, "fill_value", allow_negative=True)
    max_iter = None if max_iter is None else border.check_integer(max_iter, "max_iter", 1)
    tol = None if tol is None else border.check_real(tol, "tol")
    rng, threads = border.check_random_state(random_state), resolve_threads(n_threads)
    noisy = gamma_min is not None and method.by_levels
    options = {"n_components": rank, "gamma_min": gamma_min, "init": init}
    unused = [name for name, value in options.items() if value is not None]
    if unused and not method.takes_rank:
        raise ValueError(f"method {kind} determines the rank itself and does not use {unused[0]}.")
    if gamma_min is not None and isinstance(method, MatrixIRLS):
        raise ValueError(
            "method MatrixIRLS, for exact data, does not use gamma_min; 'auto' and IRLS do."
        )
    if not noisy and gamma_min == "validate":
        raise ValueError(
            f"gamma_min='validate' needs method 'auto', 'sirls' or 'irls'; got {kind}."
        )
    if not noisy and biases:
        raise ValueError(
            "biases=True needs gamma_min (a number or 'validate') and method 'auto', 'sirls' or "
            f"'irls'; got gamma_min={short(gamma_min)} and {kind}."
        )
    if noisy and init is not None:
        raise ValueError("a fit with gamma_min does not use init; leave one of them out.")
    if biases and fill_value != 0:
        raise ValueError("a fit with biases does not use fill_value; leave it at 0.")
    border.check_observers(callback, verbose)
    if columns is not None and shape is not None:
        raise ValueError("shape follows from columns; leave it out.")
    M, ids = read_frame(M, columns)
    observed = border.by_name(M, observed=observed)["observed"]
    entries = read_observed(M, observed, shape, threads, dtype, ids)
    limit = border.LARGEST[entries.dtype]
    if abs(fill_value) > limit:
        raise ValueError(
            f"fill_value must be at most {limit:g} in size for M of dtype {entries.dtype}; got "
            f"{short(fill_value)}."
        )
    if rank is not None and rank > min(entries.shape):
        raise ValueError(f"n_components must be at most min{entries.shape} for M; got {rank}.")
    if nonnegative is None:
        nonnegative = method.nonnegative and not noisy and bool(entries.data.min() >= 0)
    start = None if init is None else _start(init, entries.shape, fill_value, entries.dtype)
    weights = BIAS_WEIGHTS if biases else None
    parameters = entries, rank, gamma_min, weights, max_iter, tol, rng, threads, fill_value
    problem = CompletionProblem(*parameters, lower=0.0 if nonnegative else -np.inf, init=start)
    if clip is None:
        clip = not kind.startswith("Structured") and _are_grades(entries.data)
    lower = max(problem.lower, float(entries.data.min())) if clip else problem.lower
    upper = max(lower, float(entries.data.max())) if clip else np.inf
    filled = f"fill_value = {fill_value:g}" + ", clipped" * (not lower <= fill_value <= upper)
    warn_of_uninformed(entries, filled, biases=bool(biases), listed=isinstance(M, tuple))
    completion = solve(method, problem, callback, verbose)
    return replace(completion, lower=lower, upper=upper, row_ids=ids[0], column_ids=ids[1])


def _are_grades(values: Array) -> bool:
    """Return whether values look like ratings, such as 1 to 5 in steps of 0.5."""
    grades = np.unique(values[:1000])
    grades = np.unique(values) if len(grades) <= 101 else grades
    gaps = np.diff(grades.astype(np.float64))
    if not len(gaps) or gaps.sum() > (min(101, len(values) - 1) - 0.5) * gaps.min():
        return False
    return bool(abs(gaps / gaps.min() - (gaps / gaps.min()).round()).max() < 1e-3)


def solve(
    method: Method, problem: CompletionProblem, callback: Callable[..., Any] | None, verbose: int
) -> Completion:
    """Complete by the last iterate, or the first for which an observer returns True."""
    noisy, observations = problem.gamma_min is not None and method.by_levels, problem.observations
    with verbose_progress(verbose, problem.max_iter, "complete", "change") as progress:
        observers: list[Any] = [call for call in (callback, progress) if call is not None]
        if not noisy and observations.norm == 0:  # all entries are equal to `fill_value`
            (n, m), dtype = observations.shape, observations.dtype
            F, G = np.zeros((n, 1), dtype), np.zeros((m, 1), dtype)
            X = np.zeros((n, m), dtype) if method.dense else None
            iterates = iter([Iterate(observations, F, G, np.zeros(1), [], True, X=X)])
        else:
            iterates = method._iterates(problem)
        for iterate in iterates:
            if not observers or not iterate.history:
                continue
            state = iterate.history[-1]
            left, right = iterate.pair(state.n_components)
            left.flags.writeable = right.flags.writeable = False
            state = replace(state, left=left, right=right)
            answers = [observer(state) for observer in observers]  # all, before any stops
            if any(answers):
                iterate = iterate._replace(converged=iterate.converged and not noisy)
                break
        result = iterate.completion(problem)
    names = ("left", "right", "singular_values", "iterate")
    border.require_finite({name: getattr(result, name) for name in names}, _HINT)
    return result


def check_gamma_min(value: object) -> float | Literal["validate"] | None:
    if isinstance(value, str) and value != "validate":
        raise ValueError(f"gamma_min must be a number, 'validate' or None; got {short(value)}.")
    if value is None or isinstance(value, str):
        return None if value is None else "validate"
    number = border.check_real(value, "gamma_min")
    if number == 0:
        raise ValueError("gamma_min must be above 0; None lets the regularizer vanish.")
    return number


def _start(
    init: Any, shape: tuple[int, int], fill_value: float, dtype: npt.DTypeLike
) -> tuple[Array, Array]:
    """Return F (n x r) and G (m x r, with orthonormal columns) of a warm start."""
    if isinstance(init, Completion):
        if init.offset != fill_value:
            what = f"fill_value (or mean) {init.offset:g}, but now it is {fill_value:g}"
            raise ValueError(f"init was completed with {what}; they must agree.")
        init = init.left, init.right
    if not isinstance(init, (tuple, list)) or len(init) != 2:
        raise TypeError("init must be a Completion or a pair (left, right) of arrays.")
    signs: dict[str, Any] = {"allow_negative": True, "limited": False}
    left, right = (
        border.check_matrix(arrays.as_array(factor, name), name, dtype=dtype, **signs)
        for factor, name in zip(init, ("init[0]", "init[1]"), strict=True)
    )
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"init has factors of shapes {left.shape} and {right.shape}.")
    n, m = len(left), right.shape[1]
    if (n, m) != shape:
        raise ValueError(f"init is a {n} x {m} matrix, but M is {shape[0]} x {shape[1]}.")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ValueError("init contains NaN or infinity.")
    Q, R = np.linalg.qr(right.T)
    with np.errstate(over="ignore", invalid="ignore"):
        F = left @ R.T
    if not np.isfinite(F).all():
        raise ValueError("init has factors whose product is too large to work with.")
    return F, Q


_LONG = (
    "Give a table with one entry per line, such as user, item and rating, as (rows, columns, "
    'values) of positions, or with ids as a DataFrame and columns=("user", "item", "rating").'
)


def read_observed(
    M: MatrixLike | tuple[npt.ArrayLike, ...],
    observed: MatrixLike | None,
    shape: tuple[int, int] | None,
    n_threads: int,
    dtype: npt.DTypeLike | None = None,
    ids: Ids = (None, None),
) -> sp.csr_array:
    """Return the observed entries as a CSR array with sorted rows; explicit zeros are kept."""
    if isinstance(M, tuple):
        if observed is not None:
            raise ValueError("observed must be None if M is (rows, columns, values).")
        matrix = _without_repeats(_triplets(M, shape), ids)
    elif shape is not None:
        raise ValueError("shape belongs to M = (rows, columns, values); leave it out.")
    elif sp.issparse(M):
        sparse: Any = M
        state = arrays.DUPLICATES
        if sparse.format in ("csr", "csc"):
            matrix, state = arrays.inspect_csr(M, "M", n_threads)
        if state == arrays.DUPLICATES:
            matrix = _without_repeats(arrays.inspect_sparse(M, "M")[0].tocoo())
        elif not matrix.has_sorted_indices:
            matrix = matrix.sorted_indices()
        if observed is not None:
            matrix = arrays.sample(matrix, _pattern(observed, matrix.shape))
    else:
        try:
            M = arrays.as_array(M, "M", allow_nan=True)
            M = arrays.as_array(M.astype(object), "M") if M.dtype.kind in "SU" else M
            arrays.require_real(M.dtype, "M")
        except TypeError as error:
            raise TypeError(f"{error} {_LONG}") from error
        array = border.check_matrix(M, "M", allow_negative=True)
        pattern = ~np.isnan(array)
        if observed is not None:
            mask = _pattern(observed, array.shape).toarray()
            if (mask & ~pattern).any():
                row, column = np.argwhere(mask & ~pattern)[0]
                raise ValueError(f"M[{row}, {column}] is NaN, but observed is True there.")
            pattern = mask
        matrix = arrays.list_entries(array, pattern)
    signs: dict[str, Any] = {"allow_nan": False, "allow_negative": True}
    matrix = border.check_matrix(
        matrix, "M", dtype=arrays.check_dtype(dtype), **signs, n_threads=n_threads
    )
    if matrix.nnz == 0:
        raise ValueError("M has no observed entry; expected at least one.")
    return matrix


def _triplets(M: tuple[npt.ArrayLike, ...], shape: tuple[int, int] | None) -> sp.coo_array:
    if len(M) != 3:
        raise ValueError(f"M must be (rows, columns, values); got a tuple of {len(M)}.")
    values = arrays.as_array(M[2], "values of M")
    try:
        rows, columns = arrays.as_array(M[0], "rows of M"), arrays.as_array(M[1], "columns of M")
    except TypeError as error:
        raise TypeError(f"{error} {_LONG}") from error
    if not rows.shape == columns.shape == values.shape or rows.ndim != 1:
        hint = f"got shapes {rows.shape}, {columns.shape} and {values.shape}."
        raise ValueError(f"rows, columns and values of M must be vectors of one length; {hint}")
    for name, index in (("rows", rows), ("columns", columns)):
        if index.size and index.dtype.kind not in "iu":
            raise TypeError(
                f"{name} of M must be integers, positions from 0; got dtype {index.dtype}. {_LONG}"
            )
        if index.size and index.min() < 0:
            raise ValueError(f"{name} of M must be at least 0; got {index.min()}.")
        if index.size and index.max() >= np.iinfo(np.int32).max:
            raise ValueError(f"{name} of M must be below 2147483647; got {index.max()}.")
    n, m = (int(index.max()) + 1 if index.size else 0 for index in (rows, columns))
    if shape is None:
        shape = n, m
    elif isinstance(shape, (tuple, list)) and len(shape) == 2:
        sides = [border.check_integer(side, f"shape[{k}]", 1) for k, side in enumerate(shape)]
        shape = sides[0], sides[1]
    else:
        raise ValueError(f"shape must be (rows, columns); got {short(shape)}.")
    if n > shape[0] or m > shape[1]:
        raise ValueError(f"M has entries beyond shape {shape}; expected at least {n, m}.")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"values of M must be real numbers; got dtype {values.dtype}.")
    return sp.coo_array((values, (rows, columns)), shape=shape)


def _without_repeats(matrix: sp.coo_array, ids: Ids = (None, None)) -> sp.csr_array:
    matrix = arrays.inspect_sparse(matrix, "M")[0]
    values = matrix.data if matrix.data.dtype.kind == "f" else matrix.data.astype(np.float64)
    result = sp.csr_array((values, (matrix.row, matrix.col)), shape=matrix.shape)
    if result.nnz != len(values):
        places = np.sort(matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col)
        pair = divmod(int(places[1:][places[1:] == places[:-1]][0]), matrix.shape[1])
        entry = [k if of is None else of[k].item() for k, of in zip(pair, ids, strict=True)]
        hint = "merge repeated entries first, for example by their mean."
        raise ValueError(f"M holds the entry {short(entry)} more than once; {hint}")
    return result


def _pattern(observed: MatrixLike, shape: tuple[int, int]) -> sp.csr_array:
    mask = border.read_pattern(observed, "observed")
    if not sp.issparse(observed) and np.any((mask.data != 0) & (mask.data != 1)):
        raise TypeError("observed must be a mask: True (1) where an entry is observed.")
    if mask.shape != shape:
        raise ValueError(f"observed has shape {mask.shape}; expected {shape}, that of M.")
    mask = mask.astype(bool)
    mask.sum_duplicates()
    mask.eliminate_zeros()
    return mask


def uninformed(matrix: sp.csr_array) -> tuple[tuple[int, int], float | None]:
    """Return the numbers of empty rows and columns, and the value of all entries if it is not 0."""
    (n, m), values = matrix.shape, matrix.data
    rows, columns = np.count_nonzero(np.diff(matrix.indptr)), len(np.unique(matrix.indices))
    equal = len(values) > 1 and values[0] != 0 and bool(np.all(values == values[0]))
    return (n - int(rows), m - columns), float(values[0]) if equal else None


def counts(rows: int, columns: int, names: tuple[str, str] = ("row", "column")) -> str:
    """Return a text with the numbers of rows and columns, or of things with other names."""
    pairs = zip((rows, columns), names, strict=True)
    return " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in pairs if count)


def is_long(matrix: sp.csr_array) -> bool:
    """Return whether a matrix looks like a table of row, column and value."""
    n, m = matrix.shape
    full = m == 3 < n and np.bincount(matrix.indices)[:2].min() == n
    return full and tensors.is_long(matrix.toarray(), 1.0)


def warn_of_uninformed(matrix: sp.csr_array, filled: str, *, biases: bool, listed: bool) -> None:
    """Warn about empty rows and columns, equal entries or a full M; listed: M is triplets."""
    if is_quiet(UNINFORMED):
        return
    hint, full = "" if listed else f" {_LONG}", matrix.nnz == matrix.shape[0] * matrix.shape[1]
    if full:
        warn_user(
            "M has no missing entry: there is nothing to complete. Mark missing entries by NaN in "
            f"a dense M; a sparse M does not store them.{hint}",
            UserWarning,
        )
    elif not listed and is_long(matrix):
        warn_user(f"The first two of the three columns of M look like ids.{hint}", UserWarning)
    empty, value = uninformed(matrix)
    if any(empty):
        if biases:
            filled = "the mean of M plus the bias of the other side (of the column for a row)"
        text = f"M has no observed entry in {counts(*empty)}; these are completed by {filled}."
        warn_user(text, UserWarning)
    if value is not None and not full:
        warn_user(
            f"All {len(matrix.data)} observed entries of M are {value:g}: the completion is "
            "meaningless. For actions of users (implicit feedback), use ssnmf_fast.Recommender.",
            UserWarning,
        )
