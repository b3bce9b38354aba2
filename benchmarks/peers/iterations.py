"""How many seconds does an iteration take, beside the PyPI package ssnmf and scikit-learn?

Same data, same start, same updates, same process, turn by turn.  Ours counts the objective every 10
iterations; ssnmf computes it in every one.  Setting up is not counted for anyone.

scikit-learn's MU allocates temporaries as large as the data times the rank in every iteration.
What they cost depends on the memory allocator: it has two rows, each from a process of its own.
"kept": freed memory stays with the process, as in one that has run for long.  "returned": it goes
back to the system, as glibc does with large blocks by default, and every iteration asks for it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    blas_threads,
    load_average,
    markdown,
    newsgroups,
    one_hot,
    say,
    seconds,
    start,
    zipf_text,
)

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
LOSS_NAMES = {F: "F", D: "D"}
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
# What glibc does with freed memory, by its environment variables; others ignore them.
MEMORY = {
    "kept": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)},
    "returned": {},
}


@dataclass
class Side:
    """``run(k)`` prepares a fit of k iterations and returns what is to be timed."""

    run: Callable[[int], Callable[[], Any]]
    few: int
    many: int

    def sample(self) -> tuple[float, float]:
        low = seconds(self.run(self.few)) if self.few >= 0 else 0.0
        return low, seconds(self.run(self.many))

    def per_iteration(self, samples: list[tuple[float, float]]) -> float:
        low, high = (min(times) for times in zip(*samples, strict=True))
        return (high - low) / (self.many - max(self.few, 0))


@dataclass
class Case:
    """One row of the table."""

    model: str
    peer: str
    rank: int
    target: int | None
    ours: Side
    theirs: Side
    agreement: Callable[[], float] | None = None


def our_side(
    X: Any, Y: Any, losses: tuple[str, str | None], rank: int, options: argparse.Namespace
) -> Side:
    S, A, B = start(X, options.classes, rank)

    def run(k: int) -> Callable[[], Any]:
        return lambda: our_fit(X, Y, losses, rank, (S, A, B), k, options)

    return Side(run, 0, options.iterations)


def our_fit(
    X: Any, Y: Any, losses: tuple[str, str | None], rank: int, init: Any, k: int, options: Any
) -> sf.Factorization:
    supervised = losses[1] is not None
    return sf.factorize(
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


def ssnmf_cases(X: Any, Y: Any, options: argparse.Namespace) -> list[Case]:
    """The four models and plain NMF against ssnmf, which wants dense, features x samples."""
    from ssnmf.ssnmf import SSNMF_N

    dense, labels, rank = np.ascontiguousarray(X.T.toarray()), np.ascontiguousarray(Y.T), 13
    S, A, B = start(X, options.classes, rank)

    def model(number: int, supervised: bool) -> Any:
        supervision_loss = {"Y": labels, "B": B.T.copy(), "lam": 1.0} if supervised else {}
        return SSNMF_N(
            dense,
            rank,
            modelNum=number,
            A=A.T.copy(),
            S=S.T.copy(),
            tol=-np.inf,
            **supervision_loss,
        )

    def case(number: int, x_loss: str, y_loss: str | None, target: int | None) -> Case:
        def run(k: int) -> Callable[[], Any]:
            peer = model(number, y_loss is not None)
            return lambda: peer.mult(numiters=k)

        def agreement() -> float:
            peer = model(number, y_loss is not None)
            peer.mult(numiters=3)
            fit = our_fit(X, Y, (x_loss, y_loss), rank, (S, A, B), 3, options)
            return float(np.linalg.norm(fit.S - peer.S.T) / np.linalg.norm(fit.S))

        name = f"({LOSS_NAMES[x_loss]},{LOSS_NAMES[y_loss]})" if y_loss else "NMF " + x_loss
        ours = our_side(X, Y, (x_loss, y_loss), rank, options)
        peer_side = Side(run, -1, options.peer_iterations)
        return Case(name, "ssnmf", rank, target, ours, peer_side, agreement)

    return [case(*model_) for model_ in SSNMF_MODELS]


def sklearn_cases(X: Any, Y: Any, options: argparse.Namespace) -> list[Case]:
    """Plain NMF against scikit-learn's multiplicative updates."""
    from sklearn.decomposition import NMF

    def case(loss: str, rank: int) -> Case:
        S, A, _ = start(X, options.classes, rank)

        def run(k: int) -> Callable[[], Any]:
            peer = NMF(rank, solver="mu", beta_loss=loss, init="custom", tol=0, max_iter=k)
            W, H = S.copy(), A.copy()
            return lambda: peer.fit_transform(X, W=W, H=H)

        ours = our_side(X, Y, (loss, None), rank, options)
        many = 1 + options.peer_iterations * (1 if loss == D else 5)
        target = SKLEARN_TARGETS[loss]
        return Case("NMF " + loss, "scikit-learn MU", rank, target, ours, Side(run, 1, many))

    return [case(loss, rank) for loss in (D, F) for rank in (13, 50)]


def with_memory(memory: str, arguments: list[str]) -> list[dict[str, Any]]:
    """Return the results of this script beside scikit-learn, in a fresh process."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [sys.executable, __file__, *arguments, "--peers", "sklearn", "--out", str(out)]
        subprocess.run(
            [*command, "--memory", memory],
            env=given | MEMORY[memory],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        results: list[dict[str, Any]] = json.loads(out.read_text())
    return [result | {"memory": memory} for result in results]


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Time both sides turn by turn."""
    case.ours.sample()
    ours, theirs = [], []
    for _ in range(rounds):
        ours += [case.ours.sample(), case.ours.sample()]
        theirs.append(case.theirs.sample())
    mine, peers = case.ours.per_iteration(ours), case.theirs.per_iteration(theirs)
    result = {
        "model": case.model,
        "peer": case.peer,
        "rank": case.rank,
        "seconds": mine,
        "peer_seconds": peers,
        "ratio": peers / mine,
        "target": case.target,
        "difference": case.agreement() if case.agreement else None,
        "load": load_average(),
        "samples": ours,
        "peer_samples": theirs,
    }
    say(f"{case.model} / {case.peer} r={case.rank}: {peers / mine:.1f}x (load {result['load']})")
    return result


def table(results: list[dict[str, Any]]) -> str:
    """Return the markdown table of the results."""
    rows = [
        [
            r["model"],
            r["peer"],
            str(r["rank"]),
            r.get("memory", ""),
            f"{r['seconds'] * 1e3:.2f}",
            f"{r['peer_seconds'] * 1e3:.1f}",
            f"{r['ratio']:.1f}",
            "" if r["target"] is None else str(r["target"]),
            "" if r["target"] is None else "yes" if r["ratio"] >= r["target"] else "NO",
            "" if r["difference"] is None else f"{r['difference']:.0e}",
        ]
        for r in results
    ]
    header = [
        "model",
        "peer",
        "rank",
        "memory",
        "ours, ms",
        "peer, ms",
        "ratio",
        "target",
        "met",
        "S differs",
    ]
    return markdown(header, rows)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, few iterations")
    parser.add_argument("--peers", nargs="+", default=["ssnmf", "sklearn"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--solver", default="mu", choices=["mu", "mm", "hals", "auto"])
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--synthetic", type=int, metavar="N", help="N random texts instead")
    parser.add_argument("--memory", choices=list(MEMORY), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="JSON file of the results, every sample")
    options = parser.parse_args(arguments)
    options.rounds, options.peer_iterations = (1, 2) if options.quick else (3, 6)
    options.classes = 5
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.synthetic:
        X = zipf_text(options.synthetic, 1000, 40)
        Y = one_hot(options.synthetic)
    else:
        X, Y = newsgroups()
    builders = {"ssnmf": ssnmf_cases, "sklearn": sklearn_cases}
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} nonzeros, {X.dtype}, {options.threads} threads,")
    print(f"solver {options.solver}, load {load_average()}\n")
    results = []
    with blas_threads(options.threads):
        for peer in options.peers:
            if peer == "sklearn" and not options.memory:
                for memory in MEMORY:
                    results += with_memory(memory, sys.argv[1:] if arguments is None else arguments)
                continue
            results += [measure(case, options.rounds) for case in builders[peer](X, Y, options)]
    results.sort(key=lambda r: (r["peer"] != "ssnmf", r["model"] != "NMF " + D, r["rank"]))
    print(table(results))
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
