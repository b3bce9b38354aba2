"""How long does an iteration take, and in the PyPI packages ssnmf, scikit-learn and tsnmf?

Same data, same start, same updates, same process, turn by turn: the time of an iteration is the
difference of a long fit and a short one, the least of several each, so that setting up is not
counted for anyone.  Ours counts the objective every 10 iterations; ssnmf computes it in every one.

scikit-learn's MU allocates temporaries as large as the data times the rank in every iteration.
What they cost depends on the memory allocator: it has two rows, each from a process of its own.
"kept": freed memory stays with the process, as in one that has run for long.  "returned": it goes
back to the system, as glibc does with large blocks by default, and every iteration asks for it.

tsnmf has Reuters as the paper on TS-NMF prepares it, a share --rate of the stories labeled, without
error weights, which the package does not have.  It computes the objective in every iteration as it
runs by default ("with tol"), never at tol=0.  It begins with S and ours with A: "S differs" starts
ours at the S of its first update, and compares A.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import (
    FREED_MEMORY,
    D,
    F,
    Factors,
    Timing,
    blas_threads,
    iteration_seconds,
    load_average,
    newsgroups,
    one_hot,
    panels,
    sklearn_runner,
    start,
    zipf_text,
)
from records import Options, Record, grouped, say, tabulate
from run import command

import ssnmf_fast as sf

LOSS_NAMES = {F: "F", D: "D"}
SPELLED = {F: "squared error", D: "Kullback-Leibler"}
CLASSES = 5
# Number of the model in ssnmf, losses of X and of Y, target.
SSNMF_MODELS = (
    (3, F, F, 150),
    (4, F, D, 150),
    (5, D, F, 250),
    (6, D, D, 250),
    (1, F, None, None),
    (2, D, None, None),
)
SKLEARN_TARGETS = {D: 40, F: 1}
TINY = 1e-300  # a tolerance that is never met


class Case(NamedTuple):
    """One row of the table."""

    model: str
    peer: str
    rank: int
    target: int | None
    ours: Timing
    theirs: Timing
    agreement: Callable[[], float] | None = None


def distance(ours: Any, theirs: Any) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def our_run(
    X: Any, Y: Any, losses: tuple[str, str | None], rank: int, options: Options
) -> Callable[[int], sf.results.Factorization]:
    init, supervised = start(X, CLASSES, rank), losses[1] is not None
    return lambda k: sf.factorize(
        X,
        Y if supervised else None,
        n_components=rank,
        loss=losses[0],
        supervision_loss=losses[1] or F,
        init=init if supervised else init[:2],
        solver=options.solver,
        tol=0,
        max_iter=k,
        n_threads=options.threads,
    )


def ssnmf_cases(X: Any, Y: Any, options: Options) -> list[Case]:
    """The four models and plain NMF against ssnmf, which wants dense, features x samples."""
    from ssnmf.ssnmf import SSNMF_N

    dense, labels, rank = np.ascontiguousarray(X.T.toarray()), np.ascontiguousarray(Y.T), 13
    S, A, B = start(X, CLASSES, rank)

    def case(number: int, x_loss: str, y_loss: str | None, target: int | None) -> Case:
        ours = our_run(X, Y, (x_loss, y_loss), rank, options)

        def theirs(k: int) -> Any:
            given = {"A": A.T.copy(), "S": S.T.copy(), "tol": -np.inf}
            given |= {"Y": labels, "B": B.T.copy(), "lam": 1.0} if y_loss else {}
            peer = SSNMF_N(dense, rank, modelNum=number, **given)
            peer.mult(numiters=k)
            return peer

        def agreement() -> float:
            return distance(ours(3).S, theirs(3).S.T)

        name = f"({LOSS_NAMES[x_loss]},{LOSS_NAMES[y_loss]})" if y_loss else "NMF " + x_loss
        sides = (
            Timing(ours, 0, options.iterations),
            Timing(theirs, 1, 1 + options.peer_iterations),
        )
        return Case(name, "ssnmf", rank, target, *sides, agreement)

    return [case(*model) for model in SSNMF_MODELS]


def sklearn_cases(X: Any, Y: Any, options: Options) -> list[Case]:
    def case(loss: str, rank: int) -> Case:
        ours = our_run(X, Y, (loss, None), rank, options)
        theirs = sklearn_runner(X, start(X, CLASSES, rank)[:2], loss, "mu")
        many = 1 + options.peer_iterations * (1 if loss == D else 5)
        sides = Timing(ours, 0, options.iterations), Timing(theirs, 1, many)
        return Case("NMF " + loss, "scikit-learn MU", rank, SKLEARN_TARGETS[loss], *sides)

    return [case(loss, rank) for loss in (D, F) for rank in (13, 50)]


def tsnmf_cases(X: Any, Y: Any, options: Options) -> list[Case]:
    """TS-NMF against tsnmf, with the same updates and with our default solver."""
    from topic_supervised import labeled_rows, random_stories, reuters_stories
    from tsnmf import TSNMF

    stories = random_stories() if options.synthetic else reuters_stories()
    rank = stories.topics.shape[1]
    given = start(stories.X, 1, rank)[:2]
    y = stories.topics * labeled_rows(stories, options.rate, 0)[:, None]
    lists = [np.flatnonzero(row).tolist() for row in y]

    def ours(k: int, solver: str, init: Factors = given) -> Any:
        model = sf.TopicSupervisedNMF(
            init=init,
            labeled_weight=1.0,
            solver=solver,
            tol=0,
            max_iter=k,
            n_threads=options.threads,
            predicts=False,  # Fitting it takes longer than the iterations.
        )
        return model.fit(stories.X, y)

    def theirs(k: int, tol: float = 0) -> Any:
        # It has no name for a given start: any init it knows is overridden by W and H.
        model = TSNMF(rank, init="random", tol=tol, max_iter=k)
        return model, model.fit_transform(stories.X, lists, W=given[0].copy(), H=given[1].copy())

    def agreement() -> float:
        first = theirs(1)[1]
        return distance(ours(3, "mu", (first, given[1])).components_, theirs(3)[0].components_)

    def case(solver: str, tol: float, target: int | None) -> Case:
        sides = (
            Timing(lambda k: ours(k, solver), 5, 55),
            Timing(lambda k: theirs(k, tol), 5, 55),
        )
        peer = "tsnmf with tol" if tol else "tsnmf"
        checked = agreement if solver == "mu" and not tol else None
        return Case(f"TS-NMF {solver}", peer, rank, target, *sides, checked)

    return [case("mu", 0, 4), case("mu", TINY, None), case("auto", 0, None)]


def with_memory(memory: str, options: Options) -> list[Record]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    order = command("iterations", "--peers", "sklearn", "--memory", memory)
    order += ["--quick"] * options.quick
    for name in ("threads", "solver", "iterations", "rounds", "peer_iterations", "synthetic"):
        if getattr(options, name) is not None:
            order += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    with tempfile.TemporaryDirectory() as folder:
        environment = given | FREED_MEMORY[memory]
        subprocess.run(
            [*order, "--out", folder], env=environment, stdout=subprocess.DEVNULL, check=True
        )
        results = json.loads(next(Path(folder).glob("*.json")).read_text())
    return [result | {"memory": memory} for result in results]


def measure(case: Case, rounds: int) -> dict[str, Any]:
    case.ours.run(1)
    mine, peers = iteration_seconds({"ours": case.ours, "peer": case.theirs}, rounds).values()
    say(f"{case.model} / {case.peer} r={case.rank}: {peers / mine:.1f}x (load {load_average()})")
    return {
        "model": case.model,
        "peer": case.peer,
        "rank": case.rank,
        "seconds": mine,
        "peer_seconds": peers,
        "ratio": peers / mine,
        "target": case.target,
        "difference": case.agreement() if case.agreement else None,
        "load": load_average(),
    }


def label(model: str, rank: int) -> str:
    if model.startswith("NMF"):
        return f"NMF, rank {rank}: {SPELLED[model.removeprefix('NMF ')]}"
    if not model.startswith("("):
        return f"{model}, rank {rank}"
    spelled = {LOSS_NAMES[loss]: text for loss, text in SPELLED.items()}
    x_loss, y_loss = (spelled[letter] for letter in model[1:-1].split(","))
    more = f",\n{y_loss} of the labels" if x_loss != y_loss else ""
    return f"SSNMF, rank {rank}: {x_loss}{more}"


def draw(results: list[Record], place: Path) -> None:
    """Draw the smallest ratio of each case as a bar."""
    cases = grouped(results, "peer", "model", "rank")
    ratios = {case: min(r["ratio"] for r in own) for case, own in cases.items()}
    order = sorted(ratios, key=lambda case: (case[0] == "ssnmf", ratios[case]))
    peers = [*dict.fromkeys(case[0] for case in reversed(order))]
    figure, ((axes,),) = panels(6, 0.6 + 0.4 * len(order))
    for color, peer in zip(("#0072b2", "#e69f00", "#009e73", "#cc79a7"), peers, strict=False):
        at = [k for k, case in enumerate(order) if case[0] == peer]
        bars = axes.barh(at, [ratios[order[k]] for k in at], color=color, label=f"than {peer}")
        axes.bar_label(bars, [f"{float(f'{ratios[order[k]]:.2g}'):g}" for k in at], padding=3)
    axes.set_yticks(range(len(order)), [label(*case[1:]) for case in order])
    axes.set(xscale="log", xlabel="times faster, one iteration", xlim=(1, 4 * max(ratios.values())))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(place, dpi=100)


TABLE: dict[str, Any] = {
    "model": "{model}",
    "peer": "{peer}",
    "rank": "{rank}",
    "memory": "{memory}",
    "ours, ms": lambda r: f"{r['seconds'] * 1e3:.2f}",
    "peer, ms": lambda r: f"{r['peer_seconds'] * 1e3:.1f}",
    "ratio": "{ratio:.1f}",
    "target": lambda r: "" if r["target"] is None else str(r["target"]),
    "met": lambda r: "" if r["target"] is None else "yes" if r["ratio"] >= r["target"] else "NO",
    "S differs": lambda r: "" if r["difference"] is None else f"{r['difference']:.0e}",
}
BUILDERS = {"ssnmf": ssnmf_cases, "sklearn": sklearn_cases, "tsnmf": tsnmf_cases}
OPTIONS = {
    "peers": (["ssnmf", "sklearn"], "", BUILDERS),
    "threads": 2,
    "solver": ("mu", "", ["mu", "mm", "hals", "auto"]),
    "iterations": 50,
    "rounds": 3,
    "peer_iterations": 6,
    "rate": (0.2, "of labeled stories, for tsnmf"),
    "synthetic": (int, "number of random texts to use instead"),
    "memory": (str, None, list(FREED_MEMORY)),
}
QUICK = {"rounds": 1, "peer_iterations": 2}


def main(options: Options) -> list[Record]:
    if options.synthetic:
        X, Y = zipf_text(options.synthetic, 1000, 40), one_hot(options.synthetic)
    else:
        X, Y = newsgroups()
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} nonzeros, {X.dtype}, {options.threads} threads,")
    print(f"solver {options.solver}\n")
    results: list[Record] = []
    with blas_threads(options.threads):
        for peer in options.peers:
            if peer == "sklearn" and not options.memory:
                for memory in FREED_MEMORY:
                    results += with_memory(memory, options)
                continue
            results += [measure(case, options.rounds) for case in BUILDERS[peer](X, Y, options)]
    results.sort(key=lambda r: (r["peer"] != "ssnmf", r["model"] != "NMF " + D, r["rank"]))
    print(tabulate(results, **TABLE))
    if options.out:
        draw(results, options.out / "speed.png")
    return results
