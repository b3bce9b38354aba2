"""Figures 2 to 4 of the TS-NMF paper: does naming the topics of some stories help (Reuters)?

Topics of a fit are matched one to one with the 90 true ones by weighted Jaccard similarity of the
columns of S and of the labels; the score is the mean similarity, a topic above 0.1 is resolved.
The paper does not say how S is scaled.  Here a topic's weight is the amount of data it explains,
S times the row sums of A, and the rows of S and of the labels sum to 1 ("rows"); a table shows the
other scales.  The paper judges all stories, also those whose labels the fit has seen, where a
supervised S is zero at every wrong topic by construction; hence also the unlabeled ones alone.

    python benchmarks/papers/topic_supervised.py --out results

The weight 100 is ours; it was chosen on other draws of labels than are reported, of the same
stories.  Every fit is written at once to topic_supervised.jsonl; a later run goes on where an
earlier one was interrupted, or adds draws, rates and methods.  Remove that file to measure anew.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import blas_threads, load_average, measure_missing, new_parser
from topic_supervised_models import LDA, METHODS, measure, random_stories, reuters_stories
from topic_supervised_summary import Results, picture, report

Record = dict[str, Any]
Task = tuple[str, float, int]
RATES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
QUICK_RATES = (0.1, 0.5)


def tasks(options: argparse.Namespace) -> list[Task]:
    """Return all that was asked for: draw by draw, a method's rates together."""
    grid = product(range(options.draws), options.methods, options.rates)
    return [(m, rate, d) for d, m, rate in grid if m != LDA or d < options.lda_draws]


def key(record: Record) -> Task:
    return record["method"], record["rate"], record["draw"]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--draws", type=int, default=5, help="of the labeled stories and starts")
    parser.add_argument("--lda-draws", type=int, default=2, help="at most: a fit takes minutes")
    parser.add_argument("--rates", type=float, nargs="+", help="shares of labeled stories")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="made-up stories, one draw, two rates")
    parser.add_argument("--out", type=Path, help="folder for fits (JSON lines), tables, pictures")
    options = parser.parse_args(arguments)
    options.rates = options.rates or (QUICK_RATES if options.quick else RATES)
    if not all(0 < rate < 1 for rate in options.rates):
        parser.error("--rates must lie between 0 and 1, both excluded")
    if options.quick:
        options.draws = 1
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    path = None
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"topic_supervised{options.quick * '-quick'}.jsonl"
    stories = random_stories() if options.quick else reuters_stories()
    print(f"one thread, load {load_average()}\n")
    with blas_threads(1):
        records = measure_missing(tasks(options), key, lambda task: measure(stories, *task), path)
    results = Results(records)
    summary = report(results, *stories.topics.shape)
    print(summary)
    if path is not None:
        path.with_suffix(".md").write_text(summary)
        picture(results, path.with_suffix(".png"))


if __name__ == "__main__":
    main()
