"""Section 3 of the NMF-alpha paper: do labels help a reduction that precedes a linear classifier?

Three tasks (MNIST fours against nines, 20 Newsgroups, aviation safety reports), several shares of
labeled training rows, several ranks, five splits into training and validation rows, one test
part.  Every reduction sees all training rows; linear support vector machines are trained on the
labeled ones alone, mapped as the test rows are.  Their penalty, and the weight of the supervision,
are chosen by the validation rows, whose labels are known, as in the paper.

    python benchmarks/papers/nmf_alpha.py --data mnist --rates 0.05 0.1 --out results

Since a choice among weights is in itself worth something, "NMF, chosen start" chooses among as many
random starts.  Every result is written at once to nmf-alpha-<data>.jsonl; a later run goes on where
an earlier one was interrupted, or adds splits, ranks, rates and methods.  Remove that file to
measure anew, and after a change of the weights in nmf_alpha_methods.py.  On one core two rates
and three ranks of MNIST take about 25 minutes, two ranks of 20 Newsgroups 12.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
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
from nmf_alpha_data import DATA, RATES, Data, made_up, split
from nmf_alpha_methods import ALPHA, METHODS, RAW, WEIGHTS, Case, measure, possible

Record = dict[str, Any]
Task = tuple[int, int, float, str]  # split, rank, rate, method
KEY = ("split", "rank", "rate", "method")
TITLES = {
    "mnist": "MNIST, fours against nines: accuracy, %",
    "news": "20 Newsgroups: accuracy, %",
    "aviation": "Aviation reports: mean of macro and micro F-measure, x 100",
}


def tasks(data: Data, options: argparse.Namespace) -> list[Task]:
    """Return what belongs to the run, split by split; raw inputs have one rank only, 0."""
    rates = options.rates or RATES[data.name]
    chosen = []
    for number, rank, rate, method in product(
        range(options.splits), [0, *options.ranks], rates, options.methods
    ):
        if (rank == 0) == (method == RAW) and possible(method, data):
            chosen.append((number, rank, rate, method))
    return chosen


def run(data: Data, options: argparse.Namespace, path: Path | None) -> list[Record]:
    """Measure what is missing, write it, and return all records of the run."""
    splits = [split(data, number) for number in range(options.splits)]

    def key(record: Record) -> Task | None:
        number, rank, rate, method = (record[name] for name in KEY)
        return (number, rank, rate, method) if record["updates"] == options.updates else None

    def result(task: Task) -> Record:
        number, rank, rate, method = task
        case = Case(data, splits[number], rate, number, options.updates)
        record = dict(zip(KEY, task, strict=True)) | measure(case, rank, method)
        return record | {"updates": options.updates}

    return measure_missing(tasks(data, options), key, result, path, data.name)


def one_data_set(name: str, options: argparse.Namespace) -> str:
    """Run one data set, write its tables, and return them."""
    data = made_up(name) if options.quick else DATA[name]()
    stem = f"nmf-alpha-{name}" + options.quick * "-quick"
    path = options.out / f"{stem}.jsonl" if options.out else None
    records = run(data, options, path)
    summary = report(name, records, options.updates)
    if options.out:
        (options.out / f"{stem}.md").write_text(summary)
    return summary


def tests(records: list[Record], **wanted: Any) -> dict[int, float]:
    """Return the test score of every split."""
    return {
        record["split"]: record["test"]
        for record in records
        if all(record[name] == value for name, value in wanted.items())
    }


def values(records: list[Record], name: str) -> list[Any]:
    """Return the values that occur; ranks without the 0 of raw inputs."""
    found = {record[name] for record in records}
    return sorted(found - {0} if name == "rank" else found)


def scores(records: list[Record]) -> str:
    """Return mean (standard deviation) over the splits for every method, rate and rank."""
    ranks = values(records, "rank") or [0]
    methods = [m for m in METHODS if m in values(records, "method")]
    rows = []
    for rate in values(records, "rate"):
        for method in methods:
            row = [f"{rate:.0%}", method]
            for rank in ranks:
                found = tests(records, rate=rate, method=method, rank=0 if method == RAW else rank)
                row.append(mean_and_deviation(list(found.values()), 100) if found else "")
            rows.append(row)
    return markdown(["labeled", "method", *(f"rank {rank}" for rank in ranks)], rows)


def differences(records: list[Record]) -> str:
    """Return how far NMF-alpha is above others, on the same splits, and in how many of them."""
    ranks = values(records, "rank")
    rows = []
    for rate in values(records, "rate"):
        for method in METHODS:
            row = [f"{rate:.0%}", method]
            for rank in ranks:
                ours = tests(records, rate=rate, method=ALPHA, rank=rank)
                other = 0 if method == RAW else rank
                theirs = tests(records, rate=rate, method=method, rank=other)
                above = [ours[number] - theirs[number] for number in ours if number in theirs]
                wins = sum(difference > 0 for difference in above)
                row.append(f"{100 * np.mean(above):+.2f}, {wins} of {len(above)}" if above else "")
            if method != ALPHA and any(row[2:]):
                rows.append(row)
    return markdown(["labeled", "NMF-alpha above", *(f"rank {rank}" for rank in ranks)], rows)


def weights(records: list[Record], method: str) -> str:
    """Return the mean test score of every weight, and in how many splits it was chosen."""
    ours = [record for record in records if record["method"] == method]
    rows = []
    for rate in values(ours, "rate"):
        for rank in values(ours, "rank"):
            here = [r for r in ours if r["rate"] == rate and r["rank"] == rank]
            if not here:
                continue
            times = Counter(record["weight"] for record in here)
            row = [f"{rate:.0%}", str(rank)]
            for place, weight in enumerate(WEIGHTS[method]):
                score = np.mean([record["grid"][place]["test"] for record in here])
                row.append(f"{100 * score:.2f} ({times[weight]})")
            rows.append(row)
    return markdown(["labeled", "rank", *(f"{weight:g}" for weight in WEIGHTS[method])], rows)


def report(name: str, records: list[Record], updates: int) -> str:
    """Return the markdown summary of one data set."""
    splits = len(values(records, "split"))
    parts = [
        f"## {TITLES[name]}",
        f"Mean (standard deviation) of the test scores of {splits} splits, {updates} updates.",
        scores(records),
    ]
    methods = values(records, "method")
    if ALPHA in methods and len(methods) > 1:
        parts += ["Mean difference, and splits in which NMF-alpha is better:"]
        parts += [differences(records)]
    for method in [m for m in WEIGHTS if m in methods]:
        parts += [f"{method} by weight (1: as large in total as the data), and how often chosen:"]
        parts += [weights(records, method)]
    return "\n\n".join(parts) + "\n"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=list(DATA), help="default: all")
    parser.add_argument("--splits", type=int, default=5, help="as many as in the paper")
    parser.add_argument("--ranks", type=int, nargs="+", default=[20, 40, 80])
    parser.add_argument("--rates", type=float, nargs="+", help="shares of labeled training rows")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--updates", type=int, default=100, help="of every factorization")
    parser.add_argument("--quick", action="store_true", help="small made-up data, one split")
    parser.add_argument("--out", type=Path, help="folder for results (JSON lines), tables")
    options = parser.parse_args(arguments)
    options.data = options.data or list(DATA)
    if options.quick:
        options.splits, options.ranks, options.rates, options.updates = 1, [3], [0.5], 10
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    print(f"one thread, load {load_average()}\n")
    with blas_threads(1):
        for name in options.data:
            print(one_data_set(name, options), flush=True)


if __name__ == "__main__":
    main()
