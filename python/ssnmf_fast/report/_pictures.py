"""Pictures drawn by matplotlib, without a display."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.optional import require_package
from ..plotting import objective_curve
from ..plotting._style import add_legend, curve_look, figure, label_axes


def png(drawn: Any, dpi: int = 150) -> bytes:
    """Return the figure as PNG."""
    stream = io.BytesIO()
    drawn.savefig(stream, format="png", dpi=dpi, facecolor="white")
    return stream.getvalue()


def data_uri(image: bytes) -> str:
    """Return a PNG as a data: URI, which contains the picture."""
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


def small_image(image: npt.NDArray[Any]) -> bytes:
    """Return an image as PNG, a pixel for a pixel; larger numbers are darker."""
    with require_package("matplotlib"):
        from matplotlib.image import imsave
    stream = io.BytesIO()
    most = max(float(np.nanmax(image)), 1e-12)
    imsave(stream, image, cmap="gray_r", vmin=0, vmax=most, format="png")
    return stream.getvalue()


def objective_picture(objective: Sequence[tuple[int, float]]) -> bytes:
    """Draw the objective against the iterations (PNG)."""
    drawn = figure(7.0, 2.8)
    objective_curve(objective, ax=drawn.add_subplot())
    return png(drawn)


def learning_picture(
    sizes: Sequence[int], scores: Mapping[str, Sequence[tuple[float, float, float]]], metric: str
) -> bytes:
    """Draw scores against ascending numbers of labels (PNG).

    `scores` has (score, low, high) for every method and size; low and high are the ends of
    intervals.
    """
    drawn = figure(6.4, 3.4)
    axes = drawn.add_subplot()
    if len(sizes) > 1:
        axes.set_xscale("log")
    lines = []
    for number, (name, points) in enumerate(scores.items()):
        values, low, high = np.asarray(points, dtype=float).T
        look = curve_look(number) | {"linewidth": 1.6, "markersize": 4.5}
        lines.append(axes.plot(sizes, values, **look, label=name)[0])
        axes.fill_between(sizes, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xticks(list(sizes), [str(size) for size in sizes])
    axes.minorticks_off()
    label_axes(axes, "labels", metric)
    add_legend(axes, lines, list(scores))
    return png(drawn)
