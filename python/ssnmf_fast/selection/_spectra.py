"""Components of many starts: how near they are to each other, their clusters and medians."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples
from sklearn.metrics.pairwise import euclidean_distances

from .._common.arrays import Array
from .._topics import divide_by_sums

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
