"""Tables of shares as heat maps with named rows and columns; darker blue is more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._data.border import check_integer, check_share
from .._labels import unmask_labels
from .._topics import Topics, divide_by_sums
from . import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

_LONGEST_ROW, _LONGEST_COLUMN = 60, 32  # characters of a name
_BAR = 1.9  # largest height of the color bar in inches
_TOPS = (0.2, 0.4, 0.6, 0.8, 1.0)  # darkest shares for which the key has round numbers
_SMALLEST_TEXT = 4.5  # points; only some of the lower rows have a name


class Room(NamedTuple):
    """Names next to a map and below it, and its approximate size in inches."""

    rows: list[str]
    columns: list[str]
    width: float
    height: float


def table_axes(
    ax: Axes | None,
    width: float,
    height: float,
    title: str | None,
    rows: Sequence[str],
    columns: Sequence[str],
    ends: Sequence[str] | None = None,
) -> tuple[Figure, Axes, Room]:
    """Return figure and axes for a map of this size in inches, and the room in them.

    In given axes, names take at most 2 / 5 of each side.  `ends` are appended to the names of the
    rows, which may be shortened.
    """
    pairs = list(zip(rows, ends or [""] * len(rows), strict=True))
    if ax is None:
        rows = [style.plain(name, _LONGEST_ROW) + end for name, end in pairs]
        columns = [style.plain(name, _LONGEST_COLUMN) for name in columns]
        beside = style.text_width(rows, _size(height / len(rows))) + 1.6
        below = _name_height(columns, width / max(len(columns), 1)) + 0.7
        figure, axes = style.axes_or_new(None, width + beside, height + below, title)
        return figure, axes, Room(rows, columns, width, height)
    width, height = style.inches(ax)
    size = _size(0.7 * height / len(rows))
    widths = [0.4 * width - style.text_width([end], size) for _, end in pairs]
    rows = [style.fitted(name, w, size) + end for (name, end), w in zip(pairs, widths, strict=True)]
    columns = [style.fitted(name, 0.4 * height / 0.72, 9) for name in columns]
    wide = max(width - style.text_width(rows, size) - 1.2, 0.3 * width)
    high = height - _name_height(columns, wide / max(len(columns), 1)) - 0.4
    figure, axes = style.axes_or_new(ax, width, height, title)
    return figure, axes, Room(rows, columns, wide, max(high, 0.3 * height))


def draw_cells(
    axes: Axes, across: Array, down: Array, values: Array, top: float, meaning: str, height: float
) -> QuadMesh:
    """Draw framed cells between edges, the first row on top, and the color bar.

    `height` is the approximate height of the map in inches.
    """
    from matplotlib.ticker import StrMethodFormatter

    look: dict[str, Any] = {"cmap": style.blues(), "vmin": 0, "vmax": top}
    cells = axes.pcolormesh(across, down, values, **look, rasterized=values.size > 20_000)
    axes.set(xlim=(across[0], across[-1]), ylim=(down[-1], down[0]))
    look = {"shrink": min(1.0, _BAR / height), "anchor": (0.0, 1.0), "aspect": 12}
    ticks, percent = np.linspace(0, top or 1, 5), StrMethodFormatter("{x:.0%}")
    bar = axes.figure.colorbar(cells, ax=axes, **look, ticks=ticks, format=percent)
    for spine in (*axes.spines.values(), bar.outline):
        spine.set_edgecolor(style.FRAME)
    bar.set_label(meaning, color=style.INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, color=style.FRAME)
    return cells


def darkest_share(values: Array, darkest: float | None) -> float:
    """Return the share that has the darkest color: the given one, or one that none exceeds."""
    if darkest is None:
        largest = float(values.max())
        return next((top for top in _TOPS if 0 < largest <= top), 1.0)
    return check_share(darkest, "darkest", below=False)


def _size(height: float) -> float:
    """Return the font size in points for rows of this height in inches."""
    return float(np.clip(0.72 * 72 * height, _SMALLEST_TEXT, 9))


def _every(count: int, room: float, size: float) -> list[int]:
    """Return the places of names that do not touch each other."""
    return list(range(0, count, max(1, int(np.ceil(1.15 * size / 72 / room)))))


def name_rows(axes: Axes, names: Sequence[str], height: float) -> None:
    """Write names left of rows of this height in inches, if there is room for them."""
    size = _size(height)
    places = _every(len(names), height, size)
    axes.set_yticks(places, [names[k] for k in places], fontsize=size, **style.TEXT)
    axes.tick_params(axis="y", length=0)


def name_columns(axes: Axes, room: Room) -> None:
    """Write names below the columns, slanted if they are long."""
    names, width = room.columns, room.width / len(room.columns)
    # Short names are made smaller instead.
    size = 9 * min(1.0, 0.85 * width / max(style.text_width(names, 9), 1e-9))
    look, places = style.TEXT, list(range(len(names)))
    if size < 6.5:
        size = float(np.clip(0.9 * 72 * width, _SMALLEST_TEXT, 9))
        places = _every(len(names), width, size)
        look = {**look, "rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, [names[k] for k in places], fontsize=size, **look)
    axes.tick_params(axis="x", length=0)


def _name_height(names: Sequence[str], width: float) -> float:
    """Return the height in inches that :func:`name_columns` takes below columns."""
    wide = style.text_width(names, 9)
    return 0.2 if wide <= width else 0.72 * wide + 0.1


_LOWEST = 0.17  # inches of a class, with room for its name
_UNLABELED = "(no label)"


@style.complete_docstring
def representation_map(
    S: npt.ArrayLike,
    y: Any,
    *,
    topics: Topics | Sequence[str] | None = None,
    class_names: Sequence[object] | npt.ArrayLike | None = None,
    sort: bool = True,
    max_rows: int = 600,
    darkest: float | None = None,
    unlabeled: object = "auto",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the representation of all samples, sorted by class: samples in rows, topics in columns.

    Colors are shares of the topics in a sample.  Within a class, samples with the same largest
    topic are next to each other.

    Parameters
    ----------
    y : array_like, shape (n,)
        Class of each sample; samples without a label come last.  At least one sample needs a label.
    class_names : sequence, length k, optional
        Names of the classes, in their sorted order; by default those in `y`.
    max_rows : int, at least 1
        If there are more samples, rows are means of several samples of a class; each class has at
        least one row.

    Notes
    -----
    The height of a class is proportional to its number of samples, but at least that of its name.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> S = [[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]]
    >>> figure = plotting.representation_map(S, ["sport", "space", "sport"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['space (1)', 'sport (2)']
    """
    check_integer(max_rows, "max_rows", 1)
    if np.ndim(unmask_labels(y)) > 1:
        hint = "expected one class for each sample. For several labels per sample, use label_map."
        raise ValueError(f"y has shape {np.shape(y)}; {hint}")
    table, indicators, classes = style.check_samples(S, y, unlabeled)
    part, n_classes = divide_by_sums(table), len(classes)
    if class_names is not None:
        classes = style.check_names(class_names, "class_names", n_classes, "class")
    names = style.topic_names(range(part.shape[1]) if topics is None else topics, part.shape[1])
    columns = np.arange(part.shape[1])
    if sort:
        counts = np.maximum(indicators.sum(axis=0), 1)
        columns = style.neighbors_by_class(np.asarray((indicators.T @ part).T) / counts)
    part = part[:, columns]
    code = np.full(len(part), n_classes)  # samples without a label come last
    rows, labels = indicators.nonzero()
    code[rows] = labels
    order = np.lexsort((-part.max(axis=1), part.argmax(axis=1), code))
    sizes = np.bincount(code, minlength=n_classes)
    blocks = np.split(part[order], np.cumsum(sizes)[:-1])
    shown = [*classes, _UNLABELED][: len(blocks)]
    width, height = np.clip([0.3 * len(columns), 0.26 * len(shown)], (2.4, 3), (9, 22)).tolist()
    ends = [f" ({size:,})" for size in sizes.tolist()]
    figure, axes, room = table_axes(
        ax, width, height, title, shown, [names[k] for k in columns], ends
    )
    _draw_blocks(axes, room, blocks, max_rows, darkest)
    style.label_axes(axes, "topic", "samples, by class (their number)", curves=False)
    return figure


def _draw_blocks(
    axes: Axes, room: Room, blocks: list[Array], max_rows: int, darkest: float | None
) -> None:
    """Draw the samples of each class, or means of several, in proportion to their number."""
    sizes = np.array([len(block) for block in blocks], dtype=np.float64)
    heights = sizes / sizes.sum()
    least = min(_LOWEST / room.height, 0.8 / len(sizes))
    if heights.min() < least:
        heights = least + (1 - least * len(sizes)) * heights
    borders = np.concatenate([[0.0], np.cumsum(heights)])
    n_rows = np.minimum(sizes, np.maximum(1, max_rows * np.diff(borders))).astype(int)
    means, edges = [], [np.zeros(1)]
    for block, count, low, high in zip(blocks, n_rows, borders[:-1], borders[1:], strict=True):
        starts = np.arange(count) * len(block) // count
        lengths = np.diff(np.append(starts, len(block)))
        means.append(np.add.reduceat(block, starts, axis=0) / lengths[:, None])
        edges.append(np.linspace(low, high, count + 1)[1:])
    rows, down = np.concatenate(means), np.concatenate(edges)
    across = np.arange(blocks[0].shape[1] + 1) - 0.5
    top, meaning = darkest_share(rows, darkest), "share of the topic\nin the samples"
    cells = draw_cells(axes, across, down, rows, top, meaning, room.height)
    cells.set_rasterized(True)
    axes.hlines(borders[1:-1], *across[[0, -1]], color=style.GRAY, linewidth=0.8)
    middles = (borders[:-1] + borders[1:]) / 2
    axes.set_yticks(middles, room.rows, fontsize=9, **style.TEXT)
    axes.tick_params(axis="y", length=0)
    name_columns(axes, room)
