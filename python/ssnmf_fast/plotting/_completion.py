"""Pictures of completions: recovery maps, singular values and convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._data.arrays import unmask
from ._checks import check_finite, read_named
from ._maps import draw_map, edges
from ._style import (
    ACCENT,
    COLORS,
    GRAY,
    INK,
    add_title,
    axes_or_new,
    label_axes,
    logarithmic,
    name_axes,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["convergence", "recovery_grid", "singular_values"]

_KINDS = ("error", "ratio", "binned")
_MOST_TICKS = 10  # of an axis, at each rate


def recovery_grid(
    values: npt.ArrayLike,
    zero_rates: npt.ArrayLike,
    nonzero_rates: npt.ArrayLike,
    *,
    kind: Literal["error", "ratio", "binned"] = "error",
    title: str | None = None,
    limits: tuple[float, float] | None = None,
    ax: Any = None,
) -> Figure:
    """Draw errors of completions, or ratios of errors, for all pairs of sampling rates.

    The maps of [1]_, figures 2.1 to 2.7: problems above the gray diagonal are structured, that is,
    zeros are missing more often than nonzeros.

    Parameters
    ----------
    values : array_like, shape (n_nonzero_rates, n_zero_rates)
        Errors or ratios, at least 0; NaN where there is none (light gray).
    zero_rates, nonzero_rates : array_like, 0 to 1, ascending
        Shares of the zeros and of the nonzeros that are observed: places of the columns and of the
        rows of `values`, centers of the cells.
    kind : {"error", "ratio", "binned"}
        "error": logarithmic colors.  "ratio": logarithmic colors centered at 1, blue below.
        "binned": white below 1, black from 1 on.
    title : str, optional
        Text above the map.
    limits : (float, float), optional
        Ends of the colors, for maps that are to be compared; by default those of the values.  For
        ratios the wider side counts for both.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of `ax`, if it is given.

    Raises
    ------
    ValueError
        For arrays whose shapes or values do not fit, or an unknown kind.
    MissingPackageError
        If matplotlib is not installed.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, Colorado State University, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from ssnmf_fast import plotting
    >>> rates = np.linspace(0.1, 0.9, 9)
    >>> errors = 10 ** (-8 * np.outer(rates, rates))
    >>> drawn = plotting.recovery_grid(errors, rates, rates, title="sIRLS")
    >>> drawn.axes[0].get_title()
    'sIRLS'
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}; got {kind!r}.")
    zeros, nonzeros = _rates(zero_rates, "zero_rates"), _rates(nonzero_rates, "nonzero_rates")
    grid = np.asarray(unmask(values, "values", allow_nan=True), dtype=np.float64)
    if grid.shape != (len(nonzeros), len(zeros)):
        raise ValueError(
            f"values has shape {grid.shape}; expected {(len(nonzeros), len(zeros))}, a row for "
            "each of nonzero_rates and a column for each of zero_rates."
        )
    if (grid < 0).any():
        raise ValueError("values must be at least 0.")
    borders = edges(zeros), edges(nonzeros)
    high, wide = (float(side[-1] - side[0]) for side in reversed(borders))
    drawn, axes = axes_or_new(ax, 4.8, 0.8 + 3.2 * min(max(high / wide, 0.6), 2.0))
    draw_map(axes, grid, borders, kind, limits)
    for axis, rates in ((axes.xaxis, zeros), (axes.yaxis, nonzeros)):
        if len(rates) <= _MOST_TICKS:
            axis.set_ticks(rates, [f"{rate:.3g}" for rate in rates])
    name_axes(axes, "sampling rate of zeros", "sampling rate of nonzeros")
    add_title(axes, title)
    return drawn


def singular_values(values: npt.ArrayLike, *, rank: int | None = None, ax: Any = None) -> Figure:
    """Draw how fast singular values fall, on a logarithmic scale.

    Parameters
    ----------
    values : array_like, shape (k,)
        Singular values, largest first, such as the `singular_values` of a
        :class:`~ssnmf_fast.Completion`; zeros are left out.
    rank : int, 1 to k, optional
        Marked by a line behind the value of this number; the others are gray.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of `ax`, if it is given.

    Raises
    ------
    ValueError
        If `values` is not a vector of finite numbers >= 0, or `rank` is not one of its places.
    MissingPackageError
        If matplotlib is not installed.

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


def convergence(history_or_completion: Any, *, ax: Any = None) -> Figure:
    """Draw change and residual of a completion against its iterations, on a logarithmic scale.

    Parameters
    ----------
    history_or_completion : Completion, list of CompletionState, or dict of name to one of these
        What to draw; a dict gives a color to every name.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of `ax`, if it is given.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    TypeError
        If the argument is of another kind.
    MissingPackageError
        If matplotlib is not installed.

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
    >>> drawn = plotting.convergence(sf.complete(M, rank=1, random_state=0))
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


def _rates(values: Any, name: str) -> Array:
    rates = np.asarray(values, dtype=np.float64)
    if rates.ndim != 1 or not rates.size:
        raise ValueError(f"{name} must be a vector that is not empty; got shape {rates.shape}.")
    if not ((rates >= 0) & (rates <= 1)).all() or (np.diff(rates) <= 0).any():
        raise ValueError(f"{name} must be from 0 to 1 and ascending.")
    return rates


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
