"""Representations of samples, sorted by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._data.border import check_integer
from .._labels import unmask_labels
from .._topics import divide_by_sums
from ._style import (
    FRAME,
    GRAY,
    INK,
    add_title,
    axes_or_new,
    blues,
    check_labels,
    check_names,
    check_samples,
    complete_docstring,
    name_axes,
    neighbors_by_class,
    plain,
    text_width,
    topic_names,
)
from ._tables import (
    Room,
    add_bar,
    darkest_share,
    name_columns,
    name_height,
    room_in,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOWEST = 0.17  # inches: a class has room for its name
_UNLABELED = "(no label)"


@complete_docstring
def representation_map(
    S: npt.ArrayLike,
    y: Any,
    *,
    topics: Any = None,
    class_names: Any = None,
    sort: bool = True,
    max_rows: int = 600,
    darkest: float | None = None,
    unlabeled: Any = "auto",
    title: str | None = None,
    ax: Any = None,
) -> Figure:
    """Draw the representation of all samples, sorted by class: samples in rows, topics in columns.

    Every sample is divided by its sum, so that colors are shares of the topics in it.  Within a
    class, samples with the same largest topic are next to each other.

    Parameters
    ----------
    S : array_like, shape (n, r), >= 0
        Representation of the samples, as from ``transform`` or in `representation_`.
    y : array_like, shape (n,)
        Class of every sample; those without a label come last, as a class of their own.
    class_names : sequence, length k, optional
        Names of the classes, in their sorted order; by default those in `y`.
    sort : bool
        Whether to put topics with the same largest class next to each other, in the order of the
        classes.
    max_rows : int, at least 1
        If there are more samples than this, rows are means of several samples of a class; every
        class has at least one row.
    topics, darkest, unlabeled, title, ax
        As in :func:`class_map`.

    Raises
    ------
    ValueError
        If numbers are negative or not finite, shapes or names do not match, a sample has several
        labels, or no sample has a label.
    TypeError
        If an argument is not an array of real numbers.

    Notes
    -----
    The height of a class is proportional to its number of samples.  If a class would be too low for
    its name, all classes get this height, and the rest is divided in proportion.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> S = [[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]]
    >>> drawn = plotting.representation_map(S, ["sport", "space", "sport"])
    >>> [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    ['space (1)', 'sport (2)']
    """
    check_integer(max_rows, "max_rows", 1)
    if np.ndim(unmask_labels(y)) > 1:
        raise ValueError(
            f"y has shape {np.shape(y)}; expected one class for each sample. For several labels "
            "of a sample see label_map."
        )
    part = divide_by_sums(check_samples(S, y))
    indicators, classes = check_labels(y, unlabeled)
    if class_names is not None:
        classes = check_names(class_names, "class_names", len(classes), "class")
    names = topic_names(range(part.shape[1]) if topics is None else topics, part.shape[1])
    order = np.arange(part.shape[1])
    if sort:
        counts = np.maximum(indicators.sum(axis=0), 1)
        order = neighbors_by_class(np.asarray((indicators.T @ part).T) / counts)
    blocks = _blocks(part[:, order], indicators)
    rows = [*classes, _UNLABELED][: len(blocks)]
    ends = [f" ({len(block):,})" for block in blocks]
    drawn, axes, room = _axes(ax, rows, ends, [names[k] for k in order])
    _draw(axes, room, blocks, max_rows, darkest)
    name_axes(axes, "topic", "samples, by class (their number)")
    add_title(axes, title)
    return drawn


def _blocks(part: Array, indicators: Any) -> list[Array]:
    """Return the samples of every class and, if there are any, those without a label."""
    n_classes = indicators.shape[1]
    code = np.full(len(part), n_classes)
    rows, columns = indicators.nonzero()
    code[rows] = columns
    main = part.argmax(axis=1)
    order = np.lexsort((-part.max(axis=1), main, code))
    sizes = np.bincount(code, minlength=n_classes)
    return np.split(part[order], np.cumsum(sizes)[:-1])


def _heights(sizes: Array, height: float) -> Array:
    """Return shares of the height: those of the samples, unless a class would be too low."""
    proportional = sizes / sizes.sum()
    least = min(_LOWEST / height, 0.8 / len(sizes))
    if proportional.min() >= least:
        return np.asarray(proportional)
    return np.asarray(least + (1 - least * len(sizes)) * proportional)


def _axes(
    ax: Any, rows: list[str], ends: list[str], columns: list[str]
) -> tuple[Figure, Any, Room]:
    """Return figure and axes, and the room in them, for so many classes and topics."""
    if ax is not None:
        return ax.figure, ax, room_in(ax, rows, columns, ends)
    rows = [plain(name, 32) + end for name, end in zip(rows, ends, strict=True)]
    columns = [plain(name, 32) for name in columns]
    width = float(np.clip(0.3 * len(columns), 2.4, 9))
    height = float(np.clip(0.26 * len(rows), 3, 22))
    below = name_height(columns, width / len(columns)) + 0.7
    drawn, axes = axes_or_new(None, width + text_width(rows, 9) + 1.6, height + below)
    return drawn, axes, Room(rows, columns, width, height)


def _draw(axes: Any, room: Room, blocks: list[Array], max_rows: int, darkest: float | None) -> None:
    sizes = np.array([len(block) for block in blocks], dtype=np.float64)
    borders = np.concatenate([[0.0], np.cumsum(_heights(sizes, room.height))])
    n_rows = np.minimum(sizes, np.maximum(1, max_rows * np.diff(borders))).astype(int)
    means, edges = [], [np.zeros(1)]
    for block, count, low, high in zip(blocks, n_rows, borders[:-1], borders[1:], strict=True):
        starts = np.arange(count) * len(block) // count
        lengths = np.diff(np.append(starts, len(block)))
        means.append(np.add.reduceat(block, starts, axis=0) / lengths[:, None])
        edges.append(np.linspace(low, high, count + 1)[1:])
    rows = np.concatenate(means)
    columns = np.arange(blocks[0].shape[1] + 1) - 0.5
    cells = axes.pcolormesh(
        columns,
        np.concatenate(edges),
        rows,
        cmap=blues(),
        vmin=0,
        vmax=darkest_share(rows, darkest),
        rasterized=True,
    )
    axes.set_ylim(1, 0)  # the first class is on top
    axes.hlines(borders[1:-1], *columns[[0, -1]], color=GRAY, linewidth=0.8)
    middles = (borders[:-1] + borders[1:]) / 2
    axes.set_yticks(middles, room.rows, fontsize=9, color=INK, parse_math=False)
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_color(FRAME)
    name_columns(axes, room.columns, room.width / len(room.columns))
    add_bar(axes, cells, "share of the topic\nin the samples", room.height)
