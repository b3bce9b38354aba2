"""Which start gives the most coherent topics, the lowest objective, and takes the least time?

Four collections of texts, as counts and as TF-IDF.  For each start: coherence (NPMI of the ten
first terms of a topic, in the fitted documents), objective and time of a fit with default settings,
and, with --settled, the objective of one that runs on until it has settled.  Objectives are given
as percent above the lowest of any start and seed.  The texts come from $SSNMF_FAST_DATA.

    python benchmarks/solvers/starts.py --by form rank --out starts.jsonl

Every fit is written at once; a later run goes on where an earlier one was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    Array,
    Factors,
    blas_threads,
    load_average,
    markdown,
    measure_missing,
    new_parser,
)
from text_sets import FORMS, TEXTS, documents

import ssnmf_fast as sf

Record = dict[str, Any]
LOSSES = {"F": "frobenius", "D": "kullback-leibler"}
DEFAULT = {"max_iter": 200, "tol": 1e-4}
SETTLED = {"max_iter": 1000, "tol": 1e-6}


def filled(S: Array, A: Array, X: Any) -> Factors:
    """Lift zeros to 1 % of the mean, since they would stay, and bring S A to the mean of X."""
    S, A = (np.maximum(factor, 0.01 * factor.mean()) for factor in (S, A))
    return S * (X.mean() / float(S.mean(axis=0) @ A.mean(axis=1))), A


def of_data(X: Any, rank: int, seed: int, threads: int) -> Factors:
    """Ten iterations of the Frobenius loss first, on the data and not their roots."""
    options = {"init": "random", "max_iter": 10, "tol": 0}
    fit = sf.factorize(X, n_components=rank, random_state=seed, n_threads=threads, **options)
    return filled(fit.S, fit.A, X)


def k_means(X: Any, rank: int, seed: int, threads: int) -> Factors:
    """Ten rounds of spherical k-means from random rows: A has the centers, S the memberships."""
    rows = normalize(X)
    chosen = np.random.default_rng(seed).choice(X.shape[0], rank, replace=False)
    centers = rows[chosen].toarray()
    for _ in range(10):
        sums = np.eye(rank)[np.argmax(rows @ centers.T, axis=1)].T @ rows
        centers = np.where(sums.any(axis=1, keepdims=True), normalize(sums), centers)
    return filled(np.eye(rank)[np.argmax(rows @ centers.T, axis=1)] + 0.1, centers, X)


# The starts of the library by name, others as functions that return S and A.
METHODS: dict[str, Any] = {
    **dict.fromkeys(("random", "random-acol", "nndsvda", "least-squares")),
    "X itself": of_data,
    "k-means": k_means,
}


def measure(task: tuple[str, str, str, int, str, int], settled: bool, threads: int) -> Record:
    """Fit once, and on to where the objective has settled."""
    name, form, loss, rank, start, seed = task
    X, _ = documents(name, form)
    kind: dict[str, Any] = {"loss": LOSSES[loss], "n_threads": threads}
    begin = perf_counter()
    init = METHODS[start](X, rank, seed, threads) if METHODS[start] else start
    started = perf_counter()
    fit = sf.factorize(X, n_components=rank, init=init, random_state=seed, **kind, **DEFAULT)
    took = perf_counter() - begin
    alive = fit.A[(fit.A > 0).sum(axis=1) >= 2]
    record = {
        "task": list(task),
        "npmi": sf.metrics.topic_coherence(X, alive).score,
        "objective": fit.objective[-1][1],
        "iterations": fit.n_iter,
        "start_seconds": round(started - begin, 3),
        "seconds": round(took, 3),
    }
    if settled:
        on = sf.factorize(X, n_components=rank, init=(fit.S, fit.A), **kind, **SETTLED)
        record["settled"] = on.objective[-1][1]
    return record


def run(options: argparse.Namespace) -> list[Record]:
    """Return the records of all fits, those that are missing measured now."""
    grid = (options.data, options.forms, options.losses, options.ranks, options.starts)

    def key(record: Record) -> tuple[Any, ...] | None:
        return tuple(record["task"]) if "settled" in record or not options.settled else None

    with blas_threads(options.threads):
        return measure_missing(
            product(*grid, range(options.seeds)),
            key,
            lambda task: measure(task, options.settled, options.threads),
            options.out,
        )


def _excess(records: list[Record], measure: str) -> dict[int, float]:
    """Return, by record, percent above the lowest objective on the same data, loss and rank."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        if measure in record:
            groups[tuple(record["task"][:4])].append(record)
    return {
        id(record): 100 * (record[measure] / min(r[measure] for r in group) - 1)
        for group in groups.values()
        for record in group
    }


def summary(records: list[Record], by: tuple[int, ...]) -> str:
    """Return a table of means over seeds and over the parts of a task that `by` leaves out."""
    parts = ("data", "form", "loss", "rank", "start", "seed")
    by = (*(i for i in by if i != 4), 4)
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[tuple(record["task"][i] for i in by)].append(record)
    excess = {name: _excess(records, name) for name in ("objective", "settled")}
    rows = []
    for key, group in groups.items():
        row = [str(part) for part in key]
        row.append(f"{np.mean([r['npmi'] for r in group]):.3f}")
        for name, found in excess.items():
            values = [found[id(r)] for r in group if id(r) in found]
            row.append(f"{np.mean(values):.2f}" if values else "")
            if name == "objective":
                row.append(f"{np.mean([r['iterations'] for r in group]):.0f}")
        row += [f"{np.mean([r[name] for r in group]):.2f}" for name in ("start_seconds", "seconds")]
        rows.append(row)
    header = [parts[i] for i in by]
    header += ["NPMI", "objective, +%", "iterations", "settled, +%", "start, s", "whole, s"]
    return markdown(header, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    names = list(TEXTS)
    parser.add_argument("--data", nargs="+", default=names[:4], choices=names)
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES)[::-1], choices=list(LOSSES))
    parser.add_argument("--ranks", nargs="+", type=int, default=[10, 20, 50])
    parser.add_argument("--starts", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settled", action="store_true", help="also run on to convergence; slow")
    parser.add_argument("--by", nargs="+", default=["loss"], help="columns beside the start")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON lines of all fits, read again at the start")
    options = parser.parse_args(arguments)
    records = run(options)
    columns = tuple(("data", "form", "loss", "rank").index(name) for name in options.by)
    print(f"{options.threads} thread(s), load {load_average()}\n")
    print(summary(records, columns), flush=True)


if __name__ == "__main__":
    main()
