"""Pictures drawn by matplotlib, without a display."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._missing import PLOT_HINT, MissingPackageError

INK = "#1f2933"
ACCENT = "#2b6cb0"


def figure(width: float, height: float) -> Any:
    """Return an empty figure of the given size in inches.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError(f"matplotlib is missing: {PLOT_HINT}") from error
    drawn = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn


def png(drawn: Any, dpi: int = 150) -> bytes:
    """Return the figure as PNG."""
    stream = io.BytesIO()
    drawn.savefig(stream, format="png", dpi=dpi, facecolor="white")
    return stream.getvalue()


def objective_picture(objective: Sequence[tuple[int, float]]) -> bytes:
    """Draw the objective against the iterations (PNG)."""
    drawn = figure(7.0, 2.8)
    axes = drawn.add_subplot()
    iterations = [iteration for iteration, _ in objective]
    values = [value for _, value in objective]
    axes.plot(iterations, values, color=ACCENT, marker="o", markersize=3.5, linewidth=1.6)
    if min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
    axes.set_xlabel("iteration", color=INK)
    axes.set_ylabel("objective", color=INK)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return png(drawn)


def parts_picture(images: npt.NDArray[Any], names: Sequence[str], columns: int) -> bytes:
    """Draw images in a grid, each under its name (PNG).

    Parameters
    ----------
    images : ndarray, shape (r, height, width)
        Each is drawn on its own scale.
    names : sequence of str, length r
    columns : int
        Images in a row of the grid.
    """
    rows = -(-len(images) // columns)
    drawn = figure(0.8 * columns, 0.82 * rows + 0.2)
    for k, (image, name) in enumerate(zip(images, names, strict=True)):
        axes = drawn.add_subplot(rows, columns, k + 1)
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=max(float(np.max(image)), 1e-12))
        axes.set_title(name, fontsize=9, color=INK, pad=3)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color("#cbd2d9")
    return png(drawn)
