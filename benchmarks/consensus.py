"""What many starts agree on: time and programs beside cNMF, on text and on simulated cells.

    python benchmarks/consensus.py --cnmf INTERPRETER --out consensus

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

With `--out` the script goes on where it was stopped.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import (
    Array,
    load_average,
    markdown,
    measure_missing,
    new_parser,
    read_posts,
    say,
    strip,
)
from programs import Cells, Rule, cosines, simulate

import ssnmf_fast as sf

WORKER = Path(__file__).resolve().parent / "peers" / "cnmf_worker.py"
LOSSES = ("frobenius", "kullback-leibler")
FOUND = 0.9
SEED = 14


class Task(NamedTuple):
    """What is measured at a time."""

    part: str
    loss: str
    rank: int
    starts: int


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
    """Return simulated cells, the last program of which is rare."""
    rule = Rule(400, 200, 4, rare=0.05) if quick else Rule(10_000, 2000, 12, rare=0.01)
    return simulate(rule, 0)


def deviations(counts: Any) -> Array:
    """Return the standard deviations of features."""
    counts = sp.csr_array(counts, dtype=np.float64)
    n, means = counts.shape[0], counts.mean(axis=0)
    return np.asarray(np.sqrt((counts.power(2).sum(axis=0) - n * means**2) / (n - 1)))


def normalized(counts: Any) -> Any:
    """Return features of unit variance, as cNMF prepares them."""
    return sp.csr_array(sp.csr_array(counts, dtype=np.float64).multiply(1 / deviations(counts)))


def counts_of(part: str, quick: bool) -> Any:
    return newsgroups(quick) if part == "newsgroups" else draw_cells(quick).X


def ours(task: Task, options: Any) -> dict[str, Any]:
    """Return seconds and programs of ours."""
    X = normalized(counts_of(task.part, options.quick))
    given: dict[str, Any] = {"loss": task.loss, "n_starts": task.starts, "random_state": SEED}
    given["tol"] = options.tol
    begin = time.perf_counter()
    found = sf.consensus(X, task.rank, n_threads=options.threads, **given)
    seconds = time.perf_counter() - begin
    say(f"{task}: {seconds:.1f} s, {found!r}")
    return record(task, "ours", seconds, found.components, stability=found.silhouette)


def cnmf(task: Task, options: Any) -> dict[str, Any]:
    """Return seconds and programs of cNMF, whose files are in a folder for each loss and rank."""
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(options.out or scratch) / "cnmf"
        folder = base / f"{task.part}-{task.loss}-{task.rank}"
        folder.mkdir(parents=True, exist_ok=True)
        run = partial(_step, options.cnmf, folder)
        sp.save_npz(folder / "counts.npz", sp.csr_matrix(counts_of(task.part, options.quick)))
        run("prepare", task.loss, options.cnmf_starts, SEED, task.rank)
        fitted, rest = run("factorize", 2), run("consensus", task.rank)
        whole = fitted * task.starts / options.cnmf_starts + rest
        say(f"{task}: cNMF {fitted:.1f} s for {options.cnmf_starts} starts, and {rest:.1f} s")
        with np.load(folder / f"programs_{task.rank}.npz") as archive:
            found = archive["consensus_spectra"]
    return record(task, "cnmf", whole, found, fitted=fitted, rest=rest, fits=options.cnmf_starts)


def _step(interpreter: str, folder: Path, *step: Any) -> float:
    """Run a step of cNMF and return its seconds."""
    name, *given = step
    command = [interpreter, str(WORKER), name, str(folder), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"cNMF failed in {name}: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])


def record(task: Task, who: str, seconds: float, spectra: Array, **more: Any) -> dict[str, Any]:
    listed = {"who": who, "seconds": seconds, "spectra": np.round(spectra, 7).tolist()}
    return {**task._asdict(), **listed, **more}


def matched(A: Array, B: Array) -> Array:
    """Return the cosines of rows that are paired one to one."""
    alike = cosines(A, B)
    return np.asarray(alike[linear_sum_assignment(alike, maximize=True)])


def main(argv: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--parts", nargs="+", default=["newsgroups", "cells"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[10, 15, 20, 25, 30])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--tol", type=float, default=1e-5, help="of ours")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cnmf", metavar="INTERPRETER", help="a Python that has cnmf")
    parser.add_argument("--cnmf-starts", type=int, help="fewer, whose time is multiplied")
    parser.add_argument("--out", type=Path, help="folder of records")
    parser.add_argument("--quick", action="store_true", help="400 cells, 10 starts")
    options = parser.parse_args(argv)
    if options.quick:
        options.ranks, options.starts = [3], 10
    options.cnmf_starts = options.cnmf_starts or options.starts
    if options.out:
        options.out /= "quick" if options.quick else ""
        options.out.mkdir(parents=True, exist_ok=True)
    n_programs = len(draw_cells(options.quick).programs)
    tasks = [
        Task(part, loss, rank, options.starts)
        for part in options.parts
        for loss in options.losses
        for rank in (options.ranks if part == "newsgroups" else [n_programs])
    ]
    sides: dict[str, Callable[[Task, Any], dict[str, Any]]] = {"ours": ours}
    sides |= {"cnmf": cnmf} if options.cnmf else {}
    found = {
        (who, Task(*(record[name] for name in Task._fields))): record
        for who, side in sides.items()
        for record in measure_missing(
            tasks,
            lambda record: Task(*(record[name] for name in Task._fields)),
            partial(side, options=options),
            options.out and options.out / f"{who}.jsonl",
            who,
        )
    }
    show(tasks, found, list(sides), options.quick)
    print(f"\nload average {load_average()}")


def show(tasks: list[Task], found: Any, sides: list[str], quick: bool) -> None:
    rows = []
    for task in tasks:
        row = [task.part, task.loss, str(task.rank)]
        records = [found[who, task] for who in sides]
        row += [f"{record['seconds']:.1f}" for record in records]
        if len(records) == 2:
            alike = matched(*(np.array(record["spectra"]) for record in records))
            ratio = records[1]["seconds"] / records[0]["seconds"]
            row += [f"{ratio:.1f}", f"{alike.mean():.3f}", f"{alike.min():.3f}"]
        if task.part == "cells":
            cells = draw_cells(quick)
            programs, scales = cells.programs, deviations(cells.X)
            for record in records:
                near = matched(programs, np.array(record["spectra"]) * scales)
                row.append(f"{(near >= FOUND).sum()} of {len(programs)}, rare {near[-1]:.2f}")
        rows.append(row)
    header = ["data", "loss", "rank", *(f"{who}, s" for who in sides)]
    header += ["times faster", "mean cosine", "least"] if len(sides) == 2 else []
    header += [f"planted, {who}" for who in sides]
    print(markdown(header, [row + [""] * (len(header) - len(row)) for row in rows]))
    for part in sorted({task.part for task in tasks}) if len(sides) == 2 else ():
        of_part = [task for task in tasks if task.part == part]
        mine, theirs = (sum(found[who, task]["seconds"] for task in of_part) for who in sides)
        print(f"\n{part}: {mine:.1f} s and {theirs:.1f} s, {theirs / mine:.1f} times faster")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\npeak of memory {peak:.2f} GB")


if __name__ == "__main__":
    main()
