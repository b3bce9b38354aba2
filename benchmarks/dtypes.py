"""How much faster are fits in float32, and how far do they end from those in float64?

    python benchmarks/dtypes.py

Two tables.  The first has milliseconds of an iteration of the default solver on large data like
text (100,000 x 20,000, 5 million nonzeros).  The second has the last objectives of fits from the
same start, both evaluated in float64, on this and on real texts and images.  Accuracy with few
labels is measured by `few_labels.py --who ours --parameters '{"dtype": "float32"}'`.
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


def differences(X: Any, cases: Iterable[tuple[str, int]], max_iter: int) -> list[list[str]]:
    """Return the last objectives by loss and rank, and their relative difference."""
    import ssnmf_fast as sf

    table = []
    for loss, rank in cases:
        values = []
        for dtype in DTYPES:
            given: Any = {"loss": loss, "max_iter": max_iter, "tol": 0, "random_state": 0}
            fit = sf.factorize(X, n_components=rank, dtype=dtype, **given)
            S, A = (F.astype(np.float64) for F in (fit.S, fit.A))
            values.append(sf.objective(X, S, A, loss=loss))
        wide, narrow = values
        table.append([loss, str(rank), f"{wide:.6g}", f"{narrow / wide - 1:+.1e}"])
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--parts", nargs="+", default=["times", "objectives"])
    parser.add_argument("--data", nargs="+", default=["20 Newsgroups", "Reuters", "MNIST", LARGE])
    parser.add_argument("--max-iter", type=int, default=100, help="of the objectives")
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
            head = [name, "rank", "objective", "float32"]
            print(f"\n{markdown(head, differences(X, cases, options.max_iter))}", flush=True)


if __name__ == "__main__":
    main()
