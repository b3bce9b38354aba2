"""Which loop and which parameters belong to a method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from .._backend.layout import padded
from .._common.arrays import Array
from .._data.csr import entry_rows
from .._linalg.tall import square
from ._dense_irls import StructuredIteration
from ._irls import Check, Iteration, Outcome, run
from ._matrix_irls import MatrixIrls, run_matrix_irls
from ._noisy import run_noisy
from ._nuclear import run_nuclear
from ._observations import Observations
from ._options import Options
from ._result import Completion
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
    if noisy:
        outcome, observations = run_noisy(matrix, options, check)
    else:
        observations = Observations.of(matrix, options.fill_value, options.n_threads)
        outcome = _run(observations, options, start, lower, check)
    return _completion(matrix, observations, outcome, lower)


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
    if start is not None:
        start = start[0] / observations.scale, start[1]
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
