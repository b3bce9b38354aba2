"""Are gene programs found by name from marker genes, of which a fifth are wrong?

Simulated counts of cells, in which programs are mixed:

- A background of log-normal weights (sigma 1) is half of every program; the other half are gamma
  weights (shape 1) of its own 3 % of the genes.  Genes may be in several programs.
- A cell has one to five programs, of which some are up to four times as frequent as others, in
  shares that are uniform on the simplex; its counts are Poisson, 1,500 in all at the median
  (log-normal, sigma 0.4).
- Half of the programs are given by the names of genes: the 40 of largest weight, of which a fifth
  are replaced by random genes that are not in the program.  Options make it harder.

Given programs are compared by name, the others as they match best, by cosines.  "Wrong to right" is
the mean weight that a topic has for its wrong genes, divided by that for its right ones.  The worst
of all programs counts.  "Matched" knows the truth and names its topics by it.  Peak memory is that
of the process so far, with the simulation: methods that need less come first, or alone.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import Array, timed
from records import Options, Question, Record, say, tabulate
from scipy.optimize import linear_sum_assignment

import ssnmf_fast as sf

MARKERS = 0.03  # of the genes, in each program
N_GIVEN = 40  # genes in a list
BLOCK = 1000  # cells at a time


class Rule(NamedTuple):
    """Sizes, and how hard it is."""

    n_cells: int
    n_genes: int
    n_programs: int
    background: float = 0.5  # share of each program
    total: float = 1500  # counts of a cell, median
    wrong: float = 0.2  # share of each list
    rare: float | None = None  # share of the cells that have the last program


class Cells(NamedTuple):
    """Counts (n x m), programs (r x m) whose rows sum to 1, and the lists of the first ones."""

    X: Any
    programs: Array
    right: list[Array]
    wrong: list[Array]

    @property
    def seeds(self) -> dict[str, list[int]]:
        lists = zip(self.right, self.wrong, strict=True)
        return {f"program {k}": [*a.tolist(), *b.tolist()] for k, (a, b) in enumerate(lists)}


def simulate(rule: Rule, seed: int) -> Cells:
    rng = np.random.default_rng(seed)
    n_cells, n_genes, n_programs = rule[:3]
    background = rng.lognormal(0, 1, n_genes)
    own = np.zeros((n_programs, n_genes))
    n_own = round(MARKERS * n_genes)
    for row in own:
        row[rng.choice(n_genes, n_own, replace=False)] = rng.gamma(1, size=n_own)
    programs = rule.background * background / background.sum()
    programs = programs + (1 - rule.background) * own / own.sum(axis=1, keepdims=True)
    frequent = 4.0 ** rng.uniform(0, 1, n_programs)
    blocks = [
        _counts(rng, min(BLOCK, n_cells - begin), programs, frequent, rule)
        for begin in range(0, n_cells, BLOCK)
    ]
    right, wrong = [], []
    n_listed = min(N_GIVEN, n_own)
    n_wrong = round(rule.wrong * n_listed)
    for row in own[: n_programs // 2]:
        best = np.argsort(-row, kind="stable")[:n_listed]
        right.append(np.sort(rng.permutation(best)[n_wrong:]))
        wrong.append(np.sort(rng.choice(np.flatnonzero(row == 0), n_wrong, replace=False)))
    return Cells(sp.vstack(blocks, format="csr"), programs, right, wrong)


def _counts(rng: np.random.Generator, n: int, programs: Array, frequent: Array, rule: Rule) -> Any:
    r = len(programs) - (rule.rare is not None)
    order = np.argsort(rng.exponential(size=(n, r)) / frequent[:r], axis=1).argsort(axis=1)
    active = order < rng.integers(1, min(5, r) + 1, n)[:, None]
    if rule.rare is not None:
        active = np.column_stack([active, rng.random(n) < rule.rare])
    usage = active * rng.exponential(size=active.shape)
    usage *= (rng.lognormal(np.log(rule.total), 0.4, n) / usage.sum(axis=1))[:, None]
    return sp.csr_matrix(rng.poisson(usage @ programs).astype(np.float32))


def cosines(A: Array, B: Array) -> Array:
    A, B = (F / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-300) for F in (A, B))
    return np.asarray(A @ B.T)


Settings = dict[str, Any]


def seeded(cells: Cells, settings: Settings, membership: str) -> Array:
    n_free = len(cells.programs) - len(cells.seeds)
    model = sf.SeededTopics(cells.seeds, n_free_topics=n_free, membership=membership)
    return model.set_params(**settings).fit(cells.X).components_


def matched(cells: Cells, settings: Settings) -> Array:
    """Return the topics of a fit without seeds, in the order of the programs most alike."""
    found = sf.NMF(len(cells.programs), **settings).fit(cells.X).components_
    programs, topics = linear_sum_assignment(cosines(cells.programs, found), maximize=True)
    return np.asarray(found[topics[np.argsort(programs)]])


def guided(cells: Cells, settings: Settings, weight: Any) -> Array:
    """Return the programs of guided NMF: labels of genes, and a start at twice their mean."""
    X, (r, m) = cells.X, cells.programs.shape
    rng = np.random.default_rng(0)
    A = np.asarray(X.mean(axis=0)).ravel() * rng.uniform(0.5, 1.5, (r, m))
    Z = np.full((m, len(cells.seeds)), np.nan)
    Z[np.concatenate([*cells.seeds.values()])] = 0
    for k, genes in enumerate(cells.seeds.values()):
        Z[genes, k] = 1
        A[k, genes] *= 2
    S = np.asarray(X.sum(axis=1)).reshape(-1, 1) / A.sum(axis=1).mean() / r * np.ones(r)
    given = {"feature_labels": Z, "feature_weight": weight, "supervision_loss": settings["loss"]}
    start = S.astype(X.dtype), A.astype(X.dtype)
    return sf.factorize(X, n_components=r, init=start, **given, **settings).A


METHODS: dict[str, Callable[[Cells, Settings], Array]] = {
    "mixed": lambda cells, settings: seeded(cells, settings, "mixed"),
    "single": lambda cells, settings: seeded(cells, settings, "single"),
    "matched": matched,
    "start": lambda cells, settings: guided(cells, settings, 0.0),
    "guided-1": lambda cells, settings: guided(cells, settings, 1.0),
    "guided-100": lambda cells, settings: guided(cells, settings, 100.0),
    "guided-balanced": lambda cells, settings: guided(cells, settings, "balanced"),
}


OPTIONS = {
    "cells": 100_000,
    "genes": 5_000,
    "programs": 20,
    "background": (0.5, "share of each program"),
    "total": (1500.0, "counts of a cell"),
    "wrong": (0.2, "share of each list"),
    "methods": ([*METHODS], "", [*METHODS]),
    "draws": (1, "simulations"),
    "threads": 2,
}
QUICK = {"cells": 300, "genes": 400, "programs": 4}


@lru_cache(1)
def cells_of(rule: Rule, draw: int) -> Cells:
    begin = time.perf_counter()
    cells = simulate(rule, draw)
    alike = cosines(cells.programs, cells.programs)[np.triu_indices(len(cells.programs), 1)]
    took = time.perf_counter() - begin
    say(f"draw {draw}: {cells.X.nnz:,} counts above 0, simulated in {took:.0f} s")
    say(f"largest cosine of two programs: {alike.max():.2f}")
    return cells


def measure(options: Options, rule: tuple[Any, ...], draw: int, method: str) -> Record:
    cells = cells_of(Rule(*rule), draw)
    settings = {"loss": "kullback-leibler", "n_threads": options.threads, "random_state": draw}
    A, elapsed = timed(METHODS[method], cells, settings)
    alike, k = cosines(A, cells.programs), len(cells.seeds)
    given, free = np.diag(alike)[:k], alike[k:, k:]
    free = free[linear_sum_assignment(free, maximize=True)]
    lists = zip(cells.right, cells.wrong, strict=True)
    ratios = [A[i, wrong].mean() / A[i, right].mean() for i, (right, wrong) in enumerate(lists)]
    return {
        "given: least cosine": float(given.min()),
        "given from .9": f"{(given >= 0.9).sum()} of {k}",
        "others: least": float(free.min()),
        "others from .9": f"{(free >= 0.9).sum()} of {len(free)}",
        "wrong to right": float(max(ratios)),
        "seconds": elapsed,
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def report(records: list[Record], options: Options) -> str:
    columns: dict[str, Any] = {"draw": "{draw}", "method": "{method}"}
    formats = {"given: least cosine": ".3f", "given from .9": "", "others: least": ".3f"}
    formats |= {"others from .9": "", "wrong to right": ".3g", "seconds": ".1f", "peak GB": ".1f"}
    for name, how in formats.items():
        columns[name] = lambda record, name=name, how=how: format(record[name], how)
    return tabulate(records, **columns)


def cases(options: Options) -> Any:
    sizes = options.cells, options.genes, options.programs
    rule = Rule(*sizes, options.background, options.total, options.wrong)
    return product([tuple(rule)], range(options.draws), options.methods)


QUESTION = Question("rule draw method", cases, measure, report, threads=None)
