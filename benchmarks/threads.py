"""How does an iteration scale with threads, for matrices of several sizes and several ranks?

One table: milliseconds of an iteration with one thread, and how many times faster it is with more.
The matrices are those of scale.py; the fits are plain NMF with the default solver of each loss.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from common import Timing, iteration_seconds
from records import Options, markdown, say
from scale import plain_fit, skewed

# Rows, columns, entries of a row.
SIZES = ((10_000, 5_000, 50), (50_000, 10_000, 50), (100_000, 20_000, 100))
LOSSES = ("frobenius", "kullback-leibler")


def rows(sizes: Any, ranks: list[int], threads: list[int]) -> list[list[str]]:
    table = []
    for n, m, per_row in sizes:
        X = skewed(n, m, per_row, float)
        count = max(3, 4_000_000 // X.nnz)
        for loss, rank in product(LOSSES, ranks):
            runs = {n: Timing(partial(plain_fit, X, rank, loss, n), 0, count) for n in threads}
            times = list(iteration_seconds(runs, rounds=3).values())
            say(f"{X.nnz} nonzeros, {loss}, rank {rank}: {times[0] * 1e3:.1f} ms")
            faster = [f"{times[0] / other:.2f}" for other in times[1:]]
            table.append([f"{X.nnz:,}", loss, str(rank), f"{times[0] * 1e3:.2f}", *faster])
    return table


OPTIONS = {"ranks": [10, 32, 64], "threads": ([1, 2], "the first is 1")}
QUICK = {"ranks": [10]}


def main(options: Options) -> Any:
    sizes = ((1000, 500, 20),) if options.quick else SIZES
    table = rows(sizes, options.ranks, options.threads)
    header = ["nonzeros", "loss", "rank", "1 thread, ms"]
    header += [f"{number} threads, times faster" for number in options.threads[1:]]
    print(f"float64\n\n{markdown(header, table)}")
