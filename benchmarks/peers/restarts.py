"""Many starts of a small matrix, as for consensus over starts: the time of one, and how good."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from adapters import F, Problem
from cases import readable
from common import Point, markdown, our_runner, point, say, start
from process import Process, Silent

LONGEST = 10.0  # seconds of all starts of a package


def restarts(
    problem: Problem, packages: list[Process], starts: int, iterations: int
) -> list[dict[str, Any]]:
    """Fit many starts with everybody, each with as many iterations."""

    def our_start(seed: int) -> Callable[[int], Any]:
        init = start(problem.X, 1, problem.rank, seed)[:2]
        return our_runner(problem.X, init, problem.loss, "auto", problem.threads)

    fits: dict[str, Callable[[int], Callable[[int], Any]]] = {"ssnmf_fast": our_start}
    for process in packages:
        fits |= process.starts()
    found: dict[str, list[Point]] = {}
    for label, fit in fits.items():
        points = found[label] = []
        try:
            fit(0)(1)  # imports and thread pools
            while len(points) < starts and sum(p.seconds for p in points) < LONGEST:
                points.append(point(fit(len(points)), problem.objective, iterations))
        except Silent as error:
            say(f"  {label}: {error}")
    best = min(p.loss for points in found.values() for p in points)
    return [
        {
            "loss": problem.loss,
            "solver": label,
            "starts": len(points),
            "seconds": median(p.seconds for p in points),
            "above_best": median(p.loss for p in points) / best - 1,
            "best_above_best": min(p.loss for p in points) / best - 1,
        }
        for label, points in found.items()
        if points
    ]


def restart_table(records: list[dict[str, Any]]) -> str:
    rows = []
    for r in records:
        mine = next(m for m in records if m["loss"] == r["loss"])
        rows.append(
            [
                "F" if r["loss"] == F else "D",
                r["solver"],
                str(r["starts"]),
                readable(r["seconds"]),
                f"{r['seconds'] / mine['seconds']:.1f}",
                f"{r['above_best']:.3%}",
                f"{r['best_above_best']:.3%}",
            ]
        )
    header = ["loss", "solver", "starts", "a start", "times ours", "median above the best"]
    return markdown([*header, "lowest above the best"], rows)
