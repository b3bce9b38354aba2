"""Maps of errors over the sampling rates of zeros and nonzeros, as in the thesis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
GRAY = "#8a94a0"
_MISSING = "#d3d8de"
_RATIO_ENDS = (2.0, 5.0, 10.0)


def recovery_grid(
    grid: Array,
    zero_rates: Array,
    nonzero_rates: Array,
    *,
    kind: str = "error",
    title: str = "",
    limits: tuple[float, float] | None = None,
    ax: Any,
) -> None:
    """Draw errors of completions, or ratios of errors, for all pairs of sampling rates.

    The rows of the grid belong to the rates of nonzeros.  Problems above the gray diagonal are
    structured, that is, zeros are missing more often than nonzeros.  "error" has logarithmic
    colors, "ratio" those centered at 1, blue below, and "binned" is white below 1, black from 1 on.
    """
    _draw(ax, grid, (_edges(zero_rates), _edges(nonzero_rates)), kind, limits)
    ax.set(xlabel="sampling rate of zeros", ylabel="sampling rate of nonzeros", title=title)


def _edges(centers: Array) -> Array:
    """Borders of cells: halfway between their centers."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.05, centers[0] + 0.05])
    half = np.diff(centers) / 2
    return np.concatenate([[centers[0] - half[0]], centers[:-1] + half, [centers[-1] + half[-1]]])


def _draw(axes: Any, grid: Array, borders: tuple[Array, Array], kind: str, limits: Any) -> None:
    """Draw the cells, the diagonal and the color bar."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
    from matplotlib.ticker import NullLocator

    if kind == "binned":
        colors: Any = ListedColormap(["white", "black"])
        norm: Any = BoundaryNorm([0, 1, 2], 2)
        shown, ticks = np.where(np.isnan(grid), np.nan, np.where(grid < 1, 0.5, 1.5)), [0.5, 1.5]
        labels: Any = ["below 1", "1 or more"]
    else:
        low, high = _range(grid, kind, limits)
        colors = colormaps["viridis" if kind == "error" else "RdBu_r"]
        norm, shown = LogNorm(low, high), np.clip(grid, low, high)
        ticks, labels = _ticks(low, high)
    cells = axes.pcolormesh(
        *borders,
        np.ma.masked_invalid(shown),
        cmap=colors.with_extremes(bad=_MISSING),
        norm=norm,
        rasterized=True,
    )
    axes.set_facecolor(_MISSING)
    centers = [(side[[0, -2]] + side[[1, -1]]) / 2 for side in borders]  # of the outer cells
    ends = [max(side[0] for side in centers), min(side[1] for side in centers)]
    if ends[0] < ends[1]:
        axes.plot(ends, ends, color=GRAY, linewidth=1.2)
    axes.set_xlim(borders[0][[0, -1]])
    axes.set_ylim(borders[1][[0, -1]])
    bar = axes.figure.colorbar(cells, ax=axes, ticks=ticks)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.set_yticklabels(labels)
    bar.set_label("error" if kind == "error" else "ratio of errors")


def _range(grid: Array, kind: str, limits: Any) -> tuple[float, float]:
    """Ends of the colors, both above 0."""
    if limits is not None:
        low, high = (float(end) for end in limits)
        if not 0 < low < high < np.inf:
            raise ValueError(f"limits must be two numbers, 0 < low < high; got {limits!r}.")
    else:
        usable = grid[np.isfinite(grid) & (grid > 0)]
        low, high = (usable.min(), usable.max()) if usable.size else (1.0, 1.0)
    if kind == "error":
        return (low, high) if high > low else (low / 10, low * 10)
    widest = max(high, 1 / low)
    steps = (step for step in _RATIO_ENDS if step >= widest)
    end = next(steps, 10.0 ** np.ceil(np.log10(widest)))
    return 1 / end, end


def _ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """About five round numbers between the ends, and how they are written."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    wide = np.log10(high / low) > 2
    if wide:
        step = max(1, -(-(last - first) // 6))  # multiples of it, so that 1 is among them
        ticks = [10.0**k for k in range(first, last + 1) if k % step == 0]
    else:
        ticks = [digit * 10.0**k for k in range(first, last + 1) for digit in (1, 2, 5)]
    ticks = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    if len(ticks) < 2:
        return [low, high], [f"{low:.3g}", f"{high:.3g}"]
    if wide:
        return ticks, [f"$10^{{{round(np.log10(tick))}}}$" for tick in ticks]
    return ticks, [f"{tick:g}" for tick in ticks]
