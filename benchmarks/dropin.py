"""Programs that factorize by scikit-learn, as they are and under `python -m ssnmf_fast.sklearn`.

- "cnmf": `factorize` and `consensus` of cNMF, on the 2,000 most frequent words of posts of 20
  Newsgroups and on simulated cells, with one process and with two workers (of its `Pool`);
- "keynmf": KeyNMF of turftopic on posts, at once and in batches; words that are hashed take the
  place of a language model;
- "sound": `decompose` of librosa on the spectrum of notes;
- "spectra": `decomposition` of hyperspy on a map of spectra;
- "topics": the four models of scikit-learn's example of topics, on 2,000 posts;
- "views": topics of as many posts, and what pyLDAvis and topic-wizard prepare to show them.

Every run is a process of PYTHON, which has ssnmf_fast and `python -m pip install cnmf hyperspy
librosa pyldavis topic-wizard turftopic`; a program whose package is missing is left out.  Runs with
and without the patch alternate; seconds (of the processor, for cNMF of the clock) are the least of
the rounds, of the program's own steps.  Topics of both, from the same seeds, are matched one to one
for the largest sum of cosines, and the least cosine is shown.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import read_posts, strip
from consensus import LOSSES, counts_of, draw_cells, matched
from records import Options, Question, Record, grouped, markdown, say

WORKER = Path(__file__).resolve().parent / "peers" / "callers.py"
PACKAGES = {"cnmf": "cnmf", "keynmf": "turftopic", "sound": "librosa", "spectra": "hyperspy"}
PACKAGES |= {"topics": "sklearn", "views": "topicwizard"}
DRAWN = ("sound", "spectra")  # by the worker itself
PATCH = ("-m", "ssnmf_fast.sklearn")


def texts_of(n: int, quick: bool) -> list[str]:
    """Return posts in a random order; those of `quick` have words of one of ten topics each."""
    rng = np.random.default_rng(1)
    if quick:
        topics = rng.integers(10, size=n)
        return [" ".join(f"w{10 * t + w}" for w in rng.integers(10, size=30)) for t in topics]
    posts = read_posts()
    return [strip(posts[i][0]) for i in rng.permutation(len(posts))[:n]]


def counts(data: str, loss: str, options: Options) -> Any:
    X = sp.csr_matrix(counts_of(data, options.quick))
    n = options.posts if data == "newsgroups" else options.cells
    X = X[: n // 4 if loss == "kullback-leibler" and not options.quick else n]
    return X[:, np.bincount(X.indices, minlength=X.shape[1]) > 1]


def rank_of(data: str, options: Options) -> int:
    return options.rank if data == "newsgroups" else len(draw_cells(options.quick).programs)


def call(options: Options, way: str, given: list[Any]) -> Record:
    """Return the answer of a program, and how often the patch warned, also in workers."""
    command = [options.python, *(PATCH if way == "after" else ()), str(WORKER), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{given} failed: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return {**answer, "warned": done.stderr.count("own code:")}


def has(python: str, package: str) -> bool:
    code = f"from importlib.util import find_spec; raise SystemExit(find_spec('{package}') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


OPTIONS = {
    "parts": list(PACKAGES),
    "python": (sys.executable, "an interpreter that has the packages"),
    "rounds": 2,
    "data": ["newsgroups", "cells"],
    "losses": (list(LOSSES), "", LOSSES),
    "workers": [1, 2],
    "starts": (10, "of cNMF"),
    "posts": (12000, "of KeyNMF and of cNMF, a fourth of them for its second loss"),
    "cells": (2000, "of cNMF, a fourth of them for its second loss"),
    "rank": (10, "of cNMF of posts, and of KeyNMF"),
}
QUICK = {"rounds": 1, "workers": [1], "posts": 400, "rank": 4}


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    programs: list[tuple[Any, ...]] = []
    for part in options.parts:
        if not has(options.python, PACKAGES[part]):
            say(f"{part} is left out: {options.python} -m pip install {PACKAGES[part]}")
        elif part == "cnmf":
            programs += product([part], options.data, options.losses, options.workers)
        else:
            programs.append((part, "" if part in DRAWN else "posts", "", 0))
    for turn, program in product(range(options.rounds), programs):
        for way in ("before", "after") if turn % 2 == 0 else ("after", "before"):
            yield (*program, turn, way)


def measure(
    options: Options, part: str, data: str, loss: str, workers: int, turn: int, way: str
) -> Record:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if part == "cnmf":
            sp.save_npz(folder / "counts.npz", counts(data, loss, options))
            given = [loss, rank_of(data, options), options.starts, workers]
        elif part in DRAWN:
            given = []
        else:
            n = options.posts if part == "keynmf" else min(2000, options.posts)
            (folder / "texts.json").write_text(json.dumps(texts_of(n, options.quick)))
            given = [options.rank, max(options.posts // 6, 50)] if part == "keynmf" else [1000]
        answer = call(options, way, [part, folder, *given])
    say(f"{part} {data} {loss} {workers} {way}: {answer['seconds']}")
    return answer


def report(records: list[Record], _: Options) -> str:
    rows, served = [], []
    for program, own in grouped(records, "part", "data", "loss", "workers").items():
        before, after = (grouped(own, "way")[way] for way in ("before", "after"))
        part, data, loss, workers = program
        name = " ".join(filter(None, [part, data, loss, f"{workers} workers" * (workers > 1)]))
        for step in before[0]["seconds"]:
            least = [min(r["seconds"][step] for r in way) for way in (before, after)]
            row = [name, step, *(f"{s:.2f}" for s in least), f"{least[0] / least[1]:.1f}"]
            found = [np.array(way[0]["topics"].get(step, [])) for way in (before, after)]
            rows.append([*row, f"{matched(*found).min():.4f}" if found[0].size else ""])
        calls = after[0]["calls"]
        text = f"{name}: {calls['engine']} calls on the engine, {calls['scikit-learn']} not"
        served += [text] * (workers <= 1)
        served += [f"{name}: {r['warned']} warnings" for r in after if r["warned"]]
    header = ["program", "step", "before, s", "after, s", "times faster", "least cosine"]
    return "\n".join([markdown(header, rows), "", *served])


QUESTION = Question("part data loss workers turn way", cases, measure, report, threads=None)
