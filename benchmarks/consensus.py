"""What many starts agree on: time and programs, and those of cNMF, on text and on simulated cells.

- "newsgroups": the 2,000 most frequent words of the posts of 20 Newsgroups, as cNMF prepares them
  (unit variance, not centered), for several ranks and two losses.
- "cells": 10,000 cells simulated as `programs.py` says, with 2,000 genes and 12 programs, one of
  which 1 % of the cells have.

cNMF is the one of INTERPRETER (`python -m pip install cnmf`, in an environment of its own), in two
processes as its documentation says.  Its time is that of factorize, combine and consensus, without
prepare; ours that of all of `sf.consensus`, of the same matrix, with the threads of `--threads`.
`--cnmf-starts 10` fits fewer starts there, and its time of factorize is multiplied.  Programs are
matched one to one for the largest sum of cosines.  A planted program is found if the component
that is matched to it, multiplied by the standard deviations of the genes, has a cosine of .9 or
more with it.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array, read_posts, strip
from programs import Cells, Rule, cosines, simulate
from records import Options, Question, Record, grouped, markdown, say
from scipy.optimize import linear_sum_assignment

import ssnmf_fast as sf

WORKER = Path(__file__).resolve().parent / "peers" / "cnmf_worker.py"
LOSSES = ("frobenius", "kullback-leibler")
FOUND = 0.9
SEED = 14


@cache
def newsgroups(quick: bool) -> Any:
    """Return counts of words in posts, without those that have none of the words."""
    from sklearn.feature_extraction.text import CountVectorizer

    if quick:
        return draw_cells(True).X
    counter = CountVectorizer(
        max_features=2000, stop_words="english", token_pattern="[a-zA-Z]{2,}", min_df=5
    )
    X = sp.csr_array(counter.fit_transform([strip(text) for text, _ in read_posts()]))
    X = X[X.sum(axis=1) > 0]
    X.sort_indices()  # or SciPy does it in copies, with which X shares its indices
    return X


@cache
def draw_cells(quick: bool) -> Cells:
    rule = Rule(400, 200, 4, rare=0.05) if quick else Rule(10_000, 2000, 12, rare=0.01)
    return simulate(rule, 0)


def deviations(counts: Any) -> Array:
    counts = sp.csr_array(counts, dtype=np.float64)
    n, means = counts.shape[0], counts.mean(axis=0)
    return np.asarray(np.sqrt((counts.power(2).sum(axis=0) - n * means**2) / (n - 1)))


def normalized(counts: Any) -> Any:
    """Return features of unit variance, as cNMF prepares them."""
    return sp.csr_array(sp.csr_array(counts, dtype=np.float64).multiply(1 / deviations(counts)))


def counts_of(part: str, quick: bool) -> Any:
    return newsgroups(quick) if part == "newsgroups" else draw_cells(quick).X


def ours(options: Options, part: str, loss: str, rank: int, starts: int) -> Record:
    X = normalized(counts_of(part, options.quick))
    begin = time.perf_counter()
    given = {"loss": loss, "n_starts": starts, "random_state": SEED, "tol": options.tol}
    found = sf.consensus(X, rank, n_threads=options.threads, **given)
    seconds = time.perf_counter() - begin
    say(f"{part}, {loss}, {rank}: {seconds:.1f} s, {found!r}")
    return {"seconds": seconds, "spectra": found.components, "stability": found.silhouette}


def cnmf(options: Options, part: str, loss: str, rank: int, starts: int) -> Record:
    """Return seconds and programs of cNMF, whose files are in a folder for each loss and rank."""
    fewer = options.cnmf_starts or starts
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.out or scratch) / "cnmf" / f"{part}-{loss}-{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        run = partial(_step, options.cnmf, folder)
        sp.save_npz(folder / "counts.npz", sp.csr_matrix(counts_of(part, options.quick)))
        run("prepare", loss, fewer, SEED, rank)
        fitted, rest = run("factorize", 2), run("consensus", rank)
        say(f"{part}, {loss}, {rank}: cNMF {fitted:.1f} s for {fewer} starts, and {rest:.1f} s")
        with np.load(folder / f"programs_{rank}.npz") as archive:
            found = archive["consensus_spectra"]
    return {"seconds": fitted * starts / fewer + rest, "spectra": found, "fits": fewer}


def _step(interpreter: str, folder: Path, *step: Any) -> float:
    name, *given = step
    command = [interpreter, str(WORKER), name, str(folder), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"cNMF failed in {name}: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])


def matched(A: Array, B: Array) -> Array:
    alike = cosines(A, B)
    return np.asarray(alike[linear_sum_assignment(alike, maximize=True)])


OPTIONS = {
    "parts": ["newsgroups", "cells"],
    "ranks": [10, 15, 20, 25, 30],
    "losses": (list(LOSSES), "", LOSSES),
    "starts": 100,
    "tol": (1e-5, "of ours"),
    "threads": 2,
    "cnmf": (str, "INTERPRETER: a Python that has cnmf"),
    "cnmf_starts": (int, "fewer, whose time is multiplied"),
}
QUICK = {"ranks": [3], "starts": 10}


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    planted = [len(draw_cells(options.quick).programs)]
    for who, part, loss in product(("ours", "cnmf"), options.parts, options.losses):
        for rank in options.ranks if part == "newsgroups" else planted:
            if who == "ours" or options.cnmf:
                yield who, part, loss, rank, options.starts


def measure(options: Options, who: str, *case: Any) -> Record:
    found = (ours if who == "ours" else cnmf)(options, *case)
    return found | {"spectra": np.round(found["spectra"], 7).tolist()}


def report(records: list[Record], options: Options) -> str:
    sides, rows = list(grouped(records, "who")), []
    cells = draw_cells(options.quick)
    scales = deviations(cells.X)
    for (part, loss, rank), own in grouped(records, "part", "loss", "rank").items():
        row = [part, loss, str(rank), *(f"{record['seconds']:.1f}" for record in own)]
        if len(own) == 2:
            alike = matched(*(np.array(record["spectra"]) for record in own))
            ratio = own[1]["seconds"] / own[0]["seconds"]
            row += [f"{ratio:.1f}", f"{alike.mean():.3f}", f"{alike.min():.3f}"]
        for record in own if part == "cells" else []:
            near = matched(cells.programs, np.array(record["spectra"]) * scales)
            row.append(f"{(near >= FOUND).sum()} of {len(near)}, rare {near[-1]:.2f}")
        rows.append(row)
    header = ["data", "loss", "rank", *(f"{who}, s" for who in sides)]
    header += ["times faster", "mean cosine", "least"] if len(sides) == 2 else []
    header += [f"planted, {who}" for who in sides]
    parts = [markdown(header, [row + [""] * (len(header) - len(row)) for row in rows])]
    for part, own in grouped(records, "part").items() if len(sides) == 2 else ():
        mine, theirs = (sum(r["seconds"] for r in side) for side in grouped(own, "who").values())
        parts += [f"{part}: {mine:.1f} s and {theirs:.1f} s, {theirs / mine:.1f} times faster"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return "\n\n".join([*parts, f"peak of memory {peak:.2f} GB"])


QUESTION = Question("who part loss rank starts", cases, measure, report, threads=None)
