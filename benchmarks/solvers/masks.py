"""What does an iteration under listed weights cost, and which solver is done first?

The first table has the milliseconds of an iteration where 30 % of the entries are observed.  The
second has the seconds of whole fits, set-up included, until the loss is within 1 % and 0.1 % of the
lowest that anyone finds, with the number of iterations; all begin at the same start.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    Fits,
    first_within,
    iteration_seconds,
    load_average,
    lowest,
    markdown,
    newsgroups,
    our_runner,
    refine,
    say,
    start,
    trace,
)

import ssnmf_fast as sf

WITHIN = (1e-2, 1e-3)
LOSS = "frobenius"


def observed(n: int, m: int, dtype: Any = np.float64, share: float = 0.3) -> tuple[Any, Any]:
    """Return a matrix of rank 20 with noise, known in a share of its entries, and its weights."""
    rng = np.random.default_rng(0)
    S, A = rng.random((n, 20)), rng.random((20, m))
    pattern = sp.csr_matrix(rng.random((n, m), dtype=np.float32) < share)
    X = pattern.astype(dtype)
    for i in range(n):
        row = slice(X.indptr[i], X.indptr[i + 1])
        X.data[row] = S[i] @ A[:, X.indices[row]]
    X.data += rng.random(X.nnz).astype(dtype)
    return X, sf.weights.observed(pattern)


def text() -> tuple[Any, Any]:
    """Return 20 Newsgroups, of which every tenth entry is missing."""
    X = newsgroups()[0]
    rng = np.random.default_rng(0)
    missing = sp.csr_matrix(rng.random(X.shape, dtype=np.float32) < 0.1)
    return sp.csr_matrix(X - X.multiply(missing)), sf.weights.missing(missing)


def iterations(options: argparse.Namespace) -> str:
    """Return the table of the milliseconds of an iteration."""
    rows = []
    for dtype in options.dtypes:
        X, weights = observed(*options.shape, np.dtype(dtype))
        for rank in options.ranks:
            given = X, start(X, 1, rank)[:2], LOSS
            runs = {
                solver: Fits(our_runner(*given, solver, options.threads, weights), 1, 4)
                for solver in options.solvers
            }
            times = iteration_seconds(runs, options.repeats)
            cells = [dtype, str(rank), *(f"{took * 1e3:.0f}" for took in times.values())]
            say(" ".join(cells))
            rows.append(cells)
    return markdown(["dtype", "rank", *options.solvers], rows)


def convergence(options: argparse.Namespace) -> str:
    """Return the table of the seconds until the loss is near the lowest."""
    rows = []
    sets = {"30 % observed": lambda: observed(4000, 2000), "20 Newsgroups, 10 % missing": text}
    for name, make in sets.items():
        X, weights = make()
        for rank in options.convergence_ranks:
            init = start(X, 1, rank)[:2]
            runs = {
                s: our_runner(X, init, LOSS, s, options.threads, weights) for s in options.solvers
            }

            def loss_of(factors: Any, X: Any = X, weights: Any = weights) -> float:
                return float(sf.objective(X, *factors, X_weights=weights))

            traces = {s: trace(run, loss_of, options.budget) for s, run in runs.items()}
            best = lowest(traces)
            for solver, run in runs.items():
                cells = [name, str(rank), solver]
                for share in WITHIN:
                    goal = (1 + share) * best
                    found = first_within(refine(traces[solver], goal, run, loss_of), goal)
                    cells.append(f"{found.seconds:.2f} ({found.iterations})" if found else "never")
                cells.append(f"{min(p.loss for p in traces[solver]) / best - 1:.3%}")
                say(" ".join(cells))
                rows.append(cells)
    return markdown(["data", "rank", "solver", *(f"{w:.1%}" for w in WITHIN), "at the end"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["iterations", "convergence"])
    parser.add_argument("--shape", nargs=2, type=int, default=[9000, 5000])
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[32, 64])
    parser.add_argument("--convergence-ranks", nargs="+", type=int, default=[10, 40])
    parser.add_argument("--solvers", nargs="+", default=["auto", "mm", "hals"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for the longest fit")
    options = parser.parse_args()
    print(f"{options.threads} threads, load {load_average()}\n")
    for table in options.tables:
        print(globals()[table](options), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
