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
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    blas_threads,
    load_average,
    markdown,
    mean_and_deviation,
    measure_missing,
    new_parser,
)
from topic_supervised_models import (
    LDA,
    METHODS,
    NMF,
    SCALES,
    SKLEARN_NMF,
    SUPERVISED,
    WHERE,
    measure,
    random_stories,
    reuters_stories,
)

Record = dict[str, Any]
Task = tuple[str, float, int]
RATES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
QUICK_RATES = (0.1, 0.5)
RIVALS = (NMF, SKLEARN_NMF, LDA)
TITLES = {"all": "all stories (as in the paper)", "unlabeled": "unlabeled stories only"}
SCORE, RESOLVED = 0, 1


def tasks(options: argparse.Namespace) -> list[Task]:
    """Return all that was asked for: draw by draw, a method's rates together."""
    grid = product(range(options.draws), options.methods, options.rates)
    return [(m, rate, d) for d, m, rate in grid if m != LDA or d < options.lda_draws]


def key(record: Record) -> Task:
    return record["method"], record["rate"], record["draw"]


class Results:
    """Records by method and rate."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._records: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            self._records[record["method"], record["rate"]].append(record)
        present = {record["method"] for record in records}
        self.methods = [method for method in METHODS if method in present]
        self.rates = sorted({record["rate"] for record in records})

    def of(self, method: str, rate: float) -> list[dict[str, Any]]:
        return self._records.get((method, rate), [])

    def values(
        self, method: str, rate: float, where: str, what: int = SCORE, scale: str = "rows"
    ) -> list[float]:
        return [record[where][scale][what] for record in self.of(method, rate)]


def by_rate(results: Results, where: str, what: int) -> str:
    """Return the table of one measure: methods x rates, mean (standard deviation)."""
    rows = []
    for method in results.methods:
        digits = 3 if what == SCORE else 1
        lists = [results.values(method, rate, where, what) for rate in results.rates]
        cells = [mean_and_deviation(values, digits=digits) if values else "" for values in lists]
        rows.append([method, str(max(map(len, lists))), *cells])
    return markdown(["method", "draws", *(f"{rate:g}" for rate in results.rates)], rows)


def margins(results: Results, where: str) -> str:
    """Return how many times the best rival's mean score each supervised method reaches.

    In parentheses: in how many draws the method lies above every rival's best draw.
    """
    rows = []
    for method in (m for m in results.methods if m in SUPERVISED):
        row = [method]
        for rate in results.rates:
            mine = results.values(method, rate, where)
            theirs = [values for r in RIVALS if (values := results.values(r, rate, where))]
            if not mine or not theirs:
                row.append("")
                continue
            ratio = np.mean(mine) / max(np.mean(values) for values in theirs)
            above = sum(value > max(map(max, theirs)) for value in mine)
            row.append(f"{ratio:.2f} ({above} of {len(mine)})")
        rows.append(row)
    return markdown(["times the best rival", *(f"{rate:g}" for rate in results.rates)], rows)


def scales(results: Results, rate: float) -> str:
    """Return how scores and resolved topics depend on the scale of S, at one rate."""
    header = ["method", *(f"{scale}, {where}" for where in WHERE for scale in SCALES)]
    rows = []
    for method in results.methods:
        row = [method]
        for where in WHERE:
            for scale in SCALES:
                score, resolved = (
                    results.values(method, rate, where, what, scale) for what in (SCORE, RESOLVED)
                )
                row.append(f"{np.mean(score):.3f} / {np.mean(resolved):.0f}" if score else "")
        rows.append(row)
    return markdown(header, rows)


def fits(results: Results) -> str:
    """Return what the fits took, and how well topics match the component of their own name."""
    header = ["method", "iterations, median", "seconds, median", "own name, all", "unlabeled"]
    rows = []
    for method in results.methods:
        records = [record for rate in results.rates for record in results.of(method, rate)]
        row = [method]
        row += [f"{np.median([record['iterations'] for record in records]):g}"]
        row += [f"{np.median([record['seconds'] for record in records]):.1f}"]
        for where in WHERE:
            own = [record[f"named, {where}"] for record in records if method in SUPERVISED]
            row.append(f"{np.mean(own):.3f}" if own else "")
        rows.append(row)
    return markdown(header, rows)


def report(results: Results, documents: int, topics: int) -> str:
    """Return the markdown summary."""
    parts = [f"# TS-NMF: {documents} stories, {topics} topics, by share of labeled stories"]
    for where in WHERE:
        parts += [f"## {TITLES[where].capitalize()}", "Similarity score:"]
        parts += [by_rate(results, where, SCORE), "Resolved topics (similarity above 0.1):"]
        parts += [by_rate(results, where, RESOLVED)]
        if set(RIVALS) & set(results.methods):
            parts += ["Similarity beside the best rival (draws above all of the rivals' draws):"]
            parts += [margins(results, where)]
    rate = min(results.rates, key=lambda rate: abs(rate - 0.2))
    parts += [f"## Scales of S, rate {rate:g} (score / resolved)", scales(results, rate)]
    parts += ["## Fits, all rates", fits(results), coverage(results)]
    return "\n\n".join(parts) + "\n"


def coverage(results: Results) -> str:
    """Return the mean share of topics with a labeled story, by rate."""
    cells = []
    for rate in results.rates:
        found = [record["coverage"] for m in results.methods for record in results.of(m, rate)]
        cells.append(f"{np.mean(found):.2f}")
    return markdown(["rate", *(f"{rate:g}" for rate in results.rates)], [["coverage", *cells]])


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--draws", type=int, default=5, help="of the labeled stories and starts")
    parser.add_argument("--lda-draws", type=int, default=2, help="at most: a fit takes minutes")
    parser.add_argument("--rates", type=float, nargs="+", help="shares of labeled stories")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="made-up stories, one draw, two rates")
    parser.add_argument("--out", type=Path, help="folder for fits (JSON lines), tables")
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


if __name__ == "__main__":
    main()
