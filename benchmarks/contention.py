"""What does a fit lose next to other load, with one thread and with several?

One table: median and least milliseconds of a Kullback-Leibler fit (rank 10, 50 iterations, 20
Newsgroups) beside 0, 1, 2... processes that keep a core busy, and of two such fits at once, through
joblib, beside nothing.  With an installation that was built with ``SSNMF_FAST_OPENMP=ON`` it is the
yardstick for the library's own threads: OpenMP's wait for all of a team.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from common import newsgroups, seconds, zipf_text
from joblib import Parallel, delayed
from records import Options, markdown, say

import ssnmf_fast as sf
from ssnmf_fast._backend.dispatch import kernels

BUSY = "while True: pass"


def fit(X: Any, threads: int, iterations: int) -> None:
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
    for name, load, jobs in cases:
        times: dict[int, list[float]] = {threads: [] for threads in options.threads}
        # With one job in this process; with two in processes that stay.
        with busy(load), Parallel(n_jobs=jobs) as parallel:
            for number in range(1 + options.repeats):
                for threads, taken in times.items():
                    calls = [delayed(fit)(X, threads, options.iterations)] * jobs
                    took = seconds(lambda calls=calls, run=parallel: run(calls))
                    taken += [1e3 * took] * (number > 0)  # the first starts threads and processes
        for threads, taken in times.items():
            say(f"beside {name}, {threads} threads: {median(taken):.0f} ({min(taken):.0f})")
            table.append([name, str(threads), f"{median(taken):.0f} ({min(taken):.0f})"])
    return table


OPTIONS = {"loads": [0, 1, 2, 3, 4], "threads": [1, 2], "repeats": 9, "iterations": 50}
QUICK = {"loads": [0, 1], "repeats": 1, "iterations": 2}


def main(options: Options) -> Any:
    X = zipf_text(500, 300, 20) if options.quick else newsgroups()[0]
    print(markdown(["beside", "threads", "ms (least)"], rows(X, options)))
    back_end = kernels.build_info()["threads"]
    print(f"Threads: {back_end}")
