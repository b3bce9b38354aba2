"""Trees of topics, as columns of boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._data.border import check_integer
from ._style import (
    FRAME,
    INK,
    add_title,
    axes_or_new,
    complete_docstring,
    fitted,
    inches,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..estimators import TopicTree

_COLUMN, _ROW = 3.0, 0.3  # inches
_FILL = "#cfe0f2"
_TEXT = 8.0  # points


@complete_docstring
def topic_tree(
    tree: TopicTree, *, n_terms: int = 4, title: str | None = None, ax: Any = None
) -> Figure:
    """Draw a tree of topics: a column for each level, in which parts stand beside their topic.

    Parameters
    ----------
    tree : TopicTree
        As from :func:`ssnmf_fast.tree`.
    n_terms : int
        Number of terms beside the name of a topic, at least 1; those that have no room are cut.

    Raises
    ------
    TypeError
        If `tree` is not a :class:`ssnmf_fast.TopicTree`.

    Notes
    -----
    The filled part of a box shows the share of the topic; the largest of a level is filled whole.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.kron(np.eye(2), np.array([[3, 3, 1, 0], [3, 3, 0, 1]]).repeat(5, axis=0))
    >>> drawn = plotting.topic_tree(sf.tree(X, [2, 4], random_state=0))
    >>> len(drawn.axes)
    1
    """
    _check_tree(tree)
    rows = tree.to_rows(check_integer(n_terms, "n_terms", 1))
    places = _places(rows)
    depth, count = tree.depth, 1 + int(max(last for _, last in places.values()))
    drawn, axes = axes_or_new(ax, _COLUMN * depth, _ROW * count + 0.5)
    room = inches(axes)[0] / depth - 0.15
    largest = [max(row["share"] for row in rows if row["level"] == k) for k in range(depth)]
    for row in rows:
        first, last = places[row["name"]]
        level, middle = row["level"], (first + last) / 2
        box = {"height": last - first + 0.9, "left": level + 0.01}
        filled = row["share"] / (largest[level] or 1.0)
        axes.barh(middle, 0.98 * filled, color=_FILL, **box)
        axes.barh(middle, 0.98, facecolor="none", edgecolor=FRAME, linewidth=0.8, **box)
        text = fitted(f"{row['name']}  {row['share']:.0%}  {row['terms']}", room, _TEXT)
        look = {"va": "center", "fontsize": _TEXT, "color": INK, "parse_math": False}
        axes.text(level + 0.03, middle, text, **look)
    axes.set_xlim(0, depth)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_axis_off()
    add_title(axes, title)
    return drawn


def _places(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return the first and the last row of every topic; topics without parts have one row each."""
    parents = {row["name"]: row["parent"] for row in rows}
    found: dict[str, tuple[int, int]] = {}
    lines = [name for name in parents if name not in set(parents.values())]
    for number, line in enumerate(lines):
        name: str | None = line
        while name is not None:
            found[name] = found.get(name, (number,))[0], number
            name = parents[name]
    return found


def _check_tree(tree: Any) -> None:
    from ..estimators import TopicTree

    if not isinstance(tree, TopicTree):
        raise TypeError(f"tree must be a TopicTree, as sf.tree returns; got {type(tree).__name__}.")
