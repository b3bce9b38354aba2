"""What does a fit lose next to other load, with one thread and with several?

One table: median and least milliseconds of a Kullback-Leibler fit (rank 10, 50 iterations, 20
Newsgroups) while 0, 1, 2... other processes keep a core busy, and of two such fits at once, through
joblib, without other load; with the threads of the library's own pool and with those of OpenMP,
which wait for all of a team.  The fits of all columns are taken in turn.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from statistics import median
from typing import Any

from common import newsgroups, seconds, zipf_text
from joblib import Parallel, delayed
from records import Options, markdown, say

import ssnmf_fast as sf

BUSY = "while True: pass"


def fit(X: Any, threads: int, back_end: str, iterations: int) -> None:
    sf.set_thread_backend(back_end)
    given = {"n_components": 10, "loss": "kullback-leibler", "random_state": 0, "tol": 0}
    sf.factorize(X, max_iter=iterations, n_threads=threads, **given)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep `count` cores busy."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rows(X: Any, options: Options) -> list[list[str]]:
    cases = [(f"{load} busy", load, 1) for load in options.loads] + [("a second fit", 0, 2)]
    table = []
    ways = list(product(options.threads, options.backends))
    for name, load, jobs in cases:
        times: dict[tuple[int, str], list[float]] = {way: [] for way in ways}
        # With one job in this process; with two in processes that stay.
        with busy(load), Parallel(n_jobs=jobs) as parallel:
            for number in range(1 + options.repeats):
                for way, taken in times.items():
                    calls = [delayed(fit)(X, *way, options.iterations)] * jobs
                    took = seconds(lambda calls=calls, run=parallel: run(calls))
                    taken += [1e3 * took] * (number > 0)  # the first starts threads and processes
        cells = {way: f"{median(taken):.0f} ({min(taken):.0f})" for way, taken in times.items()}
        say(f"{name}: {cells}")
        for threads in options.threads:
            table.append([name, str(threads), *(cells[threads, one] for one in options.backends)])
    return table


OPTIONS = {
    "loads": [0, 1, 2],
    "threads": [1, 2],
    "backends": ["pool", "openmp"],
    "repeats": 9,
    "iterations": 50,
}
QUICK = {"loads": [0, 1], "repeats": 1, "iterations": 2}


def main(options: Options) -> Any:
    X = zipf_text(500, 300, 20) if options.quick else newsgroups()[0]
    header = ["other load", "threads", *(f"{one}, ms (least)" for one in options.backends)]
    print(markdown(header, rows(X, options)))
