"""Which loop and which parameters belong to a method."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import LARGEST
from .._data.csr import entry_rows
from .._linalg.tall import square
from ._dense_irls import StructuredIteration
from ._irls import Check, Iteration, Outcome, run
from ._matrix_irls import MatrixIrls, run_matrix_irls
from ._noisy import run_noisy
from ._nuclear import run_nuclear
from ._observations import Observations
from ._options import Options
from ._result import Completion, CompletionState
from ._schedule import Schedule, Sparsity, sirls, structured

_EASY = 0.3  # degrees of freedom for every observed entry, below which eps may fall at once
_HARD = 0.8
_FAST_ITERATIONS, _SLOW_ITERATIONS = 60, 500  # of an estimate of the rank


def solve(
    matrix: sp.csr_array, options: Options, start: tuple[Array, Array] | None, check: Check
) -> Completion:
    """Complete the matrix of the observed entries."""
    noisy = options.by_levels
    if noisy and start is not None:
        raise ValueError("init has no part in a fit with gamma_min; leave one of them out.")
    lower = 0.0 if _bounded(matrix, options, noisy) else -np.inf
    unit = _unit(matrix, options.fill_value)
    entries, scaled, watch = matrix, options, check
    if unit:
        entries = sp.csr_array(
            (np.ldexp(matrix.data, -unit), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        scaled = replace(options, fill_value=math.ldexp(options.fill_value, -unit))

        def watch(progress: CompletionState, F: Array, G: Array, scale: float) -> bool:
            return check(progress, F, G, math.ldexp(scale, unit))

    if noisy:
        outcome, observations = run_noisy(entries, scaled, watch)
    else:
        observations = Observations.of(entries, scaled.fill_value, options.n_threads)
        start = None if start is None else _relative(start, observations, unit)
        outcome = _run(observations, scaled, start, lower, watch)
    completion = _completion(entries, observations, outcome, lower)
    return _times_unit(completion, matrix, unit) if unit else completion


def _unit(matrix: sp.csr_array, fill_value: float) -> int:
    """The power of two to divide very small data by, whose squares would be lost; else 0."""
    largest = max(float(np.abs(matrix.data).max()), abs(fill_value))
    return math.frexp(largest)[1] if largest * LARGEST[matrix.dtype] < 1 else 0


def _relative(
    start: tuple[Array, Array], observations: Observations, unit: int
) -> tuple[Array, Array]:
    """The factors of a warm start for observations of spectral norm 1."""
    with np.errstate(over="ignore"):
        F = np.ldexp(start[0], -unit) / start[0].dtype.type(observations.scale)
    limit = LARGEST[F.dtype]
    if not np.abs(F).max(initial=0.0) <= limit:
        raise ValueError(
            f"init is more than {limit:.0e} times as large as M - fill_value, too large to start "
            "from. Leave it out, or divide it by a constant."
        )
    return F, start[1]


def _times_unit(completion: Completion, matrix: sp.csr_array, unit: int) -> Completion:
    """A completion of data that were divided by a power of two, in the units of the data."""
    left, right = np.ldexp(completion.left, unit), completion.right.copy()
    if completion.has_biases:  # the last columns of left are the row biases and ones
        left[:, -1] = 1
        right[-1] = np.ldexp(right[-1], unit)
    iterate = completion.iterate
    return replace(
        completion,
        left=left,
        right=right,
        offset=math.ldexp(completion.offset, unit),
        singular_values=np.ldexp(completion.singular_values, unit),
        scale=math.ldexp(completion.scale, unit),
        observed=matrix,
        iterate=None if iterate is None else np.ldexp(iterate, unit),
    )


def _bounded(matrix: sp.csr_array, options: Options, noisy: bool) -> bool:
    if options.nonnegative is not None:
        return options.nonnegative
    return options.method == "auto" and not noisy and bool(matrix.data.min() >= 0)


def _run(
    observations: Observations,
    options: Options,
    start: tuple[Array, Array] | None,
    lower: float,
    check: Check,
) -> Outcome:
    floor = (lower - observations.offset) / observations.scale
    if observations.norm == 0:
        n, m = observations.shape
        zeros = np.zeros((n, 1), observations.dtype), np.zeros((m, 1), observations.dtype)
        stored = options.method == "structured-irls"
        iterate = np.zeros((n, m), observations.dtype) if stored else None
        return Outcome(*zeros, np.zeros(1), 0.0, converged=True, iterate=iterate)
    if options.method in ("nnm", "structured-nnm"):
        return run_nuclear(
            observations,
            options.strength,
            options.missing_norm,
            floor,
            1e-5 if options.tol is None else options.tol,
            options.max_iter or 2000,
            check,
        )
    if options.method == "auto":
        return _auto(observations, options, start, floor, check)
    rank = options.rank
    if rank is None and options.method == "structured-sirls":
        # Its own schedule falls so fast that nearly every rank the entries allow is kept.
        slow = sirls(observations, observations.largest_rank(), 1.0, None)
        rank = _estimated(observations, options, start, replace(slow, max_iter=_SLOW_ITERATIONS))
    schedule = _schedule(observations, options, floor)
    if start is not None:
        schedule = replace(schedule, gamma=_warm_gamma(observations, start, schedule))
    tol = 1e-5 if options.tol is None else options.tol
    if options.method != "structured-irls":
        return run(Iteration(observations, rank, start, options.rng), schedule, tol, check)
    state = StructuredIteration(observations, options.rank, start, options.rng, options.strength)
    outcome = run(state, schedule, tol, check)
    outcome.iterate = state.X
    return outcome


def _schedule(observations: Observations, options: Options, floor: float) -> Schedule:
    p = options.exponent
    sparsity = Sparsity(
        step=options.strength if options.method == "structured-sirls" else 0.0,
        decay=options.sparsity_decay,
        q=options.q,
        eps_floor=max((1e-3 * observations.root_mean_square) ** 2, 1e-30),
        proximal=options.proximal,
        floor=floor,
    )
    if options.method == "structured-sirls":
        schedule = structured(p, sparsity, options.gamma_min)
    else:
        rank = options.rank or observations.largest_rank()
        schedule = sirls(observations, rank, p, options.gamma_min)
        exact = options.method in ("irls", "structured-irls")
        schedule = replace(schedule, sparsity=sparsity, exact=exact)
    if options.max_iter is not None:
        schedule = replace(schedule, max_iter=options.max_iter)
    return schedule


def _warm_gamma(
    observations: Observations, start: tuple[Array, Array], schedule: Schedule
) -> float:
    """Begin where the part that the given factors leave would be the next singular value."""
    F, G = (padded(factor, observations.dtype) for factor in start)
    left = square(observations.residuals(F, G))
    return float(np.clip(left, schedule.gamma_floor, schedule.gamma))


def _auto(
    observations: Observations,
    options: Options,
    start: tuple[Array, Array] | None,
    floor: float,
    check: Check,
) -> Outcome:
    rank = options.rank
    if rank is None:
        fast = structured(1.0, Sparsity(), None)
        rank = _estimated(observations, options, start, replace(fast, max_iter=_FAST_ITERATIONS))
    freedom = observations.freedom(rank)
    easy = freedom < _EASY
    parameters = MatrixIrls(
        sparsity=options.strength,
        eps_decay=0.0 if easy else 0.9,
        cg_share=1e-2 if easy else 0.0,
        sampled=2.0 if freedom > _HARD else 1.0,
        floor=floor,
    )
    if options.tol is not None:
        parameters = replace(parameters, tol=options.tol)
    if options.max_iter is not None:
        parameters = replace(parameters, max_iter=options.max_iter)
    return run_matrix_irls(observations, rank, parameters, start, options.rng, check)


def _estimated(
    observations: Observations,
    options: Options,
    start: tuple[Array, Array] | None,
    schedule: Schedule,
) -> int:
    """The rank that sIRLS with a falling rank comes to by a schedule."""
    state = Iteration(observations, None, start, options.rng)
    run(state, schedule, 1e-4, lambda *_: False)
    return state.rank


def _completion(
    matrix: sp.csr_array, observations: Observations, outcome: Outcome, lower: float
) -> Completion:
    columns = len(outcome.singular) + outcome.n_biases
    scale = observations.dtype.type(observations.scale)
    return Completion(
        left=np.ascontiguousarray(outcome.F[:, :columns]) * scale,
        right=np.ascontiguousarray(outcome.G[:, :columns].T),
        offset=observations.offset,
        singular_values=outcome.singular * observations.scale,
        rank=len(outcome.singular),
        scale=observations.scale,
        gamma=outcome.gamma,
        history=outcome.history,
        n_iter=outcome.n_iter,
        converged=outcome.converged,
        lower=lower,
        observed=matrix,
        iterate=_iterate(matrix, outcome.iterate, observations, lower),
    )


def _iterate(
    matrix: sp.csr_array, X: Array | None, observations: Observations, lower: float
) -> Array | None:
    """The dense iterate of a method that stores one, in the units of the data."""
    if X is None:
        return None
    X *= X.dtype.type(observations.scale)
    X += X.dtype.type(observations.offset)
    np.maximum(X, X.dtype.type(lower), out=X)
    X[entry_rows(matrix.indptr), matrix.indices] = matrix.data  # without the rounding of scaling
    return X
