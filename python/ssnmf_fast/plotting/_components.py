"""Components as bars of their largest terms, images, panels of a tensor's modes, and trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import Array
from .._common.text import short
from .._data.border import check_integer, check_numbers, check_option, check_real, check_vector
from .._data.tensors import check_mode
from .._topics import Topics, divide_by_sums, real_terms
from ..metrics._tensors import check_cp_model
from . import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


_TEXT = 8.0  # points
_PAGE, _BAR, _HEADING = 11.0, 0.16, 0.4  # inches: width of a page, heights of a bar and a heading


@style.complete_docstring
def term_bars(
    topics: Topics,
    *,
    n_terms: int = 10,
    columns: int | None = None,
    common_scale: bool = False,
    title: str | None = None,
) -> Figure:
    """Draw the terms of largest weight of each topic: one page of small bar charts.

    Parameters
    ----------
    topics : Topics
        The result of :meth:`ssnmf_fast.NMF.topics`, or a slice of it.  The heading of a topic has
        its number and its name.  A topic without a name gets that of a class whose share in it is
        at least 0.6 or, with four classes or more, at least 0.2 and twice the share expected by
        chance.
    n_terms : int, at least 1
        Number of bars per topic, at most the number of terms in `topics`; terms of weight 0 have no
        bar.
    columns : int, optional
        Number of topics in a row of the page, at least 1; by default at most 5.
    common_scale : bool
        Whether all topics have the same scale.  Otherwise the longest bar of each topic is its
        largest weight.

    Returns
    -------
    matplotlib.figure.Figure
        With one axes per topic, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2]])
    >>> model = sf.NMF(n_components=2, random_state=0).fit(X)
    >>> topics = model.topics(["ball", "goal", "moon", "orbit"], n_terms=2)
    >>> figure = sf.plotting.term_bars(topics)
    >>> len(figure.axes)
    2
    """
    if not isinstance(topics, Topics):
        raise TypeError(
            "topics must be the result of topics() of a fitted model, or a slice of it; got "
            f"{type(topics).__name__}."
        )
    if not len(topics):
        raise ValueError("topics is empty; expected at least one topic.")
    for topic in topics:
        check_numbers(topic.weights, f"weights of topic {topic.topic}", np.float64, limited=False)
    # Terms of weight 0 have no bar.
    longest = max(1, *(len(real_terms(topic)) for topic in topics))
    n_terms = min(check_integer(n_terms, "n_terms", 1), longest)
    if columns is None:  # leave few places of the last row empty
        few = len(topics) <= 5
        columns = len(topics) if few else min((5, 4, 3), key=lambda count: -len(topics) % count)
    columns = min(check_integer(columns, "columns", 1), len(topics))
    width = min(_PAGE / columns, 4.0)
    bars = [real_terms(topic)[:n_terms] for topic in topics]
    names = [[style.fitted(term, 0.6 * width, _TEXT) for term, _ in some] for some in bars]
    width_of_names = max(style.text_width(some, _TEXT) for some in names) + 0.1
    rows = -(-len(topics) // columns)
    height = (_BAR * n_terms + _HEADING) * rows + 0.36 * (1 + (title is not None))
    figure = style.figure(width * columns, height)
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.07, h_pad=0.06)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    widest = max(max(t.weights, default=0.0) for t in topics) if common_scale else None
    look = {"textcoords": "offset points", "fontsize": 9, **style.TEXT}
    for axes, topic, some, terms in zip(grid, topics, bars, names, strict=False):
        _draw_bars(axes, [weight for _, weight in some], terms, n_terms, widest)
        heading, end = f"topic {topic.topic}", ""
        if topic.name:
            heading += f": {topic.name}"
        elif topic.leading:
            heading, end = f"{heading}: {topic.leading[0][0]}", f" {topic.leading[0][1]:.0%}"
        heading = style.fitted(heading, width - 0.2 - style.text_width([end], 9), 9) + end
        axes.annotate(heading, (0, 1), (-72 * width_of_names, 6), "axes fraction", **look)
        if not some:
            place = {"xycoords": "axes fraction", "fontsize": _TEXT, "color": style.GRAY}
            axes.annotate("no terms", (0.05, 0.5), **place)
    for axes in grid[len(topics) :]:
        axes.remove()
    scale = "all charts on the same scale" if common_scale else "each chart on its own scale"
    figure.supxlabel(f"weight of the term in the topic; {scale}", color=style.INK, fontsize=9)
    if title is not None:
        figure.suptitle(title, fontsize=11, **style.TEXT)
    return figure


def _draw_bars(
    axes: Axes, values: ArrayLike, names: list[str], count: int, widest: float | None = None
) -> None:
    """Draw named bars from the top, with room for `count`.

    `widest` is the value of a bar as long as the axes; by default the largest value.
    """
    values = np.asarray(values, dtype=np.float64)
    places = np.arange(len(values))
    axes.barh(places, values, height=0.72, color=style.ACCENT)
    axes.set_yticks(places, names, fontsize=_TEXT, **style.TEXT)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0, widest or float(values.max(initial=0.0)) or 1.0)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, pad=3)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(style.GRAY)


_GAP = 0.14  # between images, in their widths
_BESIDE = (2.2, 1.2)  # width of the reconstruction: in widths of components, and least inches
_LINE = 0.16  # inches of a line of text
_GRID = 8.0  # inches


@style.complete_docstring
def image_grid(
    components: ArrayLike,
    shape: tuple[int, int],
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    sample: ArrayLike | None = None,
    coverage: float = 0.9,
    columns: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw components as images, and mark those that make up a sample.

    As in [1]_, Figure 2: the components that make up a sample are framed, and the reconstruction is
    drawn on the left.

    Parameters
    ----------
    components : array_like, shape (r, height * width), >= 0
        Components, such as `components_`.  Each has its own scale; larger is darker.
    shape : (int, int)
        Height and width of the images, in pixels.
    names : sequence of str, length r, optional
        Text above each image.
    weights : array_like, shape (r,), >= 0, optional
        A row of the representation: the reconstruction, ``weights @ components``, is drawn, and the
        components with the largest shares of it are framed.
    sample : array_like, shape (height * width,), >= 0, optional
        The sample itself, drawn above its reconstruction; needs `weights`.
    coverage : float, 0 to 1
        The fewest components that make up this share of the reconstruction are framed.
    columns : int, optional
        Number of images in a row, at least 1; by default the picture is about square, or wider.

    References
    ----------
    .. [1] Y. Cho, L. K. Saul, "Nonnegative matrix factorization for semi-supervised dimensionality
       reduction", Machine Learning, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from ssnmf_fast import plotting
    >>> figure = plotting.image_grid(np.eye(4), (2, 2),
    ...                              weights=[3.0, 1.0, 0.0, 0.0], coverage=0.7)
    >>> len(figure.axes[0].images)  # four components and a reconstruction
    5
    """
    table = style.check_table(components, "components", "(components, pixels)")
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise TypeError(f"shape must be a pair (height, width); got {short(shape)}.")
    count, n_pixels = table.shape
    height, width = (check_integer(side, "shape", 1) for side in shape)
    if height * width != n_pixels:
        pixels = f"{height * width} pixels; components have {n_pixels}"
        raise ValueError(f"shape is {(height, width)}, that is {pixels}.")
    coverage = check_real(coverage, "coverage", maximum=1)
    if sample is not None and weights is None:
        raise ValueError("sample needs weights, its row of the representation.")
    extra, framed = [], np.zeros(count, dtype=bool)
    if sample is not None:
        row = check_vector(sample, "sample", n_pixels, np.float64, limited=False)
        extra.append(("sample", row))
    if weights is not None:
        row = check_vector(weights, "weights", count, np.float64, limited=False)
        whole, framed = _reconstruct(table, row, coverage)
        extra.append((f"reconstruction:\n{framed.sum()} of {count} framed", whole))
    if names is not None:
        names = style.check_names(names, "names", count, "component")
    if columns is None:  # wider than high, with few places empty in the last row
        ideal = np.sqrt(1.6 * count * height / width)
        near = range(int(np.ceil(0.7 * ideal)), int(1.25 * ideal) + 2)
        columns = min(near, key=lambda number: (-count % number, abs(number - ideal)))
    columns = min(check_integer(columns, "columns", 1), count)
    # The unit of lengths is the width of a component's image; `inch` is this width in inches.
    tall, above = height / width, 0.0 if names is None else 0.28
    across, down = 1 + _GAP, tall + above + _GAP
    right, bottom = columns * across - _GAP, -(-count // columns) * down - above - _GAP
    room, least = (_GRID, 0.3) if ax is None else (style.inches(ax)[0], 0.05)
    inch = float(np.clip(room / (right + 2.8 * bool(extra)), least, 0.9))
    wide, line = max(_BESIDE[0], _BESIDE[1] / inch), _LINE / inch
    left = -(wide + 0.6) if extra else 0.0
    bottom = max(bottom, len(extra) * (tall * wide + 1.6 * line) + line) if extra else bottom
    size = max(inch * (right - left + 0.2), 2.2), inch * (bottom + above) + 0.4
    figure, axes = style.axes_or_new(ax, *size, title)
    look = {"ha": "center", "fontsize": _TEXT, **style.TEXT}
    for number, image in enumerate(table.reshape(count, height, width)):
        x, y = number % columns * across, number // columns * down
        _draw_image(axes, image, (x, y), 1.0, max(1.6, 3 * inch) if framed[number] else 0.8)
        if names is not None:
            name = style.fitted(names[number], 1.1 * inch, _TEXT)
            axes.text(x + 0.5, y - 0.06, name, va="bottom", **look)
    for number, (name, image) in enumerate(extra):
        y = number * (tall * wide + 1.6 * line)
        _draw_image(axes, image.reshape(height, width), (left, y), wide)
        axes.text(left + wide / 2, y + tall * wide + 0.3 * line, name, va="top", **look)
    axes.set(xlim=(left - 0.1, right + 0.1), ylim=(bottom + 0.1, -above - 0.1), aspect="equal")
    axes.set_axis_off()
    return figure


def _reconstruct(table: Array, weights: Array, coverage: float) -> tuple[Array, Array]:
    """Return the scaled sample, and mark the fewest components that make up this share of it."""
    # Divide by the largest numbers first: products cannot overflow.
    tiny = float(np.finfo(np.float64).tiny)
    table, weights = (values / max(float(values.max()), tiny) for values in (table, weights))
    contributions = table * weights[:, None]
    totals = contributions.sum(axis=1)
    order = np.argsort(-totals, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(totals[order])[:-1]])
    marked = np.zeros(len(contributions), dtype=bool)
    # Rounding must not add a component.
    marked[order] = (before < coverage * totals.sum() * (1 - 1e-12)) & (totals[order] > 0)
    return contributions.sum(axis=0), marked


def _draw_image(
    axes: Axes, image: Array, corner: tuple[float, float], width: float, line: float = 0.8
) -> None:
    from matplotlib.patches import Rectangle

    (left, top), height = corner, width * image.shape[0] / image.shape[1]
    scaled = image / (float(image.max()) or 1.0)
    look: dict[str, Any] = {"cmap": "gray_r", "vmin": 0, "vmax": 1, "interpolation": "nearest"}
    axes.imshow(scaled, extent=(left, left + width, top + height, top), **look)
    look = {"edgecolor": style.FRAME if line < 1 else style.ACCENT, "linewidth": line, "zorder": 3}
    axes.add_patch(Rectangle(corner, width, height, fill=False, **look))


_KINDS = ("bars", "line", "largest")
_FEW = 40  # entries of a mode that are drawn as bars
_PANEL, _ROW, _NAMED_BAR = 2.3, 0.85, 0.15  # inches: width, least height, height of a named bar
_NAMES = 1.5  # inches, at most, of names next to bars
_ON_AXIS = 12  # names below bars


@style.complete_docstring
def tensor_components(
    result: Any,
    *,
    mode_names: Sequence[str] | None = None,
    entry_names: Mapping[int, Sequence[object]] | None = None,
    kinds: Mapping[int, str] | None = None,
    max_components: int = 8,
    n_terms: int = 6,
    title: str | None = None,
) -> Figure:
    """Draw the components of a decomposed tensor: a row for each, with a panel for each mode.

    Each row shows the number of the component in the model and its share of the sum of the model.

    Parameters
    ----------
    result : TensorFactorization, NonnegativeCP, pair of weights and factors, or sequence of arrays
        A result, a fitted estimator, ``(weights, factors)``, an object with these attributes, such
        as ``CPTensor`` of TensorLy, or a factor (n_k x r) for each mode.
    mode_names : sequence of str, optional
        Names of the modes, such as ``("users", "pages", "hours")``.
    entry_names : mapping of int to sequence of str, optional
        Names of the entries of some modes; negative modes count from the last.
    kinds : mapping of int to {"bars", "line", "largest"}, optional
        How modes are drawn: a bar for each entry, a line through all entries, or named bars of the
        largest entries.  By default, modes with at most 40 entries have bars; longer modes have
        lines or, if their entries have names, "largest".  Panels of a mode share a scale, except
        for "largest".
    max_components : int
        Largest number of components to draw, at least 1: those that explain most.
    n_terms : int
        Number of bars of the kind "largest", at least 1; entries of weight 0 have no bar.

    Returns
    -------
    matplotlib.figure.Figure
        With the axes row by row, in the order of the modes.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk", *(rng.random((n, 2)) for n in (60, 7, 24)))
    >>> fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    >>> modes = ("users", "days", "hours")
    >>> figure = sf.plotting.tensor_components(fit, mode_names=modes)
    >>> len(figure.axes)
    6
    """
    weights, factors = check_cp_model(result, "result")
    n_terms, n_modes = check_integer(n_terms, "n_terms", 1), len(factors)
    count = min(check_integer(max_components, "max_components", 1), len(weights))
    if mode_names is None:
        mode_names = [f"mode {mode}" for mode in range(n_modes)]
    mode_names = style.check_names(mode_names, "mode_names", n_modes, "mode")
    entries = _by_mode(entry_names, "entry_names", n_modes)
    kind_of = _by_mode(kinds, "kinds", n_modes)
    shares = divide_by_sums(weights * np.prod([F.sum(axis=0) for F in factors], axis=0), axis=0)
    shown = np.argsort(-shares, kind="stable")[:count].tolist()
    names: list[Sequence[object]] = [range(len(F)) for F in factors]
    largest: dict[int, list[list[int]]] = {}  # by mode of this kind: entries by component
    for mode, F in enumerate(factors):
        if mode in entries:
            names[mode] = style.check_names(entries[mode], f"entry_names[{mode}]", len(F), "entry")
        long = "largest" if mode in entries else "line"
        kind = kind_of.setdefault(mode, "bars" if len(F) <= _FEW else long)
        if check_option(kind, f"kinds[{mode}]", _KINDS) == "largest":
            orders = [np.argsort(-F[:, q], kind="stable")[:n_terms] for q in shown]
            pairs = zip(shown, orders, strict=True)
            largest[mode] = [k[F[k, q] > 0].tolist() for q, k in pairs]
    bars = max((len(some) for tops in largest.values() for some in tops), default=0)
    height = max(_ROW, _NAMED_BAR * bars + 0.2)
    width = _PANEL * n_modes + _NAMES / 2 * len(largest) + 1.3
    figure = style.figure(width, height * count + 0.7 + 0.3 * (title is not None))
    grid = figure.subplots(count, n_modes, squeeze=False)
    for (row, mode), axes in np.ndenumerate(grid):
        q, F = shown[row], factors[mode]
        if row == 0:
            axes.set_title(style.plain(mode_names[mode], 30), color=style.INK, fontsize=10)
        if mode in largest:
            some = largest[mode][row]
            terms = [style.fitted(names[mode][k], _NAMES, _TEXT) for k in some]
            _draw_bars(axes, F[some, q], terms, bars)
            continue
        _draw_entries(axes, F[:, q], names[mode], bars=kind_of[mode] == "bars")
        axes.set_ylim(0, 1.05 * (float(F[:, shown].max()) or 1.0))
        axes.tick_params(axis="x", labelbottom=row == count - 1)
    look = {"rotation": 0, "ha": "right", "va": "center", "fontsize": 9, "color": style.INK}
    for axes, q in zip(grid[:, 0], shown, strict=True):
        share = f"{shares[q]:.0%}" if shares[q] >= 0.01 else "below 1%"
        axes.set_ylabel(f"component {q}\n{share}", labelpad=14, **look)
    figure.align_ylabels(grid[:, 0])
    if count < len(weights):
        rest = f"the {count} largest of {len(weights)} components"
        figure.supxlabel(rest, color=style.GRAY, fontsize=9)
    if title is not None:
        figure.suptitle(title, color=style.INK, fontsize=11)
    return figure


def _by_mode(values: object, name: str, count: int) -> dict[int, Any]:
    """Return the values of a mapping by mode, counted from 0."""
    if not isinstance(values, (Mapping, type(None))):
        kind = type(values).__name__
        raise TypeError(f"{name} must be a mapping of modes, such as {{0: ...}}; got {kind}.")
    items = (values or {}).items()
    return {check_mode(mode, f"a mode of {name}", count): value for mode, value in items}


def _draw_entries(axes: Axes, values: Array, names: Sequence[object], *, bars: bool) -> None:
    """Draw all entries, as bars or as a line."""
    places = np.arange(len(values))
    if bars:
        axes.bar(places, values, width=0.8, color=style.ACCENT)
    else:
        axes.plot(places, values, color=style.ACCENT, linewidth=0.9)
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(style.FRAME)
    if isinstance(names, range):
        style.count_along(axes.xaxis, 5)
    else:
        places = places[:: -(-len(values) // _ON_AXIS)]
        texts = [style.fitted(names[place], _NAMES / 2, _TEXT) for place in places.tolist()]
        wide = style.text_width(texts, _TEXT) + 0.06 > _PANEL / len(places)
        axes.set_xticks(places, texts, rotation=90 if wide else 0, parse_math=False)
    axes.tick_params(axis="x", labelsize=_TEXT, labelcolor=style.INK, color=style.FRAME)


_LEVEL, _LINE = 3.0, 0.3  # inches: width of a level, height of a line of a tree
_FILL = "#cfe0f2"


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
    figure, axes = style.axes_or_new(ax, _LEVEL * tree.depth, _LINE * len(lines) + 0.5, title)
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
