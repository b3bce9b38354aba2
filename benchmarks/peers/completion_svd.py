"""The randomized SVD beside SciPy and scikit-learn, for completion.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import Array, dense, markdown, say, seconds
from scale import skewed

import ssnmf_fast as sf

RANK = 20


def matrices(quick: bool) -> dict[str, Any]:
    """Return a dense matrix of rank 20 with noise, and a sparse one like text."""
    if quick:
        return {"dense": dense()[:300, :200], "sparse": skewed(2000, 500, 20, np.float64)}
    return {"dense": dense(), "sparse": skewed(100_000, 20_000, 100, np.float64)}


def solvers(X: Any, threads: int) -> dict[str, Callable[[], Array]]:
    """Return functions that give the singular values, by title."""
    from scipy.sparse.linalg import svds
    from sklearn.utils.extmath import randomized_svd

    fixed = {"random_state": 0}
    ours = partial(sf.linalg.randomized_svd, X, RANK, n_threads=threads, **fixed)
    theirs = partial(randomized_svd, X, RANK, **fixed)
    return {
        "ours, 4 power steps (default)": lambda: ours(n_power=4)[1],
        "ours, 7 power steps": lambda: ours(n_power=7)[1],
        "scikit-learn, 4 power steps": lambda: theirs(n_iter=4)[1],
        "scikit-learn, default (7)": lambda: theirs(n_iter="auto")[1],
        "scipy svds (ARPACK)": lambda: np.sort(svds(X, RANK, **fixed)[1])[::-1],
    }


def truth(X: Any) -> Array:
    """Return the singular values: LAPACK's of a dense matrix, ARPACK's with tolerance 0 else."""
    from scipy.sparse.linalg import svds

    if isinstance(X, np.ndarray):
        return np.asarray(np.linalg.svd(X, compute_uv=False)[:RANK])
    return np.sort(svds(X, RANK, tol=0, random_state=1)[1])[::-1]


def measure(quick: bool, threads: int, rounds: int) -> list[dict[str, Any]]:
    """Return a record for every matrix and solver; the least seconds of some rounds."""
    records = []
    for name, X in matrices(quick).items():
        exact = truth(X)
        say(f"singular values of {name} {X.shape}: {exact[0]:.4g} ... {exact[-1]:.4g}")
        for title, solve in solvers(X, threads).items():
            found: list[Array] = []
            took = min(seconds(lambda s=solve, f=found: f.append(s())) for _ in range(rounds))
            error = float(np.max(np.abs(found[-1] - exact) / exact))
            records.append({"matrix": name, "shape": X.shape, "solver": title})
            records[-1] |= {"seconds": took, "error": error}
            say(f"  {title}: {took:.3f} s, {error:.1e}")
    return records


def table(records: list[dict[str, Any]]) -> str:
    """Return the table, with ratios to our default."""
    rows = []
    for r in records:
        first = next(s for s in records if s["matrix"] == r["matrix"])
        rows.append(
            [
                f"{r['matrix']}, {r['shape'][0]} x {r['shape'][1]}",
                r["solver"],
                f"{r['seconds']:.3f}",
                f"{r['seconds'] / first['seconds']:.1f}",
                f"{r['error']:.1e}",
            ]
        )
    header = ["matrix", f"solver, {RANK} triplets", "seconds", "times ours"]
    return markdown([*header, "largest relative error of singular values"], rows)
