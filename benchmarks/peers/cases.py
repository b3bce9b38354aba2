"""Problems of the comparison; the fits of a case, their traces, rows in the tables and plots.

A trace has whole fits of more and more iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import (
    DATA_SETS,
    Array,
    Factors,
    load_subset,
    newsgroups,
    our_runner,
    panels,
    start,
    timed,
    zipf_text,
)
from records import markdown

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"


@dataclass
class Problem:
    """Plain NMF: data (samples x features) and the weights of their entries, a start, a loss."""

    X: Any
    X_weights: Any
    S: Array
    A: Array
    loss: str
    threads: int

    @property
    def rank(self) -> int:
        return self.A.shape[0]

    def objective(self, factors: Factors) -> float:
        """Return the loss of factors, infinite for NaN; some are transposed, or just below 0."""
        if not all(np.isfinite(factor).all() for factor in factors):
            return np.inf
        S, A = (np.ascontiguousarray(np.maximum(factor, 0)) for factor in factors)
        options = {"loss": self.loss, "X_weights": self.X_weights, "n_threads": self.threads}
        return float(sf.extend.objective(self.X, S, A, **options))

    def ours(self, solver: str, seed: int = 0) -> Callable[[int], Factors]:
        """Return a function that fits k iterations of our solver; seed 0 is everybody's start."""
        init = start(self.X, 1, self.rank, seed)[:2]
        return our_runner(self.X, init, self.loss, solver, self.threads, self.X_weights)


def made(make: Callable[[], Any], rank: int, loss: str, threads: int) -> Problem:
    """Return a problem; `make` returns the data, or data and weights."""
    found = make()
    X, X_weights = found if isinstance(found, tuple) else (found, None)
    S, A, _ = start(X, 1, rank)
    return Problem(X, X_weights, S, A, loss, threads)


@cache
def signatures(n: int = 96, samples: int = 2000, rank: int = 8) -> Array:
    """Return counts as of mutational signatures, types x samples, about 500 a sample."""
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(n, 0.2), size=rank)
    exposures = rng.gamma(0.3, 500 / (0.3 * rank), size=(samples, rank))
    return rng.poisson(exposures @ profiles).T.astype(float)


@cache
def observed(n: int = 4000, m: int = 2000, share: float = 0.3) -> tuple[Any, Any]:
    """Return a matrix of rank 20 with noise, known in a share of its entries, and its weights."""
    rng = np.random.default_rng(0)
    S, A = rng.random((n, 20)), rng.random((20, m))
    pattern = sp.csr_matrix(rng.random((n, m), dtype=np.float32) < share)
    X = sp.csr_matrix(pattern.multiply(S @ A))
    X.data += rng.random(X.nnz)
    return X, sf.weights.observed(pattern)


def tenth_missing() -> tuple[Any, Any]:
    """Return 20 Newsgroups, of which every tenth entry is missing."""
    X = newsgroups()[0]
    rng = np.random.default_rng(0)
    missing = sp.csr_matrix(rng.random(X.shape, dtype=np.float32) < 0.1)
    return sp.csr_matrix(X - X.multiply(missing)), sf.weights.missing(missing)


def missing_pixels(share: float, n: int = 3000, name: str = "MNIST") -> tuple[Any, Any]:
    """Return rows of a data set, as an array, and weights of 0 for a share of the entries."""
    X = DATA_SETS[name]()[:n]
    X = X.toarray() if sp.issparse(X) else X
    return X, (np.random.default_rng(0).random(X.shape) >= share).astype(float)


def counted_posts() -> Any:
    """Return the counts of at most 5000 terms in the posts of the papers' subset."""
    from sklearn.feature_extraction.text import CountVectorizer

    usual = {"min_df": 5, "max_df": 0.7, "max_features": 5000, "stop_words": "english"}
    X = CountVectorizer(token_pattern="[a-zA-Z]{2,}", **usual).fit_transform(load_subset()[0])
    return sp.csr_matrix(X[np.diff(X.indptr) > 0], dtype=np.float64)


SETS: dict[str, Callable[[], Any]] = {
    **DATA_SETS,
    "20 Newsgroups counts": counted_posts,
    "signatures": signatures,
    "30 % observed": observed,
    "10 % missing": tenth_missing,
    "digits, 20 % missing": partial(missing_pixels, 0.2),
    "digits, 50 % missing": partial(missing_pixels, 0.5),
    "dense, 50 % missing": partial(missing_pixels, 0.5, 2000, "dense"),
}
QUICK_SETS: dict[str, Callable[[], Any]] = {
    "text": lambda: zipf_text(300, 200, 20),
    "dense": lambda: DATA_SETS["dense"]()[:300, :200],
    "signatures": lambda: signatures(30, 80),
    "30 % observed": lambda: observed(200, 100),
    "dense, 50 % missing": lambda: missing_pixels(0.5, 100, "dense"),
}


OURS = "ssnmf_fast"
WITHIN = (0.01, 0.001)  # shares above the best loss
SETTLED_BELOW = 1e-6  # share of the loss that a step of the trace must change it by
Fit = Callable[[int], Any]  # k iterations -> S and A, with the seconds if timed elsewhere

# Okabe and Ito's colors, told apart by the color-blind too: one for each package.
COLORS = {
    OURS: "#000000",
    "scikit-learn": "#0072B2",
    "ssnmf": "#D55E00",
    "tsnmf": "#CC79A7",
    "nmf-torch": "#009E73",
    "torchnmf": "#E69F00",
    "gensim": "#56B4E9",
}
# Line and marker tell the method, whatever the package; "" is our default.
COORDINATE, MULTIPLICATIVE, OTHER = "-o", "--s", ":^"
METHODS = {"": COORDINATE, "CD": COORDINATE, "HALS": COORDINATE, "MU": MULTIPLICATIVE}
# The best is at zero, which a logarithmic axis has no place for; a solver that fails is far off.
FLOOR, CEILING = 1e-5, 1.0


# Numbers of iterations of the fits of one trace; a fit over COARSE_FROM seconds is followed by the
# next but one, since all fits together should not take many times as long as the longest.
ITERATIONS = (1, 2, 3, 5, 7, 10, *(k * 2**i for i in range(10) for k in (15, 20)))
COARSE_FROM = 1.0


class Point(NamedTuple):
    """A fit: its number of iterations, its seconds with set-up, the loss of its factors."""

    iterations: int
    seconds: float
    loss: float


class Timed(NamedTuple):
    """What a fit returns that was timed where it ran: in another process."""

    seconds: float
    result: Any


@dataclass
class Case:
    """One data set, rank and loss: every fit and its trace."""

    data: str
    problem: Problem
    fits: dict[str, Fit]
    traces: dict[str, list[Point]] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return min(point.loss for points in self.traces.values() for point in points)

    def goals(self) -> list[float]:
        return [self.best * (1 + share) for share in WITHIN]

    def finish(self) -> None:
        self.traces = {label: without_noise(self.traces[label]) for label in self.fits}
        self.fits = {}

    def record(self) -> dict[str, Any]:
        traces, X = self.traces.items(), self.problem.X
        shown = {"data": self.data, "shape": X.shape, "rank": self.problem.rank}
        shown |= {"loss": self.problem.loss, "best": self.best}
        shown["points"] = {name: [p._asdict() for p in each] for name, each in traces}
        return shown | {"seconds_per_iteration": {n: per_iteration(p) for n, p in traces}}

    def facts(self) -> list[str]:
        return [self.data, str(self.problem.rank), "F" if self.problem.loss == F else "D"]


def point(fit: Callable[[int], Any], loss_of: Callable[[Any], float], k: int) -> Point:
    """Time a fit of k iterations; its loss is outside of the clock."""
    result, took = timed(fit, k)
    if isinstance(result, Timed):
        took, result = result
    return Point(k, took, loss_of(result))


def settled(points: list[Point], share: float) -> bool:
    """Has the last step changed the loss by less than this share of it, or lost it to NaN?"""
    if not np.isfinite(points[-1].loss):
        return True
    if len(points) < 2:
        return False
    before, now = points[-2].loss, points[-1].loss
    return abs(before - now) < share * now


def next_iterations(last: Point, budget: float) -> int | None:
    """Return the iterations of the next fit of a trace, None if it would take too long."""
    following = [k for k in ITERATIONS if k > last.iterations]
    if last.seconds > COARSE_FROM:
        following = following[1:]
    affordable = int(last.iterations * budget / last.seconds)
    k = min([*following[:1], affordable])
    return k if k >= 1.2 * last.iterations else None


def trace(
    fit: Callable[[int], Any],
    loss_of: Callable[[Any], float],
    budget: float,
    settled_below: float = 0.0,
) -> list[Point]:
    """Time whole fits of more and more iterations, each of `budget` seconds at most."""
    points = [point(fit, loss_of, ITERATIONS[0])]
    while not settled(points, settled_below):
        k = next_iterations(points[-1], budget)
        if k is None:
            break
        points.append(point(fit, loss_of, k))
    return points


def first_within(points: list[Point], goal: float) -> Point | None:
    return next((found for found in points if found.loss <= goal), None)


def refine(
    points: list[Point], goal: float, fit: Callable[[int], Any], loss_of: Callable[[Any], float]
) -> list[Point]:
    """Add the fits that the trace skipped just before its first point at or below the goal."""
    found = first_within(points, goal)
    if found is None or found is points[0]:
        return points
    before = points[points.index(found) - 1].iterations
    skipped = [k for k in ITERATIONS if before < k < found.iterations]
    return sorted([*points, *(point(fit, loss_of, k) for k in skipped)])


def without_noise(points: list[Point]) -> list[Point]:
    """Let no fit take longer than one of more iterations: the rest was another program's."""
    cleaned: list[Point] = []
    for found in reversed(points):
        shortest = min([found.seconds, *(later.seconds for later in cleaned[-1:])])
        cleaned.append(found._replace(seconds=shortest))
    return cleaned[::-1]


def per_iteration(points: list[Point]) -> float:
    """Return the seconds of an iteration without set-up, if there is more than one fit."""
    first, later = points[0], points[1:]
    if not later:
        return first.seconds
    longer = later[len(later) // 2 :]
    return median((p.seconds - first.seconds) / (p.iterations - first.iterations) for p in longer)


def time_cell(points: list[Point], goal: float, best: float, cap: float) -> str:
    """Return the time and iterations to the goal, or how far off the solver stayed."""
    found = first_within(points, goal)
    if found is not None:
        return f"{readable(found.seconds)} ({found.iterations})"
    if not np.isfinite(points[-1].loss):
        return "fails: NaN"
    ratio = min(p.loss for p in points) / best
    above = f"{ratio - 1:.2%}" if ratio < 10 else f"{ratio:.0f} times"
    over = "never" if settled(points, SETTLED_BELOW) else f"> {cap:g} s"
    return f"{over} ({above})"


def readable(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def times_ours(case: Case, label: str, goal: float, cap: float) -> tuple[str, float] | None:
    """Return "> " where the goal was not met, and the ratio to our time, or the least it can be."""
    our, their = (first_within(case.traces[name], goal) for name in (OURS, label))
    if our is None or label == OURS:
        return None
    took = their.seconds if their else max(cap, case.traces[label][-1].seconds)
    return "" if their else "> ", took / our.seconds


def table(cases: list[Case], cap: float) -> str:
    rows = []
    for case in cases:
        for label, points in case.traces.items():
            row = [*case.facts(), label]
            for goal in case.goals():
                ratio = times_ours(case, label, goal, cap)
                row.append(time_cell(points, goal, case.best, cap))
                row.append("" if ratio is None else f"{ratio[0]}{ratio[1]:.2g}")
            bound = "" if points[1:] else "at most "
            rows.append([*row, bound + readable(per_iteration(points))])
    header = ["data", "rank", "loss", "solver"]
    for share in WITHIN:
        header += [f"to {share * 100:g} % (iterations)", "times ours"]
    return markdown([*header, "per iteration"], rows)


def means(cases: list[Case], cap: float) -> str:
    """Return the geometric means of the ratios to ours over all cases, by solver."""
    rows = []
    for label in dict.fromkeys(label for case in cases for label in case.traces if label != OURS):
        row = [label]
        for place in range(len(WITHIN)):
            chosen = [case for case in cases if label in case.traces]
            given = [times_ours(case, label, case.goals()[place], cap) for case in chosen]
            ratios = [ratio for ratio in given if ratio is not None]
            bound = max((sign for sign, _ in ratios), default="")
            mean = geometric_mean(ratio for _, ratio in ratios) if ratios else np.nan
            row.append(f"{bound}{mean:.1f} ({len(ratios)})" if ratios else "")
        rows.append(row)
    return markdown(["solver", *(f"to {w * 100:g} %: times ours (cases)" for w in WITHIN)], rows)


def plot(case: Case, folder: Path) -> None:
    """Draw how far above the best loss every trace is, with a line at each share of WITHIN."""
    figure, ((axes,),) = panels(9, 5)
    for share in WITHIN:
        axes.axhline(share, color="0.5", linewidth=1, zorder=0)
        at_right = axes.get_yaxis_transform()
        axes.text(1.01, share, f"{share * 100:g} %", transform=at_right, va="center", color="0.3")
    for label, points in case.traces.items():
        package, _, method = label.partition(" ")
        finite = [p for p in points if np.isfinite(p.loss)]
        axes.plot(
            [p.seconds for p in finite],
            [min(max(p.loss / case.best - 1, FLOOR), CEILING) for p in finite],
            METHODS.get(method.rstrip("*"), OTHER),
            color=COLORS.get(package),
            linewidth=2.5 if package == OURS else 1.5,
            markersize=4,
            label=label if finite else f"{label} (fails: NaN)",
        )
    loss, rank = case.problem.loss, case.problem.rank
    title = f"{case.data}, rank {rank}, {loss.title()}"
    axes.set(xscale="log", yscale="log", title=title, xlabel="seconds, set-up included")
    axes.set_ylabel(f"loss / best loss - 1 (drawn between {FLOOR:g} and {CEILING:g})")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    name = f"{case.data} rank {rank} {loss}".lower().replace(" ", "-")
    figure.savefig(folder / f"{name}.png", dpi=130)
