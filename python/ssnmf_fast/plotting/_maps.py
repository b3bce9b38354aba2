"""Maps of shares: heat maps with named rows and columns; darker blue is more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, MatrixLike
from .._data.border import check_integer, check_option, check_share
from .._labels import unmask_labels
from .._topics import Topics, class_means, divide_by_sums, topic_shares
from ..metrics import hoyer_sparsity
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
        names_width = style.text_width(rows, _size(height / len(rows))) + 1.6
        below = _name_height(columns, width / max(len(columns), 1)) + 0.7
        figure, axes = style.axes_or_new(None, width + names_width, height + below, title)
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


_MEANINGS = {
    "topic": "share of the\ntopic's weight",
    "label": "share of the\nlabel's weight",
    "largest": "weight, relative\nto the largest",
}
_DARK = 0.45  # share of the darkest color above which text is white
_ROOM_FOR_A_NUMBER = (0.34, 0.16)  # width and height of a cell in inches


@style.complete_docstring
def class_map(
    model: Any,
    classes: Sequence[object] | npt.ArrayLike | None = None,
    *,
    X: MatrixLike | None = None,
    y: object = None,
    topics: Topics | Sequence[str] | None = None,
    sort: bool = True,
    darkest: float | None = None,
    unlabeled: object = "auto",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw how topics are distributed over classes: topics in rows, classes in columns.

    With `X` and `y`, the map shows how much of a sample of each class a topic explains on average;
    the samples are represented without their labels.  Without them, it shows the same for the
    labeled samples of the fit, `class_shares_`.  For the matrix B, it is the normalized classifier
    of [1]_, Figure 2, with each row divided by its sum.

    Parameters
    ----------
    model : fitted estimator, or array_like, shape (r, k), >= 0
        An array is a matrix of topics over classes, such as `label_components_` of a classifier.
        For an estimator without `X` and `y`, `class_shares_` are drawn or, if it has none, B
        (expected weights for Bayesian models).  Rows of zeros are allowed.
    classes : sequence, length k, optional
        Names of the classes, such as `classes_`; by default those of the estimator or, in sorted
        order, those in `y`; otherwise their numbers.
    X : array_like or sparse, shape (n, m), optional
        Samples, preferably new to the model.  An estimator without a matrix over classes needs
        them, and `y`.
    y : array_like, shape (n,) or (n, k), optional
        Their classes, or an indicator matrix of several labels, as in :func:`label_map`.

    Notes
    -----
    B shows how the model fitted the given labels.  A large weight of the labels makes it nearly 0
    or 1 everywhere, whether or not the topics separate the classes of new samples.

    For data, the amount of a sample that a topic explains is its weight in ``model.transform(X)``
    times the sum of its row of A, divided by the sum over the topics.  The means over the classes
    are divided by their sum, so small and large classes have the same influence.  A sample with
    several labels counts for each of them in equal parts.

    References
    ----------
    .. [1] Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks", 2020.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> B = [[0.0, 3.0], [2.0, 0.0], [1.0, 3.0]]
    >>> figure = plotting.class_map(B, ["space", "sport"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['topic 1', 'topic 0', 'topic 2']
    """
    if (X is None) != (y is None):
        present, missing = ("X", "y") if y is None else ("y", "X")
        raise ValueError(f"{present} needs {missing}; give samples and their classes, or neither.")
    fitted_model = hasattr(model, "components_")
    own: Any = None
    if X is not None and not fitted_model:
        raise TypeError(
            f"model must be a fitted estimator if X and y are given; got {model!r:.80}."
        )
    if X is not None:
        S = model.transform(X)
        if np.shape(S)[1:] != (len(model.components_),):
            raise TypeError(f"model must represent samples by topics; got {model!r:.80}.")
        S, indicators, own = style.check_samples(S, y, unlabeled)
        table = class_means(topic_shares(S, model.components_), indicators)
    else:
        shares_of = getattr(model, "_class_shares", lambda: (None, None if fitted_model else model))
        own, matrix = shares_of()
        if matrix is None:
            name = type(model).__name__
            raise ValueError(f"{name} has no matrix of topics over classes; give X and y.")
        table = style.check_table(matrix, "label_components", "(topics, classes)")
    if classes is None:
        classes = range(table.shape[1]) if own is None else own
    columns = style.check_names(classes, "classes", table.shape[1], "class")
    if topics is None and hasattr(model, "topics"):  # models of scikit-learn have no names
        topics = [topic.name for topic in model.topics(n_terms=1)]
        topics = topics if all(topics) else None
    meaning = "share of the class\nin the topic"
    shares = divide_by_sums(table)
    return _draw_topics(ax, title, table, shares, topics, columns, sort, darkest, "class", meaning)


def _draw_topics(
    ax: Axes | None,
    title: str | None,
    table: Array,
    shares: Array,
    topics: object,
    columns: list[str],
    sort: bool,
    darkest: float | None,
    kind: str,
    meaning: str,
) -> Figure:
    """Draw shares of a table of topics, with numbers if there is room, and names."""
    names = style.topic_names(topics, len(table))
    order = style.neighbors_by_class(table) if sort else np.arange(len(table))
    values, (n_rows, n_columns) = shares[order], table.shape
    width = min(max(float(np.clip(7 / n_columns, 0.2, 0.7)) * n_columns, 1.6), 30.0)
    height = min(max(float(np.clip(9 / n_rows, 0.19, 0.34)) * n_rows, 1.4), 40.0)
    rows = [names[k] for k in order]
    figure, axes, room = table_axes(ax, width, height, title, rows, columns)
    style.label_axes(axes, kind, "topic", curves=False)
    across, down = (np.arange(count + 1) - 0.5 for count in (n_columns, n_rows))
    top = darkest_share(values, darkest)
    cells = draw_cells(axes, across, down, values, top, meaning, room.height)
    wide, high = room.width / n_columns, room.height / n_rows
    cells.set(edgecolor=style.FRAME if min(wide, high) > 0.1 else "none", linewidth=0.4)
    name_rows(axes, room.rows, high)
    name_columns(axes, room)
    if wide > _ROOM_FOR_A_NUMBER[0] and high > _ROOM_FOR_A_NUMBER[1]:
        look: dict[str, Any] = {"fontsize": 7.5, "ha": "center", "va": "center"}
        for (row, column), value in np.ndenumerate(values):
            if value >= 0.005:
                look["color"] = "white" if value > _DARK * top else style.INK
                axes.text(column, row, f"{value:.0%}", **look)
    return figure


@style.complete_docstring
def label_map(
    S: npt.ArrayLike,
    y: object,
    *,
    topics: Topics | Sequence[str] | None = None,
    label_names: Sequence[object] | npt.ArrayLike | None = None,
    share: Literal["topic", "label", "largest"] = "topic",
    sort: bool = False,
    darkest: float | None = None,
    unlabeled: object = "auto",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the weights of each topic in the samples of each label, with their sparsity.

    In these maps of [1]_, Figures 4 and 5, the weights of a topic are summed over the samples of
    each label (13); larger sums are darker.  The title shows the sparsities (12) of `S` and of
    these sums, from 0 (all entries are equal) to 1 (all but one are zero).

    Parameters
    ----------
    S : array_like, shape (n, r), >= 0
        Representation of the samples: the result of ``transform``, or `representation_`, which was
        fitted with the labels and shows them again.
    y : array_like, shape (n,) or (n, k)
        Label of each sample, or an indicator matrix of several labels, as in
        :meth:`ssnmf_fast.SSNMFClassifier.fit`; samples without a label are left out.
    label_names : sequence, length k, optional
        Names of the labels, in their sorted order; by default those in `y`, or their numbers.
    share : {"topic", "label", "largest"}
        Divisor of a sum: the total of its topic (rows sum to 1), the total of its label (columns
        sum to 1), or the largest sum of all.
    sort : bool
        Whether to put topics with the same largest label next to each other.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> S = [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]
    >>> figure = plotting.label_map(S, ["space", "space", "sport"])
    >>> figure.axes[0].get_title()
    'sparsity of S 0.56, between labels 0.74'
    """
    check_option(share, "share", tuple(_MEANINGS))
    table, indicators, labels = style.check_samples(S, y, unlabeled)
    sums = np.asarray((indicators.T @ table).T)
    if label_names is not None:
        labels = style.check_names(label_names, "label_names", len(labels), "label")
    if share == "largest":
        shares = sums / max(float(sums.max()), np.finfo(np.float64).tiny)
    else:
        shares = divide_by_sums(sums, axis=1 if share == "topic" else 0)
    of_S, between = (  # not defined for a single number, and for zeros
        f"{hoyer_sparsity(values):.2f}" if values.size > 1 and values.any() else "-"
        for values in (table, sums)
    )
    text = f"sparsity of S {of_S}, between labels {between}"
    text = text if title is None else f"{title}\n{text}"
    return _draw_topics(
        ax, text, sums, shares, topics, labels, sort, darkest, "label", _MEANINGS[share]
    )
