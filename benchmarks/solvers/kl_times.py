"""When does a solver come near the minimum of the Kullback-Leibler divergence?

Text (TF-IDF), plain NMF, starts of ``init="least-squares"``, the same for all solvers: seconds of
one thread, with set-up, to come within a share of the lowest loss that any solver found from the
same start, as seen every tenth iteration.  "auto" goes over from over-relaxed multiplicative steps
to coordinate descent with momentum; "relaxed mm" is "auto" that never does.
"""

from __future__ import annotations

from time import process_time
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
from common import DATA_SETS, zipf_text
from records import Options, Question, Record, say, tabulate

import ssnmf_fast as sf
from ssnmf_fast._solver import loop

WITHIN = (1e-2, 3e-3, 1e-3, 1e-4)
LOSS: dict[str, Any] = {"loss": "kullback-leibler", "tol": 0}
# Name -> the solver, and the `tol` below which "auto" goes over.
SOLVERS = {"relaxed mm": ("auto", 0.0), "auto": ("auto", 1e-4), "hals": ("hals", 0.0)}


def follow(X: Any, init: Any, name: str, seconds: float) -> list[Any]:
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


def measure(options: Options, data: str, rank: int, seed: int) -> Record:
    X = sp.csr_array(DATA_SETS[data](), dtype=np.float64)
    how = {"n_components": rank, "random_state": seed, "init": "least-squares"}
    start = sf.factorize(X, max_iter=0, **how, **LOSS)
    longest = options.seconds * max(1.0, rank / 10)
    points = {name: follow(X, (start.S, start.A), name, longest) for name in SOLVERS}
    say(f"{data}, {rank}, {seed}: {[each[-1] for each in points.values()]}")
    return {"points": points}


def rows_of(record: Record) -> list[Record]:
    lowest = min(loss for points in record["points"].values() for _, loss in points)
    rows = []
    for name, points in record["points"].items():
        row = {**record, "solver": name, "end": f"{points[-1][1] / lowest - 1:.3%}"}
        for share in WITHIN:
            reached = [t for t, loss in points if loss <= lowest * (1 + share)]
            row[f"{share:.2%}"] = f"{min(reached):.2f}" if reached else "never"
        rows.append(row)
    return rows


OPTIONS = {
    "data": ["20 Newsgroups", "Reuters"],
    "ranks": [10, 50],
    "seeds": [0, 1, 2],
    "seconds": (5.0, "of a fit of rank 10"),
}
DATA_SETS["made up"] = lambda: zipf_text(200, 100, 20)
QUICK = {"data": ["made up"], "ranks": [3], "seeds": [0], "seconds": 0.2}


def report(records: list[Record], options: Options) -> str:
    columns: dict[str, Any] = {name: f"{{{name}}}" for name in ("data", "rank", "seed", "solver")}
    columns |= {f"{w:.2%}": lambda row, w=w: row[f"{w:.2%}"] for w in WITHIN}
    rows = [row for r in records for row in rows_of(r)]
    return tabulate(rows, **columns, **{"at the end": "{end}"})


QUESTION = Question("data rank seed", "data ranks seeds", measure, report, threads=None)
