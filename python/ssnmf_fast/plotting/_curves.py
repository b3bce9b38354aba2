"""Curves of fits, singular values, and topics over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._data.border import check_integer, check_numbers, check_option
from .._topics import numbered_names
from . import _style as style
from ._maps import draw_cells, name_rows, table_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAR = 4  # ranges of the later values, beyond which a first value is not drawn
_FEW = 30  # points of a curve that are marked


@style.complete_docstring
def objective_curve(
    fits: Any, *, label: str = "objective", title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw the objective (or a bound) of one or more fits against the iterations.

    Parameters
    ----------
    fits : Factorization, fitted estimator, sequence of (iteration, value), or dict of these
        Objects with `objective` or `objective_`, or the pairs themselves; a dict gives each fit a
        name and a color.  Values may have any sign.
    label : str
        Name of the vertical axis, for example "lower bound".

    Notes
    -----
    The first value is not drawn if its distance from the others is more than four times their
    range; a text at the border shows it.  The scale is logarithmic if the values that are drawn are
    positive and span a factor of more than 10.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> fit = sf.factorize(np.eye(4), n_components=2, random_state=0)
    >>> figure = sf.plotting.objective_curve(fit)
    >>> figure.axes[0].get_ylabel()
    'objective'
    """
    fit_of = fits if isinstance(fits, Mapping) else {"": fits}
    if not fit_of:
        raise ValueError("fits is empty; there is nothing to draw.")
    curves = []
    for fit in fit_of.values():
        values = getattr(fit, "objective", getattr(fit, "objective_", fit))
        if not isinstance(values, (Sequence, np.ndarray)) or isinstance(values, (str, bytes)):
            raise TypeError(
                "fits must be a Factorization, a fitted estimator, (iteration, value) pairs, or a "
                f"dict of name to one of these; got {type(fit).__name__}."
            )
        if not len(values):
            raise ValueError("fits has a fit without objective values; there is nothing to draw.")
        pairs = check_numbers(values, "objective", np.float64, allow_negative=True, limited=False)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"fits has pairs of shape {pairs.shape}; expected (k, 2).")
        curves.append(pairs)
    figure, axes = style.axes_or_new(ax, 6.0, 3.4, title)
    lines = []
    for number, pairs in enumerate(curves):
        look = style.curve_look(number, points=len(pairs) <= _FEW)
        lines += axes.plot(*pairs.T, markersize=3.5, linewidth=1.6, **look)
    style.label_axes(axes, "iteration", label)
    _fit_values(axes, curves)
    style.count_along(axes.xaxis)
    if isinstance(fits, Mapping):
        style.add_legend(axes, lines, [str(name) for name in fit_of])
    return figure


def _fit_values(axes: Axes, curves: list[Array]) -> None:
    """Choose scale and limits of the values; far starting values are written at the border."""
    everything = np.concatenate([pairs[:, 1] for pairs in curves])
    later = np.concatenate([pairs[1 if len(pairs) > 2 else 0 :, 1] for pairs in curves])
    low, high = float(everything.min()), float(everything.max())
    far = _FAR * float(later.max() - later.min())
    above, below = high - later.max() > far > 0, later.min() - low > far > 0
    low = float(later.min()) if below else low
    high = float(later.max()) if above else high
    if low > 0 and high / 10 > low:
        style.logarithmic(axes)
    if above or below:
        scale = axes.yaxis.get_transform()
        begin, end = scale.transform(np.array([low, high]))
        margin = 0.06 * (end - begin)
        axes.set_ylim(*scale.inverted().transform(np.array([begin - margin, end + margin])))
    # First values outside are written next to where the curves enter.
    enters = max(float(pairs[min(1, len(pairs) - 1), 0]) for pairs in curves)
    left = enters > float(np.mean(axes.get_xlim()))
    start = f"{curves[0][0, 1]:.4g} at iteration {curves[0][0, 0]:g}"
    text = start if len(curves) == 1 else "starts are outside"
    for top in (True, False):
        if above if top else below:
            style.write_next_to(axes, text, enters, left=left, top=top, color=style.GRAY)


@style.complete_docstring
def singular_values(
    values: npt.ArrayLike, *, rank: int | None = None, ax: Axes | None = None
) -> Figure:
    """Draw how fast singular values fall, on a logarithmic scale.

    Parameters
    ----------
    values : array_like, shape (k,)
        Singular values, largest first, such as `singular_values` of a
        :class:`~ssnmf_fast.results.Completion`; zeros are left out.
    rank : int, 1 to k, optional
        Number of values to mark: a line follows them, and the others are gray.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> figure = plotting.singular_values([5.0, 2.0, 1e-3, 1e-4], rank=2)
    >>> figure.axes[0].get_yscale()
    'log'
    """
    sigma = check_numbers(values, "values", np.float64, limited=False)
    if sigma.ndim != 1 or not sigma.size:
        raise ValueError(f"values must be a vector that is not empty; got shape {sigma.shape}.")
    if rank is not None and not 1 <= rank <= len(sigma):
        raise ValueError(f"rank must be from 1 to {len(sigma)}, the number of values; got {rank}.")
    figure, axes = style.axes_or_new(ax, 5.0, 3.2)
    places = np.arange(1, len(sigma) + 1)
    inside = places <= (len(sigma) if rank is None else rank)
    for part, color in ((inside, style.ACCENT), (~inside, style.GRAY)):
        if (mask := part & (sigma > 0)).any():
            axes.plot(places[mask], sigma[mask], color=color, marker="o", markersize=4, lw=1.2)
    if (sigma > 0).any():
        style.logarithmic(axes)
    if rank is not None:
        axes.axvline(rank + 0.5, color=style.GRAY, linestyle="--", linewidth=1)
        left = rank > len(sigma) / 2
        top = style.is_low(axes, sigma[rank - 1 if left else rank])  # not on the curve
        style.write_next_to(axes, f"rank {rank}", rank + 0.5, left=left, top=top)
    axes.set_xlim(0.5 - 0.02 * len(sigma), len(sigma) + 0.5 + 0.02 * len(sigma))
    style.count_along(axes.xaxis)
    style.label_axes(axes, "number", "singular value")
    return figure


_MEANINGS = {
    "peak": "prevalence, relative\nto the topic's peak",
    "slice": "share of the slice",
    "largest": "prevalence, relative\nto the largest",
}
_FEW_SLICES = 40  # slices whose points of curves have markers


@style.complete_docstring
def topics_over_time(
    model: Any,
    feature_names: npt.ArrayLike | None = None,
    *,
    kind: Literal["heatmap", "lines"] = "heatmap",
    n_terms: int = 3,
    share: Literal["peak", "slice", "largest"] = "peak",
    topics: Sequence[int] | None = None,
    sort: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the prevalence of each topic over time.

    The heat map of [1]_, Figures 4.2 to 4.8, has topics in rows and time slices in columns; slices
    without documents are gray.

    Parameters
    ----------
    model : fitted DynamicTopics, or TopicsOverTime
        Topics with their prevalence in slices.
    feature_names : array_like of str, shape (m,), optional
        Names of the features, such as ``vectorizer.get_feature_names_out()``.
    kind : {"heatmap", "lines"}
        "lines" draws a curve for each topic, in the unit of the prevalence; best for few topics.
    n_terms : int
        Number of terms in the name of a topic, at least 1.
    share : {"peak", "slice", "largest"}
        Divisor of a prevalence in the heat map: the largest value of its topic, the sum of its
        slice (columns sum to 1), or the largest value of all.
    topics : sequence of int, optional
        Numbers of the topics to draw; by default all.
    sort : bool
        Whether to sort topics by their peaks, the earliest first; False keeps their order.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> # two topics: the second one comes later
    >>> X = np.kron(np.eye(2), np.ones((6, 3)))
    >>> times = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    >>> model = sf.DynamicTopics(2, freq="quarter", random_state=0).fit(X, times)
    >>> figure = sf.plotting.topics_over_time(model, list("abcdef"))
    >>> [label.get_text()[3:] for label in figure.axes[0].get_yticklabels()]
    ['a, b, c', 'd, e, f']
    """
    check_option(kind, "kind", ("heatmap", "lines"))
    check_option(share, "share", tuple(_MEANINGS))
    over = getattr(model, "over_time_", model)
    if not hasattr(over, "slices"):
        raise TypeError(
            f"model must be a fitted DynamicTopics or TopicsOverTime; got {model!r:.60}."
        )
    names = numbered_names(model.topics(feature_names, n_terms))
    numbers = range(len(names)) if topics is None else topics
    places = [check_integer(k, "a topic of topics", 0, len(names) - 1) for k in numbers]
    if not places:
        raise ValueError("topics is empty; name the topics to draw, or leave it out for all.")
    values, starts, sizes = over.prevalence, over.slices, over.sizes
    if sort:
        places = sorted(places, key=lambda k: int(values[:, k].argmax()))
    labels, room = [names[k] for k in places], None
    if kind == "lines":
        figure, axes = style.axes_or_new(ax, 9.0, 3.8, title)
    else:
        width = float(np.clip(0.12 * len(values), 4.5, 10))
        height = float(np.clip(0.26 * len(labels), 1.6, 40))
        figure, axes, room = table_axes(ax, width, height, title, labels, [])
    dates: Any = import_module("matplotlib.dates")
    unit: Any = np.datetime_data(starts.dtype)
    last = starts[-1] - starts[-2] if len(starts) > 1 else np.timedelta64(1, unit)
    end = np.datetime64("9999-12-31T23:59:59")  # Matplotlib has no later dates
    edges = np.minimum(np.append(starts, starts[-1] + last).astype("datetime64[s]"), end)
    days = np.asarray(dates.date2num(edges), dtype=np.float64)
    if room is None:
        lines = []
        for number, column in enumerate(np.where(sizes[:, None] == 0, np.nan, values)[:, places].T):
            look = style.curve_look(number, points=len(column) <= _FEW_SLICES)
            middles = (days[:-1] + days[1:]) / 2
            lines += axes.plot(middles, column, linewidth=1.5, markersize=4, **look)
        axes.set_ylim(bottom=0)
        style.label_axes(axes, "", "prevalence in a mean document")
        style.add_legend(axes, lines, labels)
    else:
        largest = {"peak": values.max(axis=0), "largest": values.max()}
        divisor = largest[share] if share in largest else values.sum(axis=1, keepdims=True)
        shares = (values / np.maximum(divisor, np.finfo(np.float64).tiny))[:, places].T
        shares[:, sizes == 0] = np.nan
        down = np.arange(len(labels) + 1) - 0.5
        draw_cells(axes, days, down, shares, 1.0, _MEANINGS[share], room.height)
        axes.hlines(down[1:-1], days[0], days[-1], color=style.FRAME, linewidth=0.4)
        name_rows(axes, room.rows, room.height / len(labels))
        style.label_axes(axes, "", "topic", curves=False)
    locator = dates.AutoDateLocator(minticks=3, maxticks=10)  # round dates
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set_xlim(days[0], days[-1])
    axes.tick_params(axis="x", labelsize=9, labelcolor=style.INK, color=style.FRAME)
    return figure
