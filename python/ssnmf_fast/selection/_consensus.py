"""Function :func:`consensus`: many starts of a factorization, and what they agree on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples
from sklearn.metrics.pairwise import euclidean_distances

from .._common.arrays import Array, LossName, Seed
from .._common.warn import warn_user
from .._data.arrays import DataLike
from .._data.border import CleanMatrix, check_data, check_observers
from .._data.threads import limited_openmp, resolve_threads
from .._linalg.operators import unit_rows
from .._models.many_starts import fit_starts
from .._models.represent import objective, represent
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from .._solver.weights import WeightsLike
from .._topics import divide_by_sums
from ._consensus_result import DROPPED, Consensus, regression_scores, shares_together
from ._starts import Fits, KeptStarts, Recipe, Start, start_of

_N_INIT = 10  # of k-means, as in cNMF
_DIGITS = 6  # to which spectra are compared


def consensus(
    X: DataLike,
    n_components: int,
    *,
    n_starts: int = 100,
    loss: LossName | float = "frobenius",
    distance_threshold: float = 0.5,
    neighborhood_fraction: float = 0.3,
    X_weights: WeightsLike = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    init: Literal["random", "least-squares", "random-acol"] = "random",
    folder: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    random_state: Seed = None,
    verbose: int = 0,
) -> Consensus:
    """Factorize X from many random starts, and return the components that they agree on.

    The method of cNMF [1]_: components of all starts are scaled to length 1; those far from their
    nearest neighbors are dropped; the others are clustered by k-means, and the medians of the
    clusters are the components; usages of samples are fitted to these.

    Parameters
    ----------
    X : array_like, scipy.sparse or CsrFile, shape (n, m)
        Samples by features, nonnegative, as :func:`factorize` takes it.
    n_components : int
        Rank r, at least 1.
    n_starts : int
        Number of starts, at least 1.  With the same `random_state`, more starts begin with the same
        ones.
    loss, X_weights, max_iter, tol
        As in :func:`factorize`.
    distance_threshold : float
        Drop components whose mean distance to their nearest neighbors reaches this; 2 drops none.
    neighborhood_fraction : float, above 0, at most 1
        Number of these neighbors, as a share of `n_starts`.  If it is below one, no component is
        dropped.
    init : {"random", "least-squares", "random-acol"}
        Starts, as in :func:`factorize`.
    folder : path, optional
        Folder for the results of all starts: an interrupted call continues from there, with the
        same result.  It may hold several ranks, for the same data in the same form (dense, sparse
        or on disk), settings and level of the kernels.
    n_jobs : int, optional
        How many starts are fitted at a time; None takes as many as there are threads.
    n_threads : int, optional
        Number of threads of all of them together.  Neither changes the result.
    random_state : None, int, Generator or RandomState
        Seed of the starts and of k-means.
    verbose : int
        1 shows progress on standard error.

    Returns
    -------
    Consensus

    Raises
    ------
    ValueError, TypeError
        For bad input; if too few components have close neighbors; if `folder` has starts of other
        data or settings, or files that were changed.

    Warns
    -----
    UserWarning
        If all starts together have fewer different components than `n_components`.

    References
    ----------
    .. [1] D. Kotliar et al., "Identifying gene expression programs of cell-type identity and
       cellular activity with single-cell RNA-Seq", eLife, 2019.
    .. [2] J.-P. Brunet, P. Tamayo, T. R. Golub, J. P. Mesirov, "Metagenes and molecular pattern
       discovery using matrix factorization", PNAS, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(5 * rng.dirichlet([0.3] * 4, 60) @ rng.gamma(0.5, size=(4, 30)))
    >>> found = sf.consensus(X, 4, n_starts=10, random_state=0)
    >>> found.components.shape, found.usage.shape, found.stability.shape
    ((4, 30), (60, 4), (4,))
    """
    fitting = {"loss": loss, "X_weights": X_weights, "max_iter": max_iter, "tol": tol}
    given = n_components, n_starts, distance_threshold, neighborhood_fraction, init, random_state
    recipe = Recipe.checked(*given, fitting)
    threads: dict[str, Any] = {"n_jobs": n_jobs, "n_threads": n_threads}

    def fits(
        X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, samples: Array
    ) -> Iterator[Start]:
        found = fit_starts(X, seeds, **threads, **recipe.fitting)
        return (start_of(fit, samples) for fit in found)

    return agreement(X, recipe, fits, folder, n_threads, verbose)


def agreement(
    X: DataLike,
    recipe: Recipe,
    fits: Fits,
    folder: str | PathLike[str] | None,
    n_threads: int | None,
    verbose: int,
) -> Consensus:
    """Return the consensus of starts that `fits` fits."""
    check_observers(None, verbose)
    clean = CleanMatrix(check_data(X, resolve_threads(n_threads)))
    of_clusters, samples, seeds = recipe.draw(clean.matrix.shape[0])
    found = fits if folder is None else KeptStarts(folder, fits)
    starts = _shown(found(clean, seeds, recipe, samples), recipe.n_starts, verbose)
    spectra = unit_rows(np.concatenate([start.components for start in starts]))
    with limited_openmp(1):
        distances, clusters, silhouette = _clustered(spectra, recipe, of_clusters)
        kept = distances < recipe.distance_threshold
        components = _medians(spectra[kept], clusters.labels)
    assignments = np.array([start.assignments for start in starts])
    dtype = clean.matrix.dtype
    weighting = {"X_weights": recipe.fitting["X_weights"], "n_threads": n_threads}
    given = {"loss": recipe.fitting["loss"], **weighting}
    usage = represent(clean, components.astype(dtype), **given)
    order = np.argsort(-divide_by_sums(usage).sum(axis=0), kind="stable")
    usage = np.ascontiguousarray(usage[:, order])
    components = components[order].astype(dtype)
    labels = np.full(len(spectra), DROPPED)
    labels[kept] = np.argsort(order)[clusters.labels]
    members = [clusters.silhouettes[clusters.labels == label] for label in order]
    return Consensus(
        components=components,
        usage=usage,
        stability=np.array([each.mean() for each in members]),
        spectra=spectra.astype(dtype),
        clusters=labels,
        neighbor_distances=distances,
        scores=regression_scores(clean.matrix, usage),
        silhouette=silhouette,
        cophenetic=_cophenetic_correlation(assignments),
        error=objective(clean, usage, components, **weighting),
        samples=samples,
        assignments=assignments,
        n_starts=recipe.n_starts,
        loss=recipe.fitting["loss"],
        distance_threshold=recipe.distance_threshold,
    )


def _shown(starts: Iterator[Start], count: int, verbose: int) -> list[Start]:
    """Return all starts, with progress where it is asked for."""
    found = []
    with verbose_progress(verbose, count, "consensus", unit="start") as bar:
        for start in starts:
            found.append(start)
            if bar is not None:
                bar(FitState(len(found), start.objective))
    return found


def _clustered(spectra: Array, recipe: Recipe, seed: int) -> tuple[Array, Clusters, float]:
    """Return neighbor distances, clusters of the kept spectra, and the silhouette of all."""
    rank = recipe.fitting["n_components"]
    distances = distances_between(spectra)
    n_nearest = min(int(recipe.neighborhood_fraction * recipe.n_starts), len(spectra) - 1)
    found = np.asarray(spectra.any(axis=1))  # a start may leave components at zero
    nearness = np.where(found, _neighbor_distances(distances, n_nearest), np.inf)
    kept = np.asarray(nearness < recipe.distance_threshold)
    if kept.sum() < rank:
        raise ValueError(
            f"Only {kept.sum()} of {len(spectra)} components have a mean distance to their "
            f"{n_nearest} nearest neighbors below distance_threshold="
            f"{recipe.distance_threshold:g}, fewer than n_components={rank}: the starts do not "
            f"agree. The smallest is {nearness.min():.3g}. Raise distance_threshold (2 drops "
            "none), give fewer n_components, or a smaller tol."
        )

    def clustered(chosen: Array) -> Clusters:
        return clusters_of(spectra[chosen], distances[np.ix_(chosen, chosen)], rank, seed)

    every = clustered(found)
    clusters = every if kept.sum() == found.sum() else clustered(kept)
    if (count := clusters.labels.max() + 1) < rank:
        warn_user(
            f"All starts have only {count} different components, fewer than n_components={rank}: "
            f"the consensus has {count}. Give fewer n_components.",
            UserWarning,
        )
    return nearness, clusters, float(every.silhouettes.mean())


class Clusters(NamedTuple):
    """Clusters of spectra, by number, and the silhouette of each spectrum; both (p,)."""

    labels: Array
    silhouettes: Array


def distances_between(spectra: Array) -> Array:
    """Return the Euclidean distances between all spectra, (p, p)."""
    return np.asarray(euclidean_distances(spectra))


def _neighbor_distances(distances: Array, n_nearest: int) -> Array:
    """Return the mean distance of each spectrum to its nearest neighbors, (p,); 0 without any."""
    if n_nearest < 1:
        return np.zeros(len(distances))
    nearest = np.partition(distances, n_nearest, axis=1)[:, : n_nearest + 1]  # with itself
    return np.asarray(nearest.sum(axis=1) / n_nearest)


def clusters_of(spectra: Array, distances: Array, count: int, seed: int) -> Clusters:
    """Cluster spectra by k-means, at most into as many clusters as there are different spectra.

    One cluster, and clusters of one spectrum each, have no silhouette: it is NaN.
    """
    different = len({row.tobytes() for row in spectra.round(_DIGITS)})
    k_means = KMeans(min(count, different), n_init=_N_INIT, random_state=seed)
    labels = k_means.fit(spectra).labels_
    if 1 < k_means.n_clusters < len(spectra):
        silhouettes = silhouette_samples(distances, labels, metric="precomputed")
    else:
        silhouettes = np.full(len(spectra), np.nan)
    return Clusters(labels, silhouettes)


def _medians(spectra: Array, labels: Array) -> Array:
    """Return the medians of clusters, or their means where the median is 0; each sums to 1."""
    rows = []
    for label in range(labels.max() + 1):
        members = spectra[labels == label]
        median = np.median(members, axis=0)
        rows.append(median if median.any() else members.mean(axis=0))
    return divide_by_sums(np.array(rows))


def _cophenetic_correlation(assignments: Array) -> float:
    """Return the cophenetic correlation of the consensus matrix (Brunet 2004); NaN if constant."""
    apart = squareform(1 - shares_together(assignments), checks=False)
    if not apart.size or np.ptp(apart) == 0:
        return float("nan")
    correlation: Any = cophenet(linkage(apart, "average"), apart)
    return float(correlation[0])
