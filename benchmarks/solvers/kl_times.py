"""When does a solver come near the minimum of the Kullback-Leibler divergence?

Text (TF-IDF), plain NMF, starts of ``init="least-squares"``, the same for all solvers: seconds of
one thread, with set-up, to come within a share of the lowest loss that any solver found from the
same start, as seen every tenth iteration.  "auto" goes over from over-relaxed multiplicative steps
to coordinate descent with momentum; "relaxed mm" is "auto" that never does.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import DATA_SETS, load_average, markdown, measure_missing, say, zipf_text

import ssnmf_fast as sf
from ssnmf_fast._solver import loop

WITHIN = (1e-2, 3e-3, 1e-3, 1e-4)
LOSS: dict[str, Any] = {"loss": "kullback-leibler", "tol": 0}
# Name -> the solver, and the `tol` below which "auto" goes over.
SOLVERS = {"relaxed mm": ("auto", 0.0), "auto": ("auto", 1e-4), "hals": ("hals", 0.0)}


def follow(X: Any, init: Any, name: str, seconds: float) -> list[Any]:
    """Return (seconds, loss) of every tenth iteration."""
    solver, slow = SOLVERS[name]
    points: list[Any] = []

    def observe(state: Any) -> bool:
        points.append((process_time() - begin, state.objective))
        return bool(points[-1][0] > seconds)

    options = {"n_components": init[0].shape[1], "max_iter": 1 << 20, "n_threads": 1}
    with mock.patch.object(loop, "_DEFAULT_TOL", slow):
        begin = process_time()
        sf.factorize(X, init=init, solver=solver, callback=observe, **options, **LOSS)
    return points


def measure(task: tuple[str, int, int], seconds: float) -> dict[str, Any]:
    """Follow all solvers from one start, the longer the higher the rank."""
    data, rank, seed = task
    X = sp.csr_array(DATA_SETS[data](), dtype=np.float64)
    options = {"n_components": rank, "random_state": seed, "init": "least-squares"}
    start = sf.factorize(X, max_iter=0, **options, **LOSS)
    longest = seconds * max(1.0, rank / 10)
    points = {name: follow(X, (start.S, start.A), name, longest) for name in SOLVERS}
    say(f"{task}: {[each[-1] for each in points.values()]}, load {load_average()}")
    return {"task": task, "points": points}


def rows_of(record: dict[str, Any]) -> list[list[str]]:
    """Return a row for each solver."""
    lowest = min(loss for points in record["points"].values() for _, loss in points)
    rows = []
    for name, points in record["points"].items():
        goals = [lowest * (1 + share) for share in WITHIN]
        times = [min((t for t, loss in points if loss <= goal), default=None) for goal in goals]
        cells = ["never" if t is None else f"{t:.2f}" for t in times]
        facts = [str(part) for part in record["task"]]
        rows.append([*facts, name, *cells, f"{points[-1][1] / lowest - 1:.3%}"])
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["20 Newsgroups", "Reuters"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[10, 50])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=5, help="of a fit of rank 10")
    parser.add_argument("--out", type=Path, help="file of records")
    parser.add_argument("--quick", action="store_true", help="short fits of small made-up text")
    options = parser.parse_args(arguments)
    if options.quick:
        DATA_SETS["made up"] = lambda: zipf_text(200, 100, 20)
        options.data, options.ranks, options.seeds, options.seconds = ["made up"], [3], [0], 0.2
    print(f"one thread, float64, load {load_average()}")
    records = measure_missing(
        product(options.data, options.ranks, options.seeds),
        lambda record: tuple(record["task"]),
        lambda task: measure(task, options.seconds),
        options.out,
    )
    header = ["data", "rank", "seed", "solver", *(f"{w:.2%}" for w in WITHIN), "at the end"]
    print(markdown(header, [row for record in records for row in rows_of(record)]))


if __name__ == "__main__":
    main()
