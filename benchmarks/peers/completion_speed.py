"""How fast is completion, compared with dense NumPy and SoftImpute, and how large may a matrix be?

a  1000 x 1000, rank 10, 30 % observed: our methods, the dense NumPy reference with the same
   schedule and number of iterations (and exact SVDs), and SoftImpute with its default shrinkage,
   which bounds its error (fancyimpute's if it is installed: see imputers.py);
b  10,000 x 10,000, rank 10, 1 % observed: seconds until unobserved entries are within 1e-4, peak of
   memory in a fresh process, an iteration of Structured sIRLS with its pass over all entries, and
   that pass alone, as a share of the floating-point peak, for which NumPy's matrix product stands;
c  only with --huge: 100,000 x 100,000, rank 10, 10 million observed: an iteration, peak of memory;
d  the randomized SVD, and those of SciPy and scikit-learn.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from common import Array, Clock, best, blas_threads, dense, timed
from imputers import soft_impute, source
from records import Options, Question, Record, say, tabulate
from run import command
from scale import skewed
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd

import ssnmf_fast as sf
from ssnmf_fast._backend import dispatch
from ssnmf_fast.completion import StructuredSIRLS, _complete, _irls, _problem

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "completion"))
import dense_completion

OPTIONS = {
    "parts": (["a", "b", "d"], "", ["a", "b", "c", "d"]),
    "huge": (False, "part c too: about 2 GB of memory"),
    "threads": 2,
    "one": (json.loads, None),
}
QUICK: dict[str, Any] = {}
RANK = 10
SIRLS_ITER = 10_000  # gradient steps are slow where 1 % is observed
PADDED = 16  # columns of the factors in memory, and of the sketch
WITHOUT_PULL = "structured-sirls, c = 0"
GOAL = 1e-4
CHECKED = 200_000  # unobserved places
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
RANK_OF_SVD = 20


def holes(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    M = rng.standard_normal((n, RANK)) @ rng.standard_normal((RANK, n))
    return M, np.where(rng.random((n, n)) < 0.3, M, np.nan)


def error(found: Array, M: Array, X: Array) -> float:
    missing = np.isnan(X)
    return float(np.linalg.norm((found - M)[missing]) / np.linalg.norm(M[missing]))


def schedule(name: str, observations: _problem.Observations) -> _irls.Schedule:
    if name == "sirls":
        return _irls.sirls(observations, RANK)
    floor = (1e-3 * observations.root_mean_square) ** 2
    return _irls.structured(sparsity=1e-6, eps_floor=floor)


def reference(name: str, M: Array, X: Array, count: int) -> Record:
    """Run the dense NumPy iterates; its error shows that both do the same."""
    observations = _problem.Observations.of(_complete.read_observed(X, None, None, 1), 0.0, 1)
    observed = ~np.isnan(X)
    scaled = np.where(observed, X, 0.0) / observations.scale
    begin = perf_counter()
    steps = dense_completion.iterates(scaled, observed, schedule(name, observations), RANK)
    last = next(islice(steps, count - 1, None))
    took = perf_counter() - begin
    gap = error(last * observations.scale, M, X)
    return {"solver": f"NumPy, dense, {name}", "seconds": took, "error": gap, "iterations": count}


def beside_peers(quick: bool, threads: int) -> list[Record]:
    M, X = holes(200 if quick else 1000)
    records: list[Record] = []
    for method in ("auto", "sirls", "irls", "structured-sirls"):
        given: Any = {"n_components": RANK, "method": method, "n_threads": threads}
        runs = [timed(sf.complete, X, random_state=0, **given) for _ in range(2)]
        fit, took = runs[-1][0], min(each for _, each in runs)
        own = {"solver": f"ours, {method}", "seconds": took, "iterations": fit.n_iter}
        records.append(own | {"error": error(fit.to_dense(), M, X)})
        say(f"  {records[-1]}")
        if method in ("sirls", "structured-sirls"):
            records.append(reference(method, M, X, fit.n_iter))
            records[-1]["times"] = records[-1]["seconds"] / took
            say(f"  {records[-1]}")
    for title, rank in (("full SVD", None), ("SVD of rank 20", 20)):
        found, took = timed(soft_impute(None, rank), X)
        records.append({"solver": f"SoftImpute ({source()}), {title}", "seconds": took})
        records[-1] |= {"error": error(found, M, X), "times": took / records[0]["seconds"]}
    return records


TABLE_A = {
    "solver": "{solver}",
    "seconds": "{seconds:.2f}",
    "iterations": "{iterations}",
    "error at missing entries": "{error:.1e}",
    "times ours (NumPy: same method; SoftImpute: auto)": "{times:.1f}",
}


# Title, iterations of the short and the long fit (None: as many as it takes), and settings.
LARGE: list[tuple[str, tuple[int, int] | None, Record]] = [
    ("sirls, to 1e-4", None, {"method": "sirls", "max_iter": SIRLS_ITER}),
    ("auto, to 1e-4", None, {"method": "auto"}),
    ("structured-sirls, all entries", (1, 3), {"method": "structured-sirls", "nonnegative": True}),
    ("structured-sirls, c = 0", (1, 3), {"method": WITHOUT_PULL}),
]
HUGE: list[tuple[str, tuple[int, int] | None, Record]] = [
    ("sirls", (2, 7), {"method": "sirls"}),
    ("structured-sirls, c = 0", (1, 4), {"method": WITHOUT_PULL}),
    ("auto", (1, 3), {"method": "auto"}),
]


def distinct_places(n: int, count: int, rng: np.random.Generator) -> Array:
    """Return a number of distinct places of an n x n matrix, in order."""
    found = np.unique(rng.integers(n * n, size=int(1.001 * count) + 1000))
    while len(found) < count:
        found = np.unique(np.concatenate([found, rng.integers(n * n, size=count)]))
    return np.sort(rng.permutation(found)[:count])


def values_of(left: Array, right: Array, rows: Array, columns: Array) -> Array:
    """Entries of left right^T, piece by piece."""
    out = np.empty(len(rows))
    for begin in range(0, len(rows), 1_000_000):
        part = slice(begin, begin + 1_000_000)
        out[part] = np.einsum("er,er->e", left[rows[part]], right[columns[part]])
    return out


def problem(n: int, rank: int, observed: int, seed: int = 0) -> Any:
    """Return triplets of a product of Gaussian factors: observed ones, and some to check."""
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((n, rank)), rng.standard_normal((n, rank))
    seen = distinct_places(n, observed, rng)
    checked = np.setdiff1d(distinct_places(n, CHECKED, rng), seen, assume_unique=True)
    first, second = (np.divmod(part, n) for part in (seen, checked))
    return (*first, values_of(left, right, *first)), (*second, values_of(left, right, *second))


def fit_large(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job, and return seconds, memory and the error at unobserved places.

    With "iterations" fits of few and of more are timed: the difference is that of the iterations.
    Else fits get smaller and smaller tolerances until the error is below the goal; one that has
    used up its iterations ends it too, since the next would do the same.
    """
    seen, (rows, columns, truth) = problem(job["n"], job["rank"], job["observed"])
    settings = {"n_components": job["rank"], "n_threads": job["threads"], **job["settings"]}
    if settings["method"] == WITHOUT_PULL:
        settings["method"] = StructuredSIRLS(sparsity=0.0)
    tries: list[dict[str, Any]] = [{"tol": tol} for tol in TOLERANCES]
    if job["iterations"]:
        tries = [{"tol": 0.0, "max_iter": k} for k in job["iterations"]]
    results: list[dict[str, Any]] = []
    for more in tries:
        with Clock() as clock:
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


def large(jobs: Any, n: int, observed: int, quick: bool, threads: int) -> list[Record]:
    records = []
    size = {"n": 1000, "observed": 100_000} if quick else {"n": n, "observed": observed}
    for title, iterations, settings in jobs:
        job = {**size, "rank": RANK, "threads": threads, "iterations": iterations}
        order = command("completion_speed", "--one", json.dumps({**job, "settings": settings}))
        answer = subprocess.run(order, check=True, stdout=subprocess.PIPE, text=True).stdout
        records.append({"job": title, **size, **json.loads(answer.splitlines()[-1])})
        say(f"  {records[-1]}")
    return records


TABLE_LARGE: dict[str, Any] = {
    "method": lambda r: r["job"] + ("" if r.get("reached", True) else " (not reached)"),
    "matrix, observed": "{n:,} x {n:,}, {observed:,}",
    "seconds": "{seconds:.1f}",
    "iterations": "{iterations}",
    "s/iteration": lambda r: f"{r.get('per_iteration', r['seconds'] / r['iterations']):.3f}",
    "error, unobserved": "{error:.1e}",
    "MB before": "{before:.0f}",
    "MB at the peak": "{peak:.0f}",
}


def pass_alone(quick: bool, threads: int) -> list[Record]:
    n = 2000 if quick else 10_000
    rng = np.random.default_rng(0)
    F, G, H = (rng.standard_normal((n, PADDED)) for _ in range(3))
    out = np.zeros((n, PADDED))
    side = 1000 if quick else 4000
    A, B = rng.standard_normal((side, side)), rng.standard_normal((side, side))
    peak = 2 * side**3 / best(lambda: A @ B, budget=1.0) / 1e9
    records: list[Record] = [{"pass": "NumPy matrix product", "gflops": peak, "of_peak": 1.0}]
    shrinks = {
        "identity": (0.0, 1.0, 1.0, True, -np.inf),
        "proximal, q = 1": (1e-6, 1e-6, 1.0, True, -np.inf),
        "proximal, q = 1, at least 0": (1e-6, 1e-6, 1.0, True, 0.0),
        "proximal, q = 0.5": (1e-6, 1e-6, 0.5, True, -np.inf),
    }
    for title, shrink in shrinks.items():
        took = best(
            lambda s=shrink: dispatch.kernels.mapped_product(F, G, H, *s, out, threads), budget=1.0
        )
        flops = 4 * n * n * PADDED / took / 1e9  # of both products; the map counts as nothing
        records.append({"pass": title, "gflops": flops, "seconds": took, "of_peak": flops / peak})
    return records


TABLE_PASS = {
    "pass over all entries, 16 columns": "{pass}",
    "seconds": "{seconds:.3f}",
    "GFLOP/s": "{gflops:.1f}",
    "of peak": "{of_peak:.0%}",
}


def solvers(X: Any, threads: int) -> dict[str, Callable[[], Array]]:
    fixed = {"random_state": 0}
    ours = partial(sf.linalg.randomized_svd, X, RANK_OF_SVD, n_threads=threads, **fixed)
    theirs = partial(randomized_svd, X, RANK_OF_SVD, **fixed)
    return {
        "ours, 4 power steps (default)": lambda: ours(n_power=4)[1],
        "ours, 7 power steps": lambda: ours(n_power=7)[1],
        "scikit-learn, 4 power steps": lambda: theirs(n_iter=4)[1],
        "scikit-learn, default (7)": lambda: theirs(n_iter="auto")[1],
        "scipy svds (ARPACK)": lambda: np.sort(svds(X, RANK_OF_SVD, **fixed)[1])[::-1],
    }


def truth(X: Any) -> Array:
    """Return the singular values: LAPACK's of a dense matrix, ARPACK's with tolerance 0 else."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.linalg.svd(X, compute_uv=False)[:RANK_OF_SVD])
    return np.sort(svds(X, RANK_OF_SVD, tol=0, random_state=1)[1])[::-1]


def singular_values(quick: bool, threads: int) -> list[Record]:
    """Return a record for every matrix and solver; the least seconds of some rounds."""
    # A dense matrix of rank 20 with noise, and a sparse one like text.
    matrices = {"dense": dense(), "sparse": skewed(100_000, 20_000, 100, np.float64)}
    if quick:
        matrices = {"dense": dense()[:300, :200], "sparse": skewed(2000, 500, 20, np.float64)}
    records: list[Record] = []
    for name, X in matrices.items():
        exact, first = truth(X), len(records)
        for title, solve in solvers(X, threads).items():
            runs = [timed(solve) for _ in range(1 if quick else 3)]
            took = min(each for _, each in runs)
            error = float(np.max(np.abs(runs[-1][0] - exact) / exact))
            record = {"matrix": f"{name}, {X.shape[0]} x {X.shape[1]}", "solver": title}
            records.append(record | {"seconds": took, "error": error})
            records[-1]["times"] = took / records[first]["seconds"]  # our default is the first
            say(f"  {records[-1]}")
    return records


TABLE_SVD = {
    "matrix": "{matrix}",
    f"solver, {RANK_OF_SVD} triplets": "{solver}",
    "seconds": "{seconds:.3f}",
    "times ours": "{times:.1f}",
    "largest relative error of singular values": "{error:.1e}",
}
# Part -> the tables: title, records by quick form and number of threads, and columns.
PARTS: dict[str, list[tuple[str, Callable[[bool, int], list[Record]], dict[str, Any]]]] = {
    "a": [("Dense NumPy and SoftImpute", beside_peers, TABLE_A)],
    "b": [
        ("Large, in fresh processes", partial(large, LARGE, 10_000, 1_000_000), TABLE_LARGE),
        ("Pass over all entries", pass_alone, TABLE_PASS),
    ],
    "c": [("Huge, in fresh processes", partial(large, HUGE, 100_000, 10_000_000), TABLE_LARGE)],
    "d": [("Randomized SVD", singular_values, TABLE_SVD)],
}


def cases(options: Options) -> list[tuple[str]]:
    if options.one:
        return [("one",)]
    return [(part,) for part in [*options.parts, *["c"] * options.huge]]


def measure(options: Options, part: str) -> Record:
    if part == "one":
        with blas_threads(options.one["threads"]):
            return fit_large(options.one)
    with blas_threads(options.threads):
        tables = PARTS[part]
        return {"tables": [make(options.quick, options.threads) for _, make, _ in tables]}


def report(records: list[Record], options: Options) -> str:
    if options.one:
        return json.dumps(records[0])
    parts = [f"float64, {options.threads} threads"]
    for record in records:
        for (title, _, columns), own in zip(PARTS[record["part"]], record["tables"], strict=True):
            parts += [f"## {title}", tabulate(own, **columns)]
    return "\n\n".join(parts)


QUESTION = Question("part", cases, measure, report, threads=None)
