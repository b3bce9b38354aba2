"""How soon is the loss near the best that anyone finds, in ours and in other packages?

Plain NMF, same data, same start (* draws its own: median of three), float64, same threads.  Every
package has a process of its own, which times whole fits of k iterations with their set-up, but
without their start; one function takes the losses of all.  A figure is that of the first fit at or
below the loss, without interpolation: the iterations in brackets, else the share by which it stayed
above.  No solver is given more iterations than --cap seconds allow: "> 6 s" means not within them,
"never" that its loss had settled above.  An iteration of MiniBatchNMF and of gensim is a pass.
Data of which entries are missing, or most are not observed, are for our solvers alone.

With --starts come fits from many starts of a small matrix on one core, as for consensus over
starts: 200 iterations each.  Packages that are missing are named with how to install them; --python
gives interpreters of other environments.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import cases
from common import blas_threads, load_average
from process import INSTALL, Process, Silent
from records import Options, markdown, say

RANKS = {"dense": [20], "signatures": [8]}  # the others: 13 and 50
SHORT = 0.2  # seconds: all fits as short are timed again, for the sake of the plot
LONG_SHARE = 0.4  # of the cap: longer fits are timed once, noise is small beside them
RESTARTS, ALL_STARTS = 200, 10.0  # iterations of one of many starts; seconds of all of them


@contextmanager
def processes(problem: cases.Problem, options: Options) -> Iterator[list[Process]]:
    """Write the problem to files, and start every package beside them."""
    opened: list[Process] = []
    chosen = list(options.python.items()) if problem.X_weights is None else []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for package, interpreter in chosen:
                try:
                    found = Process(package, interpreter, Path(folder) / package, problem)
                except Silent as error:
                    say(f"  {error}")
                    if package not in options.versions:
                        say(f"{package} is skipped: {INSTALL[package]}")
                        del options.python[package]
                    continue
                opened.append(found)
                options.versions[package] = found.version
            yield opened
    finally:
        for process in opened:
            process.close()


def all_fits(
    problem: cases.Problem, packages: list[Process], solvers: list[str]
) -> dict[str, cases.Fit]:
    """Ours runs in this process: our default, and other solvers of ours."""
    names = {cases.OURS: "auto"} | {f"{cases.OURS} {solver.upper()}": solver for solver in solvers}
    fits: dict[str, cases.Fit] = {label: problem.ours(solver) for label, solver in names.items()}
    for process in packages:
        fits |= process.fits()
    return fits


def rotated(labels: list[str], turn: int) -> list[str]:
    turn %= len(labels)
    return labels[turn:] + labels[:turn]


def measure(case: cases.Case, turn: int, options: Options) -> None:
    objective = case.problem.objective

    def each(labels: list[str], job: Callable[[str], None]) -> None:
        for label in labels:
            try:
                job(label)
            except Silent as error:
                say(f"  {label}: {error}")
                del case.fits[label]
                case.traces.pop(label, None)

    def trace_it(label: str) -> None:
        fit = case.fits[label]
        fit(1)  # imports and thread pools
        case.traces[label] = cases.trace(fit, objective, options.cap, cases.SETTLED_BELOW)
        last = case.traces[label][-1]
        say(f"  {label}: {last.iterations} iterations, {last.seconds:.2f} s, loss {last.loss:.8g}")

    def finer(label: str) -> None:
        for goal in case.goals():
            case.traces[label] = cases.refine(case.traces[label], goal, case.fits[label], objective)

    def again(label: str) -> None:
        """Keep the least seconds of the fits that decide the figures, and of the short ones."""
        points = case.traces[label]
        deciding = {points[0], *(cases.first_within(points, goal) for goal in case.goals())}
        for i, old in enumerate(points):
            if old.seconds <= (LONG_SHARE * options.cap if old in deciding else SHORT):
                new = cases.point(case.fits[label], lambda _, loss=old.loss: loss, old.iterations)
                points[i] = min(old, new)

    each(rotated(list(case.fits), turn), trace_it)
    each(list(case.fits), finer)
    for round_ in range(1, options.rounds):
        each(rotated(list(case.fits), turn + round_), again)
    case.finish()


def many_starts(problem: cases.Problem, packages: list[Process], options: Options) -> Any:
    """Fit many starts with everybody, each with as many iterations; return a row for each."""

    def ours(k: int, seed: int) -> Any:
        return problem.ours("auto", seed)(k)

    fits: dict[str, Callable[..., Any]] = {cases.OURS: ours}
    for process in packages:
        fits |= {label: partial(process.fit, label) for label in process.labels}
    found: dict[str, list[cases.Point]] = {}
    for label, fit in fits.items():
        points: list[cases.Point] = []
        try:
            fit(1, seed=0)  # imports and thread pools
            while len(points) < options.starts and sum(p.seconds for p in points) < ALL_STARTS:
                seeded = partial(fit, seed=len(points))
                points.append(cases.point(seeded, problem.objective, options.restart))
        except Silent as error:
            say(f"  {label}: {error}")
        if points:
            found[label] = points
    best = min(p.loss for points in found.values() for p in points)
    mine = median(p.seconds for p in found[cases.OURS])
    rows, letter = [], "F" if problem.loss == cases.F else "D"
    for label, points in found.items():
        took = median(p.seconds for p in points)
        above = [statistic(p.loss for p in points) / best - 1 for statistic in (median, min)]
        row = [letter, label, str(len(points)), cases.readable(took), f"{took / mine:.1f}"]
        rows.append([*row, *(f"{share:.3%}" for share in above)])
    return rows


def results_of(done: list[cases.Case], options: Options) -> dict[str, Any]:
    found = {name: getattr(options, name) for name in ("threads", "cap", "versions")}
    return {**found, "load": load_average(), "cases": [case.record() for case in done]}


HERE = list(INSTALL)[:6]
# argparse takes % as a format.
ANYWHERE = ", ".join([*cases.SETS, *cases.QUICK_SETS]).replace("%", "%%")
OPTIONS = {
    "peers": (HERE, "in this Python", HERE),
    "python": ([], f"PACKAGE=INTERPRETER, of {', '.join(INSTALL)}"),
    "solvers": (["mu"], "of ours", ["mu", "mm", "hals"]),
    "data": (["20 Newsgroups", "dense"], f"of {ANYWHERE}"),
    "ranks": ([int], "default: 13 50; dense 20"),
    "losses": ([cases.F, cases.D], "", [cases.F, cases.D]),
    "threads": 2,
    "rounds": (3, "rounds, of which the fastest counts"),
    "cap": (6.0, "seconds of the longest fit"),
    "starts": (0, "of a small matrix, as a last table"),
    "restart": (RESTARTS, "iterations of each of them"),
}
QUICK = {
    "data": list(cases.QUICK_SETS),
    "cap": 0.05,
    "rounds": 1,
    "starts": 2,
    "restart": 5,
    "ranks": [5],
}


def main(options: Options) -> dict[str, Any]:
    given = dict(each.partition("=")[::2] for each in options.python)
    known = cases.QUICK_SETS if options.quick else cases.SETS
    if wrong := {*given} - {*INSTALL} or {*options.data} - {*known}:
        raise SystemExit(f"not known: {', '.join(sorted(wrong))}; see --help")
    options.python = dict.fromkeys(options.peers, sys.executable) | given
    options.versions = {}
    done: list[cases.Case] = []
    rows: list[list[str]] = []
    with blas_threads(options.threads):
        for name in options.data:
            ranks = options.ranks or RANKS.get(name, [13, 50])
            for rank, loss in product(ranks, options.losses):
                say(f"{name}, rank {rank}, {loss} (load {load_average()})")
                problem = cases.made(known[name], rank, loss, options.threads)
                with processes(problem, options) as packages:
                    fits = all_fits(problem, packages, options.solvers)
                    done.append(cases.Case(name, problem, fits))
                    measure(done[-1], len(done) - 1, options)
                if options.out:
                    cases.plot(done[-1], options.out)
        for loss in options.losses if options.starts else []:
            say(f"many starts, {loss} (load {load_average()})")
            problem = cases.made(known["signatures"], 4 if options.quick else 8, loss, 1)
            with processes(problem, options) as packages:
                rows += many_starts(problem, packages, options)
    print(f"float64, {options.threads} threads, cap {options.cap:g} s,")
    print(", ".join(f"{peer} {found}" for peer, found in options.versions.items()) + "\n")
    print(cases.table(done, options.cap), cases.means(done, options.cap), sep="\n\n")
    if rows:
        header = ["loss", "solver", "starts", "a start", "times ours", "median above the best"]
        print("\n" + markdown([*header, "lowest above the best"], rows))
    return results_of(done, options)
