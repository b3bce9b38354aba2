"""Pictures of rank choices and of consensus results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import Array
from . import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SPAN = 10  # factor between scores above which the scale is logarithmic
_WANTED = ("rank", "ranks", "scores", "means", "standard_errors", "label")


@style.complete_docstring
def rank_curve(choice: Any, *, title: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the scores of :func:`~ssnmf_fast.choose_rank` against the ranks.

    Parameters
    ----------
    choice : RankChoice
        Result of :func:`~ssnmf_fast.choose_rank`.

    Notes
    -----
    The line joins the means, with bars of one standard error if it is known; gray points are single
    splits, or starts.  The dashed line is at the chosen rank; for "words", the range `low` to
    `high` is shaded.  The scale is logarithmic if scores are positive and span a factor of more
    than 10.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((30, 20))
    >>> choice = sf.choose_rank(X, [1, 2, 3], n_starts=1, random_state=0)
    >>> sf.plotting.rank_curve(choice).axes[0].get_xlabel()
    'components'
    """
    if not all(hasattr(choice, name) for name in _WANTED):
        raise TypeError(f"choice must be a RankChoice; got {type(choice).__name__}.")
    figure, axes = style.axes_or_new(ax, 6.0, 3.4, title)
    ranks = np.asarray(choice.ranks)
    axes.plot(ranks, choice.scores, "o", color=style.FRAME, markersize=3)
    errors = np.nan_to_num(choice.standard_errors)
    axes.errorbar(
        ranks, choice.means, errors, color=style.ACCENT, marker="o", markersize=4, lw=1.6, capsize=2
    )
    low, high = np.nanmin(choice.scores), np.nanmax(choice.scores)
    if low > 0 and high > _SPAN * low:
        style.logarithmic(axes)
    if getattr(choice, "criterion", "") == "words":
        axes.axvspan(choice.low, choice.high, color=style.ACCENT, alpha=0.12, linewidth=0)
    axes.axvline(choice.rank, color=style.GRAY, linestyle="--", linewidth=1)
    left = choice.rank > (ranks[0] + ranks[-1]) / 2
    top = style.is_low(axes, choice.means[choice.ranks.index(choice.rank)])  # not on the curve
    style.write_next_to(axes, f"rank {choice.rank}", choice.rank, left=bool(left), top=top)
    style.count_along(axes.xaxis)
    style.label_axes(axes, "components", choice.label)
    return figure


_MOST = 2000  # spectra whose distances are drawn


@style.complete_docstring
def clustergram(consensus: Any, *, title: str | None = None) -> Figure:
    """Draw the distances between the components that were kept, by cluster.

    The picture of cNMF: dark squares along the diagonal are components that the starts agree on.
    Bars on the left show the clusters, bars on the right the stability of the components, above a
    histogram of the distances by which spectra were dropped.

    Notes
    -----
    Within a cluster, spectra are sorted by a tree of their distances (average linkage).  At most
    2,000 spectra are drawn, evenly chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).poisson(1.0, (50, 20))
    >>> consensus = sf.consensus(X, 2, n_starts=10, distance_threshold=2,
    ...                          random_state=0)
    >>> figure = sf.plotting.clustergram(consensus)
    >>> len(figure.axes)
    4
    """
    _check(consensus)
    spectra, clusters = _in_order(consensus)
    figure = style.figure(9.0, 6.0)
    panels = figure.subplot_mosaic(
        [["clusters", "distances", "stability"], ["clusters", "distances", "density"]],
        width_ratios=(0.35, 9, 5),
        height_ratios=(2, 1),
    )
    side, middle, bars, density = panels.values()
    look: dict[str, Any] = {"cmap": style.blues().reversed(), "vmin": 0, "vmax": np.sqrt(2)}
    middle.imshow(_distances(spectra), aspect="auto", rasterized=True, **look)
    numbers, lengths = np.unique(clusters, return_counts=True)
    ends = np.cumsum(lengths)
    for border in ends[:-1]:
        for line in (middle.axhline, middle.axvline):
            line(border - 0.5, color=style.FRAME, linewidth=0.5)
    middle.set(xticks=[], yticks=[])
    text = "distances between the components that were kept" if title is None else title
    middle.set_title(text, color=style.INK, fontsize=11)
    look = {"ha": "center", "va": "center", "fontsize": 8, "color": "white"}
    for number, length, end in zip(numbers.tolist(), lengths.tolist(), ends.tolist(), strict=True):
        color = style.COLORS[number % len(style.COLORS)]
        side.bar(0, length, 1, end - length, color=color, alpha=0.75)
        if length / len(clusters) > 0.02:
            side.text(0, end - length / 2, str(number), **look)
    side.set(xlim=(-0.5, 0.5), ylim=(len(clusters), 0))
    side.set_axis_off()
    stability = np.nan_to_num(consensus.stability)
    colors = [style.COLORS[k % len(style.COLORS)] for k in range(len(stability))]
    bars.barh(np.arange(len(stability)), stability, color=colors, alpha=0.75)
    bars.set(xlim=(min(0.0, float(stability.min())), 1), ylim=(len(stability) - 0.5, -0.5))
    style.count_along(bars.yaxis)
    style.label_axes(bars, "stability", "component")
    distances = consensus.neighbor_distances[np.isfinite(consensus.neighbor_distances)]
    limit = consensus.distance_threshold
    last = max(float(distances.max(initial=0.0)), limit if limit <= 1 else 0.0) or 1.0
    density.hist(distances, bins=40, range=(0.0, last), color=style.ACCENT)
    if limit <= last:
        density.axvline(limit, color=style.GRAY, linestyle="--", linewidth=1)
        style.write_next_to(density, "dropped beyond", limit, left=limit > last / 2)
    name = style.plain(f"mean distance to the nearest ({1 - consensus.kept:.0%} dropped)", 60)
    style.label_axes(density, name, "spectra")
    return figure


@style.complete_docstring
def consensus_matrix(consensus: Any, *, title: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the share of starts in which two samples have the same main component.

    The picture of [1]_: if the starts agree, it has dark blocks and is white elsewhere.  The
    samples, `consensus.samples`, are sorted by a tree (average linkage).

    References
    ----------
    .. [1] Brunet et al., "Metagenes and molecular pattern discovery using matrix factorization",
       PNAS, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).poisson(1.0, (50, 20))
    >>> consensus = sf.consensus(X, 2, n_starts=10, distance_threshold=2,
    ...                          random_state=0)
    >>> sf.plotting.consensus_matrix(consensus).axes[0].get_xlabel()
    'sample'
    """
    _check(consensus)
    together = consensus.consensus_matrix()
    order = _leaves(1 - together)
    text = f"cophenetic correlation {consensus.cophenetic:.3f}" if title is None else title
    figure, axes = style.axes_or_new(ax, 6.4, 5.6, text)
    look: dict[str, Any] = {"cmap": style.blues(), "vmin": 0, "vmax": 1, "rasterized": True}
    cells = axes.imshow(together[np.ix_(order, order)], **look)
    axes.set(xticks=[], yticks=[])
    style.label_axes(axes, "sample", "sample", curves=False)
    bar = figure.colorbar(cells, ax=axes, shrink=0.5, format="{x:.0%}")
    bar.set_label("starts in which two samples\nhave the same component", color=style.INK)
    for spine in (*axes.spines.values(), bar.outline):
        spine.set_edgecolor(style.FRAME)
    return figure


@style.complete_docstring
def stability_by_rank(
    consensuses: Iterable[Any], *, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw stability and error against the number of components, from a consensus for each.

    Users of cNMF choose a rank by this picture: a large one that is still stable.  Stability is the
    `silhouette` of all spectra.

    Parameters
    ----------
    consensuses : sequence of Consensus
        One for each rank, for the same data.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).poisson(1.0, (50, 20))
    >>> options = {"n_starts": 5, "distance_threshold": 2, "random_state": 0}
    >>> several = [sf.consensus(X, rank, **options) for rank in (2, 3, 4)]
    >>> figure = sf.plotting.stability_by_rank(several)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['stability', 'error']
    """
    results = list(consensuses) if isinstance(consensuses, Iterable) else [consensuses]
    for consensus in results:
        _check(consensus, "consensuses")
    if not results:
        raise ValueError("consensuses is empty; there is nothing to draw.")
    results.sort(key=lambda consensus: len(consensus.components))
    ranks = [len(consensus.components) for consensus in results]
    figure, axes = style.axes_or_new(ax, 5.6, 3.6, title)
    other = axes.twinx()
    curves = [(axes, "stability", "silhouette", "o-"), (other, "error", "error", "s--")]
    for (place, label, name, look), color in zip(curves, style.COLORS, strict=False):
        values = [getattr(consensus, name) for consensus in results]
        place.plot(ranks, values, look, color=color, markersize=4, linewidth=1.6)
        style.label_axes(place, "components", label)
        place.yaxis.label.set_color(color)
        place.tick_params(axis="y", colors=color)
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    style.count_along(axes.xaxis)
    return figure


def _in_order(consensus: Any) -> tuple[Array, Array]:
    """Return the kept spectra, sorted by cluster and similarity, and their clusters."""
    rows = np.flatnonzero(consensus.clusters >= 0)
    if len(rows) > _MOST:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST).astype(int)]
    spectra = np.asarray(consensus.spectra[rows], dtype=np.float64)
    clusters = consensus.clusters[rows]
    members = [np.flatnonzero(clusters == number) for number in np.unique(clusters)]
    places = np.concatenate([some[_leaves(_distances(spectra[some]))] for some in members])
    return spectra[places], clusters[places]


def _distances(spectra: Array) -> Array:
    """Return the distances between rows of length 1."""
    return np.asarray(np.sqrt(np.maximum(2 - 2 * spectra @ spectra.T, 0)))


def _leaves(distances: Array) -> Array:
    """Return an order that puts similar rows next to each other."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 3:
        return np.arange(len(distances))
    near = squareform((distances + distances.T) / 2, checks=False)
    return np.asarray(leaves_list(linkage(near, "average")))


def _check(consensus: object, name: str = "consensus") -> None:
    if not all(hasattr(consensus, part) for part in ("spectra", "clusters", "assignments")):
        raise TypeError(
            f"{name} must be a Consensus, as sf.consensus returns; got {type(consensus).__name__}."
        )
