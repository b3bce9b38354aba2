"""Chapter 2 of Kassab's thesis: does Structured sIRLS complete structured matrices better?

Matrices of known rank are products of sparse nonnegative factors.  A share of their zeros and a
share of their nonzeros is observed; every pair of shares is a cell of a map (figures 2.1 to 2.7).
The error is ||X - M||_F / ||M||_F with observed entries exact.  sIRLS and Structured sIRLS
("structured-sirls") are compared with Structured sIRLS without its sparsity step (c = 0), which
shows what that step does, and with our default "auto"; Structured NNM takes the best of four alphas
for every matrix.

Figures: 2.1 (1000 x 1000) and 2.2 (500 x 500) on a coarse grid, 2.3 (rank 10), 2.4 (unknown rank),
2.5 (rank 20), 2.6 (30 x 30, Structured NNM), 2.7 and 2.7b (noise 1e-4, 1e-3, where the thesis
compares with the noisy matrix).  The thesis has 20 matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Array, panels
from records import Options, Question, Record, grouped, markdown

import ssnmf_fast as sf
from ssnmf_fast.completion import StructuredNNM, StructuredSIRLS

# Drawn with replacement, so that collisions thin them: about 74 % and 61 % of zeros.
DENSITIES = (0.3, 0.5)
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)  # of Structured NNM, the best for every matrix
SIRLS, STRUCTURED, WITHOUT, AUTO = "sirls", "structured-sirls", "structured-sirls c=0", "auto"
NNM, VALIDATED = "structured-nnm", "auto validated"
METHODS: dict[str, dict[str, Any]] = {
    SIRLS: {"method": "sirls"},
    STRUCTURED: {"method": "structured-sirls"},
    WITHOUT: {"method": StructuredSIRLS(sparsity=0.0)},
    AUTO: {"method": "auto"},
    NNM: {"method": "structured-nnm"},
    VALIDATED: {"method": "auto", "gamma_min": "validate"},
}
FOUR = (SIRLS, STRUCTURED, WITHOUT, AUTO)
SAME = 1 - 1e-9  # a ratio has to be below it: rounding is no win
HARD = 0.4  # degrees of freedom for every observed entry, above which a problem counts as hard


class Experiment(NamedTuple):
    """One figure of the thesis."""

    size: int
    rank: int
    step: float = 0.05
    knows_rank: bool = True
    noise: float = 0.0
    methods: tuple[str, ...] = FOUR
    rival: str = SIRLS  # Structured sIRLS is compared with it


EXPERIMENTS = {
    "2.1": Experiment(1000, 10, step=0.2),
    "2.2": Experiment(500, 10, step=0.2),
    "2.3": Experiment(100, 10),
    "2.4": Experiment(100, 8, knows_rank=False),
    "2.5": Experiment(100, 20),
    "2.6": Experiment(30, 7, methods=(*FOUR, NNM), rival=NNM),
    "2.7": Experiment(100, 3, noise=1e-4, methods=(*FOUR, VALIDATED)),
    "2.7b": Experiment(100, 3, noise=1e-3, methods=(*FOUR, VALIDATED)),
}
OPTIONS = {
    "figure": (list(EXPERIMENTS), "", list(EXPERIMENTS)),
    "matrices": (3, "for every cell; the thesis: 20"),
    "step": (float, "of the rates; default .05, .2 for 2.1 and 2.2"),
    "methods": ([str], "", list(METHODS)),
    "jobs": (1, "processes, of one thread each"),
}
QUICK = {"matrices": 1, "step": 0.25, "figure": ["2.3", "2.6", "2.7"]}

# Region -> whether (rate of zeros, rate of nonzeros) is in it.
REGIONS: dict[str, Callable[[Array, Array], Array]] = {
    "nonzero rate > zero rate": lambda z, n: n > z,
    "the same, nonzero rate >= .5": lambda z, n: (n > z) & (n >= 0.4999),
    "hard and structured: nonzero .3-.5, zero .05-.2": lambda z, n: (
        (n > 0.2999) & (n < 0.5001) & (z > 0.0499) & (z < 0.2001)
    ),
    "all": lambda z, n: np.ones(np.broadcast_shapes(z.shape, n.shape), dtype=bool),
}


def experiment_of(figure: str, options: Options) -> Experiment:
    it = EXPERIMENTS[figure]
    return it._replace(size=30, rank=min(it.rank, 4)) if options.quick else it


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    for figure in options.figure:
        step = options.step or EXPERIMENTS[figure].step
        # 0.05, 0.10 ... 0.95, or the middles of coarser intervals.
        rates = np.round(np.arange(max(step / 2, 0.05), 0.96, step), 4).tolist()
        methods = options.methods or EXPERIMENTS[figure].methods
        yield from product([figure], range(options.matrices), rates, rates, methods)


def true_matrix(size: int, rank: int, number: int) -> Array:
    rng = np.random.default_rng([number, size, rank])

    def factor(density: float) -> Array:
        flat = np.zeros(size * rank)
        positions = rng.integers(size * rank, size=round(density * size * rank))
        flat[positions] = rng.random(len(positions))
        return flat.reshape(size, rank)

    left, right = map(factor, DENSITIES)
    return np.asarray(left @ right.T)


def measure(
    options: Options, figure: str, number: int, nonzero: float, zero: float, method: str
) -> Record:
    """Complete a matrix once (NNM: for every alpha); errors as the thesis takes them."""
    size, rank, _, knows_rank, noise, *_ = experiment_of(figure, options)
    M = true_matrix(size, rank, number)
    rng = np.random.default_rng([number, size, rank, round(1e4 * zero), round(1e4 * nonzero)])
    observed = np.zeros(M.size, dtype=bool)
    for places, rate in ((M.ravel() == 0, zero), (M.ravel() != 0, nonzero)):
        among = np.flatnonzero(places)
        observed[rng.choice(among, size=round(rate * len(among)), replace=False)] = True
    observed = observed.reshape(M.shape)
    target = M
    if noise:  # ratio of its norm at the observed entries to theirs
        N = rng.standard_normal(M.shape)
        target = M + noise * np.linalg.norm(M[observed]) / np.linalg.norm(N[observed]) * N
    holes = np.where(observed, target, np.nan)
    best: Record = {"error": np.inf}
    choices: list[dict[str, Any]] = [{}]
    if method == NNM:
        choices = [{"method": StructuredNNM(sparsity=alpha)} for alpha in ALPHAS]
    given = {"random_state": 0, "n_threads": 1, "n_components": None}
    if knows_rank and method != NNM:
        given["n_components"] = rank
    begin = perf_counter()
    for choice in choices:
        fit = sf.complete(holes, **given, **METHODS[method] | choice)
        gap = np.linalg.norm(fit.to_dense(keep_observed=True) - target) / np.linalg.norm(target)
        if gap < best["error"]:
            best = {"error": float(gap), "iterations": fit.n_iter, "rank": fit.n_components}
            if noise:  # of the low-rank part, to the noiseless matrix
                gap = np.linalg.norm(fit.to_dense() - M) / np.linalg.norm(M)
                best["model_error"] = float(gap)
    return best | {"seconds": round((perf_counter() - begin) / len(choices), 4)}


class Outcome:
    """Errors and seconds of an experiment as arrays: matrices x nonzero rates x zero rates."""

    def __init__(self, records: list[Record]) -> None:
        axes = [sorted({r[name] for r in records}) for name in ("matrix", "nonzero", "zero")]
        self.numbers, self.nonzero, self.zero = axes
        self.methods = list(grouped(records, "method"))
        self._values: dict[tuple[str, str], Array] = {}
        for method, kind in product(METHODS, ("error", "seconds", "model_error")):
            self._values[method, kind] = np.full([len(axis) for axis in axes], np.nan)
        for r in records:
            names = ("matrix", "nonzero", "zero")
            place = tuple(axis.index(r[name]) for axis, name in zip(axes, names, strict=True))
            for kind in ("error", "seconds", "model_error"):
                self._values[r["method"], kind][place] = r.get(kind, np.nan)

    def of(self, method: str, kind: str = "error") -> Array:
        return self._values[method, kind]

    def ratio(self, method: str, rival: str, middle: Callable[..., Array] = np.mean) -> Array:
        """Mean (median) over the matrices of the ratio of errors; NaN where a fit is missing."""
        return np.asarray(middle(self.of(method) / np.maximum(self.of(rival), 1e-300), axis=0))

    def region(self, name: str) -> Array:
        inside = REGIONS[name](np.array(self.zero)[None, :], np.array(self.nonzero)[:, None])
        return np.broadcast_to(inside, (len(self.nonzero), len(self.zero)))


def share(wins: Array, known: Array) -> str:
    """Return "wins of cells (percent)" among the known cells."""
    count, won = int(known.sum()), int((wins & known).sum())
    return f"{won} of {count} ({100 * won / count:.0f} %)" if count else "-"


def shares(results: Outcome, rival: str) -> str:
    header = ["cells", f"structured-sirls / {rival}: ratio of mean errors < 1"]
    header += ["mean ratio < 1", "median ratio < 1"]
    header += ["structured-sirls / c=0: median < 1", "auto: median error below both"]
    pairs = [(rival, np.mean), (rival, np.median), (WITHOUT, np.median)]
    rows = []
    for name in REGIONS:
        row, inside = [name], results.region(name)
        means = results.of(STRUCTURED).mean(axis=0) / results.of(rival).mean(axis=0)
        row.append(share(means < SAME, inside & np.isfinite(means)))
        for other, middle in pairs:
            ratio = results.ratio(STRUCTURED, other, middle)
            row.append(share(ratio < SAME, inside & np.isfinite(ratio)))
        middles = [np.median(results.of(m), axis=0) for m in (AUTO, SIRLS, STRUCTURED)]
        known = np.isfinite(middles).all(axis=0)
        rows.append([*row, share(middles[0] < np.minimum(*middles[1:]), inside & known)])
    return markdown(header, rows)


def medians(results: Outcome, kind: str = "error") -> str:
    rows = []
    for method in results.methods:
        row = [method]
        for name in REGIONS:
            here = results.of(method, kind)[:, results.region(name)]
            row.append(f"{np.nanmedian(here):.1e}" if np.isfinite(here).any() else "-")
        seconds = results.of(method, "seconds")
        rows.append([*row, f"{np.nanmedian(seconds):.2f}", f"{np.nanmean(seconds):.2f}"])
    return markdown(["method", *REGIONS, "seconds per fit, median", "mean"], rows)


def report(records: list[Record], options: Options) -> str:
    parts = []
    for name, own in grouped(records, "figure").items():
        results, experiment = Outcome(own), experiment_of(name, options)
        title = f"Figure {name}: {experiment.size} x {experiment.size}, rank {experiment.rank}"
        title += "" if experiment.knows_rank else " (not given)"
        title += f", noise {experiment.noise:g}" if experiment.noise else ""
        cells = len(results.nonzero) * len(results.zero)
        rates = f"{results.zero[0]:g} to {results.zero[-1]:g}"
        parts += [f"## {title}"]
        parts += [f"{cells} cells (both rates from {rates}), matrices: {len(results.numbers)}."]
        parts += [shares(results, experiment.rival), "Median relative errors:", medians(results)]
        if experiment.noise:
            parts += ["The same of the low-rank model, to the noiseless matrix:"]
            parts += [medians(results, "model_error")]
    return "\n\n".join(parts)


def draw(records: list[Record], stem: Path) -> None:
    """Draw a map of the ratio of errors for each pair of methods that the table compares."""
    from matplotlib.colors import LogNorm

    for name, own in grouped(records, "figure").items():
        results, experiment = Outcome(own), EXPERIMENTS[name]
        rivals = ((STRUCTURED, experiment.rival), (AUTO, STRUCTURED))
        pairs = [pair for pair in rivals if set(pair) <= set(results.methods)]
        columns = max(len(pairs), 1)
        figure, axes = panels(4.2 * columns, 4.2, 1, columns)
        zero, nonzero = results.zero, results.nonzero
        for place, pair in zip(axes[0], pairs, strict=False):
            ratio = np.clip(np.ma.masked_invalid(results.ratio(*pair)), 0.1, 10)
            look = {"shading": "nearest", "rasterized": True, "cmap": "RdBu_r"}
            cells = place.pcolormesh(zero, nonzero, ratio, norm=LogNorm(0.1, 10), **look)
            place.set_facecolor("#d3d8de")  # of cells without a result
            ends = max(zero[0], nonzero[0]), min(zero[-1], nonzero[-1])
            place.plot(ends, ends, color="#5f6873")
            draw_border(place, experiment, results)
            place.set(xlabel="observed share of zeros", ylabel="observed share of nonzeros")
            place.set_title("Error of {}\ndivided by that of {}".format(*pair), fontsize=11)
            ticks = {"ticks": [0.1, 1, 10], "location": "bottom", "shrink": 0.8}
            bar = figure.colorbar(cells, ax=place, **ticks)
            bar.ax.set_xticklabels(["0.1: smaller", "1: equal", "10: larger"])
        figure.savefig(stem.with_name(f"{stem.name}-{name}.png"), dpi=110)


def draw_border(place: Any, experiment: Experiment, results: Outcome) -> None:
    n, r = experiment.size, experiment.rank
    some = range(min(3, len(results.numbers)))
    nonzeros = np.mean([np.mean(true_matrix(n, r, number) != 0) for number in some])
    needed = r * (2 * n - r) / (HARD * n * n)  # share of all entries
    x = np.linspace(results.zero[0], results.zero[-1], 200)
    y = (needed - (1 - nonzeros) * x) / nonzeros
    inside = (y > results.nonzero[0]) & (y < results.nonzero[-1])
    place.plot(x[inside], y[inside], color="red", linewidth=1)


QUESTION = Question("figure matrix nonzero zero method", cases, measure, report, draw)
