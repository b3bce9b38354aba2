"""Curves of fits, singular values and ranks, and what many starts agree on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from ._style import (
    ACCENT,
    COLORS,
    FRAME,
    GRAY,
    INK,
    add_legend,
    add_title,
    axes_or_new,
    blues,
    check_finite,
    complete_docstring,
    count_along,
    curve_look,
    figure,
    label_axes,
    logarithmic,
    name_axes,
    plain,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAR = 4  # ranges of the later values, beyond which a first value is left outside
_FEW = 30  # points of a curve that are marked


@complete_docstring
def objective_curve(
    fits: Any, *, label: str = "objective", title: str | None = None, ax: Axes | None = None
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
    named = fits if isinstance(fits, Mapping) else {"": fits}
    curves = {str(name): _pairs(fit) for name, fit in named.items()}
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
    count_along(axes.xaxis)
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


def _fit_values(axes: Axes, curves: list[Array]) -> None:
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
    # The first values outside are named, to the right of where the curves come in.
    enters = max(float(pairs[min(1, len(pairs) - 1), 0]) for pairs in curves)
    left = enters > float(np.mean(axes.get_xlim()))
    start = f"{curves[0][0, 1]:.4g} at iteration {curves[0][0, 0]:g}"
    text = start if len(curves) == 1 else "starts are outside"
    for top in (True, False):
        if above if top else below:
            write_beside(axes, text, enters, left=left, top=top, color=GRAY)


@complete_docstring
def singular_values(
    values: npt.ArrayLike, *, rank: int | None = None, ax: Axes | None = None
) -> Figure:
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
        axes.axvline(rank + 0.5, color=GRAY, linestyle="--", linewidth=1)
        write_beside(axes, f"rank {rank}", rank + 0.5, left=rank > len(sigma) / 2)
    axes.set_xlim(0.5 - 0.02 * len(sigma), len(sigma) + 0.5 + 0.02 * len(sigma))
    count_along(axes.xaxis)
    label_axes(axes, "number", "singular value")
    return drawn


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
    if low > 0 and high > _SPAN * low:
        logarithmic(axes)
    axes.axvline(choice.rank, color=GRAY, linestyle="--", linewidth=1)
    left = choice.rank > (ranks[0] + ranks[-1]) / 2
    write_beside(axes, f"rank {choice.rank}", choice.rank, left=bool(left))
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
    The bars beside it show the clusters; below the key stands how dense the spectra are, and which
    of them were dropped.

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
    _draw_stability(panels["stability"], np.nan_to_num(consensus.stability))
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
        If one is not a :class:`ssnmf_fast.results.Consensus`.
    ValueError
        If there is none.

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


def _draw_stability(axes: Axes, values: Array) -> None:
    """Draw the stability of every component."""
    numbers = np.arange(len(values))
    axes.barh(numbers, values, color=[COLORS[k % len(COLORS)] for k in numbers], alpha=0.75)
    axes.set_ylim(len(values) - 0.5, -0.5)
    count_along(axes.yaxis)
    axes.set_xlim(min(0.0, float(values.min())), 1)
    label_axes(axes, "stability", "component")


def _draw_distances(axes: Axes, consensus: ConsensusLike) -> None:
    """Draw the distances to the nearest neighbors, and from where on spectra were dropped."""
    distances = consensus.neighbor_distances
    axes.hist(distances[np.isfinite(distances)], bins=40, color=ACCENT)
    limit, last = consensus.distance_threshold, axes.get_xlim()[1]
    if limit <= max(last, 1.0):
        axes.axvline(limit, color=GRAY, linestyle="--", linewidth=1)
        write_beside(axes, "dropped beyond", limit, left=limit > last / 2)
    name = plain(f"mean distance to the nearest ({1 - consensus.kept:.0%} dropped)", 60)
    label_axes(axes, name, "spectra")


def _check(consensus: Any, name: str = "consensus") -> None:
    if not all(hasattr(consensus, part) for part in ("spectra", "clusters", "assignments")):
        raise TypeError(
            f"{name} must be a Consensus, as sf.consensus returns; got {type(consensus).__name__}."
        )
