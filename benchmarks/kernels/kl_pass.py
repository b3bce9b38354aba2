"""How many nanoseconds per nonzero does the fused Kullback-Leibler pass take?

The yardstick is what the same loop reached on a quiet two-core AVX-512 machine; the peak of that
machine stands beside the speed of a matrix product now, since a shared machine changes its speed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import best, blas_threads, load_average, markdown, zipf_text

from ssnmf_fast._backend.dispatch import aligned_zeros, available_levels

RANKS = (13, 32, 64, 128)
DTYPES = ("float32", "float64")
# Nanoseconds per nonzero, one thread; two threads take half.
YARDSTICK = {
    ("v4", "float32"): (1.26, 1.70, 2.72, 4.65),
    ("v4", "float64"): (1.82, 2.84, 5.27, 13.0),
    ("v3", "float32"): (1.28, 2.06, 4.16, 11.3),
    ("v3", "float64"): (1.80, 4.09, 11.1, 25.9),
    ("base", "float32"): (2.15, 4.55, 10.8, 23.4),
    ("base", "float64"): (4.24, 10.5, 23.7, 46.2),
}
PEAK = {"float32": 286.8, "float64": 143.5}  # GFLOP/s of a core, AVX-512


def peak(dtype: str, n: int = 1536) -> float:
    """Return the GFLOP/s of a large matrix product on one thread: near the FMA peak."""
    a = np.ones((n, n), dtype=dtype)
    out = np.empty_like(a)
    with blas_threads(1):
        return 2 * n**3 / best(lambda: np.matmul(a, a, out=out)) / 1e9


def kl_pass(X: Any, level: str, rank: int, n_threads: int, budget: float = 0.3) -> float:
    """Return the nanoseconds per nonzero of one pass."""
    kernels: Any = importlib.import_module(f"ssnmf_fast._kernels_{level}")
    rng = np.random.default_rng(0)
    columns = kernels.padded_rank(rank, X.dtype.itemsize)
    F, G, out = (aligned_zeros((p, columns), X.dtype) for p in (*X.shape, X.shape[0]))
    F[:, :rank] = rng.random((X.shape[0], rank)) + 0.1
    G[:, :rank] = rng.random((X.shape[1], rank)) + 0.1
    arguments = (X.indptr, X.indices, X.data, F, G, out, 1.0, False, n_threads)
    return best(lambda: kernels.sparse_pass(-1, *arguments), budget) / X.nnz * 1e9


def table(X: Any, levels: list[str], threads: list[int], budget: float = 0.3) -> str:
    """Measure every case and return the table."""
    rows = []
    for level in levels:
        for dtype in DTYPES:
            Z = X.astype(dtype)
            for i, rank in enumerate(RANKS):
                for n_threads in threads:
                    ns = kl_pass(Z, level, rank, n_threads, budget)
                    aim = YARDSTICK[level, dtype][i] / n_threads
                    cells = (f"{ns:.2f}", f"{aim:.2f}", f"{ns / aim:.2f}")
                    rows.append([level, dtype, str(rank), str(n_threads), *cells])
    header = ["level", "dtype", "rank", "threads", "ns/nonzero", "yardstick", "ratio"]
    return markdown(header, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", nargs="+", default=["v4"], choices=["v4", "v3", "base"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], choices=[1, 2])
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each figure")
    parser.add_argument("--quick", action="store_true", help="a small matrix, the lowest level")
    options = parser.parse_args(arguments)
    levels = [level for level in options.levels if level in available_levels()]
    if options.quick:
        levels, options.budget = available_levels()[-1:], 0.0
    print(f"load {load_average()}")
    for dtype in DTYPES:
        flops = peak(dtype, 256 if options.quick else 1536)
        print(f"{dtype}: product {flops:.1f} GFLOP/s a thread; peak then {PEAK[dtype]}")
    X = zipf_text(2000, 1000, 40) if options.quick else zipf_text()
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / X.shape[0]:.1f} nonzeros a row\n")
    print(table(X, levels, options.threads, options.budget))


if __name__ == "__main__":
    main()
