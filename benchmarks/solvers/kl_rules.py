"""Which rule minimizes the Kullback-Leibler divergence with the fewest passes over the data?

Text (TF-IDF), plain NMF, the same starts for all rules: random ones, or those of
``init="least-squares"``.  A pass is a dot product and an update of length r for every nonzero, for
one factor.  An evaluation of the loss, which takes as long, is one too; a sweep of coordinate
descent is 7/4 by its flops, though its divisions make it slower.  Element-wise work is free here.

Prints the median number of passes to come within 1, 0.1 and 0.01 % of the lowest loss that any
rule found from the same start, and how much above it the loss is after 100 and 300 passes.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import kl_newton as newton
import kl_steps as steps
from common import DATA_SETS, append_records, load_average, markdown, read_records, say, start

import ssnmf_fast as sf
from ssnmf_fast._backend.dispatch import padded

WITHIN = (1e-2, 1e-3, 1e-4)
AFTER = (100, 300)  # passes
ROUNDING = 1e-12
RULES: dict[str, steps.Rule] = {
    "mm": steps.mm(),
    "relaxed mm": steps.mm(steps.RELAXATION),
    "relaxed mm, S twice": steps.mm(steps.RELAXATION, rounds=2),
    "relaxed mm, S three times": steps.mm(steps.RELAXATION, rounds=3),
    "momentum, restart": steps.momentum(steps.multiplicative(steps.RELAXATION)),
    "momentum by rows": steps.certified(),
    "SQUAREM": steps.squarem(),
    "Anderson": steps.anderson(),
    "AmSOM, 1.0": newton.majorant(1.0),
    "AmSOM, 1.9": newton.majorant(1.9),
    "AmSOM, u = x + mean": newton.majorant(1.7, share=1.0),
    "coordinate descent": newton.coordinates(),
    "scalar Newton": newton.coordinates(damped=True),
    "fastTopics": newton.extrapolated(),
}


def first_factors(X: Any, rank: int, seed: int, init: str) -> list[Any]:
    """Return S and A^T in padded storage."""
    if init == "random":
        S, A, _ = start(X, 1, rank, seed)
    else:
        fit = sf.factorize(
            X,
            n_components=rank,
            init=init,
            loss="kullback-leibler",
            max_iter=0,
            random_state=seed,
        )
        S, A = fit.S, fit.A
    return [padded(factor, np.float64) for factor in (S, A.T)]


def follow(X: Any, factors: list[Any], rule: steps.Rule, limits: tuple[float, float]) -> Any:
    """Return (passes, loss) of every iteration until limits of passes and seconds, and seconds."""
    work = steps.Work(X, threads=1)
    points = [(0.0, work.loss(factors, count=False))]
    running, taken = rule(work, factors), 0.0
    while work.passes < limits[0] and taken < limits[1]:
        begin = perf_counter()
        value = next(running)
        taken += perf_counter() - begin
        points.append((work.passes, work.loss(factors, count=False) if value is None else value))
    return points, taken


def measure(case: dict[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Follow every rule from one start."""
    X = sp.csr_array(DATA_SETS[case["data"]](), dtype=np.float64)
    records = []
    for name in options.rules:
        factors = first_factors(X, case["rank"], case["seed"], case["init"])
        points, taken = follow(X, factors, RULES[name], (options.passes, options.seconds))
        losses = [loss for _, loss in points]
        rises = sum(b > a * (1 + ROUNDING) for a, b in pairwise(losses))
        say(f"{case} {name}: {points[-1]}, {rises} rises, {taken:.0f} s")
        records.append({**case, "rule": name, "points": points, "rises": rises, "seconds": taken})
    return records


def same_start(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[key] for key in ("data", "rank", "init", "seed"))


def rows_of(records: list[dict[str, Any]]) -> list[list[str]]:
    """Return a row for each rule, of records of the same data, rank and kind of start."""
    lowest: dict[Any, float] = {}
    for record in records:
        value = min(loss for _, loss in record["points"])
        lowest[same_start(record)] = min(value, lowest.get(same_start(record), np.inf))
    rows = []
    for name in dict.fromkeys(record["rule"] for record in records):
        mine = [record for record in records if record["rule"] == name]
        needed = [[first_pass(r, lowest[same_start(r)], w) for r in mine] for w in WITHIN]
        above = [[excess(r, lowest[same_start(r)], n) for r in mine] for n in AFTER]
        per_pass = sum(r["seconds"] for r in mine) / sum(r["points"][-1][0] for r in mine)
        cells = [median(each) for each in needed] + [share(each) for each in above]
        rises = str(sum(r["rises"] for r in mine))
        rows.append([name, str(len(mine)), *cells, rises, f"{per_pass * 1e3:.1f}"])
    return rows


def first_pass(record: dict[str, Any], lowest: float, within: float) -> float:
    """Return the passes to come within a share of the lowest loss; infinity for never."""
    goal = lowest * (1 + within)
    return min((passes for passes, loss in record["points"] if loss <= goal), default=np.inf)


def excess(record: dict[str, Any], lowest: float, passes: int) -> float:
    """Return the share above the lowest loss after so many passes; NaN if there are not as many."""
    if record["points"][-1][0] < 0.9 * passes:
        return float("nan")
    return min(loss for p, loss in record["points"] if p <= passes) / lowest - 1


def median(values: list[float]) -> str:
    """Return the median, an infinite one as never."""
    middle = sorted(values)[len(values) // 2]
    return "never" if np.isinf(middle) else f"{middle:.0f}"


def share(values: list[float]) -> str:
    """Return the mean in percent, nothing where a run was not as long."""
    mean = np.mean(values)
    return "" if np.isnan(mean) else f"{mean:.2%}"


def report(records: list[dict[str, Any]]) -> None:
    """Print a table for each set of data, rank and kind of start."""
    header = ["rule", "starts", *(f"{w:.2%}" for w in WITHIN)]
    header += [*(f"after {n}" for n in AFTER), "rises", "ms a pass"]
    for case in dict.fromkeys(same_start(record)[:3] for record in records):
        part = [record for record in records if same_start(record)[:3] == case]
        print(f"\n{case[0]}, rank {case[1]}, start {case[2]}\n\n{markdown(header, rows_of(part))}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    choices = ["20 Newsgroups", "Reuters"]
    parser.add_argument("--data", nargs="+", default=choices, choices=list(DATA_SETS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[10, 50])
    parser.add_argument("--inits", nargs="+", default=["random", "least-squares"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--passes", type=float, default=1000, help="of the longest run")
    parser.add_argument("--seconds", type=float, default=120, help="of the longest run")
    parser.add_argument("--out", type=Path, help="file of records, which goes on where it stopped")
    parser.add_argument("--quick", action="store_true", help="few passes over small made-up text")
    options = parser.parse_args(arguments)
    if options.quick:
        from common import zipf_text

        DATA_SETS["made up"] = lambda: zipf_text(200, 100, 20)
        options.data, options.ranks, options.seeds, options.passes = ["made up"], [3], [0], 30
    print(f"one thread, float64, load {load_average()}")
    records = read_records(options.out)
    done = {(*same_start(record), record["rule"]) for record in records}
    cases = [
        {"data": data, "rank": rank, "init": init, "seed": seed}
        for seed in options.seeds
        for init in options.inits
        for data in options.data
        for rank in options.ranks
    ]
    for case in cases:
        wanted = [name for name in options.rules if (*same_start(case), name) not in done]
        new = measure(case, argparse.Namespace(**{**vars(options), "rules": wanted}))
        append_records(options.out, new)
        records += new
    report(records)


if __name__ == "__main__":
    main()
