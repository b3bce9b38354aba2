"""Topics over classes, and over the labels of the samples they occur in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, MatrixLike
from .._data.border import check_integer, check_option
from .._topics import Topics, class_means, divide_by_sums, topic_shares
from ._style import (
    FRAME,
    INK,
    add_title,
    axes_or_new,
    check_labels,
    check_names,
    check_samples,
    check_table,
    complete_docstring,
    fitted,
    inches,
    name_axes,
    neighbors_by_class,
    topic_names,
)
from ._tables import Room, draw_table, table_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MEANINGS = {
    "topic": "share of the\ntopic's weight",
    "label": "share of the\nlabel's weight",
    "largest": "weight, relative\nto the largest",
}


@complete_docstring
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
    """Draw which classes every topic stands for: topics in rows, classes in columns.

    With `X` and `y`, the map shows how much of a sample of each class a topic explains on average;
    the samples are represented without their labels.  Without them, it shows the same for the
    labeled samples of the fit, `class_shares_`.  For the matrix B, it is the normalized classifier
    of [1]_, Figure 2: every row is divided by its sum.

    Parameters
    ----------
    model : fitted estimator, or array_like, shape (r, k), >= 0
        An array is a matrix of topics over classes, such as `label_components_` of a classifier;
        for an estimator, its `class_shares_` are drawn unless `X` and `y` are given (or B, if it
        has no shares, and expected weights for Bayesian models).  Rows of zeros are allowed.
    classes : sequence, length k, optional
        Names of the classes, such as `classes_`; by default those of the estimator or, in sorted
        order, those in `y`, or else their numbers.
    X : array_like or sparse, shape (n, m), optional
        Samples; it is best to use samples that the fit has not seen.
    y : array_like, shape (n,) or (n, k), optional
        Their classes, or an indicator matrix of several labels: as in :func:`label_map`.
    topics : Topics or sequence of str, length r, optional
        Names of the topics; those of :meth:`~ssnmf_fast.NMF.topics` are their five largest terms.
        By default those that the model gives its topics, or else their numbers.
    sort : bool
        Whether to put topics with the same largest class next to each other, in the order of the
        classes, and topics without any class last.  Otherwise the order of the rows is kept.
    darkest : float, above 0 to 1, optional
        Share with the darkest color; give it to compare several maps.  Larger shares have the same
        color.  By default a round number that no share exceeds.
    unlabeled : "auto", None or a label
        What marks a sample without a label in `y` (n,), in addition to None and NaN: as in
        :class:`~ssnmf_fast.SSNMFClassifier`.

    Raises
    ------
    ValueError
        If numbers are negative or not finite, names do not match, `X` is given without `y`, or
        neither is given and the estimator has no matrix over classes.
    TypeError
        If the argument is neither an estimator nor an array of real numbers.

    Notes
    -----
    B shows how the model fitted the given labels.  A large weight of the labels makes it nearly 0
    or 1 everywhere, whether or not the topics separate the classes of new samples.

    For data, the amount of a sample that a topic explains is its weight in ``model.transform(X)``
    times the sum of its row of A; every sample is divided by its sum.  The means over the classes
    are divided by their sum, so small and large classes have the same influence.  A sample with
    several labels counts for each of them in equal parts.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> B = [[0.0, 3.0], [2.0, 0.0], [1.0, 3.0]]
    >>> drawn = plotting.class_map(B, ["space", "sport"])
    >>> [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    ['topic 1', 'topic 0', 'topic 2']
    """
    table, found = _over_classes(model, X, y, unlabeled)
    given = found if classes is None else classes
    columns = check_names(given, "classes", table.shape[1], "class")
    if topics is None and hasattr(model, "components_"):
        topics = [topic.name for topic in model.topics(n_terms=1)]
        topics = topics if all(topics) else None
    drawn, axes, room, order = _topic_axes(ax, table, topics, columns, sort, "class")
    draw_table(
        axes, room, divide_by_sums(table)[order], "share of the class\nin the topic", darkest
    )
    add_title(axes, title)
    return drawn


def _topic_axes(
    ax: Axes | None, table: Array, topics: object, columns: list[str], sort: bool, across: str
) -> tuple[Figure, Axes, Room, Array]:
    """Return figure, axes and room for a table of topics, and the order of its rows."""
    names = topic_names(topics, len(table))
    order = neighbors_by_class(table) if sort else np.arange(len(table))
    n_rows, n_columns = table.shape
    width = min(max(float(np.clip(7 / n_columns, 0.2, 0.7)) * n_columns, 1.6), 30.0)
    height = min(max(float(np.clip(9 / n_rows, 0.19, 0.34)) * n_rows, 1.4), 40.0)
    drawn, axes, room = table_axes(ax, (width, height), [names[k] for k in order], columns)
    name_axes(axes, across, "topic")
    return drawn, axes, room, order


def _over_classes(model: Any, X: Any, y: Any, unlabeled: object) -> tuple[Array, Any]:
    """Return topics over classes, and names of these."""
    if (X is None) != (y is None):
        given, missing = ("X", "y") if y is None else ("y", "X")
        raise ValueError(f"{given} is given without {missing}; give samples and their classes.")
    if not hasattr(model, "components_"):
        if X is not None:
            raise TypeError(
                f"model must be a fitted estimator where X and y are given; got {model!r:.80}."
            )
        table = check_table(model, "label_components", "(topics, classes)")
        return table, range(table.shape[1])
    if X is not None:
        S = check_samples(model.transform(X), y)
        indicators, classes = check_labels(y, unlabeled)
        return class_means(topic_shares(S, model.components_), indicators), classes
    names, matrix = model._class_shares()
    if matrix is None:
        raise ValueError(
            f"{type(model).__name__} has no matrix of topics over classes; give X and y."
        )
    return check_table(matrix, "label_components", "(topics, classes)"), names


@complete_docstring
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
    """Draw the weights of every topic in the samples of each label, with their sparsity.

    These are the maps of [1]_, Figures 4 and 5: the weights of a topic are summed over the samples
    of each label (13), and larger sums are darker.  The title has the sparsities (12) of `S` and of
    these sums, from 0 (all entries are equal) to 1 (all but one are zero).

    Parameters
    ----------
    S : array_like, shape (n, r), >= 0
        Representation of the samples, as from ``transform`` or in `representation_`.  Of a fit that
        saw the labels, `representation_` shows these labels again; state so in the `title`, or draw
        what ``transform`` returns.
    y : array_like, shape (n,) or (n, k)
        Label of every sample, or an indicator matrix of several labels, as in
        :meth:`ssnmf_fast.SSNMFClassifier.fit`; samples without a label are left out.
    label_names : sequence, length k, optional
        Names of the labels, in their sorted order; by default those in `y`, or their numbers.
    share : {"topic", "label", "largest"}
        What a sum is divided by: the total of its topic (rows sum to 1), the total of its label
        (columns sum to 1), or the largest sum of all.
    sort : bool
        Whether to put topics with the same largest label next to each other.
    topics, darkest, unlabeled, title, ax
        As in :func:`class_map`.

    Raises
    ------
    ValueError
        If numbers are negative or not finite, shapes or names do not match, or no sample has a
        label.
    TypeError
        If an argument is not an array of real numbers.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> S = [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]
    >>> drawn = plotting.label_map(S, ["space", "space", "sport"])
    >>> drawn.axes[0].get_title()
    'sparsity of S 0.56, between labels 0.74'
    """
    check_option(share, "share", tuple(_MEANINGS))
    table = check_samples(S, y)
    indicators, labels = check_labels(y, unlabeled)
    sums = np.asarray((indicators.T @ table).T)
    if label_names is not None:
        labels = check_names(label_names, "label_names", len(labels), "label")
    drawn, axes, room, order = _topic_axes(ax, sums, topics, labels, sort, "label")
    if share == "largest":
        shares = sums / max(float(sums.max()), np.finfo(np.float64).tiny)
    else:
        shares = divide_by_sums(sums, axis=1 if share == "topic" else 0)
    draw_table(axes, room, shares[order], _MEANINGS[share], darkest)
    sparsities = f"sparsity of S {_written(table)}, between labels {_written(sums)}"
    add_title(axes, sparsities if title is None else f"{title}\n{sparsities}")
    return drawn


def _written(values: Array) -> str:
    """Hoyer's sparsity as text; there is none of a single number, nor of zeros."""
    from ..metrics import hoyer_sparsity

    if values.size == 1 or not values.any():
        return "-"
    return f"{hoyer_sparsity(values):.2f}"


_COLUMN, _ROW = 3.0, 0.3  # inches
_FILL = "#cfe0f2"
_TEXT = 8.0  # points


@complete_docstring
def topic_tree(
    tree: Any, *, n_terms: int = 4, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw a tree of topics: a column for each level, with parts to the right of their topic.

    Parameters
    ----------
    tree : TopicTree
        As from :func:`ssnmf_fast.trees.topic_tree`.
    n_terms : int
        Number of terms after the name of a topic, at least 1; they are cut to the width of the box.

    Raises
    ------
    TypeError
        If `tree` is not a :class:`ssnmf_fast.trees.TopicTree`.

    Notes
    -----
    The filled part of a box shows the share of the topic; the largest of a level is filled whole.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.kron(np.eye(2), np.array([[3, 3, 1, 0], [3, 3, 0, 1]]).repeat(5, axis=0))
    >>> drawn = plotting.topic_tree(sf.trees.topic_tree(X, [2, 4], random_state=0))
    >>> len(drawn.axes)
    1
    """
    if not all(hasattr(tree, name) for name in ("to_rows", "depth")):
        raise TypeError(
            f"tree must be a TopicTree, as sf.trees.topic_tree returns; got {type(tree).__name__}."
        )
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
        look: dict[str, Any] = {"va": "center", "fontsize": _TEXT, "parse_math": False}
        axes.text(level + 0.03, middle, text, color=INK, **look)
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
