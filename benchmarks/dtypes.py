"""How much faster are fits in float32, and how far do they end from those in float64?

Two tables.  The first has milliseconds of an iteration of the default solver on large data like
text (100,000 x 20,000, 5 million nonzeros).  The second has the last objectives of fits from the
same start, both evaluated in float64, on real texts and images.  With a `--tol` of 0 fits
go on until their paths part.  Do they part by other changes as small?  With `--nudge` both are in
float64, and the start of the second is changed by one part in 10^7.  Accuracy with few labels
is measured by `few_labels --who ours --parameters '{"dtype": "float32"}'`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from common import DATA_SETS, Fits, iteration_seconds, our_runner, start, zipf_text
from records import Options, markdown

import ssnmf_fast as sf

DTYPES = ("float64", "float32")
LOSSES = ("frobenius", "kullback-leibler")
RANKS = (10, 32, 64)
LARGE = "large"


def times(X: Any, cases: Iterable[tuple[str, int]], options: Any) -> list[list[str]]:
    table = []
    for loss, rank in cases:
        sides = {}
        for dtype in DTYPES:
            Z = X.astype(dtype)
            run = our_runner(Z, start(Z, 1, rank)[:2], loss, "auto", options.threads)
            sides[dtype] = Fits(run, *options.iterations)
        wide, narrow = iteration_seconds(sides, options.rounds).values()
        cells = [f"{1000 * wide:.1f}", f"{1000 * narrow:.1f}", f"{wide / narrow:.2f}"]
        table.append([loss, str(rank), *cells])
    return table


def differences(X: Any, cases: Iterable[tuple[str, int]], options: Any) -> list[list[str]]:
    """Return iterations and last objectives by loss and rank, and how far objectives are apart."""
    table = []
    for loss, rank in cases:
        given: Any = {"n_components": rank, "loss": loss, "random_state": 0}
        given |= {"tol": options.tol, "max_iter": options.max_iter}
        if options.nudge:
            S, A = start(X, 1, rank)[:2]
            nudges = 1 + 1e-7 * np.random.default_rng(1).standard_normal(S.shape)
            fits = [sf.factorize(X, init=(F, A), **given) for F in (S, S * nudges)]
        else:
            fits = [sf.factorize(X, dtype=dtype, **given) for dtype in DTYPES]
        pairs = [[F.astype(np.float64) for F in (fit.S, fit.A)] for fit in fits]
        first, second = (sf.extend.objective(X, *pair, loss=loss) for pair in pairs)
        iterations = [str(fit.n_iter) for fit in fits]
        cells = [f"{first:.6g}", f"{second / first - 1:+.1e}"]
        table.append([loss, str(rank), *iterations, *cells])
    return table


OPTIONS = {
    "threads": 2,
    "ranks": list(RANKS),
    "losses": (list(LOSSES), "", LOSSES),
    "parts": ["times", "objectives"],
    "data": ["20 Newsgroups", "Reuters", "MNIST"],
    "tol": (1e-4, "of the fits of the second table"),
    "max_iter": (200, "of the same"),
    "nudge": (False, "two fits in float64"),
    "size": ([100_000, 20_000, 50], None),
    "iterations": ([2, 12], None),
    "rounds": (3, None),
}
QUICK: dict[str, Any] = {
    "size": [300, 200, 20],
    "iterations": [1, 3],
    "rounds": 1,
    "data": [LARGE],
    "ranks": [5],
}
QUICK["max_iter"] = 5


def main(options: Options) -> None:
    large = zipf_text(*options.size)
    cases = list(product(options.losses, options.ranks))
    if "times" in options.parts:
        head = ["loss", "rank", *(f"{dtype}, ms" for dtype in DTYPES), "times as fast"]
        print(markdown(head, times(large, cases, options)))
    for name in options.data if "objectives" in options.parts else []:
        X = large if name == LARGE else DATA_SETS[name]()
        head = [name, "rank", "iterations", "then", "objective", "difference"]
        print(f"\n{markdown(head, differences(X, cases, options))}", flush=True)
