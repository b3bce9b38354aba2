"""Curves of the objective of fits, of the convergence of completions, and of singular values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from ._style import (
    ACCENT,
    COLORS,
    GRAY,
    INK,
    add_legend,
    add_title,
    axes_or_new,
    check_finite,
    complete_docstring,
    curve_look,
    label_axes,
    logarithmic,
    read_named,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FAR = 4  # ranges of the later values, beyond which a first value is left outside
_FEW = 30  # points of a curve that are marked


@complete_docstring
def objective_curve(
    fits: Any, *, label: str = "objective", title: str | None = None, ax: Any = None
) -> Figure:
    """Draw the objective (or a bound) of one fit, or of several, against the iterations.

    Parameters
    ----------
    fits : Factorization, fitted estimator, sequence of (iteration, value), or dict of these
        Objects with `objective` or `objective_`, or the pairs themselves; a dict gives every fit a
        name and a color.  Values may have any sign.
    label : str
        Name of the vertical axis, for example "lower bound".

    Raises
    ------
    ValueError
        If there is nothing to draw, or a value is not finite.
    TypeError
        If `fits` is of another kind.

    Notes
    -----
    The first value is not drawn if it would flatten the rest of the curve, that is, if it is
    further from the others than four times their range.  A text at the border then gives the value.
    The scale is logarithmic if the values that are drawn are above 0 and span a factor of more than
    10.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> fit = sf.factorize(np.eye(4), n_components=2, random_state=0)
    >>> drawn = plotting.objective_curve(fit)
    >>> drawn.axes[0].get_ylabel()
    'objective'
    """
    curves = read_named(fits, _pairs)
    if not curves:
        raise ValueError("fits is empty; there is nothing to draw.")
    drawn, axes = axes_or_new(ax, 6.0, 3.4)
    lines = []
    for number, pairs in enumerate(curves.values()):
        look = curve_look(number)
        look["marker"] = look["marker"] if len(pairs) <= _FEW else ""
        lines += axes.plot(*pairs.T, markersize=3.5, linewidth=1.6, **look)
    label_axes(axes, "iteration", label)
    _fit_values(axes, list(curves.values()))
    axes.xaxis.get_major_locator().set_params(integer=True)
    if isinstance(fits, Mapping):
        add_legend(axes, lines, list(curves))
    add_title(axes, title)
    return drawn


def _pairs(fit: Any) -> Array:
    """Return (iteration, value) of a fit, one pair a row."""
    values = getattr(fit, "objective", getattr(fit, "objective_", fit))
    if not isinstance(values, (Sequence, np.ndarray)) or isinstance(values, (str, bytes)):
        raise TypeError(
            "fits must be a Factorization, a fitted estimator, (iteration, value) pairs, or a dict "
            f"of name to one of these; got {type(fit).__name__}."
        )
    if not len(values):
        raise ValueError(
            "fits has a fit without values of the objective; there is nothing to draw."
        )
    pairs = check_finite(values, "objective")
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"fits has pairs of shape {pairs.shape}; expected (k, 2).")
    return pairs


def _fit_values(axes: Any, curves: list[Array]) -> None:
    """Choose scale and limits of the values; starts that are far off are named at the border."""
    everything = np.concatenate([pairs[:, 1] for pairs in curves])
    later = np.concatenate([pairs[1 if len(pairs) > 2 else 0 :, 1] for pairs in curves])
    low, high = float(everything.min()), float(everything.max())
    far = _FAR * float(later.max() - later.min())
    above, below = high - later.max() > far > 0, later.min() - low > far > 0
    low = float(later.min()) if below else low
    high = float(later.max()) if above else high
    if low > 0 and high / 10 > low:
        logarithmic(axes)
        margin = (high / low) ** 0.06
        limits = low / margin, high * margin
    else:
        margin = 0.06 * (high - low)
        limits = low - margin, high + margin
    if above or below:
        axes.set_ylim(limits)
    if above:
        _name_starts(axes, curves, "top")
    if below:
        _name_starts(axes, curves, "bottom")


def _name_starts(axes: Any, curves: list[Array], side: str) -> None:
    """Say what the values outside are, to the right of where the curves come in."""
    enters = max(float(pairs[min(1, len(pairs) - 1), 0]) for pairs in curves)
    start = f"{curves[0][0, 1]:.4g} at iteration {curves[0][0, 0]:g}"
    left = enters > float(np.mean(axes.get_xlim()))
    text = start if len(curves) == 1 else "starts are outside"
    write_beside(axes, text, enters, left=left, top=side == "top", color=GRAY)


if TYPE_CHECKING:
    from matplotlib.figure import Figure


@complete_docstring
def singular_values(values: npt.ArrayLike, *, rank: int | None = None, ax: Any = None) -> Figure:
    """Draw how fast singular values fall, on a logarithmic scale.

    Parameters
    ----------
    values : array_like, shape (k,)
        Singular values, largest first, such as the `singular_values` of a
        :class:`~ssnmf_fast.results.Completion`; zeros are left out.
    rank : int, 1 to k, optional
        Marked by a line behind the value of this number; the others are gray.

    Raises
    ------
    ValueError
        If `values` is not a vector of finite numbers >= 0, or `rank` is not one of its places.

    Examples
    --------
    >>> from ssnmf_fast import plotting
    >>> drawn = plotting.singular_values([5.0, 2.0, 1e-3, 1e-4], rank=2)
    >>> drawn.axes[0].get_yscale()
    'log'
    """
    sigma = check_finite(values, "values", allow_negative=False)
    if sigma.ndim != 1 or not sigma.size:
        raise ValueError(f"values must be a vector that is not empty; got shape {sigma.shape}.")
    if rank is not None and not 1 <= rank <= len(sigma):
        raise ValueError(f"rank must be from 1 to {len(sigma)}, the number of values; got {rank}.")
    drawn, axes = axes_or_new(ax, 5.0, 3.2)
    places = np.arange(1, len(sigma) + 1)
    inside = places <= (len(sigma) if rank is None else rank)
    for chosen, color in ((inside & (sigma > 0), ACCENT), (~inside & (sigma > 0), GRAY)):
        if chosen.any():
            axes.plot(places[chosen], sigma[chosen], color=color, marker="o", markersize=4, lw=1.2)
    if (sigma > 0).any():
        logarithmic(axes)
    if rank is not None:
        _mark_rank(axes, rank, len(sigma))
    axes.set_xlim(0.5 - 0.02 * len(sigma), len(sigma) + 0.5 + 0.02 * len(sigma))
    axes.xaxis.get_major_locator().set_params(integer=True)
    label_axes(axes, "number", "singular value")
    return drawn


@complete_docstring
def convergence(history_or_completion: Any, *, ax: Any = None) -> Figure:
    """Draw change and residual of a completion against its iterations, on a logarithmic scale.

    Parameters
    ----------
    history_or_completion : Completion, list of CompletionState, or dict of name to one of these
        What to draw; a dict gives a color to every name.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    TypeError
        If the argument is of another kind.

    Notes
    -----
    The change (solid) is the length of an iteration's change relative to the iterate; the residual
    (dashed) the length of the error at observed entries relative to the data.  Values of 0 have no
    place on the scale; fits with `gamma_min` record no change.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> M = np.outer(np.arange(1.0, 9.0), np.arange(1.0, 7.0))
    >>> M[::3, ::2] = np.nan
    >>> drawn = plotting.convergence(sf.complete(M, n_components=1, random_state=0))
    >>> drawn.axes[0].get_xlabel()
    'iteration'
    """
    named = read_named(history_or_completion, _history)
    if not any(named.values()):
        raise ValueError("There is no history to draw.")
    drawn, axes = axes_or_new(ax, 6.0, 3.4)
    for number, (name, states) in enumerate(named.items()):
        color = COLORS[number % len(COLORS)]
        _curves(axes, states, f"{name}: " if name else "", color)
    if axes.lines:
        logarithmic(axes)
        axes.legend(framealpha=0.85, edgecolor="none", fontsize=9, labelcolor=INK)
    label_axes(axes, "iteration", "relative length")
    return drawn


def _mark_rank(axes: Any, rank: int, count: int) -> None:
    axes.axvline(rank + 0.5, color=GRAY, linestyle="--", linewidth=1)
    write_beside(axes, f"rank {rank}", rank + 0.5, left=rank > count / 2)  # the text stays inside


def _history(value: Any) -> list[Any]:
    states = getattr(value, "history", value)
    wanted = ("iteration", "change", "residual")
    if not isinstance(states, Sequence) or not all(
        hasattr(state, name) for state in states for name in wanted
    ):
        raise TypeError(
            "expected a Completion, its history, or a dict of name to one of these; got "
            f"{type(value).__name__}."
        )
    return list(states)


def _curves(axes: Any, states: list[Any], prefix: str, color: str) -> None:
    for name, style in (("change", "-"), ("residual", "--")):
        points = [(state.iteration, getattr(state, name)) for state in states]
        points = [(iteration, value) for iteration, value in points if value > 0]
        if points:
            label = prefix + {"change": "change", "residual": "residual at observed entries"}[name]
            axes.plot(*zip(*points, strict=True), style, color=color, lw=1.6, label=label)
