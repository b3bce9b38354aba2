"""How long does each solver take to come within 0.1 % of the best loss that anyone finds?

Same data, same start, plain NMF; scikit-learn's solvers run beside ours.  Every point is a fit of k
iterations from the start, timed whole, set-up included; the loss of the result is taken outside of
the clock.  Prints a table for docs/solvers.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import DATA_SETS, blas_threads, load_average, markdown, say, seconds, start

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
ITERATIONS = (5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640)
Point = tuple[int, float, float]


def our_runner(X: Any, init: Any, loss: str, solver: str, threads: int) -> Callable[[int], Any]:
    def run(k: int) -> tuple[Any, Any]:
        fit = sf.factorize(
            X,
            n_components=init[0].shape[1],
            init=init,
            reconstruction=loss,
            solver=solver,
            tol=0,
            max_iter=k,
            n_threads=threads,
        )
        return fit.S, fit.A

    return run


def sklearn_runner(X: Any, init: Any, loss: str, solver: str) -> Callable[[int], Any]:
    from sklearn.decomposition import NMF

    def run(k: int) -> tuple[Any, Any]:
        rank = init[0].shape[1]
        model = NMF(rank, solver=solver, beta_loss=loss, init="custom", tol=0, max_iter=k)
        S = model.fit_transform(X, W=init[0].copy(), H=init[1].copy())
        return S, model.components_

    return run


def trace(X: Any, loss: str, run: Callable[[int], Any], budget: float, repeats: int) -> list[Point]:
    """Fits of more and more iterations until one takes `budget` seconds."""
    points: list[Point] = []
    for k in ITERATIONS:
        results = []
        took = min(seconds(lambda k=k, out=results: out.append(run(k))) for _ in range(repeats))
        S, A = results[-1]
        points.append((k, took, sf.objective(X, S, A, reconstruction=loss)))
        if took > budget:
            break
    return points


def time_to(points: list[Point], goal: float) -> tuple[int, float] | None:
    """Iterations and seconds of the first point at or below the goal."""
    for k, took, value in points:
        if value <= goal:
            return k, took
    return None


def measure(name: str, rank: int, loss: str, options: argparse.Namespace) -> dict[str, Any]:
    X = DATA_SETS[name]()
    S, A, _ = start(X, 1, rank)
    runs = {
        solver: our_runner(X, (S, A), loss, solver, options.threads) for solver in options.solvers
    }
    if not options.no_peers:
        for solver in ("cd", "mu") if loss == F else ("mu",):
            runs[f"scikit-learn {solver}"] = sklearn_runner(X, (S, A), loss, solver)
    traces = {}
    for label, run in runs.items():
        run(1)
        traces[label] = trace(X, loss, run, options.budget, options.repeats)
        say(f"{name} r={rank} {loss}: {label} {traces[label][-1]}")
    return {"data": name, "rank": rank, "loss": loss, "traces": traces}


def rows_of(result: dict[str, Any], within: float) -> list[str]:
    traces = result["traces"]
    best = min(point[2] for points in traces.values() for point in points)
    cells = [result["data"], str(result["rank"]), result["loss"][0].upper()]
    for points in traces.values():
        found = time_to(points, best * (1 + within))
        closest = min(point[2] for point in points) / best - 1
        cells.append(
            f"never ({closest:.2%})" if found is None else f"{found[1] * 1e3:.0f} ms ({found[0]})"
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA_SETS), choices=list(DATA_SETS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[13, 50])
    parser.add_argument("--losses", nargs="+", default=[F], choices=[F, D])
    parser.add_argument("--solvers", nargs="+", default=["mm", "hals"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds for the longest fit")
    parser.add_argument("--within", type=float, default=1e-3, help="share above the best loss")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path, help="JSON file of every point")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"float64, {options.threads} threads, load {load_average()}\n")
    results = []
    with blas_threads(options.threads):
        for loss in options.losses:
            table = []
            for name in options.data:
                for rank in options.ranks:
                    results.append(measure(name, rank, loss, options))
                    table.append(rows_of(results[-1], options.within))
                    if options.out:
                        options.out.write_text(json.dumps(results))
            labels = list(results[-1]["traces"])
            print(markdown(["data", "rank", "loss", *labels], table), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
