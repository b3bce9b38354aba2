"""Scores of models of several ranks, and what many starts agree on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._common.arrays import Array
from ._style import (
    ACCENT,
    COLORS,
    FRAME,
    GRAY,
    INK,
    add_title,
    axes_or_new,
    blues,
    complete_docstring,
    count_along,
    figure,
    label_axes,
    logarithmic,
    name_axes,
    plain,
    write_next_to,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SPAN = 10  # a factor between scores, from which on the scale is logarithmic
_WANTED = ("rank", "ranks", "scores", "means", "standard_errors", "label")


@complete_docstring
def rank_curve(choice: Any, *, title: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the scores of :func:`~ssnmf_fast.choose_rank` against the ranks.

    Parameters
    ----------
    choice : RankChoice
        What to draw.

    Raises
    ------
    TypeError
        If `choice` is not a :class:`ssnmf_fast.results.RankChoice`.

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
    if low > 0 and high > _SPAN * low:
        logarithmic(axes)
    axes.axvline(choice.rank, color=GRAY, linestyle="--", linewidth=1)
    left = choice.rank > (ranks[0] + ranks[-1]) / 2
    write_next_to(axes, f"rank {choice.rank}", choice.rank, left=bool(left))
    count_along(axes.xaxis)
    label_axes(axes, "components", choice.label)
    add_title(axes, title)
    return drawn


class ConsensusLike(Protocol):
    """What is drawn of a :class:`ssnmf_fast.results.Consensus`."""

    @property
    def components(self) -> Array: ...
    @property
    def stability(self) -> Array: ...
    @property
    def spectra(self) -> Array: ...
    @property
    def clusters(self) -> Array: ...
    @property
    def neighbor_distances(self) -> Array: ...
    @property
    def distance_threshold(self) -> float: ...
    @property
    def silhouette(self) -> float: ...
    @property
    def cophenetic(self) -> float: ...
    @property
    def error(self) -> float: ...
    @property
    def kept(self) -> float: ...

    def consensus_matrix(self) -> Array: ...


_MOST = 2000  # spectra whose distances are drawn


@complete_docstring
def clustergram(consensus: ConsensusLike, *, title: str | None = None) -> Figure:
    """Draw the distances between the components that were kept, by cluster, and their densities.

    The picture of cNMF: dark squares along the diagonal are components that the starts agree on.
    Bars on the left show the clusters, those on the right the stability of the components, above a
    histogram of the distances by which spectra were dropped.

    Parameters
    ----------
    consensus : Consensus
        As from :func:`ssnmf_fast.consensus`.

    Raises
    ------
    TypeError
        If `consensus` is not a :class:`ssnmf_fast.results.Consensus`.

    Notes
    -----
    Within a cluster, spectra stand in the order of a tree of their distances (average linkage).  Of
    more than 2,000 spectra as many are drawn, evenly chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.random.default_rng(0).poisson(1.0, (50, 20))
    >>> found = sf.consensus(X, 2, n_starts=10, distance_threshold=2, random_state=0)
    >>> drawn = plotting.clustergram(found)
    >>> len(drawn.axes)
    4
    """
    _check(consensus)
    spectra, clusters = _in_order(consensus)
    distances = np.sqrt(np.maximum(2 - 2 * spectra @ spectra.T, 0))
    drawn = figure(9.0, 6.0)
    panels = drawn.subplot_mosaic(
        [["clusters", "distances", "stability"], ["clusters", "distances", "density"]],
        width_ratios=(0.35, 9, 5),
        height_ratios=(2, 1),
    )
    middle = panels["distances"]
    lengths = np.unique(clusters, return_counts=True)[1]
    borders = np.cumsum(lengths)
    middle.imshow(
        distances, cmap=blues().reversed(), vmin=0, vmax=np.sqrt(2), aspect="auto", rasterized=True
    )
    for border in borders[:-1]:
        for line in (middle.axhline, middle.axvline):
            line(border - 0.5, color=FRAME, linewidth=0.5)
    middle.set_xticks([])
    middle.set_yticks([])
    _draw_clusters(panels["clusters"], np.unique(clusters), lengths)
    stability, bars = np.nan_to_num(consensus.stability), panels["stability"]
    colors = [COLORS[k % len(COLORS)] for k in range(len(stability))]
    bars.barh(np.arange(len(stability)), stability, color=colors, alpha=0.75)
    bars.set_ylim(len(stability) - 0.5, -0.5)
    count_along(bars.yaxis)
    bars.set_xlim(min(0.0, float(stability.min())), 1)
    label_axes(bars, "stability", "component")
    _draw_distances(panels["density"], consensus)
    add_title(middle, "distances between the components that were kept" if title is None else title)
    return drawn


@complete_docstring
def consensus_matrix(
    consensus: ConsensusLike, *, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw in which share of the starts two samples have the same main component.

    The picture of [1]_: with components that the starts agree on, it is made of dark blocks, and
    white elsewhere.

    Parameters
    ----------
    consensus : Consensus
        As from :func:`ssnmf_fast.consensus`.

    Raises
    ------
    TypeError
        If `consensus` is not a :class:`ssnmf_fast.results.Consensus`.

    Notes
    -----
    The samples are those of `consensus.samples`, in the order of a tree (average linkage).

    References
    ----------
    .. [1] J.-P. Brunet, P. Tamayo, T. R. Golub, J. P. Mesirov, "Metagenes and molecular pattern
       discovery using matrix factorization", PNAS, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.random.default_rng(0).poisson(1.0, (50, 20))
    >>> found = sf.consensus(X, 2, n_starts=10, distance_threshold=2, random_state=0)
    >>> plotting.consensus_matrix(found).axes[0].get_xlabel()
    'sample'
    """
    _check(consensus)
    together = consensus.consensus_matrix()
    order = _leaves(1 - together)
    drawn, axes = axes_or_new(ax, 6.4, 5.6)
    cells = axes.imshow(
        together[np.ix_(order, order)], cmap=blues(), vmin=0, vmax=1, rasterized=True
    )
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(FRAME)
    name_axes(axes, "sample", "sample")
    bar = drawn.colorbar(cells, ax=axes, shrink=0.5, format="{x:.0%}")
    bar.set_label("starts in which two samples\nhave the same component", color=INK)
    bar.outline.set_edgecolor(FRAME)
    text = f"cophenetic correlation {consensus.cophenetic:.3f}" if title is None else title
    add_title(axes, text)
    return drawn


@complete_docstring
def stability_by_rank(
    consensuses: Iterable[ConsensusLike], *, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw stability and error against the number of components, of a consensus for each.

    The picture by which users of cNMF choose a rank: large ones that are still stable.  Stability
    is `silhouette`, of all spectra.

    Parameters
    ----------
    consensuses : sequence of Consensus
        One for each rank, of the same data.

    Raises
    ------
    TypeError
        If an element is not a :class:`ssnmf_fast.results.Consensus`.
    ValueError
        If `consensuses` is empty.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import plotting
    >>> X = np.random.default_rng(0).poisson(1.0, (50, 20))
    >>> given = {"n_starts": 5, "distance_threshold": 2, "random_state": 0}
    >>> drawn = plotting.stability_by_rank([sf.consensus(X, rank, **given) for rank in (2, 3, 4)])
    >>> [axes.get_ylabel() for axes in drawn.axes]
    ['stability', 'error']
    """
    every = list(consensuses) if isinstance(consensuses, Iterable) else [consensuses]
    for one in every:
        _check(one, "consensuses")
    if not every:
        raise ValueError("consensuses is empty; there is nothing to draw.")
    every.sort(key=lambda one: len(one.components))
    ranks = [len(one.components) for one in every]
    drawn, axes = axes_or_new(ax, 5.6, 3.6)
    other = axes.twinx()
    parts = [(axes, "stability", "silhouette", "o-"), (other, "error", "error", "s--")]
    for (place, label, name, style), color in zip(parts, COLORS, strict=False):
        values = [getattr(one, name) for one in every]
        place.plot(ranks, values, style, color=color, markersize=4, linewidth=1.6)
        label_axes(place, "components", label)
        place.yaxis.label.set_color(color)
        place.tick_params(axis="y", colors=color)
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    count_along(axes.xaxis)
    add_title(axes, title)
    return drawn


def _in_order(consensus: ConsensusLike) -> tuple[Array, Array]:
    """Return spectra that were kept, by cluster and then by likeness, and their clusters."""
    chosen = np.flatnonzero(consensus.clusters >= 0)
    if len(chosen) > _MOST:
        chosen = chosen[np.linspace(0, len(chosen) - 1, _MOST).astype(int)]
    spectra = np.asarray(consensus.spectra[chosen], dtype=np.float64)
    clusters, order = consensus.clusters[chosen], []
    for number in np.unique(clusters):
        members = np.flatnonzero(clusters == number)
        part = spectra[members]
        order.append(members[_leaves(np.sqrt(np.maximum(2 - 2 * part @ part.T, 0)))])
    places = np.concatenate(order)
    return spectra[places], clusters[places]


def _leaves(distances: Array) -> Array:
    """Return an order in which rows that are near are neighbors."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 3:
        return np.arange(len(distances))
    near = squareform((distances + distances.T) / 2, checks=False)
    return np.asarray(leaves_list(linkage(near, "average")))


def _draw_clusters(axes: Axes, numbers: Array, lengths: Array) -> None:
    """Draw a bar of colors with the numbers of the clusters."""
    bottom = 0
    for number, length in zip(numbers.tolist(), lengths.tolist(), strict=True):
        axes.bar(0, length, 1, bottom, color=COLORS[number % len(COLORS)], alpha=0.75)
        if length / lengths.sum() > 0.02:
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": "white"}
            axes.text(0, bottom + length / 2, str(number), **look)
        bottom += length
    axes.set_ylim(bottom, 0)
    axes.set_xlim(-0.5, 0.5)
    axes.set_axis_off()


def _draw_distances(axes: Axes, consensus: ConsensusLike) -> None:
    """Draw the distances to the nearest neighbors, and from where on spectra were dropped."""
    distances = consensus.neighbor_distances
    axes.hist(distances[np.isfinite(distances)], bins=40, color=ACCENT)
    limit, last = consensus.distance_threshold, axes.get_xlim()[1]
    if limit <= max(last, 1.0):
        axes.axvline(limit, color=GRAY, linestyle="--", linewidth=1)
        write_next_to(axes, "dropped beyond", limit, left=limit > last / 2)
    name = plain(f"mean distance to the nearest ({1 - consensus.kept:.0%} dropped)", 60)
    label_axes(axes, name, "spectra")


def _check(consensus: object, name: str = "consensus") -> None:
    if not all(hasattr(consensus, part) for part in ("spectra", "clusters", "assignments")):
        raise TypeError(
            f"{name} must be a Consensus, as sf.consensus returns; got {type(consensus).__name__}."
        )
