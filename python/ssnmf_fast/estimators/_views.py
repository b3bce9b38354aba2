"""Views of samples for classifiers: complete rows in memory, and a graph of neighbors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils import gen_batches

from .._common.arrays import Array, Matrix, TablesLike
from .._common.locks import cached_property
from .._common.text import short
from .._data.arrays import scale_rows
from .._data.border import check_matrix, in_order, labels_of
from .._data.csr_file import CsrFile
from .._data.threads import libraries, limited_openmp, one_blas_thread, resolve_threads
from .._linalg import MatrixOperator, truncated_svd, unit_rows
from .._solver.build import as_weights
from .._solver.weights import WeightsLike
from ._training_data import TrainingLabels

Tables = dict[str, Any]  # side tables by name; rows have length 1

NAMES_OF_MEMBERS = ("topics", "features", "directions", "naive Bayes", "margins", "neighbors")
PARTS = ("topics", "directions", "features")  # of a linear function; others are tables
N_NEIGHBORS = 10
_SCALE_NEIGHBOR = 7  # its distance is the scale of a sample (Zelnik-Manor and Perona 2004)
_CLAMPING, _STEPS, _TOLERANCE = 0.8, 200, 1e-3
EXACT = 50_000  # samples up to which all distances are computed
_LEAST_CHANCE = 1e-4
_CELLS, _CELLS_READ, _POINTS_OF_CELL = 4, 32, 64  # cells relative to the root of the samples
N_DIRECTIONS = 50  # of unit scores
_MORE_DIRECTIONS = 100  # of coordinates
_OVERSAMPLES, _POWER_STEPS = 10, 2
_MOSTLY_ZERO = 0.1  # share of nonzeros below which data resemble word counts
_BLOCK_ENTRIES = 1 << 22  # of X that are filled at a time


def names_of_columns(side: Any) -> dict[str, list[str]]:
    """Return the names of the columns of those checked tables that have names."""
    columns = {name: labels_of(table)[1] for name, table in (side or {}).items()}
    names = {name: list(each) for name, each in columns.items() if each is not None}
    return {name: c for name, c in names.items() if all(isinstance(one, str) for one in c)}


def check_tables(
    side: TablesLike, n_samples: int, columns: Mapping[str, int] | None = None, names: Any = None
) -> Tables:
    """Check the tables of a fit or, given `columns` of the fit and their names, of predictions."""
    side = {} if side is None else side
    got = type(side).__name__
    if isinstance(side, Mapping):
        got = next((f"the name {short(one)}" for one in side if not isinstance(one, str)), "")
    if got:
        kind = "a mapping of names (texts) to tables, such as {'embedding': E}"
        raise TypeError(f"side must be {kind}; got {got}.")
    if columns is not None and side.keys() != columns.keys():
        expected = f"side with the tables {list(columns)}" if columns else "no side"
        passed = f"the tables {list(side)}" if side else "none"
        hint = "Predictions need the same tables as the fit."
        raise ValueError(f"The model was fitted with {expected}; got {passed}. {hint}")
    tables = {}
    for name in side if columns is None else columns:
        if columns is None and name in (*NAMES_OF_MEMBERS, "committee"):
            member = "the name of a member of the committee; choose another"
            raise ValueError(f"side has a table {name!r}, which is {member}.")
        where = f"side[{short(name)}]"
        table = in_order(side[name], (None, (names or {}).get(name)), where, "the fit")
        matrix = check_matrix(table, where, allow_nan=False, allow_negative=True)
        n, q = matrix.shape
        if n != n_samples or not q:
            expected = f"{n_samples} rows, as X, and at least one column"
            raise ValueError(f"{where} has shape {matrix.shape}; expected {expected}.")
        if columns is not None and q != columns[name]:
            raise ValueError(f"{where} has {q} columns; expected {columns[name]}, as in fit.")
        tables[name] = unit_rows(matrix)
    return tables


@dataclass(frozen=True)
class Votes:
    """Class probabilities of points that vote as neighbors of new samples."""

    points: Array  # (n, d), float32
    scales: Array  # (n,), of the distances
    chances: Array  # (n, k); rows sum to 1
    weight: Array = field(default_factory=lambda: np.ones(1))  # of the logits in a committee

    def logits(self, view: View, n_threads: int | None = None) -> Array:
        """Return the log-probabilities of samples from their neighbors, (n, k)."""
        k = min(N_NEIGHBORS, len(self.points))
        distances, neighbors = nearest(self.points, view.scores, k, n_threads)
        nearness, _ = _nearness(distances, neighbors, self.scales)
        chances = np.empty((len(neighbors), self.chances.shape[1]))
        for rows in gen_batches(len(chances), max(1, _BLOCK_ENTRIES // (k * chances.shape[1]))):
            near = self.chances[neighbors[rows]]
            np.einsum("ij,ijk->ik", nearness[rows], near, out=chances[rows])
        return log_chances(chances / nearness.sum(axis=1, keepdims=True))


def log_chances(chances: Array) -> Array:
    """Return logarithms of probabilities, which are bounded away from 0."""
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
        itself[~itself.any(axis=1), -1] = True  # all neighbors are copies of the sample
        distances, neighbors = (part[~itself].reshape(n, k) for part in (distances, neighbors))
        weights, scales = _nearness(distances, neighbors)
        ends = np.arange(0, n * k + 1, k)
        half = sp.csr_array((weights.ravel(), neighbors.ravel(), ends), shape=(n, n))
        return cls(points, scales, sp.csr_array(half + half.T))

    @one_blas_thread()
    def spread(self, labels: TrainingLabels) -> Array:
        """Return class probabilities of all samples by label spreading (Zhou et al. 2004)."""
        codes = np.full(labels.n, -1)
        codes[labels.rows] = labels.truth.codes
        nearness = sp.csr_matrix(self.nearness)
        settings = {"alpha": _CLAMPING, "max_iter": _STEPS, "tol": _TOLERANCE}
        spreading = LabelSpreading(kernel=lambda X, Y=None: nearness, **settings)
        spreading.fit(np.zeros((len(codes), 1)), codes)
        chances = np.zeros(labels.shape)
        chances[:, spreading.classes_] = spreading.label_distributions_
        reached = chances.any(axis=1, keepdims=True)
        return np.asarray(np.where(reached, chances, labels.prior()))

    def votes(self, chances: Array, known: Array, most: int | None) -> Votes:
        """Return up to `most` voters: the labeled samples, and others evenly spaced."""
        if most is None or len(known) <= most:
            return Votes(self.points, self.scales, chances)
        others = np.flatnonzero(~known)
        count = min(max(0, most - int(known.sum())), len(others))
        sample = others[np.linspace(0, len(others) - 1, count).astype(int)] if count else others[:0]
        rows = np.sort(np.concatenate([np.flatnonzero(known), sample]))
        return Votes(self.points[rows], self.scales[rows], chances[rows])


def _nearness(
    distances: Array, neighbors: Array, scales: Array | None = None
) -> tuple[Array, Array]:
    """Return the weights of neighbors, and the scales of samples: the distance of a neighbor."""
    own = np.maximum(distances[:, min(_SCALE_NEIGHBOR, distances.shape[1]) - 1], 1e-6)  # copies
    others = (own if scales is None else scales)[neighbors]
    # The weight of a distant neighbor does not vanish.
    exponents = np.minimum(distances**2 / (own[:, None] * others), 50.0)
    return np.asarray(np.exp(-exponents), dtype=np.float64), own


def nearest(
    points: Array, queries: Array, k: int, n_threads: int | None = None
) -> tuple[Array, Array]:
    """Return the distances and the numbers of the k nearest points, nearest first."""
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    threads = resolve_threads(n_threads)
    if len(points) <= EXACT:
        search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points)
        with limited_openmp(threads):
            distances, neighbors = search.kneighbors(queries)
        return distances, neighbors
    # Search only the nearest cells of an inverted file.
    import faiss

    libraries.cache_clear()  # the import may have added some
    cells = round(_CELLS * math.sqrt(len(points)))
    quantizer = faiss.IndexFlatL2(points.shape[1])
    index = faiss.IndexIVFFlat(quantizer, points.shape[1], cells)
    index.nprobe = _CELLS_READ
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        index.train(points[:: max(1, len(points) // (_POINTS_OF_CELL * cells))])
        index.add(points)
        squares, neighbors = index.search(queries, k)
    finally:
        faiss.omp_set_num_threads(before)
    # Cells with few points may hold fewer than k neighbors: -1, infinitely far.
    missing = neighbors < 0
    neighbors[missing] = np.broadcast_to(neighbors[:, :1], neighbors.shape)[missing]
    return np.sqrt(np.maximum(np.where(missing, np.inf, squares), 0)), neighbors


def visible(X: Matrix, X_weights: WeightsLike) -> Any:
    """Return X with 0 where weights are 0, if their form shows it."""
    if X_weights is None or sp.issparse(X_weights):  # the fit rejects sparse weights
        return X
    return as_weights(X_weights, "X_weights").hide(X)


@one_blas_thread()
def filled(X: Any, S: Array | None = None, A: Array | None = None, absent: Any = None) -> Any:
    """Return X with entries that are NaN or `absent` replaced by S A, or by 0 without factors."""
    if sp.issparse(X) and sp.issparse(absent):
        rest, (rows, columns) = sp.csr_array(X - X.multiply(absent)), absent.nonzero()
        values = np.zeros(len(rows), X.dtype)
        if S is not None and A is not None:
            for some in gen_batches(len(rows) or 1, max(1, _BLOCK_ENTRIES // len(A))):
                values[some] = np.einsum("ij,ji->i", S[rows[some]], A[:, columns[some]])
        return rest + sp.csr_array((values, (rows, columns)), shape=X.shape)
    missing = False if sp.issparse(X) else np.isnan(X)
    if absent is not None:
        missing = missing | (absent.toarray() if sp.issparse(absent) else absent)
    if not np.any(missing):
        return X
    X = X.toarray() if sp.issparse(X) else np.array(X)
    X[missing] = 0 if S is None or A is None else (S @ A)[missing]
    return X


def row_blocks(X: Matrix, X_weights: WeightsLike) -> Iterator[tuple[slice, Any, Any]]:
    """Yield blocks of rows: their slice, the rows of X, and where entries are missing, or None."""
    absent = None if X_weights is None else as_weights(X_weights, "X_weights").absent(X.shape)
    blocks: Any = [(slice(None), X)]
    if isinstance(X, CsrFile):
        blocks = X.blocks()
    elif absent is not None:
        parts = gen_batches(X.shape[0], max(1, _BLOCK_ENTRIES // X.shape[1]))
        blocks = ((rows, X[rows]) for rows in parts)
    for rows, block in blocks:
        yield rows, block, None if absent is None else absent(rows)


def row_sums(X: Matrix) -> Array:
    """Return the sums of the samples, float64; NaN counts as 0."""
    if isinstance(X, CsrFile):
        return np.concatenate([np.asarray(block.sum(axis=1)).ravel() for _, block in X.blocks()])
    if sp.issparse(X):
        return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.nansum(X, axis=1, dtype=np.float64))


@dataclass(frozen=True)
class View:
    """The features of n samples for classifiers; `rows` and `coordinates` need a complete X."""

    tables: Tables = field(default_factory=dict)  # side information
    rows: Any = None  # of X, scaled to length 1, (n, m)
    coordinates: Array | None = None  # in leading directions, (n, d)
    directions: Array | None = None  # (d, m)
    shares: Array | None = None  # of topics, (n, r)

    def __getitem__(self, chosen: Array | slice | None) -> View:
        parts = (self.rows, self.coordinates, self.shares)
        rows, coordinates, shares = (None if part is None else part[chosen] for part in parts)
        tables = {name: table[chosen] for name, table in self.tables.items()}
        return View(tables, rows, coordinates, self.directions, shares)

    def part(self, name: str) -> Any:
        """Return the features of a part of :class:`ssnmf_fast.estimators._readout.Linear`."""
        if name == "topics":
            assert self.shares is not None
            return np.sqrt(self.shares)
        if name == "directions":
            return self.scores
        return self.rows if name == "features" else self.tables[name]

    def __len__(self) -> int:
        parts = (self.shares, self.coordinates, *self.tables.values())
        return int(next(part.shape[0] for part in parts if part is not None))

    @cached_property
    def like_counts(self) -> bool:
        """Whether most entries are zero, as in word counts."""
        entries = self.rows.nnz if sp.issparse(self.rows) else np.count_nonzero(self.rows)
        return bool(entries < _MOSTLY_ZERO * math.prod(self.rows.shape))

    @cached_property
    def scores(self) -> Array:
        """Coordinates in the first directions, scaled to length 1."""
        assert self.coordinates is not None
        return np.asarray(unit_rows(self.coordinates[:, :N_DIRECTIONS]))


@one_blas_thread()
def directions_of(
    X: Matrix, seed: int, n_threads: int | None, sample_weight: Array | None = None
) -> Array | None:
    """Return leading right singular vectors of rows scaled to length 1 or the root of a weight."""
    # On a cluster or on disk, classifiers see only topics.
    if not (isinstance(X, np.ndarray) or sp.issparse(X)):
        return None
    rows = unit_rows(filled(X))
    if sample_weight is not None:
        root = np.sqrt(sample_weight)
        rows = scale_rows(rows, root) if sp.issparse(rows) else rows * root[:, None]
    operator = MatrixOperator(rows, resolve_threads(n_threads))
    sizes = min(_MORE_DIRECTIONS, *rows.shape), _OVERSAMPLES, _POWER_STEPS
    _, singular, Vt = truncated_svd(operator, *sizes, np.random.default_rng(seed))
    # Further directions are rounding errors.
    in_span = singular > singular[0] * 1e-10 if len(singular) else singular > 0
    return np.asarray(Vt[in_span])


@one_blas_thread()
def view_of(X: Matrix, directions: Array | None, tables: Tables | None = None) -> View:
    """Return the view of complete samples; without directions, only the tables."""
    if directions is None or not len(directions):
        return View(tables or {})
    rows = unit_rows(X)
    return View(tables or {}, rows, np.asarray(rows @ directions.T), directions)
