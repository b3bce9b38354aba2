"""Terms of the largest weight, as bars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._data.border import check_integer
from .._topics import Topic, Topics, real_terms
from ._style import ACCENT, GRAY, INK, complete_docstring, figure, fitted, text_width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEXT = 8.0  # points
# Inches: width of a page, height of a bar, room for a heading, below and above all charts.
_PAGE, _BAR, _HEADING, _BELOW, _ABOVE = 11.0, 0.16, 0.36, 0.36, 0.36


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
        If `topics` is not a :class:`Topics`, or a count is not an integer.

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
    if columns is None:
        columns = _default_columns(len(topics))
    columns = min(check_integer(columns, "columns", 1), len(topics))
    rows = -(-len(topics) // columns)
    widest = max(max(t.weights, default=0.0) for t in topics) if common_scale else None
    panel = min(_PAGE / columns, 4.0), _BAR * n_terms + _HEADING
    size = panel[0] * columns, panel[1] * rows + _BELOW + (_ABOVE if title else 0)
    drawn: Any = figure(*size)
    drawn.set_layout_engine("none")  # all panels have the same measures
    charts = [_Chart(topic, n_terms, 0.62 * panel[0]) for topic in topics]
    names = max(text_width(chart.terms, _TEXT) for chart in charts) + 0.12
    for number, chart in enumerate(charts):
        row, column = divmod(number, columns)
        left, bottom = column * panel[0], (rows - 1 - row) * panel[1] + _BELOW
        _write(drawn, left + 0.04, bottom + panel[1] - 0.2, chart.heading(panel[0]), "left", 9)
        box = left + names, bottom + 0.08, panel[0] - names - 0.12, panel[1] - _HEADING
        chart.draw(drawn.add_axes((np.array(box) / (*size, *size)).tolist()), widest)
    scale = "all charts on the same scale" if common_scale else "each chart on its own scale"
    _write(drawn, size[0] / 2, 0.14, f"weight of the term in the topic; {scale}", "center", 9)
    if title:
        _write(drawn, size[0] / 2, size[1] - 0.24, title, "center", 11)
    return cast("Figure", drawn)


@dataclass(frozen=True)
class _Chart:
    """Bars of a topic, for at most `n_terms` terms whose names are at most `width` inches wide."""

    topic: Topic
    n_terms: int
    width: float

    @cached_property
    def weights(self) -> list[float]:
        """Those of terms that have a bar."""
        return [weight for _, weight in real_terms(self.topic)[: self.n_terms]]

    @cached_property
    def terms(self) -> list[str]:
        """Names of these terms."""
        return [fitted(t, self.width, _TEXT) for t in self.topic.terms[: len(self.weights)]]

    def heading(self, width: float) -> str:
        """Number of the topic, and its name or else its largest class, in so many inches."""
        text = f"topic {self.topic.topic}"
        if self.topic.name:
            return fitted(f"{text}: {self.topic.name}", width - 0.2, 9)
        if not self.topic.leading:
            return text
        label, share = self.topic.leading[0]
        end = f" {share:.0%}"
        return fitted(f"{text}: {label}", width - 0.2 - text_width([end], 9), 9) + end

    def draw(self, axes: Any, widest: float | None) -> None:
        """Draw the bars; `widest` is the weight of one that is as long as the axes."""
        places = np.arange(len(self.weights))
        axes.barh(places, self.weights, height=0.72, color=ACCENT)
        axes.set_yticks(places, self.terms, fontsize=_TEXT, color=INK, parse_math=False)
        axes.set_ylim(self.n_terms - 0.5, -0.5)  # the largest is on top; all charts are as high
        axes.set_xlim(0, widest or max(self.topic.weights, default=0.0) or 1.0)
        axes.set_xticks([])
        axes.tick_params(axis="y", length=0, pad=3)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.spines["left"].set_color(GRAY)
        if not self.weights:
            where = {"transform": axes.transAxes, "va": "center", "color": GRAY}
            axes.text(0.05, 0.5, "no terms", fontsize=_TEXT, **where)


def _write(drawn: Any, x: float, y: float, text: str, side: str, size: float) -> None:
    """Write at a place given in inches from the lower left, the base line of the text."""
    width, height = drawn.get_size_inches()
    look = {"ha": side, "va": "baseline", "fontsize": size, "color": INK, "parse_math": False}
    drawn.text(x / width, y / height, text, **look)


def _check_topics(topics: Any) -> None:
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


def _default_columns(count: int) -> int:
    """Columns that leave few places of the last row empty."""
    return count if count <= 5 else min((5, 4, 3), key=lambda columns: -count % columns)
