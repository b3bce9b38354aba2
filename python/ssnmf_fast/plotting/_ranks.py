"""Scores of models of several ranks, and which rank was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._style import (
    ACCENT,
    FRAME,
    GRAY,
    add_title,
    axes_or_new,
    complete_docstring,
    label_axes,
    logarithmic,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FAR = 10  # a factor between scores, from which on the scale is logarithmic
_WANTED = ("rank", "ranks", "scores", "means", "standard_errors", "label")


@complete_docstring
def rank_curve(choice: Any, *, title: str | None = None, ax: Any = None) -> Figure:
    """Draw the scores of :func:`~ssnmf_fast.choose_rank` against the ranks.

    Parameters
    ----------
    choice : RankChoice
        What to draw.

    Raises
    ------
    TypeError
        If `choice` is of another kind.

    Notes
    -----
    The line joins the means, with one standard error above and below where there is one; gray
    points are single splits, or starts.  The dashed line is at the chosen rank.  The scale is
    logarithmic if scores are above 0 and span a factor of more than 10.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.random.default_rng(0).random((30, 20))
    >>> choice = sf.choose_rank(X, [1, 2, 3], n_starts=1, random_state=0)
    >>> plotting.rank_curve(choice).axes[0].get_xlabel()
    'components'
    """
    if not all(hasattr(choice, name) for name in _WANTED):
        raise TypeError(f"choice must be a RankChoice; got {type(choice).__name__}.")
    drawn, axes = axes_or_new(ax, 6.0, 3.4)
    ranks = np.asarray(choice.ranks)
    axes.plot(ranks, choice.scores, "o", color=FRAME, markersize=3)
    errors = np.nan_to_num(choice.standard_errors)
    axes.errorbar(
        ranks, choice.means, errors, color=ACCENT, marker="o", markersize=4, lw=1.6, capsize=2
    )
    low, high = np.nanmin(choice.scores), np.nanmax(choice.scores)
    if low > 0 and high > _FAR * low:
        logarithmic(axes)
    axes.axvline(choice.rank, color=GRAY, linestyle="--", linewidth=1)
    left = choice.rank > (ranks[0] + ranks[-1]) / 2
    write_beside(axes, f"rank {choice.rank}", choice.rank, left=bool(left))
    axes.xaxis.get_major_locator().set_params(integer=True)
    label_axes(axes, "components", choice.label)
    add_title(axes, title)
    return drawn
