"""Terms of the largest weight, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_integer, check_option
from .._data.tensors import check_mode
from .._topics import Topic, Topics, divide_by_sums, real_terms
from ..metrics._tensors import check_cp_model
from ._style import (
    ACCENT,
    FRAME,
    GRAY,
    INK,
    check_names,
    complete_docstring,
    count_along,
    figure,
    fitted,
    plain,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


_TEXT = 8.0  # points
_PAGE, _BAR, _HEADING = 11.0, 0.16, 0.4  # inches: width of a page, heights of a bar and a heading


@complete_docstring
def term_bars(
    topics: Topics,
    *,
    n_terms: int = 10,
    columns: int | None = None,
    common_scale: bool = False,
    title: str | None = None,
) -> Figure:
    """Draw the terms of largest weight of every topic: one page of small bar charts.

    Parameters
    ----------
    topics : Topics
        As from :meth:`ssnmf_fast.NMF.topics`; give a slice to draw some of them.  The name of a
        topic stands next to its number or, where it has none, a class whose share is at least 0.6
        or, with four classes or more, twice that of chance and 0.2.
    n_terms : int, at least 1
        Number of bars per topic, at most the number of terms in `topics`; terms of weight 0 have no
        bar.
    columns : int, optional
        Number of topics in a row of the page, at least 1; by default at most 5.
    common_scale : bool
        Whether bars of the same length have the same weight in all topics.  Otherwise the longest
        bar of every topic is its largest weight.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are in the order of the topics.

    Raises
    ------
    ValueError
        If topics are empty, weights are negative or not finite, or counts are below 1.
    TypeError
        If `topics` is not a :class:`ssnmf_fast.results.Topics`, or a count is not an integer.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2]])
    >>> model = sf.NMF(n_components=2, random_state=0).fit(X)
    >>> drawn = plotting.term_bars(model.topics(["ball", "goal", "moon", "orbit"], n_terms=2))
    >>> len(drawn.axes)
    2
    """
    _check_topics(topics)
    # No room for terms of weight 0, which have no bar.
    n_terms = min(
        check_integer(n_terms, "n_terms", 1), max(1, *(len(real_terms(t)) for t in topics))
    )
    if columns is None:  # few places of the last row stay empty
        few = len(topics) <= 5
        columns = len(topics) if few else min((5, 4, 3), key=lambda count: -len(topics) % count)
    columns = min(check_integer(columns, "columns", 1), len(topics))
    width = min(_PAGE / columns, 4.0)
    bars = [real_terms(topic)[:n_terms] for topic in topics]
    names = [[fitted(term, 0.6 * width, _TEXT) for term, _ in some] for some in bars]
    beside = max(text_width(some, _TEXT) for some in names) + 0.1
    rows = -(-len(topics) // columns)
    height = (_BAR * n_terms + _HEADING) * rows + 0.36 * (1 + (title is not None))
    drawn = figure(width * columns, height)
    layout: Any = drawn.get_layout_engine()
    layout.set(w_pad=0.07, h_pad=0.06)
    grid = drawn.subplots(rows, columns, squeeze=False).ravel()
    widest = max(max(t.weights, default=0.0) for t in topics) if common_scale else None
    for axes, topic, some, terms in zip(grid, topics, bars, names, strict=False):
        draw_bars(axes, [weight for _, weight in some], terms, n_terms, widest)
        look = {"textcoords": "offset points", "fontsize": 9, "color": INK, "parse_math": False}
        axes.annotate(
            _heading(topic, width - 0.2), (0, 1), (-72 * beside, 6), "axes fraction", **look
        )
        if not some:
            axes.text(0.05, 0.5, "no terms", transform=axes.transAxes, fontsize=_TEXT, color=GRAY)
    for axes in grid[len(topics) :]:
        axes.remove()
    scale = "all charts on the same scale" if common_scale else "each chart on its own scale"
    drawn.supxlabel(f"weight of the term in the topic; {scale}", color=INK, fontsize=9)
    if title is not None:
        drawn.suptitle(title, color=INK, fontsize=11, parse_math=False)
    return drawn


def _heading(topic: Topic, width: float) -> str:
    """Return the number of a topic, and its name or largest class, within a width in inches."""
    text = f"topic {topic.topic}"
    if topic.name:
        return fitted(f"{text}: {topic.name}", width, 9)
    if not topic.leading:
        return text
    label, share = topic.leading[0]
    end = f" {share:.0%}"
    return fitted(f"{text}: {label}", width - text_width([end], 9), 9) + end


def draw_bars(
    axes: Axes, values: ArrayLike, names: list[str], count: int, widest: float | None = None
) -> None:
    """Draw bars with names, the largest on top, in the room of `count` ones.

    `widest` is the value of a bar that is as long as the axes; by default the largest one.
    """
    values = np.asarray(values, dtype=np.float64)
    places = np.arange(len(values))
    axes.barh(places, values, height=0.72, color=ACCENT)
    axes.set_yticks(places, names, fontsize=_TEXT, color=INK, parse_math=False)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0, widest or float(values.max(initial=0.0)) or 1.0)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, pad=3)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(GRAY)


def _check_topics(topics: object) -> None:
    if not isinstance(topics, Topics):
        raise TypeError(
            "topics must be what topics() of a fitted model returns, or a slice of it; got "
            f"{type(topics).__name__}."
        )
    if not len(topics):
        raise ValueError("topics is empty; expected at least one topic.")
    for topic in topics:
        weights = np.asarray(topic.weights, dtype=np.float64)
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"topics: those of topic {topic.topic} need weights that are finite and >= 0; got "
                f"{topic.weights}."
            )


KINDS = ("bars", "line", "largest")
_FEW = 40  # entries of a mode that are drawn as bars
_PANEL, _ROW, _NAMED_BAR = 2.3, 0.85, 0.15  # inches: width, least height, height of a named bar
_NAMES = 1.5  # inches, at most, of names next to bars
_ON_AXIS = 12  # names below bars


@dataclass(frozen=True)
class _Mode:
    """A factor (n x r), what its mode and its entries are called, and how it is drawn."""

    factor: Array
    name: str
    names: list[str] | None
    kind: str

    def room(self, largest: Sequence[Array]) -> float:
        """Return how wide the names next to bars may be, in inches."""
        return min(_NAMES, text_width([self.called(i) for some in largest for i in some], _TEXT))

    def called(self, entry: int) -> str:
        return plain(str(entry) if self.names is None else self.names[entry], 200)

    def largest(self, component: int, count: int) -> Array:
        """Return the entries of the largest weights that are not zero, in falling order."""
        column = self.factor[:, component]
        order = np.argsort(-column, kind="stable")[:count]
        return np.asarray(order[column[order] > 0])


@complete_docstring
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

    Parameters
    ----------
    result : TensorFactorization, NonnegativeCP, pair of weights and factors, or sequence of arrays
        What to draw: a result, a fitted estimator, ``(weights, factors)``, an object with these
        attributes, such as ``CPTensor`` of TensorLy, or a factor (n_k x r) for each mode.
    mode_names : sequence of str, optional
        What each mode is called, such as ``("users", "pages", "hours")``.
    entry_names : mapping of int to sequence of str, optional
        For some modes the names of their entries; negative modes count from the last.
    kinds : mapping of int to {"bars", "line", "largest"}, optional
        How some modes are drawn: a bar for each entry, a line through all, or named bars of the
        largest entries.  By default modes of at most 40 entries have bars; longer ones have lines
        or, where their entries have names, the largest ones.
    max_components : int
        Number of components to draw at most, at least 1: those that explain most.
    n_terms : int
        Number of bars of the kind "largest", at least 1; entries of weight 0 have none.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are in the order of the rows, and within them of the modes.

    Raises
    ------
    TypeError, ValueError
        If `result` is not a CP model, names do not match, or a mode or kind is unknown.

    Notes
    -----
    A component has its number in the model, and its share of the sum of the model.  All bars and
    lines of a mode have one scale, but for the largest entries, where each panel has its own.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk", *(rng.random((n, 2)) for n in (60, 7, 24)))
    >>> fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    >>> drawn = plotting.tensor_components(fit, mode_names=("users", "days", "hours"))
    >>> len(drawn.axes)
    6
    """
    weights, factors = check_cp_model(result, "result")
    n_terms = check_integer(n_terms, "n_terms", 1)
    count = min(check_integer(max_components, "max_components", 1), len(weights))
    modes = _modes(factors, mode_names, entry_names, kinds)
    shares = divide_by_sums(weights * np.prod([F.sum(axis=0) for F in factors], axis=0), axis=0)
    shown = np.argsort(-shares, kind="stable")[:count].tolist()
    largest = [[mode.largest(q, n_terms) for q in shown] for mode in modes]
    widths = [
        _PANEL / 2 + mode.room(some) + 0.1 if mode.kind == "largest" else _PANEL
        for mode, some in zip(modes, largest, strict=True)
    ]
    named = [some for mode, some in zip(modes, largest, strict=True) if mode.kind == "largest"]
    bars = max((len(entries) for some in named for entries in some), default=0)
    height = max(_ROW, _NAMED_BAR * bars + 0.2)
    drawn = figure(sum(widths) + 1.3, height * count + 0.7 + 0.3 * (title is not None))
    grid = drawn.subplots(count, len(modes), squeeze=False, width_ratios=widths)
    for column, (mode, some) in enumerate(zip(modes, largest, strict=True)):
        grid[0, column].set_title(mode.name, color=INK, fontsize=10)
        top = float(mode.factor[:, shown].max()) or 1.0
        for row, q in enumerate(shown):
            axes = grid[row, column]
            if mode.kind == "largest":
                names = [fitted(mode.called(k), mode.room(some), _TEXT) for k in some[row].tolist()]
                draw_bars(axes, mode.factor[some[row], q], names, bars)
            else:
                _draw_all(axes, mode, q, 1.05 * top, last=row == count - 1)
    for row, q in enumerate(shown):
        share = f"{shares[q]:.0%}" if shares[q] >= 0.01 else "below 1%"
        look = {"rotation": 0, "ha": "right", "va": "center", "fontsize": 9, "color": INK}
        grid[row, 0].set_ylabel(f"component {q}\n{share}", labelpad=14, **look)
    drawn.align_ylabels(grid[:, 0])
    if count < len(weights):
        rest = f"the {count} largest of {len(weights)} components"
        drawn.supxlabel(rest, color=GRAY, fontsize=9)
    if title is not None:
        drawn.suptitle(title, color=INK, fontsize=11)
    return drawn


def _modes(
    factors: Sequence[Array],
    mode_names: Sequence[str] | None,
    entry_names: Mapping[int, Sequence[object]] | None,
    kinds: Mapping[int, str] | None,
) -> list[_Mode]:
    """Check what the modes and their entries are called, and how they are drawn."""
    count = len(factors)
    named = [f"mode {mode}" for mode in range(count)]
    if mode_names is not None:
        named = check_names(mode_names, "mode_names", count, "mode")
    entries, drawn = (
        _by_mode(given, name, count)
        for given, name in ((entry_names, "entry_names"), (kinds, "kinds"))
    )
    modes = []
    for mode, F in enumerate(factors):
        names = None
        if mode in entries:
            names = check_names(entries[mode], f"entry_names[{mode}]", len(F), "entry")
        kind = "bars" if len(F) <= _FEW else "line" if names is None else "largest"
        if mode in drawn:
            kind = check_option(drawn[mode], f"kinds[{mode}]", KINDS)
        modes.append(_Mode(F, plain(named[mode], 30), names, kind))
    return modes


def _by_mode(given: object, name: str, count: int) -> dict[int, Any]:
    """Return what a mapping has for modes, counted from 0."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name} must be a mapping of modes, such as {{0: ...}}; got {type(given).__name__}."
        )
    return {check_mode(mode, f"a mode of {name}", count): one for mode, one in given.items()}


def _draw_all(axes: Axes, mode: _Mode, component: int, top: float, *, last: bool) -> None:
    """Draw all entries, as bars or as a line, from 0 to `top`."""
    values = mode.factor[:, component]
    places = np.arange(len(values))
    if mode.kind == "bars":
        axes.bar(places, values, width=0.8, color=ACCENT)
    else:
        axes.plot(places, values, color=ACCENT, linewidth=0.9)
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_ylim(0, top)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FRAME)
    if mode.names is None:
        count_along(axes.xaxis, 5)
    else:
        step = -(-len(mode.factor) // _ON_AXIS)
        places = np.arange(0, len(mode.factor), step)
        names = [fitted(mode.called(place), _NAMES / 2, _TEXT) for place in places.tolist()]
        wide = text_width(names, _TEXT) + 0.06 > _PANEL / len(places)
        axes.set_xticks(places, names, rotation=90 if wide else 0, parse_math=False)
    axes.tick_params(axis="x", labelsize=_TEXT, labelcolor=INK, color=FRAME, labelbottom=last)
