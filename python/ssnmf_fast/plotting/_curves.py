"""Curves of the scores of several methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._data.checks import check_option
from ._checks import check_finite
from ._style import (
    GRAY,
    add_legend,
    add_title,
    axes_or_new,
    curve_look,
    label_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DASHES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
_INTERVALS = ("sd", "range", "none")
_STYLES = ("bars", "band")


def score_curves(
    x: npt.ArrayLike,
    scores: Mapping[str, npt.ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    interval: Literal["sd", "range", "none"] = "sd",
    style: Literal["bars", "band"] = "bars",
    baselines: Mapping[str, float] | None = None,
    log_x: bool = False,
    title: str | None = None,
    ax: Any = None,
) -> Figure:
    """Draw scores of several methods against x: means, and how much repeated runs differ.

    Parameters
    ----------
    x : array_like, shape (k,), ascending
        Such as ranks, or shares of the samples that are labeled.
    scores : dict of str to array_like, shape (k,) or (k, n_runs)
        Finite scores of every method, of any sign; with several runs their means are drawn.
    xlabel, ylabel : str
        Names of the axes.
    interval : {"sd", "range", "none"}
        What is drawn about the means: the standard deviation over the runs (of a sample: n - 1) to
        both sides, smallest and largest score, or nothing.  A single run has none.
    style : {"bars", "band"}
        How: as error bars, or as a shaded band.
    baselines : dict of str to float, optional
        Scores of methods that do not depend on x: dashed gray lines.
    log_x : bool
        Whether `x`, then above 0, is on a logarithmic scale.
    title : str, optional
        Text above the curves.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of `ax`, if it is given.

    Raises
    ------
    ValueError
        For numbers that are not finite, shapes that do not fit, `x` that does not ascend, or
        nothing to draw.
    TypeError
        If `scores` or `baselines` is no dict of numbers.
    MissingPackageError
        If matplotlib is not installed.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> accuracies = {"SSNMF": [[0.70, 0.74], [0.80, 0.82]], "NMF": [0.55, 0.60]}
    >>> drawn = plotting.score_curves([5, 10], accuracies, xlabel="rank", ylabel="accuracy")
    >>> [text.get_text() for text in drawn.axes[0].get_legend().get_texts()]
    ['SSNMF', 'NMF']
    """
    check_option(interval, "interval", _INTERVALS)
    check_option(style, "style", _STYLES)
    places = _ascending(x, log_x)
    methods = {
        name: _runs(values, f"scores[{name!r}]", len(places))
        for name, values in _checked(scores, "scores").items()
    }
    levels = {
        name: _level(value, f"baselines[{name!r}]")
        for name, value in _checked(baselines or {}, "baselines").items()
    }
    if not methods:
        raise ValueError("scores is empty; expected at least one method.")
    drawn, axes = axes_or_new(ax, 6.4, 3.8)
    if log_x:
        axes.set_xscale("log")
    lines = [
        _draw_method(axes, places, runs, interval, style, number, len(methods))
        for number, runs in enumerate(methods.values())
    ]
    for number, level in enumerate(levels.values()):
        dash = _DASHES[number % len(_DASHES)]
        lines.append(axes.axhline(level, color=GRAY, linestyle=dash, linewidth=1.2))
    label_axes(axes, xlabel, ylabel)
    if log_x or len(places) <= 8:
        _mark_places(axes, places)
    # A line across all of the axes leaves no place where the legend would not cover it.
    add_legend(axes, lines, [str(name) for name in (*methods, *levels)], beside=bool(levels))
    add_title(axes, title)
    return drawn


def _ascending(x: Any, log_x: bool) -> Array:
    places = check_finite(x, "x")
    if places.ndim != 1 or not places.size or (np.diff(places) <= 0).any():
        raise ValueError(f"x must be an ascending vector that is not empty; got {x!r:.80}.")
    if log_x and places[0] <= 0:
        raise ValueError(f"x must be above 0 with log_x=True; got {places[0]:g}.")
    return places


def _checked(given: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict of method to numbers; got {type(given).__name__}.")
    return given


def _runs(values: Any, name: str, count: int) -> Array:
    """Return the scores of a method, (k, n_runs)."""
    runs = check_finite(values, name)
    if runs.ndim not in (1, 2) or len(runs) != count or not runs.size:
        raise ValueError(
            f"{name} has shape {runs.shape}; expected ({count},) or ({count}, runs), a row for "
            "each of x."
        )
    return runs.reshape(count, -1)


def _level(value: Any, name: str) -> float:
    level = check_finite(value, name)
    if level.ndim:
        raise TypeError(f"{name} must be a number; got shape {level.shape}.")
    return float(level)


def _draw_method(
    axes: Any, places: Array, runs: Array, interval: str, style: str, number: int, count: int
) -> Any:
    """Draw one method; return what stands for it in the legend."""
    means = runs.mean(axis=1)
    look = curve_look(number) | {"linewidth": 1.6, "markersize": 4.5}
    (line,) = axes.plot(places, means, **look)
    if interval == "none" or runs.shape[1] == 1:
        return line
    if interval == "sd":
        low = high = runs.std(axis=1, ddof=1)
    else:
        low, high = means - runs.min(axis=1), runs.max(axis=1) - means
    if style == "band":
        band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        axes.fill_between(places, means - low, means + high, **band)
        return line
    # A few points aside, so that the bars of several methods do not hide one another.
    from matplotlib.transforms import offset_copy

    points = (number - (count - 1) / 2) * min(2.0, 8 / count)
    aside = offset_copy(axes.transData, axes.figure, points, 0, units="points")
    spread = np.maximum([low, high], 0)  # means are rounded
    bars = {"ecolor": look["color"], "elinewidth": 1, "capsize": 2, "transform": aside}
    axes.errorbar(places, means, spread, fmt="none", **bars)
    line.set_transform(aside)
    # What is moved aside does not count for the limits by itself.
    for end in (means - spread[0], means + spread[1]):
        axes.update_datalim(np.column_stack([places, end]))
    axes.autoscale_view()
    return line


def _mark_places(axes: Any, places: Array) -> None:
    """Have a tick at each of x, if they are not too close for their numbers."""
    from matplotlib.ticker import NullFormatter, NullLocator

    along = np.log(places) if axes.get_xscale() == "log" else places
    width = float(along[-1] - along[0])
    if width == 0 or np.diff(along).min() >= 0.07 * width:
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
