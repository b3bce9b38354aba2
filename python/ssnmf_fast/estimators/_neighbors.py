"""Labels that spread over a graph of near neighbors, to all samples and to new ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from .._common.arrays import Array
from .._common.optional import NEIGHBORS_HINT
from .._data.threads import limited_openmp, look_for_libraries, one_blas_thread, resolve_threads
from ._training_data import TrainingLabels

N_NEIGHBORS = 10
_SCALE_NEIGHBOR = 7  # whose distance is the scale of a sample (Zelnik-Manor and Perona 2004)
_CLAMPING, _STEPS, _TOLERANCE = 0.8, 200, 1e-3
EXACT = 50_000  # samples up to which all distances are computed
_LEAST_CHANCE = 1e-4
_CELLS, _CELLS_READ, _POINTS_OF_CELL = 4, 32, 64  # beyond: cells over the root of the samples


@dataclass(frozen=True)
class Votes:
    """Labels of points, (n, k) with rows that sum to 1, as neighbors of new samples cast them."""

    points: Array  # (n, d), float32
    scales: Array  # (n,): the distance that makes a neighbor a near one
    chances: Array  # (n, k)

    def logits(self, points: Array, n_threads: int | None = None) -> Array:
        """Return the logarithms of what the neighbors of new points say, (new points, k)."""
        k = min(N_NEIGHBORS, len(self.points))
        distances, neighbors = nearest(self.points, points, k, n_threads)
        nearness = _nearness(distances, _scales(distances), self.scales[neighbors])
        chances = np.einsum("ij,ijk->ik", nearness, self.chances[neighbors])
        return log_chances(chances / nearness.sum(axis=1, keepdims=True))


def log_chances(chances: Array) -> Array:
    """Return logarithms of probabilities, none of which is taken to be zero."""
    return np.asarray(np.log(np.maximum(chances, _LEAST_CHANCE)))


@dataclass(frozen=True)
class Graph:
    """A symmetric graph of neighbors: weights exp(-d(i, j)^2 / (scale_i scale_j))."""

    points: Array
    scales: Array
    nearness: Any  # (n, n), CSR

    @classmethod
    def of(cls, scores: Array, n_threads: int | None = None) -> Graph:
        """Return the graph of samples with these scores, (n, d)."""
        points = np.ascontiguousarray(scores, dtype=np.float32)
        n = len(points)
        k = min(N_NEIGHBORS, n - 1)
        distances, neighbors = nearest(points, points, k + 1, n_threads)
        itself = neighbors == np.arange(n)[:, None]
        itself[~itself.any(axis=1), -1] = True  # copies of a sample are nearer than it is itself
        distances, neighbors = (part[~itself].reshape(n, k) for part in (distances, neighbors))
        scales = _scales(distances)
        weights = _nearness(distances, scales, scales[neighbors])
        ends = np.arange(0, n * k + 1, k)
        half = sp.csr_array((weights.ravel(), neighbors.ravel(), ends), shape=(n, n))
        return cls(points, scales, sp.csr_array(half + half.T))

    @one_blas_thread()
    def spread(self, labels: TrainingLabels) -> Array:
        """Return the probability of every class for all samples (Zhou et al. 2004), (n, k)."""
        codes = np.where(labels.known, labels.codes, -1)
        nearness = sp.csr_matrix(self.nearness)

        def affinity(X: Any, Y: Any = None) -> Any:
            return nearness

        machine = LabelSpreading(
            kernel=affinity, alpha=_CLAMPING, max_iter=_STEPS, tol=_TOLERANCE
        ).fit(np.zeros((len(codes), 1)), codes)
        found = np.zeros(labels.members.shape)
        found[:, machine.classes_] = machine.label_distributions_
        reached = found.any(axis=1, keepdims=True)
        return np.asarray(np.where(reached, found, labels.prior()))

    def votes(self, chances: Array, known: Array, most: int) -> Votes:
        """Return what new samples ask: the labeled samples and others, evenly, or all up to `most`.

        Fewer voters make predictions faster, and less exact.
        """
        if len(known) <= most:
            return Votes(self.points, self.scales, chances)
        others = np.flatnonzero(~known)
        count = min(max(0, most - int(known.sum())), len(others))
        chosen = others[np.linspace(0, len(others) - 1, count).astype(int)] if count else others[:0]
        rows = np.sort(np.concatenate([np.flatnonzero(known), chosen]))
        return Votes(self.points[rows], self.scales[rows], chances[rows])


def _scales(distances: Array) -> Array:
    """Return the distance to a near neighbor, (n,); copies of one sample have a small one."""
    found = distances[:, min(_SCALE_NEIGHBOR, distances.shape[1]) - 1]
    return np.asarray(np.maximum(found, 1e-6))


def _nearness(distances: Array, scales: Array, others: Array) -> Array:
    # A neighbor is never so far that its vote is lost altogether.
    exponents = np.minimum(distances**2 / (scales[:, None] * others), 50.0)
    return np.asarray(np.exp(-exponents), dtype=np.float64)


def nearest(
    points: Array, asked: Array, k: int, n_threads: int | None = None
) -> tuple[Array, Array]:
    """Return distances to the k nearest of the points, nearest first, and which these are."""
    asked = np.ascontiguousarray(asked, dtype=np.float32)
    threads = resolve_threads(n_threads)
    if len(points) > EXACT:
        return _approximate(points, asked, k, threads)
    machine = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points)
    with limited_openmp(threads):
        distances, neighbors = machine.kneighbors(asked)
    return distances, neighbors


def _approximate(points: Array, asked: Array, k: int, threads: int) -> tuple[Array, Array]:
    """Look only into the cells of an inverted file that are nearest."""
    import faiss

    look_for_libraries()
    cells = round(_CELLS * math.sqrt(len(points)))
    quantizer = faiss.IndexFlatL2(points.shape[1])
    index = faiss.IndexIVFFlat(quantizer, points.shape[1], cells)
    index.nprobe = _CELLS_READ
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        index.train(points[:: max(1, len(points) // (_POINTS_OF_CELL * cells))])
        index.add(points)
        squares, neighbors = index.search(asked, k)
    finally:
        faiss.omp_set_num_threads(before)
    # In cells with few points there may be fewer neighbors than asked for: -1, infinitely far.
    missing = neighbors < 0
    neighbors[missing] = np.broadcast_to(neighbors[:, :1], neighbors.shape)[missing]
    return np.sqrt(np.maximum(np.where(missing, np.inf, squares), 0)), neighbors


def why_missing(n_samples: int) -> str:
    """Return why there is no graph of so many samples, or "" if there may be one."""
    if n_samples <= EXACT or find_spec("faiss") is not None:
        return ""
    return f"more than {EXACT} samples need faiss: {NEIGHBORS_HINT}"
