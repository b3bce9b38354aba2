"""Prevalence of topics over time: a heat map, or curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    plain,
    text_width,
)
from ._tables import add_bar, name_rows, room_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEANINGS = {
    "peak": "prevalence, relative\nto the topic's peak",
    "slice": "share of the slice",
    "largest": "prevalence, relative\nto the largest",
}
_NO_DOCUMENTS = "#d3d8de"
_LONGEST = 60  # characters of a name
_FEW = 40  # slices whose points of curves have markers


@dataclass(frozen=True)
class _Series:
    """Prevalence (slices x topics), names of the topics, edges of the slices, empty slices."""

    values: Array
    names: list[str]
    edges: Array
    empty: Array


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
    ax: Any = None,
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
    every = _series(model, feature_names, n_terms)
    chosen = _chosen(topics, len(every.names))
    if sort:
        chosen = sorted(chosen, key=lambda k: int(every.values[:, k].argmax()))
    if kind == "heatmap":
        drawn, axes = _heat_map(every, _shared(every.values, share), chosen, _MEANINGS[share], ax)
    else:
        drawn, axes = _curves(every, chosen, ax)
    add_title(axes, title)
    return drawn


def _series(model: Any, feature_names: Any, n_terms: int) -> _Series:
    starts = model.slices_
    end = starts[-1] + (starts[-1] - starts[-2])
    edges = np.append(starts, end).astype("datetime64[s]")
    names = numbered_names(model.topics(feature_names, n_terms))
    return _Series(model.prevalence_, names, edges, model.slice_sizes_ == 0)


def _chosen(topics: Any, count: int) -> list[int]:
    if topics is None:
        return list(range(count))
    chosen = [check_integer(k, "a topic of topics", 0, count - 1) for k in topics]
    if not chosen:
        raise ValueError("topics is empty; name the topics to draw, or leave it out for all.")
    return chosen


def _shared(values: Array, share: str) -> Array:
    least = np.finfo(np.float64).tiny
    if share == "slice":
        return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), least))
    largest = values.max(axis=0) if share == "peak" else values.max()
    return np.asarray(values / np.maximum(largest, least))


def _heat_map(
    every: _Series, values: Array, chosen: list[int], meaning: str, ax: Any
) -> tuple[Figure, Any]:
    names = [every.names[k] for k in chosen]
    if ax is None:
        height = min(max(0.26 * len(names), 1.6), 40.0)
        names = [plain(name, _LONGEST) for name in names]
        width = float(np.clip(0.12 * len(values), 4.5, 10.0))
        drawn, axes = axes_or_new(None, width + text_width(names, 9) + 1.6, height + 0.8)
    else:
        drawn, axes = ax.figure, ax
        room = room_in(ax, names, [])
        names, height = room.rows, room.height
    cells = axes.pcolormesh(
        _as_numbers(every.edges),
        np.arange(len(names) + 1) - 0.5,
        np.ma.masked_array(values[:, chosen].T, np.tile(every.empty, (len(names), 1))),
        cmap=blues().with_extremes(bad=_NO_DOCUMENTS),
        vmin=0,
        vmax=1,
        rasterized=values.size > 20_000,
    )
    axes.set_ylim(len(names) - 0.5, -0.5)  # the first row is on top
    for spine in axes.spines.values():
        spine.set_color(FRAME)
    for line in range(1, len(names)):
        axes.axhline(line - 0.5, color=FRAME, linewidth=0.4)
    name_rows(axes, names, height / len(names))
    _dates(axes, every.edges[[0, -1]])
    name_axes(axes, "", "topic")
    add_bar(axes, cells, meaning, height)
    return drawn, axes


def _curves(every: _Series, chosen: list[int], ax: Any) -> tuple[Figure, Any]:
    drawn, axes = axes_or_new(ax, 9.0, 3.8)
    numbers = _as_numbers(every.edges)
    middles = (numbers[:-1] + numbers[1:]) / 2
    lines = []
    for number, k in enumerate(chosen):
        look = curve_look(number) | {"linewidth": 1.5, "markersize": 4}
        if len(middles) > _FEW:
            look["marker"] = ""
        values = np.where(every.empty, np.nan, every.values[:, k])
        lines.append(axes.plot(middles, values, **look)[0])
    axes.set_ylim(bottom=0)
    _dates(axes, every.edges[[0, -1]])
    label_axes(axes, "", "prevalence in a mean document")
    add_legend(axes, lines, [every.names[k] for k in chosen])
    return drawn, axes


def _calendar() -> Any:
    return import_module("matplotlib.dates")


def _as_numbers(edges: Array) -> Array:
    """Return times as matplotlib counts them, in days."""
    return np.asarray(_calendar().date2num(edges), dtype=np.float64)


def _dates(axes: Any, ends: Array) -> None:
    """Write dates below the axes, at round ones."""
    locator = _calendar().AutoDateLocator(minticks=3, maxticks=10)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(_calendar().ConciseDateFormatter(locator))
    axes.set_xlim(*_as_numbers(ends))
    axes.tick_params(axis="x", labelsize=9, labelcolor=INK, color=FRAME)
