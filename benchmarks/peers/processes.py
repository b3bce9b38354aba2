"""How soon is the loss near the best, beside packages that need an environment of their own?

    python benchmarks/peers/processes.py --python pyplanc=/path/to/python --python RcppML=Rscript

Plain NMF, same data, same start (* draws its own: median of three), float64, same threads.
Every package has a process of its own, which times whole fits of k iterations without its start;
one function takes the losses of all.  A figure is that of the first fit at or below the loss,
without interpolation.  "> 2 s" is not within --cap, "never" a loss that had settled above.  Last
come many starts of a small matrix on one core, as for consensus over starts: 200 iterations each.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from adapters import D, F, Problem, Solver, ours
from cases import SETTLED_BELOW, WITHIN, Case, per_iteration, readable, time_cell
from common import (
    DATA_SETS,
    Array,
    Point,
    blas_threads,
    first_within,
    load_average,
    markdown,
    refine,
    say,
    seconds,
    start,
    trace,
    zipf_text,
)
from convergence import LONG_SHARE, rotated, saved, time_again
from process import INSTALL, Process, Silent
from restarts import restart_table, restarts
from text_sets import documents

SPARSE, RANKS = ("20 Newsgroups", "Reuters", "20 Newsgroups counts"), (10, 40)
RESTARTS = 200  # iterations of one of many starts


@cache
def signatures(n: int = 96, samples: int = 2000, rank: int = 8) -> Array:
    """Return counts as of mutational signatures, types x samples, about 500 a sample."""
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(n, 0.2), size=rank)
    exposures = rng.gamma(0.3, 500 / (0.3 * rank), size=(samples, rank))
    return rng.poisson(exposures @ profiles).T.astype(float)


SETS: dict[str, Callable[[], Any]] = {
    **{name: DATA_SETS[name] for name in ("20 Newsgroups", "Reuters", "dense")},
    "20 Newsgroups counts": lambda: sp.csr_matrix(documents("20 Newsgroups", "counts")[0]),
    "signatures": signatures,
}
CASES = [
    *((name, rank, F) for name in ("20 Newsgroups", "Reuters") for rank in RANKS),
    ("20 Newsgroups counts", 10, F),
    *(("dense", rank, F) for rank in RANKS),
    ("signatures", 8, F),
    *((name, 10, D) for name in ("20 Newsgroups", "20 Newsgroups counts", "dense")),
    ("signatures", 8, D),
]
QUICK_SETS = {"text": lambda: zipf_text(300, 200, 20), "signatures": lambda: signatures(30, 80)}
QUICK_CASES = [("text", 5, F), ("signatures", 4, D)]


@contextmanager
def processes(problem: Problem, options: argparse.Namespace) -> Iterator[list[Process]]:
    """Write the problem to files, and start every package beside them."""
    opened: list[Process] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for package, interpreter in options.python.items():
                try:
                    found = Process(package, interpreter, Path(folder) / package, problem)
                except Silent as error:
                    say(f"  {error}")
                    continue
                opened.append(found)
                options.versions[package] = found.version
            yield opened
    finally:
        for process in opened:
            process.close()


def build(name: str, rank: int, loss: str, threads: int, options: argparse.Namespace) -> Problem:
    X = (QUICK_SETS if options.quick else SETS)[name]()
    S, A, _ = start(X, 1, rank)
    return Problem(X, S, A, loss, threads)


def all_solvers(problem: Problem, packages: list[Process]) -> dict[str, Solver]:
    """Ours runs in this process."""
    solvers = ours(problem)[:1]
    for process in packages:
        solvers += process.solvers(problem)
    return {solver.label: solver for solver in solvers}


def measure(case: Case, turn: int, options: argparse.Namespace) -> None:
    """Trace every solver, then time again, turn by turn, the fits that decide the figures."""

    def without_silent(label: str, job: Callable[[], Any]) -> None:
        try:
            job()
        except Silent as error:
            say(f"  {label}: {error}")
            del case.solvers[label]
            case.traces.pop(label, None)

    def trace_it(label: str) -> None:
        solver = case.solvers[label]
        solver.fit(1)
        loss_of = case.loss_of(label)
        case.traces[label] = trace(solver.fit, loss_of, options.cap, settled_below=SETTLED_BELOW)
        last = case.traces[label][-1]
        say(f"  {label}: {last.iterations} iterations, {last.seconds:.2f} s, loss {last.loss:.8g}")

    def finer(label: str) -> None:
        for goal in case.goals():
            points, fit = case.traces[label], case.solvers[label].fit
            case.traces[label] = refine(points, goal, fit, case.loss_of(label))

    def again(label: str) -> None:
        time_again(case, label, LONG_SHARE * options.cap)

    for label in rotated(list(case.solvers), turn):
        without_silent(label, lambda label=label: trace_it(label))
    for label in list(case.solvers):
        without_silent(label, lambda label=label: finer(label))
    for round_ in range(1, options.rounds):
        for label in rotated(list(case.solvers), turn + round_):
            without_silent(label, lambda label=label: again(label))
    case.finish()


def times_ours(points: list[Point], mine: list[Point], goal: float, cap: float) -> float | None:
    """Return the ratio to our time; where the goal was not met, the least it can be; None: ours."""
    our, their = first_within(mine, goal), first_within(points, goal)
    if our is None or points is mine:
        return None
    return (their.seconds if their else max(cap, points[-1].seconds)) / our.seconds


def rows_of(case: Case, cap: float) -> list[list[str]]:
    """Return a row for every solver."""
    rows = []
    mine = case.traces["ssnmf_fast"]
    for label, points in case.traces.items():
        row = [case.data, str(case.rank), "F" if case.problem.loss == F else "D", label]
        for goal in case.goals():
            ratio = times_ours(points, mine, goal, cap)
            bound = "" if first_within(points, goal) else "> "
            row += [time_cell(points, goal, case.best, cap)]
            row += ["" if ratio is None else f"{bound}{ratio:.2g}"]
        rows.append([*row, readable(per_iteration(points))])
    return rows


def table(cases: list[Case], cap: float) -> str:
    header = ["data", "rank", "loss", "solver"]
    for share in WITHIN:
        header += [f"to {share * 100:g} % (iterations)", "times ours"]
    return markdown([*header, "per iteration"], [row for c in cases for row in rows_of(c, cap)])


def means(cases: list[Case], cap: float) -> str:
    """Return a table of geometric means of the ratios over the sparse sets, squared error."""
    chosen = [c for c in cases if c.data in (*SPARSE, "text") and c.problem.loss == F]
    labels = dict.fromkeys(label for case in chosen for label in case.traces)
    rows = []
    for label in list(labels)[1:]:
        row = [label]
        for place in range(len(WITHIN)):
            ratios, bound = [], ""
            for case in chosen:
                if label in case.traces:
                    points, goal = case.traces[label], case.goals()[place]
                    ratio = times_ours(points, case.traces["ssnmf_fast"], goal, cap)
                    ratios += [] if ratio is None else [ratio]
                    bound = bound if first_within(points, goal) else "> "
            row.append(f"{bound}{geometric_mean(ratios):.1f} ({len(ratios)})" if ratios else "")
        rows.append(row)
    header = ["solver", *(f"to {share * 100:g} %: times ours (cases)" for share in WITHIN)]
    return markdown(header, rows)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small synthetic data, seconds")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PACKAGE=INTERPRETER",
        help=f"of {', '.join(INSTALL)}; scikit-learn needs none",
    )
    parser.add_argument("--only", nargs="+", metavar="DATA", help=f"of {', '.join(SETS)}, restarts")
    parser.add_argument("--losses", nargs="+", default=[F, D], choices=[F, D])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="the least of so many is taken")
    parser.add_argument("--cap", type=float, default=2.0, help="seconds of the longest fit")
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args(arguments)
    given = dict(each.partition("=")[::2] for each in options.python)
    if unknown := set(given) - set(INSTALL):
        parser.error(f"--python: {', '.join(sorted(unknown))}: choose from {', '.join(INSTALL)}")
    options.python = {"scikit-learn": sys.executable} | given
    options.versions, options.restart = {}, RESTARTS
    if options.quick:
        options.cap, options.rounds, options.starts, options.restart = 0.05, 1, 2, 5
    known = QUICK_SETS if options.quick else SETS
    options.only = options.only or [*known, "restarts"]
    if wrong := set(options.only) - {*known, "restarts"}:
        parser.error(f"--only: {', '.join(sorted(wrong))}: choose from {', '.join(known)}")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    for package, how in INSTALL.items():
        if package not in options.python:
            say(f"{package} is skipped: {how}, then --python {package}=INTERPRETER")
    cases: list[Case] = []
    kept: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []

    def write() -> None:
        kept.extend(saved(case) for case in cases[len(kept) :])  # with the load of now
        if options.out:
            facts = {"threads": options.threads, "cap": options.cap, "versions": options.versions}
            results = {**facts, "cases": kept, "restarts": records}
            options.out.write_text(json.dumps(results, indent=1) + "\n")

    took = seconds(lambda: run(cases, records, options, write))
    print(f"float64, {options.threads} threads, cap {options.cap:g} s, load {load_average()},")
    print(", ".join(f"{p} {v}" for p, v in options.versions.items()) + f"; {took:.0f} s\n")
    if cases:
        print(table(cases, options.cap) + "\n")
        print(means(cases, options.cap) + "\n")
    if records:
        print(restart_table(records))


def run(
    cases: list[Case],
    records: list[dict[str, Any]],
    options: argparse.Namespace,
    write: Callable[[], None],
) -> None:
    with blas_threads(options.threads):
        for turn, (name, rank, loss) in enumerate(QUICK_CASES if options.quick else CASES):
            if name not in options.only or loss not in options.losses:
                continue
            say(f"{name}, rank {rank}, {loss} (load {load_average()})")
            problem = build(name, rank, loss, options.threads, options)
            with processes(problem, options) as packages:
                case = Case(name, rank, problem, all_solvers(problem, packages), {})
                measure(case, turn, options)
            cases.append(case)
            write()
        for loss in options.losses if "restarts" in options.only else []:
            say(f"many starts, {loss} (load {load_average()})")
            problem = build("signatures", 4 if options.quick else 8, loss, 1, options)
            with processes(problem, options) as packages:
                records += restarts(problem, packages, options.starts, options.restart)
            write()


if __name__ == "__main__":
    main()
