"""Criteria of ranks that hide nothing: bounds of the evidence, and stability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples
from sklearn.metrics.pairwise import euclidean_distances

from .._common.arrays import Array
from .._common.warn import IDLE, quietly
from .._data.border import CleanMatrix, check_data
from .._data.threads import Stop, limited_openmp, resolve_threads
from .._linalg.operators import unit_rows
from .._models.many_starts import fit_starts
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from .._topics import divide_by_sums
from ..estimators._bayesian import BayesianBase, BayesianNMF
from ._held_out import PlainFits, fitted, refuse_both, require_no_start
from ._rank_choice import RankChoice
from ._search import Outcome, Search


@dataclass(frozen=True)
class _Whole:
    """All data, from which nothing is held out."""

    model: BayesianBase
    X: Any
    y: Any

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        # More components than the data need are tried on purpose.
        model = quietly(IDLE, fitted, self.model, self.X, self.y, rank, seed, threads, stop)
        return Outcome(-model.lower_bound_, {"bound": model.lower_bound_}, model)


def choose_by_bound(
    X: Any,
    y: Any,
    model: Any,
    given: dict[str, Any],
    search: Search,
    rule: str,
    rng: np.random.Generator,
) -> RankChoice:
    """Fit a Bayesian model of every rank from several starts; keep that of the largest bound."""
    model = BayesianNMF() if model is None else model
    if not isinstance(model, BayesianBase):
        raise TypeError(
            "criterion 'bound' needs a BayesianNMF or SupervisedBayesianNMF as estimator, whose "
            f"bounds can be compared; got {type(model).__name__}."
        )
    refuse_both(model, {name: value for name, value in given.items() if value is not None})
    require_no_start(model)
    seeds = rng.integers(2**31 - 1, size=search.n_starts).tolist()
    bounds = np.empty((len(search.ranks), search.n_starts))
    best: Any = None
    for place, outcomes in enumerate(search.starts(_Whole(model, X, y), search.ranks, seeds)):
        for number, outcome in enumerate(outcomes):
            bounds[place, number] = outcome.measures["bound"]
            if best is None or outcome.objective < best.objective:
                best = outcome
    return RankChoice.of(search.ranks, bounds, "bound", rule, best_model=best.model)


DROPPED = -1  # the cluster of spectra that are in none
_N_INIT = 10  # of k-means, as cNMF has it
_DIGITS = 6  # in which spectra are compared


class Clusters(NamedTuple):
    """Clusters of spectra, by number, and the silhouette of each spectrum; both (p,)."""

    labels: Array
    silhouettes: Array


def distances_between(spectra: Array) -> Array:
    """Return the Euclidean distances of all spectra to all, (p, p)."""
    return np.asarray(euclidean_distances(spectra))


def local_density(distances: Array, n_nearest: int) -> Array:
    """Return the mean distance of each spectrum to the nearest others, (p,): small is dense.

    Without others to ask, all are 0.
    """
    if n_nearest < 1:
        return np.zeros(len(distances))
    nearest = np.partition(distances, n_nearest, axis=1)[:, : n_nearest + 1]  # itself, too
    return np.asarray(nearest.sum(axis=1) / n_nearest)


def clusters_of(spectra: Array, distances: Array, count: int, seed: int) -> Clusters:
    """Return clusters by k-means, as many as asked for or as there are different spectra.

    One cluster, and clusters of one spectrum each, have no silhouette: it is NaN.
    """
    different = len({row.tobytes() for row in spectra.round(_DIGITS)})
    machine = KMeans(min(count, different), n_init=_N_INIT, random_state=seed)
    labels = machine.fit(spectra).labels_
    if 1 < machine.n_clusters < len(spectra):
        silhouettes = silhouette_samples(distances, labels, metric="precomputed")
    else:
        silhouettes = np.full(len(spectra), np.nan)
    return Clusters(labels, silhouettes)


def medians(spectra: Array, labels: Array) -> Array:
    """Return the medians of clusters, with sum 1.

    Where no feature is in more than half of the spectra of a cluster, their mean takes its place.
    """
    rows = []
    for label in range(labels.max() + 1):
        members = spectra[labels == label]
        median = np.median(members, axis=0)
        rows.append(median if median.any() else members.mean(axis=0))
    return divide_by_sums(np.array(rows))


def shares_together(assignments: Array) -> Array:
    """Return in which share of the starts two samples have the same main component, (s, s).

    Assignments are (starts, s).
    """
    together = np.zeros((assignments.shape[1],) * 2)
    for row in assignments:
        together += row[:, None] == row
    return np.asarray(together / len(assignments))


def cophenetic_correlation(assignments: Array) -> float:
    """Return how well a tree represents who is together with whom (Brunet 2004), at most 1.

    NaN where all samples are equally far from each other.
    """
    apart = squareform(1 - shares_together(assignments), checks=False)
    if not apart.size or np.ptp(apart) == 0:
        return float("nan")
    found: Any = cophenet(linkage(apart, "average"), apart)
    return float(found[0])


def choose_by_stability(
    X: Any, X_weights: Any, fits: PlainFits, search: Search, rule: str, rng: np.random.Generator
) -> RankChoice:
    """Cluster the components of all starts, as :func:`consensus` does; compare silhouettes."""
    if search.ranks[0] < 2 or search.n_starts < 2:
        raise ValueError(
            "criterion 'stability' compares the components of starts with each other: it needs "
            f"ranks and n_starts of at least 2; got {search.ranks[0]} and {search.n_starts}."
        )
    clean = CleanMatrix(check_data(X, resolve_threads(search.n_threads)))
    of_clusters, *seeds = rng.integers(2**31 - 1, size=search.n_starts + 1).tolist()
    silhouettes = []
    with verbose_progress(
        search.verbose, len(search.ranks), "choose_rank", "stability", unit="rank"
    ) as bar:
        for rank in search.ranks:
            found = fit_starts(
                clean,
                seeds,
                n_jobs=search.n_jobs,
                n_threads=search.n_threads,
                n_components=rank,
                X_weights=X_weights,
                init="random",
                **fits.settings,
            )
            components = np.concatenate([fit.A for fit in found])
            silhouettes.append(_silhouette(components, rank, of_clusters))
            if bar is not None:
                bar(FitState(len(silhouettes), silhouettes[-1]))
    return RankChoice.of(search.ranks, np.array(silhouettes)[:, None], "stability", rule)


def _silhouette(components: Array, rank: int, seed: int) -> float:
    """Return the mean silhouette of components in clusters; 0 where they make no clusters."""
    spectra = unit_rows(components)
    spectra = spectra[spectra.any(axis=1)]  # a start may leave components at zero
    with limited_openmp(1):
        found = clusters_of(spectra, distances_between(spectra), rank, seed).silhouettes
    return float(np.nan_to_num(found).mean()) if len(found) else 0.0
