"""Prevalence of topics over time: a heat map, or curves."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._common.arrays import Array
from .._data.border import check_integer, check_option
from .._topics import numbered_names
from ._style import (
    FRAME,
    INK,
    add_legend,
    add_title,
    axes_or_new,
    blues,
    complete_docstring,
    curve_look,
    label_axes,
    name_axes,
)
from ._tables import Room, add_bar, name_rows, table_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEANINGS = {
    "peak": "prevalence, relative\nto the topic's peak",
    "slice": "share of the slice",
    "largest": "prevalence, relative\nto the largest",
}
_NO_DOCUMENTS = "#d3d8de"
_FEW = 40  # slices whose points of curves have markers


@complete_docstring
def topics_over_time(
    model: Any,
    feature_names: Any = None,
    *,
    kind: Literal["heatmap", "lines"] = "heatmap",
    n_terms: int = 3,
    share: Literal["peak", "slice", "largest"] = "peak",
    topics: Sequence[int] | None = None,
    sort: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw how prevalent every topic is over time.

    The heat map is that of [1]_, Figures 4.2 to 4.8: topics in rows, slices of time in columns.
    Slices without documents are gray.

    Parameters
    ----------
    model : fitted DynamicTopics
        Topics with their `prevalence_`.
    feature_names : array_like of str, shape (m,), optional
        Names of the features, such as ``vectorizer.get_feature_names_out()``; as in
        :meth:`~ssnmf_fast.DynamicTopics.topics`.
    kind : {"heatmap", "lines"}
        "lines" draws a curve for each topic, in the unit of the prevalence; best for few topics.
    n_terms : int
        Number of terms in the name of a topic, at least 1.
    share : {"peak", "slice", "largest"}
        Of the heat map, what a prevalence is divided by: the largest one of its topic, the sum of
        its slice (columns sum to 1), or the largest of all.
    topics : sequence of int, optional
        Numbers of the topics to draw; by default all.
    sort : bool
        Whether topics stand in the order of their peaks, the earliest first; else in that of
        `topics`.

    Raises
    ------
    ValueError
        If an option is unknown, names do not match, or there is no such topic.
    TypeError
        If the model has no prevalence over time.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.kron(np.eye(2), np.ones((6, 3)))  # two topics: the second one comes later
    >>> times = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    >>> model = sf.DynamicTopics(2, freq="quarter", random_state=0).fit(X, times)
    >>> drawn = plotting.topics_over_time(model, list("abcdef"))
    >>> [label.get_text()[3:] for label in drawn.axes[0].get_yticklabels()]
    ['a, b, c', 'd, e, f']
    """
    check_option(kind, "kind", ("heatmap", "lines"))
    check_option(share, "share", tuple(_MEANINGS))
    if not hasattr(model, "prevalence_"):
        raise TypeError(f"model must be a fitted DynamicTopics; got {model!r:.80}.")
    names = numbered_names(model.topics(feature_names, n_terms))
    chosen = list(range(len(names)))
    if topics is not None:
        chosen = [check_integer(k, "a topic of topics", 0, len(names) - 1) for k in topics]
    if not chosen:
        raise ValueError("topics is empty; name the topics to draw, or leave it out for all.")
    values, starts = model.prevalence_, model.slices_
    edges = np.append(starts, starts[-1] + (starts[-1] - starts[-2])).astype("datetime64[s]")
    if sort:
        chosen = sorted(chosen, key=lambda k: int(values[:, k].argmax()))
    shown = [names[k] for k in chosen]
    if kind == "lines":
        drawn, axes = axes_or_new(ax, 9.0, 3.8)
        values = np.where(model.slice_sizes_[:, None] == 0, np.nan, values)[:, chosen]
        _draw_curves(axes, _write_dates(axes, edges), values, shown)
    else:
        largest = {"peak": values.max(axis=0), "largest": values.max()}
        divisor = largest[share] if share in largest else values.sum(axis=1, keepdims=True)
        shares = (values / np.maximum(divisor, np.finfo(np.float64).tiny))[:, chosen].T
        width, height = np.clip([0.12 * len(values), 0.26 * len(shown)], (4.5, 1.6), (10, 40))
        drawn, axes, room = table_axes(ax, (float(width), float(height)), shown, [])
        empty = np.tile(model.slice_sizes_ == 0, (len(shown), 1))
        masked = np.ma.masked_array(shares, empty)
        _draw_map(axes, room, _write_dates(axes, edges), masked, _MEANINGS[share])
    add_title(axes, title)
    return drawn


def _draw_map(axes: Axes, room: Room, edges: Array, shares: Array, meaning: str) -> None:
    n_rows = len(shares)
    cells = axes.pcolormesh(
        edges,
        np.arange(n_rows + 1) - 0.5,
        shares,
        cmap=blues().with_extremes(bad=_NO_DOCUMENTS),
        vmin=0,
        vmax=1,
        rasterized=shares.size > 20_000,
    )
    axes.set_ylim(n_rows - 0.5, -0.5)  # the first row is on top
    axes.hlines(np.arange(1, n_rows) - 0.5, edges[0], edges[-1], color=FRAME, linewidth=0.4)
    name_rows(axes, room.rows, room.height / n_rows)
    name_axes(axes, "", "topic")
    add_bar(axes, cells, meaning, room.height)


def _draw_curves(axes: Axes, edges: Array, values: Array, names: list[str]) -> None:
    lines = []
    for number, column in enumerate(values.T):
        look = curve_look(number) | {"linewidth": 1.5, "markersize": 4}
        if len(column) > _FEW:
            look["marker"] = ""
        lines += axes.plot((edges[:-1] + edges[1:]) / 2, column, **look)
    axes.set_ylim(bottom=0)
    label_axes(axes, "", "prevalence in a mean document")
    add_legend(axes, lines, names)


def _write_dates(axes: Axes, edges: Array) -> Array:
    """Write round dates below the axes, and return the edges in days."""
    dates: Any = import_module("matplotlib.dates")
    days = np.asarray(dates.date2num(edges), dtype=np.float64)
    locator = dates.AutoDateLocator(minticks=3, maxticks=10)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set_xlim(days[0], days[-1])
    axes.tick_params(axis="x", labelsize=9, labelcolor=INK, color=FRAME)
    return days
