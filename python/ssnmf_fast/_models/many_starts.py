"""Many fits of the same data that differ in their starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from .._data.border import CleanMatrix
from .._data.csr_file import check_data
from .._data.side_by_side import Stop, resolve_jobs, run_side_by_side
from .._data.threads import resolve_threads
from .._solver.result import Factorization
from .factorize import factorize


def fit_starts(
    X: Any,
    seeds: Sequence[int],
    *,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    **arguments: Any,
) -> Iterator[Factorization]:
    """Give a factorization for each seed, in their order; `arguments` are those of `factorize`.

    Each is, to the last bit, what `factorize` returns for this `random_state`.
    """
    clean = CleanMatrix(check_data(X, resolve_threads(n_threads)))
    jobs, threads = resolve_jobs(n_jobs, n_threads, len(seeds))
    tasks = (partial(_fit, clean, seed, arguments) for seed in seeds)
    yield from run_side_by_side(tasks, jobs, threads)


def _fit(
    X: CleanMatrix, seed: int, arguments: dict[str, Any], threads: int, stop: Stop
) -> Factorization:
    return factorize(X, random_state=seed, n_threads=threads, callback=stop, **arguments)
