"""How much faster are fits in float32, and how far do they end from those in float64?

    python benchmarks/dtypes.py

Two tables.  The first has milliseconds of an iteration of the default solver on large data like
text (100,000 x 20,000, 5 million nonzeros).  The second has the last objectives of fits from the
same start, both evaluated in float64, on real texts and images.  With a `--tol` of 0 fits
go on until their paths part.  Do they part by other changes as small?  With `--nudge` both are in
float64, and the start of the second is changed by one part in 10^7.  Accuracy with few labels
is measured by `few_labels.py --who ours --parameters '{"dtype": "float32"}'`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from common import (
    DATA_SETS,
    Fits,
    iteration_seconds,
    load_average,
    markdown,
    new_parser,
    our_runner,
    say,
    start,
    zipf_text,
)

DTYPES = ("float64", "float32")
LOSSES = ("frobenius", "kullback-leibler")
RANKS = (10, 32, 64)
LARGE = "large"


def times(X: Any, cases: Iterable[tuple[str, int]], options: Any) -> list[list[str]]:
    """Return milliseconds of an iteration by loss and rank."""
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
    import ssnmf_fast as sf

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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--parts", nargs="+", default=["times", "objectives"])
    parser.add_argument("--data", nargs="+", default=["20 Newsgroups", "Reuters", "MNIST"])
    parser.add_argument("--tol", type=float, default=1e-4, help="of the fits of the second table")
    parser.add_argument("--max-iter", type=int, default=200, help="of the same")
    parser.add_argument("--nudge", action="store_true", help="two fits in float64")
    parser.add_argument("--quick", action="store_true", help="small data, few iterations")
    options = parser.parse_args(arguments)
    size, options.iterations, options.rounds = (100_000, 20_000, 50), (2, 12), 3
    if options.quick:
        size, options.iterations, options.rounds = (300, 200, 20), (1, 3), 1
        options.data, options.ranks, options.max_iter = [LARGE], [5], 5
    large = zipf_text(*size)
    cases = list(product(options.losses, options.ranks))
    say(f"load of the last minute: {load_average()}")
    if "times" in options.parts:
        head = ["loss", "rank", *(f"{dtype}, ms" for dtype in DTYPES), "times as fast"]
        print(markdown(head, times(large, cases, options)))
    if "objectives" in options.parts:
        for name in options.data:
            X = large if name == LARGE else DATA_SETS[name]()
            head = [name, "rank", "iterations", "then", "objective", "difference"]
            print(f"\n{markdown(head, differences(X, cases, options))}", flush=True)


if __name__ == "__main__":
    main()
