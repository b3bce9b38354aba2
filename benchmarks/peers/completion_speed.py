"""How fast is completion, beside dense NumPy and SoftImpute, and how large may a matrix be?

    python benchmarks/peers/completion_speed.py --out results

a  1000 x 1000, rank 10, 30 % observed: our methods, the dense NumPy reference with the same
   schedule and number of iterations (and exact SVDs), and SoftImpute with its default shrinkage,
   which bounds its error (fancyimpute's if it is installed: see imputers.py);
b  10,000 x 10,000, rank 10, 1 % observed: seconds until unobserved entries are within 1e-4, peak of
   memory in a fresh process, an iteration of Structured sIRLS with its pass over all entries, and
   that pass alone beside the floating-point peak, for which NumPy's matrix product stands;
c  only with --huge: 100,000 x 100,000, rank 10, 10 million observed: an iteration, peak of memory;
d  the randomized SVD beside SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "completion"))
import completion_svd
import dense_completion
from common import Array, best, blas_threads, load_average, markdown, new_parser, say, seconds
from imputers import soft_impute, source

import ssnmf_fast as sf
from ssnmf_fast._backend import dispatch
from ssnmf_fast.completion import _irls, _problem, _read

RANK = 10
SIRLS_ITER = 10_000  # gradient steps are slow where 1 % is observed
PADDED = 16  # columns of the factors in memory, and of the sketch
WITHOUT_PULL = "structured-sirls, c = 0"  # see completion_large.py
Record = dict[str, Any]


# --- a: beside NumPy and SoftImpute ---


def holes(n: int) -> tuple[Array, Array]:
    """Return a product of Gaussian factors, and it with 70 % NaN."""
    rng = np.random.default_rng(0)
    M = rng.standard_normal((n, RANK)) @ rng.standard_normal((RANK, n))
    return M, np.where(rng.random((n, n)) < 0.3, M, np.nan)


def error(found: Array, M: Array, X: Array) -> float:
    """Relative error at the missing entries."""
    missing = np.isnan(X)
    return float(np.linalg.norm((found - M)[missing]) / np.linalg.norm(M[missing]))


def schedule(name: str, observations: _problem.Observations) -> _irls.Schedule:
    """Return what the library iterates with by default."""
    if name == "sirls":
        return _irls.sirls(observations, RANK)
    floor = (1e-3 * observations.root_mean_square) ** 2
    return _irls.structured(sparsity=1e-6, eps_floor=floor)


def reference(name: str, M: Array, X: Array, count: int) -> Record:
    """Run the dense NumPy iterates; its error shows that both do the same."""
    observations = _problem.Observations.of(_read.read_observed(X, None, None, 1), 0.0, 1)
    observed = ~np.isnan(X)
    scaled = np.where(observed, X, 0.0) / observations.scale
    begin = perf_counter()
    steps = dense_completion.iterates(scaled, observed, schedule(name, observations), RANK)
    last = next(islice(steps, count - 1, None))
    took = perf_counter() - begin
    gap = error(last * observations.scale, M, X)
    return {"solver": f"NumPy, dense, {name}", "seconds": took, "error": gap, "iterations": count}


def beside_peers(quick: bool, threads: int) -> list[Record]:
    """Return a record for every solver."""
    M, X = holes(200 if quick else 1000)
    records: list[Record] = []
    for method in ("auto", "sirls", "irls", "structured-sirls"):
        fits: list[Any] = []

        def fit(method: str = method, fits: list[Any] = fits) -> None:
            fits.append(
                sf.complete(X, n_components=RANK, method=method, random_state=0, n_threads=threads)
            )

        took = min(seconds(fit) for _ in range(2))
        own = {"solver": f"ours, {method}", "seconds": took, "iterations": fits[-1].n_iter}
        records.append(own | {"error": error(fits[-1].to_dense(), M, X)})
        say(f"  {records[-1]}")
        if method in ("sirls", "structured-sirls"):
            records.append(reference(method, M, X, fits[-1].n_iter))
            records[-1]["times"] = records[-1]["seconds"] / took
            say(f"  {records[-1]}")
    for title, rank in (("full SVD", None), ("SVD of rank 20", 20)):
        begin = perf_counter()
        found = soft_impute(None, rank)(X)
        took = perf_counter() - begin
        records.append({"solver": f"SoftImpute ({source()}), {title}", "seconds": took})
        records[-1] |= {"error": error(found, M, X), "times": took / records[0]["seconds"]}
    return records


def table_a(records: list[Record]) -> str:
    rows = [
        [
            r["solver"],
            f"{r['seconds']:.2f}",
            str(r.get("iterations", "")),
            f"{r['error']:.1e}",
            f"{r['times']:.1f}" if "times" in r else "",
        ]
        for r in records
    ]
    header = ["solver", "seconds", "iterations", "error at missing entries"]
    return markdown([*header, "times ours (NumPy: same method; SoftImpute: auto)"], rows)


# --- b and c: large matrices ---


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


def large(jobs: Any, n: int, observed: int, threads: int) -> list[Record]:
    """Run jobs of completion_large.py, each in a fresh process."""
    records = []
    size = {"n": n, "observed": observed}
    script = str(Path(__file__).with_name("completion_large.py"))
    for title, iterations, settings in jobs:
        job = {**size, "rank": RANK, "threads": threads, "iterations": iterations}
        command = [sys.executable, script, json.dumps({**job, "settings": settings})]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        say(f"  {title}: {answer}")
        records.append({"job": title, **size, **answer})
    return records


def table_large(records: list[Record]) -> str:
    rows = [
        [
            r["job"] + ("" if r.get("reached", True) else " (not reached)"),
            f"{r['n']:,} x {r['n']:,}, {r['observed']:,}",
            f"{r['seconds']:.1f}",
            str(r["iterations"]),
            f"{r.get('per_iteration', r['seconds'] / r['iterations']):.3f}",
            f"{r['error']:.1e}",
            f"{r['before']:.0f}",
            f"{r['peak']:.0f}",
        ]
        for r in records
    ]
    header = ["method", "matrix, observed", "seconds", "iterations", "s/iteration"]
    return markdown([*header, "error, unobserved", "MB before", "MB at the peak"], rows)


def pass_alone(quick: bool, threads: int) -> list[Record]:
    """Time the pass over all entries, and a matrix product, in GFLOP/s."""
    n = 2000 if quick else 10_000
    rng = np.random.default_rng(0)
    F, G, H = (rng.standard_normal((n, PADDED)) for _ in range(3))
    out = np.zeros((n, PADDED))
    side = 1000 if quick else 4000
    A, B = rng.standard_normal((side, side)), rng.standard_normal((side, side))
    peak = 2 * side**3 / best(lambda: A @ B, budget=1.0) / 1e9
    records: list[Record] = [{"pass": "NumPy matrix product", "gflops": peak}]
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
        records.append({"pass": title, "gflops": flops, "seconds": took})
    return records


def table_pass(records: list[Record]) -> str:
    peak = records[0]["gflops"]
    rows = [
        [
            r["pass"],
            f"{r['seconds']:.3f}" if "seconds" in r else "",
            f"{r['gflops']:.1f}",
            f"{100 * r['gflops'] / peak:.0f} %",
        ]
        for r in records
    ]
    return markdown(["pass over all entries, 16 columns", "seconds", "GFLOP/s", "of peak"], rows)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=list("abd"), default=list("abd"))
    parser.add_argument("--huge", action="store_true", help="part c too: about 2 GB of memory")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="small matrices")
    parser.add_argument("--out", type=Path, help="folder for the numbers (JSON) and the tables")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    quick, threads = options.quick, options.threads
    text = f"float64, {threads} threads, load {load_average()}\n"
    results: dict[str, list[Record]] = {}

    def add(name: str, records: list[Record], table: str) -> None:
        nonlocal text
        results[name] = records
        text += f"\n## {name}\n\n{table}\n"
        if options.out:  # at once: later parts may run out of time or memory
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "completion.json").write_text(json.dumps(results, indent=1))
            (options.out / "completion.md").write_text(text)

    with blas_threads(threads):
        if "a" in options.parts:
            records = beside_peers(quick, threads)
            add("Beside dense NumPy and SoftImpute", records, table_a(records))
        if "b" in options.parts:
            size = (1000, 100_000) if quick else (10_000, 1_000_000)
            records = large(LARGE, *size, threads)
            add("Large, in fresh processes", records, table_large(records))
            records = pass_alone(quick, threads)
            add("Pass over all entries", records, table_pass(records))
        if options.huge:
            size = (3000, 300_000) if quick else (100_000, 10_000_000)
            records = large(HUGE, *size, threads)
            add("Huge, in fresh processes", records, table_large(records))
        if "d" in options.parts:
            records = completion_svd.measure(quick, threads, 1 if quick else 3)
            add("Randomized SVD", records, completion_svd.table(records))
    print(text)


if __name__ == "__main__":
    main()
