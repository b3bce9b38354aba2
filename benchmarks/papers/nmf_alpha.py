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
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import blas_threads, load_average, measure_missing, new_parser
from nmf_alpha_data import DATA, RATES, Data, made_up, split
from nmf_alpha_methods import METHODS, RAW, Case, measure, possible
from nmf_alpha_summary import basis_images, curves, report

Record = dict[str, Any]
Task = tuple[int, int, float, str]  # split, rank, rate, method
KEY = ("split", "rank", "rate", "method")


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
    """Run one data set, write its tables and pictures, and return the tables."""
    data = made_up(name) if options.quick else DATA[name]()
    stem = f"nmf-alpha-{name}" + options.quick * "-quick"
    path = options.out / f"{stem}.jsonl" if options.out else None
    records = run(data, options, path)
    summary = report(name, records, options.updates)
    if options.out:
        (options.out / f"{stem}.md").write_text(summary)
        curves(name, records, options.out / f"{stem}.png")
        if name == "mnist" and options.figure:
            rank = 4 if options.quick else 64
            case = Case(data, split(data, 0), 0.5 if options.quick else 0.02, 0, options.updates)
            basis_images(case, rank, options.out / f"{stem}-basis.png")
    return summary


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=list(DATA), help="default: all")
    parser.add_argument("--splits", type=int, default=5, help="as many as in the paper")
    parser.add_argument("--ranks", type=int, nargs="+", default=[20, 40, 80])
    parser.add_argument("--rates", type=float, nargs="+", help="shares of labeled training rows")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--updates", type=int, default=100, help="of every factorization")
    parser.add_argument("--no-figure", dest="figure", action="store_false", help="skip Figure 2")
    parser.add_argument("--quick", action="store_true", help="small made-up data, one split")
    parser.add_argument(
        "--out", type=Path, help="folder for results (JSON lines), tables, pictures"
    )
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
