"""How soon are many fits of small counts done, as in an analysis of mutational signatures?

Counts of 96 types of mutations in `--samples` samples, drawn from eight signatures.  For every rank
each start fits counts that are drawn again (Poisson), with the Kullback-Leibler loss and a fixed
number of iterations.  Ours has `--threads` threads over starts; scikit-learn's multiplicative
updates run in as many processes (joblib), and those of a loop in NumPy in this process.  "Loss" is
the mean of the divergences per count, of the counts that each start was given.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from cases import signatures
from common import Array, timed
from joblib import Parallel, delayed
from records import Options, Question, Record, grouped, markdown
from sklearn.decomposition import NMF

import ssnmf_fast as sf

KL = "kullback-leibler"
OPTIONS = {
    "samples": 200,
    "ranks": list(range(1, 13)),
    "sides": ["ours", "scikit-learn", "NumPy"],
    "starts": (20, "of each rank"),
    "iterations": 300,
    "threads": 2,
}
QUICK = {"samples": 30, "ranks": [2, 3], "starts": 2, "iterations": 20, "threads": 1}


def redrawn(counts: Array, rank: int, seed: int) -> tuple[Array, Array, Array]:
    """Return counts as new samples would have them, and random factors of their level."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(counts).astype(float)
    level = np.sqrt(X.mean() / rank)
    S, A = (level * rng.gamma(2, 0.5, size) for size in ((len(X), rank), (rank, X.shape[1])))
    return X, S, A


def ours(X: Array, S: Array, A: Array, n: int) -> tuple[Array, Array]:
    given: dict[str, Any] = {"init": (S, A), "loss": KL, "max_iter": n, "tol": 0, "n_threads": 1}
    fit = sf.factorize(X, n_components=len(A), **given)
    return fit.S, fit.A


def sklearn(X: Array, S: Array, A: Array, n: int) -> tuple[Array, Array]:
    given = {"solver": "mu", "beta_loss": KL, "init": "custom", "max_iter": n, "tol": 0}
    model = NMF(len(A), **given)
    return model.fit_transform(X, W=S, H=A), model.components_


def plain(X: Array, S: Array, A: Array, n: int) -> tuple[Array, Array]:
    for _ in range(n):
        A = A * (S.T @ (X / (S @ A + 1e-12))) / S.sum(axis=0)[:, None]
        S = S * ((X / (S @ A + 1e-12)) @ A.T) / A.sum(axis=1)
    return S, A


def on_threads(fit: Callable[..., Any], starts: list[Any], threads: int) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda start: fit(*start), starts))


def in_processes(fit: Callable[..., Any], starts: list[Any], threads: int) -> list[Any]:
    return list(Parallel(n_jobs=threads)(delayed(fit)(*start) for start in starts))


def one_by_one(fit: Callable[..., Any], starts: list[Any], threads: int) -> list[Any]:
    del threads
    return [fit(*start) for start in starts]


SIDES = {
    "ours": (ours, on_threads),
    "scikit-learn": (sklearn, in_processes),
    "NumPy": (plain, one_by_one),
}


def measure(options: Options, side: str, rank: int) -> Record:
    counts = signatures(samples=options.samples).T
    starts = [(*redrawn(counts, rank, seed), options.iterations) for seed in range(options.starts)]
    fit, run = SIDES[side]
    run(fit, [(*start[:3], 1) for start in starts[: options.threads]], options.threads)  # processes
    found, seconds = timed(run, fit, starts, options.threads)
    losses = [
        sf.extend.objective(X, *F, loss=KL) / X.sum()
        for (X, *_), F in zip(starts, found, strict=True)
    ]
    return {"seconds": seconds, "loss": float(np.mean(losses))}


def report(records: list[Record], options: Options) -> str:
    sides = grouped(records, "side")
    header = ["rank", *(f"{side}, s" for side in sides), *(f"loss, {side}" for side in sides)]
    rows = [
        [str(rank), *(f"{r['seconds']:.2f}" for r in of), *(f"{r['loss']:.4f}" for r in of)]
        for rank, of in grouped(records, "rank").items()
    ]
    totals = (f"{sum(r['seconds'] for r in of):.1f} s {side}" for side, of in sides.items())
    return f"{markdown(header, rows)}\n\n{', '.join(totals)}"


QUESTION = Question("side rank", "sides ranks", measure, report)
