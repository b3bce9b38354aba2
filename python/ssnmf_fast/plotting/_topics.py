"""Maps of topics over classes or labels, and trees of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, MatrixLike
from .._data.border import check_integer, check_option
from .._topics import Topics, class_means, divide_by_sums, topic_shares
from ..metrics import hoyer_sparsity
from . import _style as style
from ._tables import darkest_share, draw_cells, name_columns, name_rows, table_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


_COLUMN, _ROW = 3.0, 0.3  # inches
_FILL = "#cfe0f2"
_TEXT = 8.0  # points


@style.complete_docstring
def topic_tree(
    tree: Any, *, n_terms: int = 4, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw a tree of topics: a column for each level, with subtopics to the right of their topic.

    The filled part of a box shows the share of the topic, relative to the largest of its level.

    Parameters
    ----------
    tree : TopicTree
        Result of :func:`ssnmf_fast.trees.topic_tree`.
    n_terms : int
        Number of terms after the name of a topic, at least 1, as far as the box has room.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.kron(np.eye(2),
    ...             np.array([[3, 3, 1, 0], [3, 3, 0, 1]]).repeat(5, axis=0))
    >>> tree = sf.trees.topic_tree(X, [2, 4], random_state=0)
    >>> figure = sf.plotting.topic_tree(tree)
    >>> len(figure.axes)
    1
    """
    if not all(hasattr(tree, name) for name in ("to_rows", "depth")):
        raise TypeError(
            f"tree must be a TopicTree, as sf.trees.topic_tree returns; got {type(tree).__name__}."
        )
    rows = tree.to_rows(check_integer(n_terms, "n_terms", 1))
    parents = {row["name"]: row["parent"] for row in rows}
    lines = [name for name in parents if name not in set(parents.values())]
    spans: dict[str, tuple[int, int]] = {}  # first and last line of every topic
    for number, line in enumerate(lines):
        name: str | None = line
        while name is not None:
            spans[name] = spans.get(name, (number,))[0], number
            name = parents[name]
    figure, axes = style.axes_or_new(ax, _COLUMN * tree.depth, _ROW * len(lines) + 0.5, title)
    room = style.inches(axes)[0] / tree.depth - 0.15
    largest = [max(row["share"] for row in rows if row["level"] == k) for k in range(tree.depth)]
    for row in rows:
        first, last = spans[row["name"]]
        level, middle = row["level"], (first + last) / 2
        box = {"height": last - first + 0.9, "left": level + 0.01}
        filled = row["share"] / (largest[level] or 1.0)
        axes.barh(middle, 0.98 * filled, color=_FILL, **box)
        axes.barh(middle, 0.98, facecolor="none", edgecolor=style.FRAME, linewidth=0.8, **box)
        text = style.fitted(f"{row['name']}  {row['share']:.0%}  {row['terms']}", room, _TEXT)
        axes.text(level + 0.03, middle, text, va="center", fontsize=_TEXT, **style.TEXT)
    axes.set(xlim=(0, tree.depth), ylim=(len(lines) - 0.5, -0.5))
    axes.set_axis_off()
    return figure
