"""Large completions for completion.py; each runs in a fresh process, for the sake of its peak.

The one argument is the job as a JSON object (see `fresh` there), and so is what it prints.  Jobs:
"reach" (seconds until unobserved entries are within a relative error of the truth) and "iterations"
(seconds of an iteration).
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


def complete(job: dict[str, Any], triplets: tuple[Array, Array, Array], **more: Any) -> Any:
    settings = dict(job["settings"])
    if settings["method"].endswith("c = 0"):
        settings["method"] = StructuredSIRLS(sparsity=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sf.complete(
            triplets,
            shape=(job["n"], job["n"]),
            rank=job["rank"],
            random_state=0,
            n_threads=job["threads"],
            **settings,
            **more,
        )


def error_at(fit: Any, checked: tuple[Array, Array, Array]) -> float:
    rows, columns, truth = checked
    return float(np.linalg.norm(fit.predict(rows, columns) - truth) / np.linalg.norm(truth))


def reach(job: dict[str, Any]) -> dict[str, Any]:
    """Fit with smaller and smaller tolerances until the error is below the goal.

    A fit that has used up its iterations ends it too: the next one would do the same.
    """
    seen, checked = problem(job["n"], job["rank"], job["observed"])
    result: dict[str, Any] = {}
    for tol in TOLERANCES:
        with Clock() as clock:
            fit = complete(job, seen, tol=tol)
        error = error_at(fit, checked)
        result = {"tol": tol, "error": error, "iterations": fit.n_iter, "seconds": clock.seconds}
        result |= {"before": clock.before, "peak": clock.peak}
        result["reached"] = error <= GOAL
        if result["reached"] or not fit.converged:
            break
    return result


def iterations(job: dict[str, Any]) -> dict[str, Any]:
    """Time fits of few and of more iterations; the difference is that of the iterations."""
    seen, checked = problem(job["n"], job["rank"], job["observed"])
    few, more = job["iterations"]
    took = {}
    for k in (few, more):
        with Clock() as clock:
            fit = complete(job, seen, tol=0.0, max_iter=k)
        took[k] = clock.seconds
    return {
        "seconds": took[more],
        "per_iteration": (took[more] - took[few]) / (more - few),
        "iterations": more,
        "error": error_at(fit, checked),
        "before": clock.before,
        "peak": clock.peak,
    }


def main() -> None:
    job = json.loads(sys.argv[1])
    with blas_threads(job["threads"]):
        print(json.dumps({"reach": reach, "iterations": iterations}[job["job"]](job)))


if __name__ == "__main__":
    main()
