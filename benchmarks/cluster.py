"""What does a fit on a Dask cluster cost, compared with one in memory?

- The time of an iteration on a LocalCluster of 2 processes with one thread each, beside that in
  memory with 2 threads, turn by turn: from memory and, with --disk, from files of blocks.
- With --large FOLDER: a matrix of 5,000,000 x 100,000 with 250 million nonzeros in 20 files, which
  two workers of 4 GB each fit, and their peak of memory.

It needs ``python -m pip install 'ssnmf-fast[dask]'``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import load_average
from records import Options, markdown, say
from scale import peak_memory, skewed

import ssnmf_fast as sf

LOSSES = ("kullback-leibler", "frobenius")


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
