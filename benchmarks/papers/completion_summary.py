"""What a run of completion.py says: shares of cells, medians, and the maps of the errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, markdown
from completion_cases import AUTO, SIRLS, STRUCTURED, WITHOUT, Experiment, density

HARD = 0.4  # degrees of freedom for every observed entry, above which a problem counts as hard
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


def new_figure(columns: int, rows: int) -> tuple[Any, Any]:
    """The one place that knows matplotlib: a figure and its axes (rows x columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * columns, 3.4 * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def pictures(name: str, experiment: Experiment, results: Results, path: Path) -> None:
    """Draw the error maps, and the ratio of Structured sIRLS to its rival, as the thesis does."""
    from recovery_maps import recovery_grid

    figure, axes = new_figure(len(results.methods), 2)
    errors = {m: np.mean(results.of(m), axis=0) for m in results.methods}
    rates = (results.zero, results.nonzero)
    shared = limits(list(errors.values()))
    for place, method in zip(axes[0], results.methods, strict=True):
        recovery_grid(errors[method], *rates, title=method, limits=shared, ax=place)
    compared = [
        (a, b)
        for a, b in ((STRUCTURED, experiment.rival), (AUTO, STRUCTURED))
        if {a, b} <= set(results.methods)
    ]
    used = 0
    for method, rival in compared:
        ratio = results.ratio(method, rival)
        title = f"{method} / {rival}"
        recovery_grid(ratio, *rates, kind="ratio", title=title, limits=(0.1, 10), ax=axes[1, used])
        same = np.where(np.abs(ratio - 1) < 1 - SAME, 1.0, ratio)
        recovery_grid(same, *rates, kind="binned", title="ratio below 1", ax=axes[1, used + 1])
        used += 2
    for place in axes[1, :used]:
        lines(place, experiment, results)
    for place in axes[1, used:]:
        place.set_visible(False)
    figure.suptitle(f"{experiment.size} x {experiment.size}, rank {experiment.rank} ({name})")
    figure.savefig(path, dpi=110)


def limits(maps: list[Array]) -> tuple[float, float]:
    """Return the range of all maps for a logarithmic scale."""
    values = np.concatenate([m.ravel() for m in maps])
    values = values[np.isfinite(values)]
    high = max(float(values.max(initial=1e-12)), 1e-12)
    return max(float(values.min(initial=high)), 1e-10), high * 1.001


def lines(place: Any, experiment: Experiment, results: Results) -> None:
    """Draw the red line below which problems are hard, if it is within."""
    n, r = experiment.size, experiment.rank
    x = np.array([results.zero[0], results.zero[-1]])
    if len(results.zero) < 2:
        return
    nonzeros = density(experiment, min(3, len(results.numbers)))
    needed = r * (2 * n - r) / (HARD * n * n)  # share of all entries
    x = np.linspace(*x, 200)
    y = (needed - (1 - nonzeros) * x) / nonzeros
    inside = (y > results.nonzero[0]) & (y < results.nonzero[-1])
    place.plot(x[inside], y[inside], color="red", linewidth=1)
