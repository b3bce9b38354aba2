"""Function :func:`consensus`: many starts of a factorization, and what they agree on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.border import CleanMatrix, check_data, check_observers
from .._data.threads import limited_openmp, resolve_threads
from .._linalg.operators import unit_rows
from .._models.many_starts import fit_starts
from .._models.represent import objective, represent
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from .._topics import divide_by_sums
from ._consensus_result import Consensus, regression_scores
from ._criteria import (
    DROPPED,
    Clusters,
    clusters_of,
    cophenetic_correlation,
    distances_between,
    local_density,
    medians,
)
from ._starts import Fits, KeptStarts, Recipe, Start, start_of


def consensus(
    X: Any,
    n_components: int,
    *,
    n_starts: int = 100,
    loss: str | float = "frobenius",
    density_threshold: float = 0.5,
    n_neighbors: float = 0.3,
    X_weights: Any = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    init: str = "random",
    folder: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Consensus:
    """Factorize X from many random starts, and return the components that they agree on.

    The recipe of cNMF [1]_: components of all starts are scaled to length 1; those far from their
    nearest ones are dropped; k-means finds clusters of the others, whose medians are the
    components; usages of samples are fitted to these.

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
    density_threshold : float
        Spectra whose mean distance to their nearest ones is not below it are dropped; 2 drops none.
    n_neighbors : float, above 0, at most 1
        How many nearest ones these are, as a share of `n_starts`.  Where that is less than one, no
        spectrum is dropped.
    init : {"random", "least-squares", "random-acol"}
        Starts, as in :func:`factorize`.
    folder : path, optional
        Where the result of every start is kept: a call that was stopped goes on from there, and
        ends with the same bits.  It may serve several ranks, of the same data in the same form
        (dense, sparse or on disk), settings and level of the kernels.
    n_jobs : int, optional
        How many starts are fitted at a time; None takes as many as there are threads, and at least
        four for data on disk, which these read together.
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
        For bad input; if hardly any spectrum is near to others; if `folder` has starts of other
        data or settings, or files that were changed.

    Warns
    -----
    UserWarning
        If all starts find fewer different components than asked for.

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
    given = n_components, n_starts, density_threshold, n_neighbors, init, random_state
    recipe = Recipe.checked(*given, fitting)
    threads: dict[str, Any] = {"n_jobs": n_jobs, "n_threads": n_threads}

    def fits(
        X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, samples: Array
    ) -> Iterator[Start]:
        found = fit_starts(X, seeds, **threads, **recipe.fitting)
        return (start_of(fit, samples) for fit in found)

    return agreement(X, recipe, fits, folder, n_threads, verbose)


def agreement(
    X: Any, recipe: Recipe, fits: Fits, folder: Any, n_threads: int | None, verbose: int
) -> Consensus:
    """Return the consensus of starts, which a function fits."""
    check_observers(None, verbose)
    clean = CleanMatrix(check_data(X, resolve_threads(n_threads)))
    of_clusters, samples, seeds = recipe.draw(clean.matrix.shape[0])
    found = fits if folder is None else KeptStarts(folder, fits)
    starts = _shown(found(clean, seeds, recipe, samples), recipe.n_starts, verbose)
    spectra = unit_rows(np.concatenate([start.components for start in starts]))
    with limited_openmp(1):
        density, clusters, silhouette = _clustered(spectra, recipe, of_clusters)
        kept = density < recipe.density_threshold
        components = medians(spectra[kept], clusters.labels)
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
        density=density,
        scores=regression_scores(clean.matrix, usage),
        silhouette=silhouette,
        cophenetic=cophenetic_correlation(assignments),
        error=objective(clean, usage, components, **weighting),
        samples=samples,
        assignments=assignments,
        n_starts=recipe.n_starts,
        loss=recipe.fitting["loss"],
        density_threshold=recipe.density_threshold,
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
    """Return densities, clusters of the spectra that are kept, and the silhouette of all."""
    rank = recipe.fitting["n_components"]
    distances = distances_between(spectra)
    n_nearest = min(int(recipe.n_neighbors * recipe.n_starts), len(spectra) - 1)
    found = np.asarray(spectra.any(axis=1))  # a start may leave components at zero
    density = np.where(found, local_density(distances, n_nearest), np.inf)
    kept = np.asarray(density < recipe.density_threshold)
    if kept.sum() < rank:
        raise ValueError(
            f"Of {len(spectra)} spectra only {kept.sum()} have a mean distance to their "
            f"{n_nearest} nearest ones below density_threshold={recipe.density_threshold:g}, fewer "
            f"than n_components={rank}: the starts do not agree. The least is "
            f"{density.min():.3g}. Raise density_threshold (2 drops none), give fewer "
            "n_components, or a smaller tol."
        )

    def clustered(chosen: Array) -> Clusters:
        return clusters_of(spectra[chosen], distances[np.ix_(chosen, chosen)], rank, seed)

    every = clustered(found)
    clusters = every if kept.sum() == found.sum() else clustered(kept)
    if (count := clusters.labels.max() + 1) < rank:
        warn_user(
            f"All starts find {count} different components where n_components={rank}: the "
            f"consensus has {count}. Give fewer n_components.",
            UserWarning,
        )
    return density, clusters, float(every.silhouettes.mean())
