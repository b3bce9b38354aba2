"""Fits to the same data from many starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy.typing as npt
from numpy.random import Generator

from .._common.arrays import MatrixLike, Solver
from .._common.text import short
from .._data.arrays import DataLike
from .._data.border import (
    CleanMatrix,
    check_data,
    check_integer,
    check_random_state,
    require_memory,
)
from .._data.threads import Stop, resolve_jobs, resolve_threads, run_side_by_side
from .._solver.loop import FitLoop, verbose_progress
from .._solver.result import Factorization, FitState
from .fits import Fits, MatrixFits
from .fits import Result as Fit

Result = TypeVar("Result", bound=Any)


def fit_starts(
    X: DataLike | CleanMatrix,
    seeds: Sequence[int],
    y: MatrixLike | None = None,
    *,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    solver: Solver = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    dtype: npt.DTypeLike | None = None,
    **arguments: Any,
) -> Iterator[Factorization]:
    """Yield the result of `factorize` for each seed, in order."""
    loop = FitLoop(solver, max_iter, tol, None, 0)
    X = check_data(X, resolve_threads(n_threads), dtype)
    jobs, threads = resolve_jobs(n_jobs, n_threads, len(seeds))
    yield from run_starts(MatrixFits(X, y, threads=threads, **arguments), seeds, loop, jobs)


def run_starts(
    fits: Fits[Fit, Any], seeds: Sequence[int], loop: FitLoop, jobs: int
) -> Iterator[Fit]:
    """Yield the result for each seed, in order; shared work is done once."""

    def fit(seed: int, threads: int, stop: Stop) -> Fit:
        silent = replace(loop, callback=stop, verbose=0)
        return fits.fit(check_random_state(seed), silent, seed)

    jobs = at_once(fits.rank, fits.X, jobs)
    yield from run_side_by_side((partial(fit, seed) for seed in seeds), jobs, fits.threads)


def at_once(rank: int, X: Any, jobs: int) -> int:
    """Return how many of `jobs` fits memory has room for, and for as many that wait."""
    return max(1, require_memory(rank, X.shape, X.dtype, n_fits=2 * jobs) // 2)


def draw_seeds(rng: Generator, n_starts: int) -> list[int]:
    """Return a seed for each start; a larger number only adds seeds."""
    return [int(seed) for seed in rng.integers(2**31 - 1, size=n_starts)]


def best_start(
    fits: Fits[Fit, Any], n_starts: int, rng: Generator, loop: FitLoop, jobs: int
) -> Fit:
    """Return the fit with the smallest objective among several starts."""
    found = run_starts(fits, draw_seeds(rng, n_starts), loop, jobs)
    best, values = keep_best(found, n_starts, loop.verbose)
    return replace(best, start_objectives=tuple(values))


def plan_starts(
    n_starts: int, n_threads: int | None, init: object, loop: FitLoop, drawn: Sequence[str]
) -> tuple[int, int, int]:
    """Return the numbers of starts, simultaneous fits and threads; several starts must differ."""
    count = check_integer(n_starts, "n_starts", 1)
    if count > 1 and (not isinstance(init, str) or init in ("nndsvda", "svd")):
        given = "holds arrays" if not isinstance(init, str) else f"is {short(init)}"
        hint = f"expected one of {', '.join(map(repr, drawn))}, or n_starts=1."
        raise ValueError(f"n_starts={n_starts} needs different starts, but init {given}; {hint}")
    if count > 1 and loop.callback is not None:
        raise ValueError(
            f"callback is not supported with n_starts={n_starts}; leave one of them out."
        )
    return count, *resolve_jobs(None, n_threads, count)


def keep_best(results: Iterable[Result], n_starts: int, verbose: int) -> tuple[Result, list[float]]:
    """Return the result with the smallest objective, and the final objectives of all."""
    values: list[float] = []
    best: Any = None
    with verbose_progress(verbose, n_starts, "starts") as progress:
        for result in results:
            values.append(result.objective[-1][1])
            if best is None or values[-1] < best.objective[-1][1]:
                best = result
            if progress is not None:
                progress(FitState(len(values), min(values)))
    return best, values
