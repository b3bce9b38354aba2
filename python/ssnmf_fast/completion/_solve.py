"""Completion of observed entries by a method, in the units of the data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import LARGEST
from .._data.csr import entry_rows
from ._methods import StructuredIRLS
from ._noisy import run_noisy
from ._observations import Observations
from ._problem import Check, Options, Outcome, Problem
from ._result import Completion, CompletionState


def solve(
    matrix: sp.csr_array, options: Options, start: tuple[Array, Array] | None, check: Check
) -> Completion:
    """Complete the matrix of the observed entries."""
    noisy = options.by_levels
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
        floor = (lower - observations.offset) / observations.scale
        problem = Problem(observations, scaled, start, floor, watch)
        outcome = options.method._run(problem) if observations.norm > 0 else _zeros(problem)
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
    return options.method.nonnegative and not noisy and bool(matrix.data.min() >= 0)


def _zeros(problem: Problem) -> Outcome:
    """Return the completion of entries that are all zero."""
    (n, m), dtype = problem.observations.shape, problem.observations.dtype
    stored = isinstance(problem.options.method, StructuredIRLS)
    iterate = np.zeros((n, m), dtype) if stored else None
    F, G = np.zeros((n, 1), dtype), np.zeros((m, 1), dtype)
    return Outcome(F, G, np.zeros(1), 0.0, converged=True, iterate=iterate)


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
