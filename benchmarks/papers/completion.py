"""Chapter 2 of Kassab's thesis: does Structured sIRLS complete structured matrices better?

Matrices of known rank are products of sparse nonnegative factors.  A share of their zeros and a
share of their nonzeros is observed; every pair of shares is a cell of a map (figures 2.1 to 2.7).
The error is ||X - M||_F / ||M||_F with observed entries exact.  Beside sIRLS and Structured sIRLS
("structured-sirls") run Structured sIRLS without its sparsity step (c = 0), which tells what that
step does, and our default "auto"; Structured NNM takes the best of four alphas for every matrix.

    python benchmarks/papers/completion.py --figure 2.3 2.5 --out results

Figures: 2.1 (1000 x 1000) and 2.2 (500 x 500) on a coarse grid, 2.3 (rank 10), 2.4 (unknown rank),
2.5 (rank 20), 2.6 (30 x 30, Structured NNM), 2.7 and 2.7b (noise 1e-4, 1e-3, where the thesis
compares with the noisy matrix).  The thesis has 20 matrices.  Every fit is written at once to
completion-<figure>.jsonl; a later run goes on where an earlier one was interrupted, or adds
matrices, methods and cells.  Remove that file to measure anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import append_records, blas_threads, load_average, new_parser, read_records, say
from completion_cases import EXPERIMENTS, METHODS, Cell, Experiment, measure, rates
from completion_summary import Results, pictures, report

Record = dict[str, Any]
Task = tuple[Experiment, Cell, list[str]]
QUICK = ["2.3", "2.6", "2.7"]


def tasks(
    experiment: Experiment, step: float, matrices: int, methods: list[str], done: list[Record]
) -> list[Task]:
    """Return what is still to do, matrix by matrix, so that all cells soon have one."""
    known = {(r["zero"], r["nonzero"], r["matrix"], r["method"]) for r in done}
    left = []
    for number, nonzero, zero in product(range(matrices), rates(step), rates(step)):
        cell = (zero, nonzero, number)
        needed = [method for method in methods if (*cell, method) not in known]
        if needed:
            left.append((experiment, cell, needed))
    return left


def work(task: Task) -> list[Record]:
    """Run one task, with one thread."""
    with blas_threads(1):
        return measure(*task)


def run(todo: list[Task], jobs: int) -> Iterator[list[Record]]:
    """Yield the records of every task as soon as it is done."""
    if jobs == 1:
        yield from map(work, todo)
        return
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, task) for task in todo]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def one_figure(name: str, options: argparse.Namespace) -> str:
    """Run what is missing of one figure, write it, and return its summary."""
    experiment = EXPERIMENTS[name]
    if options.quick:
        experiment = replace(experiment, size=30, rank=min(experiment.rank, 4))
    methods = options.methods or list(experiment.methods)
    step = options.step or experiment.step
    stem = f"completion-{name}" + options.quick * "-quick"
    path = options.out / f"{stem}.jsonl" if options.out else None
    records = read_records(path)
    todo = tasks(experiment, step, options.matrices, methods, records)
    begin = said = perf_counter()
    for number, new in enumerate(run(todo, options.jobs), 1):
        records += new
        append_records(path, new)
        if perf_counter() - said > 20 or number == len(todo):
            said = perf_counter()
            left = (said - begin) * (len(todo) / number - 1)
            say(f"figure {name}: {number} of {len(todo)}, {said - begin:.0f} s, {left:.0f} s left")
    chosen = set(rates(step))
    records = [r for r in records if wanted(r, chosen, options.matrices, methods)]
    records.sort(key=lambda r: methods.index(r["method"]))
    results = Results(records)
    summary = report(name, experiment, results)
    if options.out:
        (options.out / f"{stem}.md").write_text(summary)
        pictures(name, experiment, results, options.out / f"{stem}.png")
    return summary


def wanted(record: Record, chosen: set[float], matrices: int, methods: list[str]) -> bool:
    """Does a fit of this or an earlier run belong to the grid that was asked for?"""
    return (
        {record["zero"], record["nonzero"]} <= chosen
        and record["matrix"] < matrices
        and record["method"] in methods
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--figure", nargs="+", choices=list(EXPERIMENTS), help="default: all")
    parser.add_argument("--matrices", type=int, default=3, help="for every cell; the thesis: 20")
    parser.add_argument("--step", type=float, help="of the rates; default .05, .2 for 2.1 and 2.2")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--quick", action="store_true", help="30 x 30, 4 x 4 cells, one matrix")
    parser.add_argument("--out", type=Path, help="folder for fits (JSON lines), tables, pictures")
    options = parser.parse_args(arguments)
    if options.quick:
        options.matrices, options.step = 1, 0.25
    options.figure = options.figure or (QUICK if options.quick else list(EXPERIMENTS))
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    print(f"one thread a fit, {options.jobs} processes, load {load_average()}\n")
    for name in options.figure:
        print(one_figure(name, options), flush=True)


if __name__ == "__main__":
    main()
