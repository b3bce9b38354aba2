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
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, blas_threads, load_average, markdown, measure_missing, new_parser
from completion_cases import (
    AUTO,
    EXPERIMENTS,
    METHODS,
    SIRLS,
    STRUCTURED,
    WITHOUT,
    Experiment,
    measure,
    rates,
)
from completion_maps import pictures

Record = dict[str, Any]
QUICK = ["2.3", "2.6", "2.7"]
SAME = 1 - 1e-9  # a ratio has to be below it: rounding is no win

# Region -> whether (rate of zeros, rate of nonzeros) is in it.
REGIONS: dict[str, Callable[[Array, Array], Array]] = {
    "nonzero rate > zero rate": lambda z, n: n > z,
    "the same, nonzero rate >= .5": lambda z, n: (n > z) & (n >= 0.4999),
    "hard and structured: nonzero .3-.5, zero .05-.2": lambda z, n: (
        (n > 0.2999) & (n < 0.5001) & (z > 0.0499) & (z < 0.2001)
    ),
    "all": lambda z, n: np.ones(np.broadcast_shapes(z.shape, n.shape), dtype=bool),
}


class Results:
    """Errors and seconds of an experiment as arrays: matrices x nonzero rates x zero rates."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.zero = sorted({r["zero"] for r in records})
        self.nonzero = sorted({r["nonzero"] for r in records})
        self.numbers = sorted({r["matrix"] for r in records})
        self.methods = list(dict.fromkeys(r["method"] for r in records))
        self.kinds = ("error", "seconds", "model_error")
        shape = len(self.numbers), len(self.nonzero), len(self.zero)
        self._values = {(m, k): np.full(shape, np.nan) for m in self.methods for k in self.kinds}
        for r in records:
            place = (
                self.numbers.index(r["matrix"]),
                self.nonzero.index(r["nonzero"]),
                self.zero.index(r["zero"]),
            )
            for kind in self.kinds:
                self._values[r["method"], kind][place] = r.get(kind, np.nan)

    def of(self, method: str, kind: str = "error") -> Array:
        return self._values[method, kind]

    def ratio(self, method: str, rival: str, middle: Callable[..., Array] = np.mean) -> Array:
        """Mean (median) over the matrices of the ratio of errors; NaN where a fit is missing."""
        ratios: Array = middle(self.of(method) / np.maximum(self.of(rival), 1e-300), axis=0)
        return ratios

    def region(self, name: str) -> Array:
        """Mask of the cells, nonzero rates x zero rates."""
        inside = REGIONS[name](np.array(self.zero)[None, :], np.array(self.nonzero)[:, None])
        return np.broadcast_to(inside, (len(self.nonzero), len(self.zero)))


def share(wins: Array, known: Array) -> str:
    """Return "wins of cells (percent)" among the known cells."""
    count = int(known.sum())
    won = int((wins & known).sum())
    return f"{won} of {count} ({100 * won / count:.0f} %)" if count else "-"


def shares(results: Results, rival: str) -> str:
    """Return in which share of the cells Structured sIRLS, and auto, win."""
    header = ["cells", f"structured-sirls / {rival}: mean ratio < 1", "median ratio < 1"]
    header += ["structured-sirls / c=0: median < 1", "auto: median error below both"]
    rows = []
    for name in REGIONS:
        inside = results.region(name)
        row = [name]
        for method, other, middle in (
            (STRUCTURED, rival, np.mean),
            (STRUCTURED, rival, np.median),
            (STRUCTURED, WITHOUT, np.median),
        ):
            row.append(wins(results, method, other, middle, inside))
        rows.append([*row, auto_wins(results, inside)])
    return markdown(header, rows)


def wins(
    results: Results, method: str, other: str, middle: Callable[..., Array], inside: Array
) -> str:
    if not {method, other} <= set(results.methods):
        return "-"
    ratio = results.ratio(method, other, middle)
    return share(ratio < SAME, inside & np.isfinite(ratio))


def auto_wins(results: Results, inside: Array) -> str:
    """Return where the median error of auto is below those of sIRLS and of Structured sIRLS."""
    if not {AUTO, SIRLS, STRUCTURED} <= set(results.methods):
        return "-"
    auto, *others = (np.median(results.of(m), axis=0) for m in (AUTO, SIRLS, STRUCTURED))
    known = np.isfinite(auto) & np.isfinite(others[0]) & np.isfinite(others[1])
    return share(auto < np.minimum(*others), inside & known)


def medians(results: Results, kind: str = "error") -> str:
    """Return the median errors (and seconds of a fit) of every method by region."""
    header = ["method", *REGIONS, "seconds per fit, median", "mean"]
    rows = []
    for method in results.methods:
        values = results.of(method, kind)
        row = [method]
        for name in REGIONS:
            here = values[:, results.region(name)]
            row.append(f"{np.nanmedian(here):.1e}" if np.isfinite(here).any() else "-")
        seconds = results.of(method, "seconds")
        rows.append([*row, f"{np.nanmedian(seconds):.2f}", f"{np.nanmean(seconds):.2f}"])
    return markdown(header, rows)


def report(name: str, experiment: Experiment, results: Results) -> str:
    """Return the markdown summary of one figure."""
    title = f"Figure {name}: {experiment.size} x {experiment.size}, rank {experiment.rank}"
    title += "" if experiment.knows_rank else " (not given)"
    title += f", noise {experiment.noise:g}" if experiment.noise else ""
    size = len(results.nonzero) * len(results.zero)
    rates = f"{results.zero[0]:g} to {results.zero[-1]:g}"
    parts = [
        f"## {title}",
        f"{size} cells (both rates from {rates}), matrices: {len(results.numbers)}.",
        shares(results, experiment.rival),
        "Median relative errors:",
        medians(results),
    ]
    if experiment.noise:
        parts += ["The same of the low-rank model, to the noiseless matrix:"]
        parts += [medians(results, "model_error")]
    return "\n\n".join(parts) + "\n"


def one_figure(name: str, options: argparse.Namespace) -> str:
    """Run what is missing of one figure, write it, and return its summary."""
    experiment = EXPERIMENTS[name]
    if options.quick:
        experiment = replace(experiment, size=30, rank=min(experiment.rank, 4))
    step = rates(options.step or experiment.step)
    # Matrix by matrix, so that all cells soon have one.
    tasks = product(range(options.matrices), step, step, options.methods or experiment.methods)
    stem = f"completion-{name}" + options.quick * "-quick"
    path = options.out / f"{stem}.jsonl" if options.out else None
    results = Results(
        measure_missing(
            tasks,
            lambda r: (r["matrix"], r["nonzero"], r["zero"], r["method"]),
            partial(measure, experiment),
            path,
            f"figure {name}",
            options.jobs,
        )
    )
    summary = report(name, experiment, results)
    if options.out:
        (options.out / f"{stem}.md").write_text(summary)
        pictures(name, experiment, results, options.out / f"{stem}.png")
    return summary


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
    with blas_threads(1):
        for name in options.figure:
            print(one_figure(name, options), flush=True)


if __name__ == "__main__":
    main()
