"""Tables of the page: classes in columns, as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..plotting._tables import darkest_share
from ._content import Confusion, Report

_DARK = 0.55  # darker cells have white text
_MOST_CLASSES = 100  # a cell of more is too small to be read, and pages grow with their square
_MOST_CONFUSED = (8, 30)  # pairs beside a table of all, and in its place
# Pixels: width of a table, of names of rows, and of a cell; of a letter in a name and in a cell.
_WIDTH, _NAMES, _CELL = 996, (40, 230), (11, 64)
_LETTER, _DIGIT = 8.3, 6.6


@dataclass(frozen=True)
class Cell:
    """A number on a ground from white, 0, to dark, 1; `about` describes it in full."""

    ground: str
    text: str
    dark: bool
    about: str


@dataclass(frozen=True)
class Heat:
    """A table of shares: what rows and columns are, their names, and how wide they are."""

    down: str
    across: str
    classes: Sequence[str]
    names: Sequence[str]
    cells: Sequence[Sequence[Cell]]
    room: int  # of names of rows, in pixels
    width: int  # of a cell
    upright: bool  # whether names of columns are, as they are too wide for their columns
    numbers: bool  # whether cells have room for them


def share_table(report: Report) -> Heat | None:
    """Return the topics over the classes; those without names next to others of their class.

    It is None without classes, or with too many of them.
    """
    topics = report.topics
    if not topics or not 0 < len(topics[0].shares) <= _MOST_CLASSES:
        return None
    classes = [str(label) for label, _ in topics[0].shares]
    values = [[float(share) for _, share in topic.shares] for topic in topics]
    order = list(range(len(topics)))
    if not topics[0].name:
        order.sort(key=lambda k: (int(np.argmax(values[k])), -max(values[k])))
    darkest = darkest_share(np.asarray(values), None)
    heads = classes
    if report.class_counts:
        pairs = zip(classes, report.class_counts, strict=True)
        heads = [f"{name} ({count})" for name, count in pairs]
    names = [_row_name(topics[k], report.parts is None) for k in order]
    cells = [
        [
            _cell(v / darkest, f"{100 * v:.0f}" if v >= 0.005 else "", f"{name} in {row}: {v:.1%}")
            for name, v in zip(classes, values[k], strict=True)
        ]
        for k, row in zip(order, names, strict=True)
    ]
    return _heat("topic", "class", heads, names, cells)


def confusion_table(table: Confusion | None) -> Heat | None:
    """Return true over predicted classes; None without them, or with too many."""
    if table is None or len(table.classes) > _MOST_CLASSES:
        return None
    cells = [
        [
            _cell(
                int(count) / max(int(counts.sum()), 1),
                str(count) if count else "",
                f"{count} of {counts.sum()} of {true} predicted as {guess}",
            )
            for guess, count in zip(table.classes, counts, strict=True)
        ]
        for true, counts in zip(table.classes, table.counts, strict=True)
    ]
    return _heat("true class", "predicted class", table.classes, table.classes, cells)


def most_confused(table: Confusion | None) -> list[dict[str, Any]]:
    """Return the pairs of a true class and a wrong one that is most often predicted for it."""
    if table is None or len(table.classes) < 3:
        return []
    wrong = table.counts.copy()
    np.fill_diagonal(wrong, 0)
    most = _MOST_CONFUSED[len(table.classes) > _MOST_CLASSES]
    places = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = [divmod(int(place), len(wrong)) for place in places]
    return [
        {
            "true": table.classes[i],
            "predicted": table.classes[j],
            "count": int(wrong[i, j]),
            "share": f"{wrong[i, j] / table.counts[i].sum():.0%}",
        }
        for i, j in pairs
        if wrong[i, j]
    ]


def _row_name(topic: Any, terms: bool) -> str:
    words = ", ".join(topic.terms[:3]) if terms else ""
    return topic.name or (f"{topic.topic}: {words}" if words else f"topic {topic.topic}")


def _cell(ground: float, text: str, about: str) -> Cell:
    return Cell(f"{ground:.3f}", text, ground > _DARK, about)


def _heat(down: str, across: str, classes: Sequence[str], names: Sequence[str], cells: Any) -> Heat:
    room = int(np.clip(_LETTER * max(map(len, [down, *names])) + 12, *_NAMES))
    wide = _LETTER * max(map(len, classes)) + 8  # enough for names that are written across
    width = max(_CELL[1], int(wide) + 1)
    if width * len(classes) > _WIDTH - room:
        width = int(np.clip((_WIDTH - room) / len(classes), *_CELL))
    digits = max(len(cell.text) for row in cells for cell in row)
    numbers = _DIGIT * digits <= width - 1
    return Heat(down, across, classes, names, cells, room, width, wide > width, numbers)
