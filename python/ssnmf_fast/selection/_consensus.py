"""Function :func:`consensus`: many starts of a factorization, and what they agree on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

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
from ._starts import Fits, Recipe, Start, kept_starts, start_of

Folder: TypeAlias = str | PathLike[str] | None
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
    folder: Folder = None,
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
    fitting: dict[str, Any] = {
        "loss": loss,
        "X_weights": X_weights,
        "max_iter": max_iter,
        "tol": tol,
    }
    settings = n_components, n_starts, distance_threshold, neighborhood_fraction, init, random_state
    recipe = Recipe(*settings, fitting)

    def fits(
        X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, samples: Array
    ) -> Iterator[Start]:
        found = fit_starts(X, seeds, n_jobs=n_jobs, n_threads=n_threads, **recipe.fitting)
        return (start_of(fit, samples) for fit in found)

    return agreement(X, recipe, fits, folder, n_threads, verbose)


def agreement(
    X: DataLike, recipe: Recipe, fits: Fits, folder: Folder, n_threads: int | None, verbose: int
) -> Consensus:
    """Return the consensus of starts that `fits` fits."""
    check_observers(None, verbose)
    clean = CleanMatrix(check_data(X, resolve_threads(n_threads)))
    dtype, loss = clean.matrix.dtype, recipe.fitting["loss"]
    of_clusters, samples, seeds = recipe.draw(clean.matrix.shape[0])
    fits = fits if folder is None else partial(kept_starts, Path(folder), fits)
    starts: list[Start] = []
    with verbose_progress(verbose, recipe.n_starts, "consensus", unit="start") as progress:
        for start in fits(clean, seeds, recipe, samples):
            starts.append(start)
            if progress is not None:
                progress(FitState(len(starts), start.objective))
    spectra = unit_rows(np.concatenate([start.components for start in starts]))
    with limited_openmp(1):
        distances, clusters, silhouettes, silhouette = _cluster(spectra, recipe, of_clusters)
        rows = []
        for number in range(clusters.max() + 1):
            members = spectra[clusters == number]
            median = np.median(members, axis=0)
            rows.append(median if median.any() else members.mean(axis=0))
        components = divide_by_sums(np.array(rows))
    weighting = {"X_weights": recipe.fitting["X_weights"], "n_threads": n_threads}
    usage = represent(clean, components.astype(dtype), loss=loss, **weighting)
    order = np.argsort(-divide_by_sums(usage).sum(axis=0), kind="stable")
    usage = np.ascontiguousarray(usage[:, order])
    components = components[order].astype(dtype)
    clusters = np.where(clusters == DROPPED, DROPPED, np.argsort(order)[clusters])
    assignments = np.array([start.assignments for start in starts])
    return Consensus(
        components=components,
        usage=usage,
        stability=np.array([silhouettes[clusters == k].mean() for k in range(len(order))]),
        spectra=spectra.astype(dtype),
        clusters=clusters,
        neighbor_distances=distances,
        scores=regression_scores(clean.matrix, usage),
        silhouette=silhouette,
        cophenetic=_cophenetic_correlation(assignments),
        error=objective(clean, usage, components, **weighting),
        samples=samples,
        assignments=assignments,
        n_starts=recipe.n_starts,
        loss=loss,
        distance_threshold=recipe.distance_threshold,
    )


def _cluster(spectra: Array, recipe: Recipe, seed: int) -> tuple[Array, Array, Array, float]:
    """Return neighbor distances, clusters and silhouettes of spectra, and the silhouette of all."""
    rank, threshold = recipe.fitting["n_components"], recipe.distance_threshold
    distances = np.asarray(euclidean_distances(spectra))
    n_nearest = min(recipe.n_nearest, len(spectra) - 1)
    nearest = np.partition(distances, n_nearest, axis=1)[:, : n_nearest + 1]  # with itself
    used = np.asarray(spectra.any(axis=1))  # a start may leave components at zero
    nearness = np.where(used, nearest.sum(axis=1) / max(n_nearest, 1), np.inf)
    kept = np.asarray(nearness < threshold)
    if kept.sum() < rank:
        raise ValueError(
            f"Only {kept.sum()} of {len(spectra)} components have a mean distance to their "
            f"{n_nearest} nearest neighbors below distance_threshold={threshold:g}, fewer than "
            f"n_components={rank}: the starts do not agree. The smallest is {nearness.min():.3g}. "
            "Raise distance_threshold (2 drops none), give fewer n_components, or a smaller tol."
        )
    parts = [used] if kept.sum() == used.sum() else [used, kept]
    found = [clusters_of(spectra[p], distances[np.ix_(p, p)], rank, seed) for p in parts]
    (_, of_all), (labels, of_kept) = found[0], found[-1]
    if (count := labels.max() + 1) < rank:
        warn_user(
            f"All starts have only {count} different components, fewer than n_components={rank}: "
            f"the consensus has {count}. Give fewer n_components.",
            UserWarning,
        )
    clusters, silhouettes = np.full(len(spectra), DROPPED), np.full(len(spectra), np.nan)
    clusters[kept], silhouettes[kept] = labels, of_kept
    return nearness, clusters, silhouettes, float(of_all.mean())


def clusters_of(spectra: Array, distances: Array, count: int, seed: int) -> tuple[Array, Array]:
    """Return clusters of k-means and silhouettes, both (p,).

    There are at most as many clusters as different spectra.  One cluster, and clusters of one
    spectrum each, have no silhouette: it is NaN.
    """
    different = len({row.tobytes() for row in spectra.round(_DIGITS)})
    k_means = KMeans(min(count, different), n_init=_N_INIT, random_state=seed)
    labels = k_means.fit(spectra).labels_
    if 1 < k_means.n_clusters < len(spectra):
        return labels, silhouette_samples(distances, labels, metric="precomputed")
    return labels, np.full(len(spectra), np.nan)


def _cophenetic_correlation(assignments: Array) -> float:
    """Return the cophenetic correlation of the consensus matrix (Brunet 2004); NaN if constant."""
    apart = squareform(1 - shares_together(assignments), checks=False)
    if not apart.size or np.ptp(apart) == 0:
        return float("nan")
    correlation: Any = cophenet(linkage(apart, "average"), apart)
    return float(correlation[0])
