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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    DATA_SETS,
    blas_threads,
    first_within,
    load_average,
    lowest,
    markdown,
    our_runner,
    refine,
    say,
    sklearn_runner,
    start,
    trace,
)

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"


def measure(name: str, rank: int, loss: str, options: argparse.Namespace) -> dict[str, Any]:
    X = DATA_SETS[name]()
    S, A, _ = start(X, 1, rank)
    runs = {
        solver: our_runner(X, (S, A), loss, solver, options.threads) for solver in options.solvers
    }
    if not options.no_peers:
        for solver in ("cd", "mu") if loss == F else ("mu",):
            runs[f"scikit-learn {solver}"] = sklearn_runner(X, (S, A), loss, solver)

    def loss_of(factors: Any) -> float:
        return float(sf.objective(X, *factors, loss=loss))

    traces = {}
    for label, run in runs.items():
        run(1)
        traces[label] = trace(run, loss_of, options.budget, options.repeats)
        say(f"{name} r={rank} {loss}: {label} {tuple(traces[label][-1])}")
    goal = (1 + options.within) * lowest(traces)
    for label, run in runs.items():
        traces[label] = refine(traces[label], goal, run, loss_of, options.repeats)
    return {"data": name, "rank": rank, "loss": loss, "traces": traces}


def rows_of(result: dict[str, Any], within: float) -> list[str]:
    traces = result["traces"]
    best = lowest(traces)
    cells = [result["data"], str(result["rank"]), result["loss"][0].upper()]
    for points in traces.values():
        found = first_within(points, best * (1 + within))
        if found is None:
            cells.append(f"never ({min(point.loss for point in points) / best - 1:.2%})")
        else:
            cells.append(f"{found.seconds * 1e3:.0f} ms ({found.iterations})")
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
