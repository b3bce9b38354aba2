"""How many seconds does an iteration of TS-NMF take, beside the PyPI package tsnmf?

Reuters as the paper prepares it, the same labeled stories, the same start, float64, in the same
process, turn by turn, without error weights, which the package does not have.  The time of an
iteration is the difference of a long fit and a short one, the least of several each: setting up is
not counted for anyone.  Ours counts the objective every 10 iterations, tsnmf never at tol=0, where
the ratios are taken; "with tol" is tsnmf as it runs by default, with the objective every iteration.

Both have the same updates ("mu"), but tsnmf begins with S and ours with A.  So "A differs" starts
ours at the S of tsnmf's first update: then A has to be the same after every iteration.  Its
iterations, like ours by "auto", are timed from the common start.  tsnmf asks for a package name
that can no longer be installed:

    python -m pip install --no-deps tsnmf==1.0.4
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# Last, since the script papers/topic_supervised.py must not hide the package tsnmf.
sys.path.append(str(Path(__file__).resolve().parent.parent / "papers"))
from common import Array, Factors, blas_threads, load_average, markdown, new_parser, say, seconds
from topic_supervised_models import Stories, labeled_rows, random_stories, reuters_stories

import ssnmf_fast as sf

GOAL = 4
Run = Callable[[int], Factors]
ITERATIONS = (5, 55)  # of the short and the long fit
TINY = 1e-300  # a tolerance that is never met


def start(stories: Stories, seed: int = 0) -> Factors:
    """Return S and A, positive, scaled to the mean of the data."""
    rng = np.random.default_rng(seed)
    (n, m), rank = stories.X.shape, stories.topics.shape[1]
    scale = 2 * np.sqrt(stories.X.mean() / rank)
    return scale * (rng.random((n, rank)) + 1e-3), scale * (rng.random((rank, m)) + 1e-3)


def our_run(stories: Stories, labeled: Array, init: Factors, solver: str, threads: int) -> Run:
    """Return a function that fits k iterations of ours."""
    y = stories.topics * labeled[:, None]

    def run(k: int) -> Factors:
        model = sf.TopicSupervisedNMF(
            init=init,
            labeled_weight=1.0,
            solver=solver,
            tol=0,
            max_iter=k,
            n_threads=threads,
            readout=None,  # Fitting it takes longer than the iterations.
        )
        model.fit(stories.X, y)
        return model.representation_, model.components_

    return run


def their_run(stories: Stories, labeled: Array, init: Factors, tol: float = 0) -> Run:
    """Return a function that fits k iterations of tsnmf."""
    from tsnmf import TSNMF

    y = [np.flatnonzero(row).tolist() for row in stories.topics * labeled[:, None]]

    def run(k: int) -> Factors:
        # It has no name for a given start: any init it knows is overridden by W and H.
        model = TSNMF(stories.topics.shape[1], init="random", tol=tol, max_iter=k)
        S = model.fit_transform(stories.X, y, W=init[0].copy(), H=init[1].copy())
        return S, model.components_

    return run


def difference(stories: Stories, labeled: Array, init: Factors, k: int = 3) -> float:
    """Return the relative difference of A after k iterations of the same updates."""
    peer = their_run(stories, labeled, init)
    first = peer(1)[0]
    theirs = peer(k)[1]
    ours = our_run(stories, labeled, (first, init[1]), "mu", 1)(k)[1]
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def per_iteration(samples: list[tuple[float, float]], few: int, many: int) -> float:
    """Return the seconds of an iteration from the least times of both fits."""
    low, high = (min(times) for times in zip(*samples, strict=True))
    return (high - low) / (many - few)


def measure(stories: Stories, rate: float, threads: int, rounds: int) -> dict[str, Any]:
    """Time all sides turn by turn."""
    labeled, init = labeled_rows(stories, rate, 0), start(stories)
    sides = {
        "mu": our_run(stories, labeled, init, "mu", threads),
        "auto": our_run(stories, labeled, init, "auto", threads),
        "tsnmf": their_run(stories, labeled, init),
        "tsnmf with tol": their_run(stories, labeled, init, TINY),
    }
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    loads = [load_average()]
    with blas_threads(threads):
        for run in sides.values():
            run(1)
        for number in range(rounds):
            for name, run in sides.items():
                few, many = (seconds(partial(run, k)) for k in ITERATIONS)
                samples[name].append((few, many))
            loads.append(load_average())
            say(f"rate {rate:g}, {threads} threads: round {number + 1} of {rounds}, {loads[-1]}")
    times = {name: per_iteration(taken, *ITERATIONS) for name, taken in samples.items()}
    result = {"rate": rate, "threads": threads, "seconds": times, "samples": samples}
    return result | {"difference": difference(stories, labeled, init), "load": loads}


def table(results: list[dict[str, Any]]) -> str:
    """Return the markdown table of the results."""
    header = ["rate", "threads", "tsnmf, ms", "with tol", "ours mu, ms", "ratio", f"{GOAL} times"]
    header += ["ours auto, ms", "ratio", "A differs", "load"]
    rows = []
    for r in results:
        peer, mu, auto = (r["seconds"][name] for name in ("tsnmf", "mu", "auto"))
        row = [f"{r['rate']:g}", str(r["threads"]), f"{peer * 1e3:.1f}"]
        row += [f"{r['seconds']['tsnmf with tol'] * 1e3:.1f}", f"{mu * 1e3:.1f}"]
        row += [f"{peer / mu:.1f}", "yes" if peer / mu >= GOAL else "NO"]
        row += [f"{auto * 1e3:.1f}", f"{peer / auto:.1f}", f"{r['difference']:.0e}"]
        rows.append([*row, f"{min(r['load'])} to {max(r['load'])}"])
    return markdown(header, rows)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="made-up stories, one round")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="JSON file of the results, every sample")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    stories = random_stories() if options.quick else reuters_stories()
    rounds = 1 if options.quick else options.rounds
    n, m = stories.X.shape
    print(f"{n} x {m}, {stories.X.nnz} nonzeros, rank {stories.topics.shape[1]}, float64\n")
    results = [
        measure(stories, rate, threads, rounds)
        for rate in options.rates
        for threads in options.threads
    ]
    print(table(results))
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
