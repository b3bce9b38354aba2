"""Maps of the errors of completions over the sampling rates of zeros and nonzeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import Array
from completion_cases import AUTO, STRUCTURED, Experiment, density

HARD = 0.4  # degrees of freedom for every observed entry, above which a problem counts as hard
GRAY, MISSING = "#8a94a0", "#d3d8de"


def draw_map(
    axes: Any, results: Any, grid: Array, kind: str, title: str, limits: tuple[float, float]
) -> None:
    """Draw a map with logarithmic colors, or with white below 1 and black from 1 on ("binned").

    Problems above the gray diagonal are structured: zeros are missing more often than nonzeros.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize

    colors = colormaps[{"error": "viridis", "ratio": "RdBu_r", "binned": "gray_r"}[kind]]
    if kind == "binned":
        # Rounding is no win.
        grid, norm = np.where(np.isnan(grid), np.nan, grid > 1 - 1e-9), Normalize(0, 1)
    else:
        grid, norm = np.clip(grid, *limits), LogNorm(*limits)
    cells = axes.pcolormesh(
        results.zero,
        results.nonzero,
        np.ma.masked_invalid(grid),
        cmap=colors.with_extremes(bad=MISSING),
        norm=norm,
        shading="nearest",
        rasterized=True,
    )
    axes.set_facecolor(MISSING)
    ends = max(results.zero[0], results.nonzero[0]), min(results.zero[-1], results.nonzero[-1])
    axes.plot(ends, ends, color=GRAY, linewidth=1.2)
    axes.set(xlabel="sampling rate of zeros", ylabel="sampling rate of nonzeros", title=title)
    if kind != "binned":
        label = "error" if kind == "error" else "ratio of errors"
        axes.figure.colorbar(cells, ax=axes, label=label)


def pictures(name: str, experiment: Experiment, results: Any, path: Path) -> None:
    """Draw the error maps, and the ratio of Structured sIRLS to its rival, as the thesis does."""
    from matplotlib.figure import Figure

    rivals = ((STRUCTURED, experiment.rival), (AUTO, STRUCTURED))
    pairs = [pair for pair in rivals if set(pair) <= set(results.methods)]
    columns = max(len(results.methods), 2 * len(pairs))
    figure = Figure(figsize=(3.6 * columns, 6.8), layout="constrained")
    axes = figure.subplots(2, columns, squeeze=False)
    errors = {m: np.mean(results.of(m), axis=0) for m in results.methods}
    known = np.concatenate([grid[np.isfinite(grid)] for grid in errors.values()])
    high = max(float(known.max(initial=1e-12)), 1e-12)
    limits = max(float(known.min(initial=high)), 1e-10), high * 1.001
    for place, (method, grid) in zip(axes[0], errors.items(), strict=False):
        draw_map(place, results, grid, "error", method, limits)
    rest = iter(axes[1])
    for method, rival in pairs:
        ratio = results.ratio(method, rival)
        for kind, title in (("ratio", f"{method} / {rival}"), ("binned", "ratio below 1")):
            place = next(rest)
            draw_map(place, results, ratio, kind, title, (0.1, 10))
            draw_border(place, experiment, results)
    for place in (*axes[0][len(errors) :], *rest):
        place.set_visible(False)
    figure.suptitle(f"{experiment.size} x {experiment.size}, rank {experiment.rank} ({name})")
    figure.savefig(path, dpi=110)


def draw_border(place: Any, experiment: Experiment, results: Any) -> None:
    """Draw the red line below which problems are hard, if it is within."""
    n, r = experiment.size, experiment.rank
    nonzeros = density(experiment, min(3, len(results.numbers)))
    needed = r * (2 * n - r) / (HARD * n * n)  # share of all entries
    x = np.linspace(results.zero[0], results.zero[-1], 200)
    y = (needed - (1 - nonzeros) * x) / nonzeros
    inside = (y > results.nonzero[0]) & (y < results.nonzero[-1])
    place.plot(x[inside], y[inside], color="red", linewidth=1)
