"""What does a fit on a Dask cluster cost, compared with one in memory?  And when would it pay?

- The time of an iteration on a LocalCluster of 2 processes with one thread each, beside that in
  memory with 2 threads, turn by turn: from memory and, with --disk, from files of blocks.
- The constants of a model of that time: what a nonzero costs one thread, what a task costs the
  scheduler, how fast factors travel.  The model is checked against the figures above, and says what
  2 to 1000 workers would do.
- With --large FOLDER: a matrix of 5,000,000 x 100,000 with 250 million nonzeros in 20 files, which
  two workers of 4 GB each fit, and their peak of memory.

It needs ``python -m pip install 'ssnmf-fast[dask]'``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import load_average, panels
from records import Options, markdown, say
from scale import peak_memory, skewed

import ssnmf_fast as sf

LOSSES = ("kullback-leibler", "frobenius")
NETWORK = 1.25e9  # bytes per second, of the simulated cluster: 10 Gb/s
WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ROWS = (10**6, 10**7, 10**8, 10**9)
SIMULATED_COLUMNS, SIMULATED_PER_ROW = 100_000, 100


@contextmanager
def two_workers(**options: Any) -> Iterator[Any]:
    """Return a client of a cluster of two processes with one thread each."""
    from distributed import Client, LocalCluster

    options |= {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, direct_to_workers=True) as client:
        yield client


def blocks(X: Any, number: int) -> list[Any]:
    step = -(-X.shape[0] // number)
    return [X[begin : begin + step] for begin in range(0, X.shape[0], step)]


def files(X: Any, number: int, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"block{i}.npz" for i in range(number)]
    for path, block in zip(paths, blocks(X, number), strict=True):
        if not path.exists():
            sp.save_npz(path, block, compressed=False)
    return paths


def watched(fit: Any, X: Any, max_iter: int, **further: Any) -> tuple[Any, list[float]]:
    """Return a fit, and when its objective was evaluated: every ten iterations."""
    times: list[float] = []
    given = {"init": "random", "random_state": 0, "max_iter": max_iter, "tol": 0, **further}
    return fit(X, callback=lambda state: times.append(time.perf_counter()), **given), times


def per_iteration(fit: Any, X: Any, checks: int, **further: Any) -> float:
    """Return the seconds of an iteration: the least of several spans of ten."""
    return min(np.diff(watched(fit, X, 10 * checks, **further)[1])) / 10


def beside_memory(options: Options) -> list[list[str]]:
    """Return rows of a table, of alternating runs."""
    import ssnmf_fast.dask as sfd

    X = skewed(options.rows, options.columns, options.per_row, np.dtype(np.float64))
    rows = []
    with two_workers() as client:
        held = client.scatter(blocks(X, options.blocks), hash=False)
        cases: dict[str, tuple[Any, Any]] = {"in memory": (held, X)}
        if options.disk:
            paths = files(X, options.blocks, options.disk / "blocks")
            whole = files(X, 1, options.disk / "whole")
            cases["from files"] = (paths, sf.io.open_csr(whole[0]))
        for loss in LOSSES:
            further = {"n_components": options.rank, "loss": loss}
            for name, (cut, one) in cases.items():
                ours = alone = np.inf
                for _ in range(options.rounds):
                    found = per_iteration(sfd.factorize, cut, options.checks, **further)
                    ours = min(ours, found)
                    found = per_iteration(sf.factorize, one, options.checks, n_threads=2, **further)
                    alone = min(alone, found)
                cells = [f"{alone * 1e3:.0f}", f"{ours * 1e3:.0f}", f"{ours / alone:.2f}"]
                rows.append([loss, name, *cells, load_average()])
                say(" | ".join(rows[-1]))
    return rows


@dataclass(frozen=True)
class Costs:
    """Constants of the model, in seconds, for a rank."""

    nonzero: float  # of a nonzero in an iteration, one thread
    row: float  # of a row in an iteration, without its nonzeros
    task: float  # of a task of the scheduler, and of the caller who waits for it
    iteration: float  # of one that has next to nothing to do
    byte: float  # of a byte of a factor, to the workers or back

    def seconds(
        self, rows: float, per_row: float, columns: int, rank: int, workers: int, per_worker: int
    ) -> float:
        """Return the time of an iteration.

        Rows are worked on at the same time.  A block is two tasks, its own and a sum.  Factors go
        from worker to worker, and sums come back, in about log2(workers) hops each.
        """
        work = rows * (per_row * self.nonzero + self.row) / workers
        tasks = 2 * workers * per_worker * self.task
        hops = 2 * max(1.0, float(np.log2(workers)))
        return work + self.iteration + tasks + hops * 8.0 * columns * rank * self.byte


def constants(options: Options) -> Costs:
    """Measure the constants of the model for the Kullback-Leibler loss."""
    import ssnmf_fast.dask as sfd

    further = {"n_components": options.rank, "loss": LOSSES[0]}
    single = {**further, "n_threads": 1}

    def alone(n: int, per_row: int) -> float:
        X = skewed(n, options.columns, per_row, np.dtype(np.float64))
        return per_iteration(sf.factorize, X, options.checks, **single)

    n = options.rows // 2
    few, many = alone(n, options.per_row // 4), alone(n, options.per_row)
    nonzero = (many - few) / (n * (options.per_row - options.per_row // 4))
    row = max(0.0, few / n - nonzero * (options.per_row // 4))
    with two_workers() as client:

        def small(columns: int, number: int) -> float:
            X = skewed(4000, columns, 5, np.dtype(np.float64))
            held = client.scatter(blocks(X, number), hash=False)
            return per_iteration(sfd.factorize, held, options.checks, **further)

        two, forty, wide = small(500, 2), small(500, 40), small(options.columns, 2)
    task = (forty - two) / (2 * 38)
    moved = 2 * 8.0 * (options.columns - 500) * options.rank
    return Costs(nonzero, row, task, two - 4 * task, max(wide - two, 0.0) / moved)


def simulated(costs: Costs, rank: int, picture: Path | None) -> list[list[str]]:
    """Return a table of the seconds of an iteration for numbers of rows and workers."""
    network = Costs(costs.nonzero, costs.row, costs.task, costs.iteration, 1 / NETWORK)

    def seconds(rows: int, workers: int) -> float:
        if workers == 1:
            return rows * (SIMULATED_PER_ROW * costs.nonzero + costs.row)
        return network.seconds(rows, SIMULATED_PER_ROW, SIMULATED_COLUMNS, rank, workers, 1)

    table = [[f"{rows:,}", *(f"{seconds(rows, w):.3g}" for w in WORKERS)] for rows in ROWS]
    if picture is not None:
        draw({rows: [seconds(rows, w) for w in WORKERS] for rows in ROWS}, picture)
    return table


def draw(curves: dict[int, list[float]], path: Path) -> None:
    figure, ((axes,),) = panels(6.4, 4.2)
    for rows, seconds in curves.items():
        axes.loglog(WORKERS, seconds, marker="o", markersize=3, label=f"{rows:,} rows")
    axes.set(xlabel="workers with one thread each", ylabel="seconds of an iteration")
    axes.set_xticks(WORKERS, [str(w) for w in WORKERS])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.set_title("Simulated: 100,000 columns, 100 nonzeros a row, rank 32, 10 Gb/s", fontsize=10)
    figure.savefig(path, dpi=110)


def write_block(path: str, seed: int, rows: int, columns: int, per_row: int) -> None:
    X = skewed(rows, columns, per_row, np.dtype(np.float32), seed)
    sp.save_npz(path, X, compressed=False)


def large(options: Options) -> None:
    import ssnmf_fast.dask as sfd

    rows, columns, per_row = size = 250_000, 100_000, 50
    number = 20
    options.large.mkdir(parents=True, exist_ok=True)
    paths = [options.large / f"block{i}.npz" for i in range(number)]
    with two_workers(memory_limit="4GB") as client:
        missing = [(i, path) for i, path in enumerate(paths) if not path.exists()]
        client.gather([client.submit(write_block, str(path), i, *size) for i, path in missing])
        client.restart()  # for the peak of the fit alone
        for loss in LOSSES:
            begin, iterations = time.perf_counter(), options.large_iterations
            further = {"n_components": options.rank, "loss": loss}
            fit, times = watched(sfd.factorize, paths, iterations, **further)
            seconds = (times[-1] - times[0]) / iterations
            peaks = client.run(peak_memory).values()
            say(
                f"{number * rows:,} x {columns:,}, {number * rows * per_row:,} nonzeros, {loss}: "
                f"{seconds:.1f} s an iteration, {times[0] - begin:.0f} s before, peaks of the "
                f"workers {', '.join(f'{p:.2f}' for p in peaks)} GB, "
                f"of the caller {peak_memory():.2f} GB; objective {fit.objective[0][1]:.4g} -> "
                f"{fit.objective[-1][1]:.4g}; {load_average()}"
            )


OPTIONS = {
    "rows": 100_000,
    "columns": 20_000,
    "per_row": 100,
    "rank": 32,
    "blocks": 2,
    "checks": (3, "spans of ten iterations in a run"),
    "rounds": 3,
    "disk": (Path, "folder for files of blocks"),
    "picture": (Path, "file of the simulated curves"),
    "large": (Path, "folder for the files of 3 GB"),
    "large_iterations": 10,
}
QUICK = {"rows": 2000, "columns": 1000, "per_row": 20, "rounds": 1, "checks": 1}


def main(options: Options) -> None:
    if options.large:
        large(options)
        return
    rows = beside_memory(options)
    header = ["loss", "data", "memory, 2 threads, ms", "cluster 2 x 1, ms", "times", "load"]
    print(markdown(header, rows))
    costs = constants(options)
    print(f"\n{costs}\n")
    expected = costs.seconds(
        options.rows, options.per_row, options.columns, options.rank, 2, options.blocks // 2
    )
    print(f"the model for the first row above: {expected * 1e3:.0f} ms\n")
    header = ["rows", *(f"{w} workers" for w in WORKERS)]
    print(markdown(header, simulated(costs, options.rank, options.picture)))
