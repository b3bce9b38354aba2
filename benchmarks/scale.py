"""How long does an iteration take on a large sparse matrix, and how much memory does the fit need?

Rows have distinct columns, the first of them far more often, as words in a text.  Peak memory is
that of the process: the input, its transposed copy, the factors, and what Python itself needs.
With --disk the input is in files of that directory, and is never in memory as a whole.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import load_average, markdown, say, seconds

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


def input_matrix(options: argparse.Namespace) -> Any:
    return skewed(options.rows, options.columns, options.per_row, np.dtype(options.dtype))


def store(options: argparse.Namespace) -> None:
    """Write the matrix to files."""
    options.disk.mkdir(parents=True, exist_ok=True)
    X = input_matrix(options)
    for name in ("indptr", "indices", "data"):
        np.save(options.disk / f"{name}.npy", getattr(X, name))


def opened(options: argparse.Namespace) -> sf.io.CsrFile:
    """Write the matrix in a process of its own, whose memory is not ours, and open it."""
    writer = multiprocessing.get_context("spawn").Process(target=store, args=(options,))
    writer.start()
    writer.join()
    memory = options.memory << 20
    return sf.io.open_csr(options.disk, n_features=options.columns, memory=memory)


def plain_fit(X: Any, rank: int, loss: str, threads: int, max_iter: int) -> None:
    """Fit plain NMF from a random start, without a stopping rule."""
    sf.factorize(
        X,
        n_components=rank,
        loss=loss,
        init="random",
        random_state=0,
        max_iter=max_iter,
        tol=0,
        n_threads=threads,
    )


def peak_memory() -> float:
    """Return the largest memory of the process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--per-row", type=int, default=100)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    parser.add_argument("--loss", default="kullback-leibler")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--disk", type=Path, help="directory for the input, some GB")
    parser.add_argument("--memory", type=int, default=256, help="MB for rows of an input on disk")
    options = parser.parse_args()
    X = opened(options) if options.disk else input_matrix(options)
    input_size = X.nnz * (X.dtype.itemsize + 4) / 1e9
    say(f"{X.shape}, {X.nnz} nonzeros, {input_size:.2f} GB; peak so far {peak_memory():.2f} GB")
    run = partial(plain_fit, X, options.rank, options.loss, options.threads)
    times = {k: seconds(lambda k=k: run(k)) for k in (0, options.iterations)}
    per_iteration = (times[options.iterations] - times[0]) / options.iterations
    row = [
        f"{options.rows} x {options.columns}",
        str(X.nnz),
        str(options.rank),
        options.dtype,
        options.loss[0].upper(),
        str(options.threads),
        f"{per_iteration:.2f}",
        f"{times[0] / per_iteration:.1f}",
        f"{input_size:.2f}",
        f"{peak_memory():.2f}",
        load_average(),
    ]
    header = ["matrix", "nonzeros", "rank", "dtype", "loss", "threads", "s/iteration"]
    header += ["set-up, iterations", "input, GB", "peak, GB", "load"]
    print(markdown(header, [row]))


if __name__ == "__main__":
    main()
