"""What do several starts gain by sharing what they read?

Two tables, of counts of 20 Newsgroups (the 2000 most frequent words) and times per start.  The
first has passes over the data of 1, 4 and 16 starts whose factors lie side by side, as columns of
one factor: for the Frobenius loss that is all that such a pass has to do, for the Kullback-Leibler
loss less than it, and factors that are copied to lie so cost what is in the last column.  The
second has fits, one after the other and by `n_starts`, of data in memory and on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import newsgroup_counts, seconds, zipf_text
from records import Options, markdown, say

import ssnmf_fast as sf
from ssnmf_fast._backend.dispatch import padded
from ssnmf_fast._data.entries import SparseEntries, Target
from ssnmf_fast._models.many_starts import fit_starts

WORDS = 2000
STARTS = (1, 4, 16)
LOSSES = {"frobenius": 0, "kullback-leibler": -1}  # exponents of the model in a pass


def counts(quick: bool) -> Any:
    if quick:
        X = sp.csr_array(zipf_text(300, 200, 20))
        X.data = np.ceil(X.data)
        return X
    X = sp.csr_array(newsgroup_counts())
    frequent = np.sort(np.argsort(-X.sum(axis=0), kind="stable")[:WORDS])
    X = sp.csr_array(X[:, frequent])
    X.sort_indices()
    return X


def two_passes(entries: Any, factors: Any, results: Any, exponent: int) -> None:
    (rows, columns), (S, A), (to_S, to_A) = entries, factors, results
    rows.power(exponent, S, A, to_S)
    columns.power(exponent, A, S, to_A)


def least(repeats: int, function: Any, *arguments: Any) -> float:
    return 1000 * min(seconds(partial(function, *arguments)) for _ in range(repeats))


def passes(X: Any, ranks: Sequence[int], repeats: int) -> list[list[str]]:
    rng, table = np.random.default_rng(0), []
    for dtype in (np.float64, np.float32):
        rows = SparseEntries(X.astype(dtype))
        entries = rows, rows.transposed()
        for rank, (name, exponent) in product(ranks, LOSSES.items()):
            times = []
            for starts in STARTS:
                shapes = [(n, rank * starts) for n in X.shape]
                factors = [padded(rng.random(shape), dtype) for shape in shapes]
                to = [Target(np.zeros_like(factor)) for factor in factors]
                times.append(least(repeats, two_passes, entries, factors, to, exponent) / starts)
            own = np.zeros((X.shape[0], rank), dtype)
            place = np.zeros((X.shape[0], 4 * rank), dtype)[:, :rank]
            times.append(2 * least(repeats, np.copyto, place, own))
            cells = [f"{time:.2f}" for time in times]
            table.append([np.dtype(dtype).name, str(rank), name, *cells])
    return table


def one_by_one(X: Any, seeds: Sequence[int], options: dict[str, Any]) -> None:
    for seed in seeds:
        sf.factorize(X, random_state=seed, **options)


def at_once(X: Any, seeds: Sequence[int], n_jobs: int, options: dict[str, Any]) -> None:
    """Fit the starts, some at a time."""
    for _ in fit_starts(X, seeds, n_jobs=n_jobs, **options):
        pass


def fits(X: Any, folder: Path, n_starts: int) -> list[list[str]]:
    for name in ("indptr", "indices", "data"):
        np.save(folder / f"{name}.npy", getattr(X, name))
    np.save(folder / "shape.npy", X.shape)
    kinds = {"memory": X, "disk": sf.io.open_csr(folder, memory=4 * X.nnz)}  # some six blocks
    table = []
    for (place, data), loss in product(kinds.items(), LOSSES):
        given = data, range(n_starts)
        options = {"n_components": 10, "loss": loss, "init": "random"}
        times = [least(1, one_by_one, *given, options)]
        times += [least(1, at_once, *given, together, options) for together in STARTS]
        table.append([place, loss, *(f"{time / n_starts:.0f}" for time in times)])
    return table


OPTIONS = {"ranks": [5, 8, 10, 16, 20]}
QUICK = {"ranks": [5]}


def main(options: Options) -> Any:
    X = counts(options.quick)
    say(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} entries")
    named = [f"{n} together" for n in STARTS]
    head = ["dtype", "rank", "loss", *named, "copies"]
    say("Milliseconds of two passes for each start, one thread")
    print(markdown(head, passes(X, options.ranks, 1 if options.quick else 7)))
    with tempfile.TemporaryDirectory() as folder:
        say("Milliseconds of a fit for each start, all threads")
        table = fits(X, Path(folder), 3 if options.quick else 16)
        print(markdown(["data", "loss", "one by one", *named], table))
