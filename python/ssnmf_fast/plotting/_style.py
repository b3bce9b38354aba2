"""Checks of arguments, style and texts of all pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.docstrings import completing
from .._common.optional import require_package
from .._common.text import short
from .._data.border import check_numbers
from .._labels import labels_of
from .._topics import Topics, divide_by_sums

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


_TERMS_IN_A_NAME = 5


def check_table(values: npt.ArrayLike, name: str, expected: str) -> Array:
    """Return a nonempty float64 matrix of finite nonnegative numbers."""
    if sp.issparse(values):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix. Use {name}.toarray().")
    table = check_numbers(values, name, np.float64, limited=False)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} has shape {table.shape}; expected {expected}, not empty.")
    return table


def check_names(names: object, name: str, count: int, of: str) -> list[str]:
    """Return `count` names as strings; `of` is for the error message."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{name} must be a sequence of names; got {short(names)}.")
    texts = [str(text) for text in names]
    if len(texts) != count:
        raise ValueError(f"{name} holds {len(texts)} names; expected one for each {of}: {count}.")
    return texts


def topic_names(topics: object, count: int) -> list[str]:
    """Return names of topics: numbers, largest terms, or the given names."""
    if topics is None:
        return [f"topic {number}" for number in range(count)]
    if not isinstance(topics, Topics):
        return check_names(topics, "topics", count, "topic")
    if len(topics) != count:
        raise ValueError(f"topics holds {len(topics)} topics; expected one for each of {count}.")
    names = []
    for topic in topics:
        pairs = zip(topic.terms[:_TERMS_IN_A_NAME], topic.weights, strict=False)
        terms = ", ".join(str(term) for term, weight in pairs if weight > 0)
        names.append(f"{topic.name or topic.topic}: {terms or '(no terms)'}")
    return names


def neighbors_by_class(table: Array) -> Array:
    """Return an order of rows by their largest column, then by falling share; zeros come last."""
    part = divide_by_sums(table)
    column = np.where(part.any(axis=1), part.argmax(axis=1), table.shape[1])
    return np.lexsort((-part.max(axis=1), column))


def check_samples(
    S: npt.ArrayLike, y: Any, unlabeled: object
) -> tuple[Array, sp.csr_array, list[str]]:
    """Return S (n, r) scaled to at most 1, the labels as (n, k) of 0 and 1, and their names."""
    table = check_table(S, "S", "(samples, topics)")
    count = y.shape[0] if sp.issparse(y) else len(y) if isinstance(y, Sized) else None
    if count is None:
        raise TypeError(f"y must hold a label for each sample; got {short(y)}.")
    if count != len(table):
        raise ValueError(f"y has {count} rows and S has {len(table)}; expected one per sample.")
    table = np.asarray(table / max(float(table.max()), 1.0))  # sums over samples cannot overflow
    labels = labels_of(y, unlabeled)
    if not labels.labeled.any():
        raise ValueError("y has no labeled sample; give labels of some samples.")
    matrix = labels.matrix(np.float64)
    indicators = sp.csr_array(matrix if sp.issparse(matrix) else np.nan_to_num(matrix))
    return table, indicators, [str(label) for label in labels.classes.tolist()]


complete_docstring = completing(
    """What several pictures share.

Parameters
----------
S : array_like, shape (n, r), >= 0
    Representation of the samples: the result of ``transform``, or `representation_`.
consensus : Consensus
    Result of :func:`ssnmf_fast.consensus`.
topics : Topics or sequence of str, length r, optional
    Names of the topics; for a result of :meth:`~ssnmf_fast.NMF.topics`, the five largest terms.
    By default the numbers of the topics, or their names in the model.
sort : bool
    Whether to put topics with the same largest class next to each other, in the order of the
    classes, and topics without any class last.
darkest : float, above 0 to 1, optional
    Share from which cells have the darkest color; set it to compare several maps.  By default a
    round number that no share exceeds.
unlabeled : "auto", None or a label
    Marker of samples without a label in `y` (n,), in addition to None and NaN, as in
    :class:`~ssnmf_fast.SSNMFClassifier`.
title : str, optional
    Text above the picture.
ax : matplotlib.axes.Axes, optional
    Axes to draw on; None makes a figure.

Returns
-------
matplotlib.figure.Figure
    The figure of `ax`, if it is given.

Raises
------
TypeError
    If an argument has the wrong type.
ValueError
    If numbers are not finite or out of range, names or shapes do not match, an option is unknown,
    or there is nothing to draw.
MissingPackageError
    If matplotlib is not installed.
"""
)

INK = "#1f2933"
ACCENT = "#2b6cb0"
GRAY = "#7b8794"
TEXT: dict[str, Any] = {"color": INK, "parse_math": False}  # names may hold a dollar sign
FRAME = "#cbd2d9"
COLORS = (ACCENT, "#c05621", "#2f855a", "#6b46c1", "#b7791f", "#b83280")
_MARKERS = "os^DvP"
_BLUES = ("#ffffff", "#a9c8e8", ACCENT, "#122c55")  # darker is more
_NO_NUMBER = "#d3d8de"
_ENTRIES_INSIDE = 6  # a longer legend is placed next to the axes


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of the given size in inches."""
    with require_package("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    return fig


def axes_or_new(
    ax: Axes | None, width: float, height: float, title: str | None = None
) -> tuple[Figure, Axes]:
    """Return the given figure and axes, or make them in this size (inches); set the title."""
    fig = figure(width, height) if ax is None else cast("Figure", ax.figure)
    axes = fig.add_subplot() if ax is None else ax
    if title is not None:
        axes.set_title(title, color=INK, fontsize=11)
    return fig, axes


def curve_look(number: int, *, points: bool) -> dict[str, Any]:
    """Return color, marker (if `points`) and line; markers differ if colors repeat."""
    turn, place = divmod(number, len(COLORS))
    return {
        "color": COLORS[place],
        "marker": _MARKERS[(place + turn) % len(_MARKERS)] if points else "",
        "linestyle": ("-", "--", "-.", ":")[turn % 4],
    }


def label_axes(axes: Axes, horizontal: str, vertical: str, *, curves: bool = True) -> None:
    """Label both axes; curves get a faint grid and no frame at the top and the right."""
    axes.set_xlabel(horizontal, color=INK)
    axes.set_ylabel(vertical, color=INK)
    if curves:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)


def count_along(axis: Axis, most: Any = "auto") -> None:
    """Write whole numbers along an axis, no more than `most`."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=True))


def logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers if its range is small."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    decades = np.log10(high / low)
    if decades < 2:
        few = MaxNLocator(5) if decades < 0.7 else LogLocator(subs=(1, 2, 5))
        axes.yaxis.set_major_locator(few)
        short: Any = "{x:g}"
        if low < 1e-4 or high > 1e5:
            short = LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf))
        axes.yaxis.set_major_formatter(short)
        axes.yaxis.set_minor_formatter(NullFormatter())


def write_next_to(
    axes: Axes, text: str, x: float, *, left: bool, top: bool = True, color: str = INK
) -> None:
    """Write to the left or right of `x`, at the upper or lower border."""
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    place |= {"ha": "right" if left else "left", "va": "top" if top else "bottom"}
    shift = -5 if left else 5, -4 if top else 4
    axes.annotate(text, (x, 1 if top else 0), shift, **place, color=color, fontsize=9)


def is_low(axes: Axes, y: float) -> bool:
    """Return whether a value lies in the lower half of the axes."""
    bottom, top = axes.get_ylim()
    low, at, high = axes.yaxis.get_transform().transform(np.array([bottom, y, top]))
    return bool(at < (low + high) / 2)


def add_legend(axes: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Name the curves in the axes or, if there are many, next to them."""
    outside = len(names) > _ENTRIES_INSIDE
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if outside else {"loc": "best"}
    # Set names afterwards: matplotlib drops entries with a name that starts with an underscore.
    look: dict[str, Any] = {"framealpha": 0.85, "edgecolor": "none", "fontsize": 9}
    numbers = [str(number) for number in range(len(names))]
    legend = axes.legend(handles, numbers, labelcolor=INK, **look, **place)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(plain(name, 40))
        text.set_parse_math(False)


def blues() -> Any:
    """Return colors from white to dark blue, and gray for NaN."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("ssnmf_fast_blues", _BLUES)
    return colors.with_extremes(bad=_NO_NUMBER)


def plain(name: object, limit: int) -> str:
    """Return a name as one line of at most `limit` characters."""
    line = " ".join(str(name).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def text_width(names: Sequence[str], size: float) -> float:
    """Return the width of the widest name in inches, at this font size in points."""
    with require_package("matplotlib"):
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import text_to_path
    font = FontProperties(size=size)
    widths = [text_to_path.get_text_width_height_descent(n, font, False)[0] for n in names if n]
    return float(max(widths, default=0.0)) / 72


def fitted(name: object, width: float, size: float) -> str:
    """Return a name, cut to this width in inches."""
    text = line = plain(name, 200)
    limit = len(line)
    while limit > 1 and (wide := text_width([text], size)) > width:
        limit = max(1, min(limit - 1, int(limit * width / wide)))
        text = plain(line, limit)
    return text


def inches(axes: Axes) -> tuple[float, float]:
    """Return width and height of axes, before the layout makes room for their labels."""
    box = axes.get_window_extent()
    return box.width / axes.figure.dpi, box.height / axes.figure.dpi
