"""How long does an iteration take on a large sparse matrix, and how much memory does the fit need?

Rows have distinct columns, the first of them far more often, as words in a text.  Peak memory is
that of the process: the input, its transposed copy, the factors, and what Python itself needs.
With --disk the input is in files of that directory, and is never in memory as a whole.
"""

from __future__ import annotations

import multiprocessing
import resource
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import seconds
from records import Options, markdown, say

import ssnmf_fast as sf


def skewed(n: int, m: int, per_row: int, dtype: Any, seed: int = 0) -> Any:
    """Return a csr matrix: one column out of each of `per_row` ranges that widen."""
    rng = np.random.default_rng(seed)
    edges = np.floor(m * np.linspace(0, 1, per_row + 1) ** 3).astype(np.int64)
    edges = np.maximum.accumulate(np.maximum(edges, np.arange(per_row + 1)))
    indices = np.empty(n * per_row, dtype=np.int32)
    data = np.empty(n * per_row, dtype=dtype)
    for begin in range(0, n, 10_000):
        rows = min(10_000, n - begin)
        part = slice(begin * per_row, (begin + rows) * per_row)
        drawn = rng.random((rows, per_row), dtype=np.float32)
        columns = edges[:-1] + (drawn * (edges[1:] - edges[:-1])).astype(np.int64)
        indices[part] = np.minimum(columns, edges[1:] - 1).ravel()
        data[part] = rng.random(rows * per_row, dtype=np.float32) + 0.1
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    return sp.csr_matrix((data, indices, indptr), shape=(n, m), copy=False)


def input_matrix(options: Options) -> Any:
    return skewed(options.rows, options.columns, options.per_row, np.dtype(options.dtype))


def store(options: Options) -> None:
    options.disk.mkdir(parents=True, exist_ok=True)
    X = input_matrix(options)
    for name in ("indptr", "indices", "data"):
        np.save(options.disk / f"{name}.npy", getattr(X, name))


def opened(options: Options) -> sf.io.CsrFile:
    """Write the matrix in a process of its own, whose memory is not ours, and open it."""
    writer = multiprocessing.get_context("spawn").Process(target=store, args=(options,))
    writer.start()
    writer.join()
    memory = options.memory << 20
    return sf.io.open_csr(options.disk, n_features=options.columns, memory=memory)


def plain_fit(X: Any, rank: int, loss: str, threads: int, max_iter: int) -> None:
    given = {"n_components": rank, "loss": loss, "init": "random", "random_state": 0, "tol": 0}
    sf.factorize(X, max_iter=max_iter, n_threads=threads, **given)


def peak_memory() -> float:
    """Return the largest memory of the process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


OPTIONS = {
    "rows": 1_000_000,
    "columns": 100_000,
    "per_row": 100,
    "rank": 32,
    "dtype": ("float64", "", ["float32", "float64"]),
    "loss": "kullback-leibler",
    "threads": 2,
    "iterations": 5,
    "disk": (Path, "directory for the input, some GB"),
    "memory": (256, "MB for rows of an input on disk"),
}
QUICK = {"rows": 2000, "columns": 500, "per_row": 20, "rank": 8, "threads": 1}


def main(options: Options) -> Any:
    X = opened(options) if options.disk else input_matrix(options)
    input_size = X.nnz * (X.dtype.itemsize + 4) / 1e9
    say(f"{X.shape}, {X.nnz} nonzeros, {input_size:.2f} GB; peak so far {peak_memory():.2f} GB")
    run = partial(plain_fit, X, options.rank, options.loss, options.threads)
    times = {k: seconds(lambda k=k: run(k)) for k in (0, options.iterations)}
    per_iteration = (times[options.iterations] - times[0]) / options.iterations
    row = [f"{options.rows} x {options.columns}", str(X.nnz), str(options.rank), options.dtype]
    row += [options.loss[0].upper(), str(options.threads), f"{per_iteration:.2f}"]
    row += [f"{times[0] / per_iteration:.1f}", f"{input_size:.2f}", f"{peak_memory():.2f}"]
    header = ["matrix", "nonzeros", "rank", "dtype", "loss", "threads", "s/iteration"]
    header += ["set-up, iterations", "input, GB", "peak, GB"]
    print(markdown(header, [row]))
