"""Which start gives the most coherent topics, the lowest objective, and takes the least time?

Four collections of texts, as counts and as TF-IDF.  For each start: coherence (NPMI of the ten
first terms of a topic, in the fitted documents), objective and time of a fit with default settings,
and, with --settled, the objective of one that runs on until it has settled.  Objectives are given
as percent above the lowest of any start and seed.  The texts come from $SSNMF_FAST_DATA.
"""

from __future__ import annotations

from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from common import Array, D, F, Factors
from records import Options, Question, Record, grouped, markdown
from sklearn.preprocessing import normalize
from text_sets import FORMS, TEXTS, documents

import ssnmf_fast as sf

LOSSES = {"F": F, "D": D}
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


def measure(
    options: Options, name: str, form: str, loss: str, rank: int, start: str, seed: int, on: bool
) -> Record:
    X, _ = documents(name, form)
    kind: dict[str, Any] = {"loss": LOSSES[loss], "n_threads": options.threads}
    begin = perf_counter()
    init = METHODS[start](X, rank, seed, options.threads) if METHODS[start] else start
    started = perf_counter()
    fit = sf.factorize(X, n_components=rank, init=init, random_state=seed, **kind, **DEFAULT)
    took = perf_counter() - begin
    alive = fit.A[(fit.A > 0).sum(axis=1) >= 2]
    record = {
        "npmi": sf.metrics.topic_coherence(X, alive).score,
        "objective": fit.objective[-1][1],
        "iterations": fit.n_iter,
        "start_seconds": round(started - begin, 3),
        "seconds": round(took, 3),
    }
    if on:
        fit = sf.factorize(X, n_components=rank, init=(fit.S, fit.A), **kind, **SETTLED)
        record["settled"] = fit.objective[-1][1]
    return record


def excess(records: list[Record], measure: str) -> dict[int, float]:
    """Return, by record, percent above the lowest objective on the same data, loss and rank."""
    with_it = [record for record in records if measure in record]
    return {
        id(record): 100 * (record[measure] / min(r[measure] for r in group) - 1)
        for group in grouped(with_it, "data", "form", "loss", "rank").values()
        for record in group
    }


def report(records: list[Record], options: Options) -> str:
    by = (*options.by, "start")
    above = {name: excess(records, name) for name in ("objective", "settled")}
    rows = []
    for place, group in grouped(records, *by).items():
        row = [*map(str, place), f"{np.mean([r['npmi'] for r in group]):.3f}"]
        for name, found in above.items():
            values = [found[id(r)] for r in group if id(r) in found]
            row.append(f"{np.mean(values):.2f}" if values else "")
            if name == "objective":
                row.append(f"{np.mean([r['iterations'] for r in group]):.0f}")
        row += [f"{np.mean([r[name] for r in group]):.2f}" for name in ("start_seconds", "seconds")]
        rows.append(row)
    header = [*by, "NPMI", "objective, +%", "iterations", "settled, +%", "start, s", "whole, s"]
    return f"{options.threads} thread(s)\n\n{markdown(header, rows)}"


OPTIONS = {
    "data": (list(TEXTS)[:4], "", TEXTS),
    "forms": (list(FORMS), "", FORMS),
    "losses": (list(LOSSES)[::-1], "", LOSSES),
    "ranks": [10, 20, 50],
    "starts": (list(METHODS), "", METHODS),
    "seeds": 3,
    "settled": (False, "also run on to convergence; slow"),
    "by": (["loss"], "columns besides the start"),
    "threads": 1,
}


def cases(options: Options) -> Any:
    grid = (options.data, options.forms, options.losses, options.ranks, options.starts)
    return product(*grid, range(options.seeds), [options.settled])


QUESTION = Question("data form loss rank start seed on", cases, measure, report)
