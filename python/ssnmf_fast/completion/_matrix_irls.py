"""Method "auto": MatrixIRLS on structured data.

Two-sided log-determinant weights and least squares on the tangent space (Kuemmerle and Mayrink
Verdun), with two more weights on missing entries: one draws them to zero, reweighted as in the
thesis, and one keeps them from being negative.  Both vanish with eps, so that exact data is
completed without a bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.csr import entry_rows
from .._linalg.operators import Pattern, SparseOperator, SparsePlusLowRank
from .._linalg.randomized_svd import leading_triplets, orthonormal, sketch
from .._linalg.tall import square, svd, times
from ._irls import distance_squared
from ._observations import Observations
from ._problem import Check, Outcome
from ._result import CompletionState
from ._tangent import Tangent, TangentSpace, Weighted, curvature, solve

_OVERSAMPLING = 5
_SINGLE = 1e-6  # what float32 can tell apart, of tolerances and of eps


@dataclass(frozen=True)
class Parameters:
    """Lengths are in units of the scaled entries (spectral norm 1)."""

    sparsity: float = 200.0  # lambda, weight of the sparsity term at eps = sigma_1
    sparsity_cap: float = 1e-3
    rounding: float = 1e-3  # delta: entries below this part of the rms count as equal
    negativity: float = 0.3  # mu, weight of entries below the floor
    eps_decay: float = 0.9  # rho: eps falls no faster
    sampled: float = 1.0  # kappa: missing entries looked at, for every observed one
    floor: float = -np.inf
    tol: float = 1e-9
    cg_tol: float = 1e-8
    least_eps: float = 1e-12
    cg_share: float = 0.0  # of the last change, below which a solution need not be exact
    max_iter: int = 200
    max_cg: int = 300


class MissingEntries:
    """Draws patterns of entries that are not observed, for work by so many threads.

    `share` is the number of entries of a draw for every observed one; a draw takes all missing
    entries if there are fewer.
    """

    def __init__(self, observed: Pattern, share: float, n_threads: int) -> None:
        n, m = observed.shape
        self._shape = observed.shape
        self._n_threads = n_threads
        rows = entry_rows(observed.indptr)
        self._taken = rows * m + observed.indices
        self.count = n * m - len(self._taken)
        self._wanted = int(share * len(self._taken))
        self._whole: Pattern | None = None
        if self.count <= self._wanted:
            missing = np.ones(n * m, dtype=bool)
            missing[self._taken] = False
            self._whole = self._pattern(np.flatnonzero(missing))

    def draw(self, rng: np.random.Generator) -> Pattern:
        """Return distinct missing entries, uniformly at random, about as many as wanted."""
        if self._whole is not None:
            return self._whole
        n, m = self._shape
        # Some of the places are observed or drawn twice; more are drawn to make up for it.
        hits = self._wanted * (1 + len(self._taken) / self.count)
        places = np.sort(rng.integers(n * m, size=int(hits)))
        places = places[np.diff(places, prepend=-1) > 0]
        found = np.searchsorted(self._taken, places)
        found[found == len(self._taken)] = 0
        return self._pattern(places[self._taken[found] != places])

    def _pattern(self, places: Array) -> Pattern:
        n, m = self._shape
        rows, columns = np.divmod(places, m)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        counts = np.bincount(columns, minlength=m)
        return Pattern.from_counts(self._shape, indptr, columns, counts, self._n_threads)


class _State:
    """Factors of the low-rank part (rank 2 r, padded) and the row space for the next SVD."""

    def __init__(
        self,
        observations: Observations,
        rank: int,
        start: tuple[Array, Array] | None,
        rng: np.random.Generator,
    ) -> None:
        n, m = observations.shape
        dtype = observations.dtype
        self.observations, self.rank, self.rng = observations, rank, rng
        self.columns = min(rank + 1 + _OVERSAMPLING, n, m)
        self.space = sketch(m, self.columns, dtype, rng)
        F, G = start if start is not None else (np.zeros((n, 1)), np.zeros((m, 1)))
        self.F, self.G = padded(F, dtype), padded(G, dtype)
        self.first = start is None
        self.singular = np.zeros(0)
        self.residuals = observations.residuals(self.F, self.G)
        self.eps = np.inf

    def triplets(self, fresh: bool) -> tuple[SparsePlusLowRank, Array, Array, Array, float]:
        """X, its leading triplets (U, singular, V) and the singular value that follows them."""
        observations = self.observations
        sparse = SparseOperator(observations.pattern, self.residuals, observations.n_threads)
        X = SparsePlusLowRank(sparse, self.F, self.G)
        U, singular, V = leading_triplets(X, self.space, self.columns, 4 if fresh else 2)
        self.space = V
        r = self.rank
        following = float(singular[r]) if len(singular) > r else 0.0
        return X, U[:, :r].copy(), singular[:r].astype(np.float64), V[:, :r].copy(), following


def run_matrix_irls(
    observations: Observations,
    rank: int,
    parameters: Parameters,
    start: tuple[Array, Array] | None,
    rng: np.random.Generator,
    check: Check,
) -> Outcome:
    """Iterate until the low-rank part moves by less than `tol`, relative to its length."""
    if observations.dtype == np.float32:
        parameters = replace(
            parameters,
            tol=max(parameters.tol, _SINGLE),
            cg_tol=max(parameters.cg_tol, _SINGLE),
            least_eps=max(parameters.least_eps, _SINGLE),
        )
    state = _State(observations, rank, start, rng)
    missing = MissingEntries(observations.pattern, parameters.sampled, observations.n_threads)
    everywhere = Weighted(observations.pattern, None, observations.dtype, observations.n_threads)
    outcome = Outcome(state.F, state.G, np.zeros(0), np.inf)
    change = 1.0
    for iteration in range(1, parameters.max_iter + 1):
        change = _iterate(state, parameters, missing, everywhere, iteration, change)
        outcome.n_iter = iteration
        residual = observations.relative(state.residuals)
        progress = CompletionState(iteration, change, residual, state.eps**2, rank)
        outcome.history.append(progress)
        outcome.converged = change < parameters.tol
        if check(progress, state.F, state.G, observations.scale) or outcome.converged:
            break
    kept = min(rank, len(state.singular))
    outcome.F, outcome.G = (padded(X[:, :kept], X.dtype) for X in (state.F, state.G))
    outcome.singular = state.singular[:kept].astype(np.float64)
    outcome.gamma = state.eps**2
    return outcome


def _iterate(
    state: _State,
    parameters: Parameters,
    missing: MissingEntries,
    everywhere: Weighted,
    iteration: int,
    before: float,
) -> float:
    """New weights and the least squares with them; return the relative change."""
    observations, rank = state.observations, state.rank
    X, U, singular, V, following = state.triplets(iteration == 1)
    largest = max(float(singular[0]), 1e-300)
    decayed = parameters.eps_decay * state.eps if iteration > 1 else 0.0
    state.eps = min(state.eps, max(following, parameters.least_eps * largest, decayed))
    space = TangentSpace(U, V, observations.n_threads)
    target = space.project_sparse(observations.pattern, observations.values)
    weighted = [everywhere]
    share = observations.count / (observations.shape[0] * observations.shape[1])
    mean = share
    if not state.first:
        pulled, pull = _missing_weights(state, parameters, missing, largest)
        if pulled is not None:
            weighted.append(pulled)
            mean += pulled.mean * (1 - share)
            if pull is not None:
                target = target.plus(1.0, space.project_sparse(pulled.pattern, pull))
    begin = space.project(
        X.times(padded(V, V.dtype))[:, :rank], X.transposed_times(padded(U, U.dtype))[:, :rank]
    )
    tol = max(parameters.cg_tol, min(parameters.cg_share * before, 1e-2))
    bend = curvature(singular, state.eps, observations.dtype)
    x, _ = solve(space, bend, weighted, mean, target, begin, tol, parameters.max_cg)
    return _advance(state, space, x)


def _missing_weights(
    state: _State, parameters: Parameters, missing: MissingEntries, largest: float
) -> tuple[Weighted | None, Array | None]:
    """Weights of sampled missing entries, rescaled to stand for all of them, and their targets."""
    bounded = parameters.floor > -np.inf
    observations = state.observations
    if missing.count == 0 or (parameters.sparsity == 0 and not bounded):
        return None, None
    pattern = missing.draw(state.rng)
    if len(pattern.indices) == 0:  # a draw may meet observed entries only
        return None, None
    entries = Observations(
        pattern,
        np.zeros(len(pattern.indices), observations.dtype),
        1.0,
        0.0,
        observations.n_threads,
    )
    z = -entries.residuals(state.F, state.G)
    rms = observations.root_mean_square
    strength = min(parameters.sparsity * (state.eps / largest) ** 2, parameters.sparsity_cap)
    weights = strength / np.sqrt((z / rms) ** 2 + parameters.rounding**2)
    pull = None
    if bounded:
        below = z < parameters.floor
        weights[below] = parameters.negativity
        if parameters.floor != 0.0:
            pull = np.where(below, parameters.negativity * parameters.floor, 0.0)
    scale = missing.count / max(len(z), 1)
    weights = (scale * weights).astype(observations.dtype)
    return Weighted(pattern, weights, observations.dtype, observations.n_threads), (
        None if pull is None else (scale * pull).astype(observations.dtype)
    )


def _advance(state: _State, space: TangentSpace, x: Tangent) -> float:
    """Move to x; return the relative change of the low-rank part."""
    n_threads = state.observations.n_threads
    F, G, state.singular = _orthonormal(*space.factors(x), n_threads)
    length = square(F) ** 0.5
    if state.first:
        moved = length
        state.first = False
    else:
        moved = distance_squared(F, G, state.F, state.G, n_threads) ** 0.5
    state.F, state.G = F, G
    state.residuals = state.observations.residuals(F, G)
    return moved / length if length > 0 else 0.0


def _orthonormal(F: Array, G: Array, n_threads: int) -> tuple[Array, Array, Array]:
    """The same product with singular values: F = U diag(s), orthonormal columns of G; padded."""
    columns = F.shape[1]
    if columns > min(len(F), len(G)):  # of more than full rank
        Q, R = np.linalg.qr(G)
        left, singular, right = svd(F @ R.T)
        return padded(left * singular, F.dtype), padded(Q @ right.T, F.dtype), singular
    P, Q = F.copy(), G.copy()
    core = orthonormal(P, columns, n_threads) @ orthonormal(Q, columns, n_threads).T
    left, singular, right = svd(core)
    return times(P, left * singular, n_threads), times(Q, right.T, n_threads), singular
