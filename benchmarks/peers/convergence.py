"""How soon is the loss near the best that anyone finds, beside six other packages?

Plain NMF, same data, same start (gensim draws its own), float64, same number of threads.  Every
point is a whole fit of k iterations, timed with its set-up; one function takes the losses of all,
outside of the clock.  No solver is given more iterations than --cap seconds allow: "> 6 s" means
not within them, "never" that its loss had settled above.  In brackets the iterations it took, else
the share by which it stayed above the best.  An iteration of MiniBatchNMF and of gensim is a pass.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from adapters import PEERS, D, F, Problem, ours, version
from cases import SETTLED_BELOW, WITHIN, Case, per_iteration, table
from common import (
    DATA_SETS,
    first_within,
    load_average,
    point,
    refine,
    say,
    start,
    trace,
    zipf_text,
)

RANKS = {"dense": [20]}  # the others: 13 and 50
SHORT = 0.2  # seconds: all fits as short are timed again, for the sake of the plot
LONG_SHARE = 0.4  # of the cap: longer fits are timed once, noise is small beside them
QUICK = {"text": lambda: zipf_text(600, 400, 20), "dense": lambda: DATA_SETS["dense"]()[:300, :200]}


@contextmanager
def thread_limit(n: int) -> Iterator[None]:
    """Let BLAS, OpenMP and, if a peer has loaded it, torch use n threads."""
    from threadpoolctl import threadpool_limits

    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(n)
    with threadpool_limits(n):
        yield


def build(name: str, rank: int, loss: str, options: argparse.Namespace) -> Case:
    """Return the case with nothing timed yet."""
    X = (QUICK if options.quick else DATA_SETS)[name]()
    S, A, _ = start(X, 1, rank)
    problem = Problem(X, S, A, loss, options.threads)
    solvers = ours(problem)
    for peer in options.peers:
        solvers += PEERS[peer].solvers(problem)
    return Case(name, rank, problem, {solver.label: solver for solver in solvers}, {})


def measure(case: Case, turn: int, options: argparse.Namespace) -> None:
    """Trace every solver; then time again, round by round, the fits that decide the figures."""
    warm_up(case.problem, options.peers)
    for label in rotated(list(case.solvers), turn):
        solver = case.solvers[label]
        case.traces[label] = trace(
            solver.fit, case.loss_of(label), options.cap, settled_below=SETTLED_BELOW
        )
        last = case.traces[label][-1]
        say(f"  {label}: {last.iterations} iterations, {last.seconds:.2f} s, loss {last.loss:.6g}")
    for label, solver in case.solvers.items():
        for goal in case.goals():
            case.traces[label] = refine(case.traces[label], goal, solver.fit, case.loss_of(label))
    for turn_again in range(1, options.rounds):
        for label in rotated(list(case.solvers), turn + turn_again):
            time_again(case, label, LONG_SHARE * options.cap)
    case.finish()


def warm_up(problem: Problem, peers: list[str]) -> None:
    """Fit a few samples with everybody: the first time has imports and thread pools to start."""
    few = Problem(problem.X[:200], problem.S[:200], problem.A, problem.loss, problem.threads)
    for peer in peers:
        for solver in PEERS[peer].solvers(few):
            solver.fit(1)
    for solver in ours(few):
        solver.fit(1)


def rotated(labels: list[str], turn: int) -> list[str]:
    """Nobody is always first, nor always after the same solver's heat."""
    turn %= len(labels)
    return labels[turn:] + labels[:turn]


def time_again(case: Case, label: str, longest: float) -> None:
    """Keep the least seconds of the fits that decide the figures, and of the short ones."""
    points = case.traces[label]
    deciding = {points[0], *(first_within(points, goal) for goal in case.goals())}
    for i, old in enumerate(points):
        if old.seconds <= (longest if old in deciding else SHORT):
            new = point(case.solvers[label].fit, lambda _, loss=old.loss: loss, old.iterations)
            points[i] = min(old, new)


def saved(case: Case) -> dict[str, Any]:
    """Return what the JSON file keeps of a case."""
    return {
        "data": case.data,
        "shape": case.problem.X.shape,
        "rank": case.rank,
        "loss": case.problem.loss,
        "best": case.best,
        "load": load_average(),
        "points": {label: [p._asdict() for p in points] for label, points in case.traces.items()},
        "seconds_per_iteration": {
            label: per_iteration(points) for label, points in case.traces.items()
        },
    }


def write(cases: list[Case], folder: Path, facts: dict[str, Any]) -> None:
    """Write all results so far, and the plot of the last case."""
    from plots import plot

    folder.mkdir(parents=True, exist_ok=True)
    results = {**facts, "cases": [saved(case) for case in cases]}
    (folder / "convergence.json").write_text(json.dumps(results, indent=1) + "\n")
    case = cases[-1]
    name = f"{case.data} rank {case.rank} {case.problem.loss}".lower().replace(" ", "-")
    title = f"{case.data}, rank {case.rank}, {case.problem.loss.title()}"
    plot(case.traces, case.best, title, WITHIN, folder / f"{name}.png")


def installed(peers: list[str]) -> dict[str, str]:
    """Return the versions of the peers that are installed; say how to install the others."""
    versions = {}
    for peer in peers:
        found = version(peer)
        if found is None:
            say(f"{peer} is skipped: python -m pip install {PEERS[peer].install}")
        else:
            versions[peer] = found
    return versions


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small synthetic data, seconds")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--data", nargs="+", help=f"of {', '.join(DATA_SETS)}")
    parser.add_argument("--ranks", nargs="+", type=int, help="default: 13 50; dense: 20")
    parser.add_argument("--losses", nargs="+", default=[F, D], choices=[F, D])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="the least of so many is taken")
    parser.add_argument("--cap", type=float, default=6.0, help="seconds of the longest fit")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for results and plots")
    options = parser.parse_args(arguments)
    known = QUICK if options.quick else DATA_SETS
    options.data = options.data or (list(QUICK) if options.quick else ["20 Newsgroups", "dense"])
    if unknown := set(options.data) - set(known):
        parser.error(f"--data: {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    if options.quick:
        options.cap, options.rounds, options.ranks = 0.1, 1, options.ranks or [5]
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    warnings.simplefilter("ignore")  # every fit stops before it has converged
    versions = installed(options.peers)
    options.peers = list(versions)
    facts = {"threads": options.threads, "cap": options.cap, "versions": versions}
    print(f"float64, {options.threads} threads, cap {options.cap:g} s, load {load_average()},")
    print(", ".join(f"{peer} {found}" for peer, found in versions.items()) + "\n")
    cases: list[Case] = []
    with thread_limit(options.threads):
        for name in options.data:
            for rank in options.ranks or RANKS.get(name, [13, 50]):
                for loss in options.losses:
                    say(f"{name}, rank {rank}, {loss} (load {load_average()})")
                    cases.append(build(name, rank, loss, options))
                    measure(cases[-1], len(cases), options)
                    if options.out:
                        write(cases, options.out, facts)
    print(table(cases, options.cap))


if __name__ == "__main__":
    main()
