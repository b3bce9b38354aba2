"""Many fits of the same data that differ in their starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from .._common.text import short
from .._data.border import CleanMatrix, check_random_state
from .._data.csr_file import CsrFile, check_data
from .._data.shared_file import SharedFile
from .._data.threads import Stop, resolve_jobs, resolve_threads, run_side_by_side
from .._solver.loop import FitLoop, verbose_progress
from .._solver.result import Factorization, FitState, TensorFactorization
from .fits import Fits, TensorFits

_DRAWN = ("auto", "random", "least-squares", "random-acol")  # starts that differ by their seeds
_DRAWN_OF_TENSORS = ("auto", "random", "least-squares")
_READERS = 4  # fits that read a file together


class _Fit(Protocol):
    @property
    def objective(self) -> list[tuple[int, float]]: ...


Result = TypeVar("Result", bound=_Fit)


def fit_starts(
    X: Any,
    seeds: Sequence[int],
    Y: Any = None,
    *,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    solver: str = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    dtype: Any = None,
    **arguments: Any,
) -> Iterator[Factorization]:
    """Give a factorization for each seed, in their order; `arguments` are those of `factorize`.

    Each is, to the last bit, what `factorize` returns for this `random_state`.  What does not
    depend on the start is made once, and fits of a file read it together.
    """
    settings = solver, max_iter, tol
    FitLoop(*settings, None, 0)  # checked before anything is done
    X = check_data(X, resolve_threads(n_threads), dtype)
    jobs, threads = resolve_jobs(n_jobs, n_threads, len(seeds))
    if isinstance(X, CsrFile):
        jobs = max(jobs, min(_READERS, len(seeds))) if n_jobs is None else jobs
        X = SharedFile(X)
    fits = Fits(CleanMatrix(X), Y, threads=threads, **arguments)
    yield from _fit_each(fits, seeds, settings, jobs, threads)


def _fit_each(
    fits: Fits | TensorFits,
    seeds: Sequence[int],
    settings: tuple[str, int, float],
    jobs: int,
    threads: int,
) -> Iterator[Any]:
    tasks = (partial(_fit, fits, seed, settings) for seed in seeds)
    yield from run_side_by_side(tasks, jobs, threads)


def _fit(
    fits: Fits | TensorFits,
    seed: int,
    settings: tuple[str, int, float],
    threads: int,
    stop: Stop,
) -> Any:
    del threads  # the data know them
    loop = FitLoop(*settings, stop, 0)
    with fits.X.member() if isinstance(fits.X, SharedFile) else nullcontext():
        return fits.fit(check_random_state(seed), loop, seed)


def draw_seeds(rng: np.random.Generator, n_starts: int) -> list[int]:
    """Return a seed for each start; the first ones are those of fewer starts."""
    return [int(seed) for seed in rng.integers(2**31 - 1, size=n_starts)]


def best_start(
    X: Any,
    Y: Any,
    n_starts: int,
    rng: np.random.Generator,
    loop: FitLoop,
    n_threads: int | None,
    arguments: dict[str, Any],
) -> Factorization:
    """Return the fit with the smallest objective of several starts."""
    check_starts(n_starts, arguments["init"], loop)
    settings: dict[str, Any] = {
        "solver": loop.solver,
        "max_iter": loop.max_iter,
        "tol": loop.tol,
    }
    seeds = draw_seeds(rng, n_starts)
    found = fit_starts(X, seeds, Y, n_threads=n_threads, **settings, **arguments)
    best, values = keep_best(found, n_starts, loop.verbose)
    return replace(best, start_objectives=tuple(values))


def best_start_of_tensor(
    X: Any,
    n_starts: int,
    rng: np.random.Generator,
    loop: FitLoop,
    n_threads: int | None,
    arguments: dict[str, Any],
) -> TensorFactorization:
    """Return the decomposition with the smallest objective of several starts.

    Each is, to the last bit, what `factorize_tensor` returns for the seed that is drawn for it.
    """
    check_starts(n_starts, arguments["init"], loop, _DRAWN_OF_TENSORS)
    jobs, threads = resolve_jobs(None, n_threads, n_starts)
    fits = TensorFits(X, **arguments, threads=threads)
    settings = loop.solver, loop.max_iter, loop.tol
    found: Iterator[TensorFactorization] = _fit_each(
        fits, draw_seeds(rng, n_starts), settings, jobs, threads
    )
    best, values = keep_best(found, n_starts, loop.verbose)
    return replace(best, start_objectives=tuple(values))


def check_starts(n_starts: int, init: Any, loop: FitLoop, drawn: Sequence[str] = _DRAWN) -> None:
    """Raise ValueError unless starts can differ, and nothing is meant for one fit alone."""
    if not isinstance(init, str) or init in ("nndsvda", "svd"):
        given = "holds arrays" if not isinstance(init, str) else f"is {short(init)}"
        raise ValueError(
            f"n_starts={n_starts} needs starts that differ, and init {given}; expected one of "
            f"{', '.join(map(repr, drawn))}, or n_starts=1."
        )
    if loop.callback is not None:
        raise ValueError(
            f"callback is for one fit, and n_starts={n_starts} are several at the same time; leave "
            "it out, or fit with every start by itself."
        )


def keep_best(results: Iterable[Result], n_starts: int, verbose: int) -> tuple[Result, list[float]]:
    """Return the result with the smallest objective, and the last objectives of all."""
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
