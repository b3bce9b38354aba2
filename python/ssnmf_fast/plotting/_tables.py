"""Tables of shares as heat maps: rows and columns with names, darker blue is more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_real
from ._style import FRAME, INK, axes_or_new, blues, fitted, inches, plain, text_width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST_ROW, _LONGEST_COLUMN = 60, 32  # characters of a name
_DARK = 0.45  # cells of a larger share of the darkest have white text
_BAR = 1.9  # height of the color bar in inches, at most
_ROOM_FOR_A_NUMBER = (0.34, 0.16)  # width and height of a cell in inches
_TOPS = (0.2, 0.4, 0.6, 0.8, 1.0)  # darkest colors for which the key has round numbers
_SMALLEST_TEXT = 4.5  # points; rows that are lower have a name only now and then


@dataclass(frozen=True)
class Room:
    """Names that fit beside and below a map, and about how large the map will be, in inches."""

    rows: list[str]
    columns: list[str]
    width: float
    height: float


def table_axes(
    ax: Any, shape: tuple[int, int], rows: Sequence[str], columns: Sequence[str]
) -> tuple[Figure, Any, Room]:
    """Return figure and axes for a table of this shape, and the room in them."""
    n_rows, n_columns = shape
    if ax is not None:
        return ax.figure, ax, room_in(ax, rows, columns)
    rows = [plain(name, _LONGEST_ROW) for name in rows]
    columns = [plain(name, _LONGEST_COLUMN) for name in columns]
    width = min(max(float(np.clip(7 / n_columns, 0.2, 0.7)) * n_columns, 1.6), 30.0)
    height = min(max(float(np.clip(9 / n_rows, 0.19, 0.34)) * n_rows, 1.4), 40.0)
    beside = text_width(rows, _size(height / n_rows)) + 1.5
    below = name_height(columns, width / n_columns) + 0.7
    drawn, axes = axes_or_new(None, width + beside, height + below)
    return drawn, axes, Room(rows, columns, width, height)


def room_in(
    axes: Any, rows: Sequence[str], columns: Sequence[str], ends: Sequence[str] | None = None
) -> Room:
    """Return the room in given axes, in which names take 2 / 5 at most of either side.

    `ends` are added to the names of the rows, and not shortened.
    """
    width, height = inches(axes)
    size = _size(0.7 * height / len(rows))
    ends = ends or [""] * len(rows)
    widths = [0.4 * width - text_width([end], size) for end in ends]
    fits = [fitted(name, wide, size) for name, wide in zip(rows, widths, strict=True)]
    rows = [name + end for name, end in zip(fits, ends, strict=True)]
    columns = [fitted(name, 0.4 * height / 0.72, 9) for name in columns]
    wide = max(width - text_width(rows, size) - 1.2, 0.3 * width)
    high = max(height - name_height(columns, wide / max(len(columns), 1)) - 0.4, 0.3 * height)
    return Room(rows, columns, wide, high)


def draw_table(axes: Any, room: Room, values: Array, meaning: str, darkest: float | None) -> None:
    """Draw the cells, their numbers where there is room, names and color bar."""
    top = darkest_share(values, darkest)
    n_rows, n_columns = values.shape
    cell = room.width / n_columns, room.height / n_rows
    cells = axes.pcolormesh(
        np.arange(n_columns + 1) - 0.5,
        np.arange(n_rows + 1) - 0.5,
        values,
        cmap=blues(),
        vmin=0,
        vmax=top,
        edgecolors=FRAME if min(cell) > 0.1 else "none",
        linewidth=0.4,
        rasterized=n_rows * n_columns > 20_000,
    )
    axes.set_ylim(n_rows - 0.5, -0.5)  # the first row is on top
    axes.set_xlim(-0.5, n_columns - 0.5)
    for spine in axes.spines.values():
        spine.set_color(FRAME)
    name_rows(axes, room.rows, cell[1])
    name_columns(axes, room.columns, cell[0])
    if cell[0] > _ROOM_FOR_A_NUMBER[0] and cell[1] > _ROOM_FOR_A_NUMBER[1]:
        _write_numbers(axes, values, top)
    add_bar(axes, cells, meaning, room.height)


def add_bar(axes: Any, cells: Any, meaning: str, height: float) -> None:
    """Add the key to the colors: at the top, not longer than it needs to be."""
    from matplotlib.ticker import StrMethodFormatter

    bar = axes.figure.colorbar(
        cells,
        ax=axes,
        shrink=min(1.0, _BAR / height),
        anchor=(0.0, 1.0),
        aspect=12,
        ticks=np.linspace(0, cells.norm.vmax, 5),
        format=StrMethodFormatter("{x:.0%}"),
    )
    bar.outline.set_edgecolor(FRAME)
    bar.set_label(meaning, color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, color=FRAME)


def darkest_share(values: Array, darkest: float | None) -> float:
    """Return the share that has the darkest color: as given, or one that is not below any."""
    if darkest is None:
        largest = float(values.max())
        return next((top for top in _TOPS if 0 < largest <= top), 1.0)
    top = check_real(darkest, "darkest")
    if not 0 < top <= 1:
        raise ValueError(f"darkest must be above 0 and at most 1; got {darkest!r}.")
    return top


def _size(height: float) -> float:
    """Font size in points for rows of this height in inches."""
    return float(np.clip(0.72 * 72 * height, _SMALLEST_TEXT, 9))


def _every(count: int, room: float, size: float) -> list[int]:
    """Places of those names that do not touch one another."""
    return list(range(0, count, max(1, int(np.ceil(1.15 * size / 72 / room)))))


def name_rows(axes: Any, names: Sequence[str], height: float) -> None:
    """Write names left of rows of this height in inches, as many as there is room for."""
    size = _size(height)
    places = _every(len(names), height, size)
    axes.set_yticks(places, [names[k] for k in places], fontsize=size, color=INK, parse_math=False)
    axes.tick_params(axis="y", length=0)


def name_columns(axes: Any, names: Sequence[str], width: float) -> None:
    """Write names below columns of this width in inches, slanted where they are long."""
    # Short names rather shrink a little than slant.
    size = 9 * min(1.0, 0.85 * width / max(text_width(names, 9), 1e-9))
    fits = size >= 6.5
    slant = {} if fits else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    size = size if fits else float(np.clip(0.9 * 72 * width, _SMALLEST_TEXT, 9))
    places = list(range(len(names))) if fits else _every(len(names), width, size)
    written = [names[k] for k in places]
    axes.set_xticks(places, written, fontsize=size, color=INK, parse_math=False, **slant)
    axes.tick_params(axis="x", length=0)


def name_height(names: Sequence[str], width: float) -> float:
    """Return how much room, in inches, :func:`name_columns` takes below such columns."""
    wide = text_width(names, 9)
    return 0.2 if wide <= width else 0.72 * wide + 0.1


def _write_numbers(axes: Any, values: Array, top: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        if value >= 0.005:
            color = "white" if value > _DARK * top else INK
            text = f"{value:.0%}"
            axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=color)
