"""Large completions for completion.py; each runs in a fresh process, for the sake of its peak.

The one argument is the job as a JSON object (see `fresh` there), and so is what it prints.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, Clock, blas_threads

import ssnmf_fast as sf
from ssnmf_fast.completion import StructuredSIRLS

GOAL = 1e-4
CHECKED = 200_000  # unobserved places
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
Problem = tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]


def places(n: int, count: int, rng: np.random.Generator) -> Array:
    """Return so many distinct places of an n x n matrix, in order."""
    found = np.unique(rng.integers(n * n, size=int(1.001 * count) + 1000))
    while len(found) < count:
        found = np.unique(np.concatenate([found, rng.integers(n * n, size=count)]))
    return np.sort(rng.permutation(found)[:count])


def values(left: Array, right: Array, rows: Array, columns: Array) -> Array:
    """Entries of left right^T, piece by piece."""
    out = np.empty(len(rows))
    for begin in range(0, len(rows), 1_000_000):
        part = slice(begin, begin + 1_000_000)
        out[part] = np.einsum("er,er->e", left[rows[part]], right[columns[part]])
    return out


def problem(n: int, rank: int, observed: int, seed: int = 0) -> Problem:
    """Return triplets of a product of Gaussian factors: observed ones, and some to check."""
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((n, rank)), rng.standard_normal((n, rank))
    seen = places(n, observed, rng)
    checked = np.setdiff1d(places(n, CHECKED, rng), seen, assume_unique=True)
    first, second = (np.divmod(part, n) for part in (seen, checked))
    return (*first, values(left, right, *first)), (*second, values(left, right, *second))


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Fit as the job tells, and return seconds, memory and the error at unobserved places.

    With "iterations" fits of few and of more are timed: the difference is that of the iterations.
    Else fits get smaller and smaller tolerances until the error is below the goal; one that has
    used up its iterations ends it too, since the next would do the same.
    """
    seen, (rows, columns, truth) = problem(job["n"], job["rank"], job["observed"])
    settings = {"n_components": job["rank"], "n_threads": job["threads"], **job["settings"]}
    if settings["method"].endswith("c = 0"):
        settings["method"] = StructuredSIRLS(sparsity=0.0)
    tries: list[dict[str, Any]] = [{"tol": tol} for tol in TOLERANCES]
    if job["iterations"]:
        tries = [{"tol": 0.0, "max_iter": k} for k in job["iterations"]]
    results: list[dict[str, Any]] = []
    for more in tries:
        with Clock() as clock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape = job["n"], job["n"]
            fit = sf.complete(seen, shape=shape, random_state=0, **settings, **more)
        gap = np.linalg.norm(fit.predict(rows, columns) - truth) / np.linalg.norm(truth)
        results.append({**more, "error": float(gap), "iterations": fit.n_iter})
        results[-1] |= {"seconds": clock.seconds, "before": clock.before, "peak": clock.peak}
        if not job["iterations"] and (gap <= GOAL or not fit.converged):
            break
    if not job["iterations"]:
        return results[-1] | {"reached": results[-1]["error"] <= GOAL}
    few, many = results
    took = many["seconds"] - few["seconds"]
    return many | {"per_iteration": took / (many["max_iter"] - few["max_iter"])}


def main() -> None:
    job = json.loads(sys.argv[1])
    with blas_threads(job["threads"]):
        print(json.dumps(run(job)))


if __name__ == "__main__":
    main()
