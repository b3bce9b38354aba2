"""EntryWeights least squares on the tangent space of matrices of one rank, by conjugate gradients.

At U diag(s) V^T (orthonormal U: n x r, V: m x r) a tangent matrix is U (C V^T + R^T) + L V^T with a
core C (r x r) and two blocks R (m x r) with V^T R = 0, L (n x r) with U^T L = 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .. import _linalg as ops
from .._backend.dispatch import aligned_zeros, kernels, padded, padded_zeros
from .._common.arrays import Array
from .._data.arrays import column_ranges, entry_rows, kernel_parts, transpose
from .._linalg import leading_triplets, orthonormal, sketch
from ._irls import distance_squared, estimated_rank, structured
from ._problem import CompletionProblem, Iterate, Method, Observations
from ._result import CompletionState

_MAX_STEPS = 300  # of conjugate gradients


class Tangent(NamedTuple):
    """A tangent matrix, or a vector or a diagonal operator of the same blocks."""

    core: Array
    right: Array
    left: Array

    def plus(self, step: float, other: Tangent) -> Tangent:
        return Tangent(*(x + step * y for x, y in zip(self, other, strict=True)))

    def dot(self, other: Tangent) -> float:
        return float(sum(ops.inner(x, y) for x, y in zip(self, other, strict=True)))

    def divided(self, diagonal: Tangent, shift: float) -> Tangent:
        return Tangent(*(x / (d + shift) for x, d in zip(self, diagonal, strict=True)))


class EntryWeights:
    """Weights of the entries of a pattern (None: ones), by rows and by columns."""

    def __init__(
        self, pattern: ops.Pattern, weights: Array | None, dtype: npt.DTypeLike, n_threads: int
    ) -> None:
        self.pattern = pattern
        self.mean = 1.0 if weights is None else float(weights.mean())
        self.rows = (pattern.indptr, pattern.indices, weights)
        values = np.ones(len(pattern.indices), dtype) if weights is None else weights
        matrix = sp.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)
        indptr, indices, data = kernel_parts(transpose(matrix, n_threads))
        self.columns = (indptr, indices, None if weights is None else data)


class TangentSpace:
    """Tangent space at U, V (unpadded, orthonormal columns)."""

    def __init__(self, U: Array, V: Array, n_threads: int) -> None:
        self.U, self.V = U, V
        self.rank = U.shape[1]
        self._n_threads = n_threads
        self._left = padded_zeros(len(U), 2 * self.rank, U.dtype)
        self._right = padded_zeros(len(V), 2 * self.rank, U.dtype)

    def factors(self, x: Tangent) -> tuple[Array, Array]:
        """Return padded factors of rank 2 r with the product x; the next call overwrites them."""
        r = self.rank
        self._left[:, :r], self._left[:, r : 2 * r] = self.U, x.left
        self._right[:, :r] = ops.times(self.V, x.core.T, self._n_threads)
        self._right[:, :r] += x.right
        self._right[:, r : 2 * r] = self.V
        return self._left, self._right

    def _part(self, times_V: Array, transposed_times_U: Array) -> Tangent:
        """Return the tangent part of X from X V and X^T U."""
        threads = self._n_threads
        left, right = np.ascontiguousarray(times_V), np.ascontiguousarray(transposed_times_U)
        core = ops.cross(self.U, left, threads)
        ops.add_times(left, self.U, core, threads, -1.0)
        ops.add_times(right, self.V, core.T, threads, -1.0)
        return Tangent(core, right, left)

    def project(self, X: ops.Operator) -> Tangent:
        U, V = (padded(factor, factor.dtype) for factor in (self.U, self.V))
        return self._part(X.times(V)[:, : self.rank], X.transposed_times(U)[:, : self.rank])

    def weigh(self, x: Tangent, entries: Sequence[EntryWeights]) -> Tangent:
        r = self.rank
        left, right = self.factors(x)
        # One pass gives (W .* x) [., V], the other (W .* x)^T [U, .]
        rows = aligned_zeros(left.shape, left.dtype)
        columns = aligned_zeros(right.shape, right.dtype)
        for part in entries:
            kernels.sparse_pass(1, *part.rows, left, right, rows, 1.0, True, self._n_threads)
            kernels.sparse_pass(1, *part.columns, right, left, columns, 1.0, True, self._n_threads)
        return self._part(rows[:, r : 2 * r], columns[:, :r])


def curvature(singular: Array, eps: float, dtype: npt.DTypeLike) -> Tangent:
    """Return the weights of log-determinant IRLS, relative to 1 / eps^2 (of the complement)."""
    s = np.maximum(np.asarray(singular, dtype=np.float64), eps * (1 + 1e-9))
    core = eps**2 / np.maximum(np.outer(s, s) - eps**2, 1e-300)
    sides = np.minimum(eps / np.maximum(s - eps, 1e-300), 1e12).astype(dtype)
    return Tangent(np.minimum(core, 1e12).astype(dtype), sides, sides)


def solve(
    space: TangentSpace,
    curvature: Tangent,
    entries: Sequence[EntryWeights],
    mean_weight: float,
    target: Tangent,
    start: Tangent,
    tol: float,
) -> Tangent:
    """Minimize x^T D x + sum of w (x - y)^2 by preconditioned conjugate gradients."""

    def apply(x: Tangent) -> Tangent:
        bent = Tangent(*(block * d for block, d in zip(x, curvature, strict=True)))
        return space.weigh(x, entries).plus(1.0, bent)

    x = start
    residual = target.plus(-1.0, apply(x))
    enough = tol * target.dot(target) ** 0.5
    z = residual.divided(curvature, mean_weight)
    direction, rz = z, residual.dot(z)
    for _ in range(_MAX_STEPS):
        if not (residual.dot(residual) ** 0.5 > enough and rz > 0):
            break
        image = apply(direction)
        bend = direction.dot(image)
        if not bend > 0:  # rounding: the limit of this precision
            break
        length = rz / bend
        x = x.plus(length, direction)
        residual = residual.plus(-length, image)
        z = residual.divided(curvature, mean_weight)
        rz, before = residual.dot(z), rz
        direction = z.plus(rz / before, direction)
    return x


MAX_ITER = 200
_OVERSAMPLING = 5
_SINGLE = 1e-6  # least tolerance and eps in float32
_EASY = 0.3  # degrees of freedom per observed entry below which eps may fall at once
_HARD = 0.8
_FAST_ITERATIONS = 60  # of an estimate of the rank
# Weights of missing entries: the largest that pulls to zero, the share of the rms below which
# entries count as equal, and the weight of entries below the floor.
_SPARSITY_CAP, _ROUNDING, _NEGATIVITY = 1e-3, 1e-3, 0.3


@dataclass(frozen=True)
class MatrixIRLS(Method):
    """Log-determinant weights on both sides, and two weights on missing entries.

    The weighted least squares are solved on the tangent space (Kuemmerle and Mayrink Verdun, "A
    scalable second order method for ill-conditioned matrix completion from few samples", ICML
    2021).  The weights on missing entries pull them to zero and keep them from being negative.
    This is "auto" for exact data.

    Parameters
    ----------
    sparsity : float
        Weight lambda of the pull to zero, at least 0, for data of spectral norm 1; 0 turns it off.
    """

    sparsity: float = 200.0

    nonnegative: ClassVar[bool] = True

    def _iterates(self, problem: CompletionProblem) -> Iterator[Iterate]:
        """Iterate until the relative change of the low-rank part is below `tol`."""
        observations, rank, n_threads = problem.observations, problem.rank, problem.n_threads
        (n, m), dtype, pattern = observations.shape, observations.dtype, observations.pattern
        if rank is None:
            rank = estimated_rank(problem, replace(structured(), max_iter=_FAST_ITERATIONS))
        least = _SINGLE if dtype == np.float32 else 0.0
        tol = max(1e-9 if problem.tol is None else problem.tol, least)
        freedom = observations.freedom(rank)
        # The fastest decay of eps; the tolerance of solutions, as a share of the last change.
        eps_decay, cg_share = (0.0, 1e-2) if freedom < _EASY else (0.9, 0.0)
        columns = min(rank + 1 + _OVERSAMPLING, n, m)
        row_space = sketch(m, columns, dtype, problem.rng)
        F, G = (np.zeros((n, 1)), np.zeros((m, 1))) if problem.start is None else problem.start
        F, G = padded(F, dtype), padded(G, dtype)
        residuals = observations.residuals(F, G)
        missing = _MissingEntries(problem, 2.0 if freedom > _HARD else 1.0, self.sparsity)
        everywhere = EntryWeights(pattern, None, dtype, n_threads)
        data = ops.SparseOperator(pattern, observations.values, n_threads)
        share = len(observations.values) / (n * m)
        history: list[CompletionState] = []
        eps, change = np.inf, 1.0
        for iteration in range(1, (problem.max_iter or MAX_ITER) + 1):
            X = ops.SparsePlusLowRank(ops.SparseOperator(pattern, residuals, n_threads), F, G)
            steps = 2 if history else 4
            U, singular, row_space = leading_triplets(X, row_space, columns, steps)
            largest = max(float(singular[0]), 1e-300)
            following = float(singular[rank]) if len(singular) > rank else 0.0
            decayed = eps_decay * eps if history else 0.0
            eps = min(eps, max(following, max(1e-12, least) * largest, decayed))
            space = TangentSpace(U[:, :rank].copy(), row_space[:, :rank].copy(), n_threads)
            target, weights, mean = space.project(data), [everywhere], share
            is_zero = not history and problem.start is None
            pulled, pull = (None, None) if is_zero else missing.weigh(F, G, eps / largest)
            if pulled is not None:
                weights.append(pulled)
                mean += pulled.mean * (1 - share)
                if pull is not None:
                    pulling = ops.SparseOperator(pulled.pattern, pull, n_threads)
                    target = target.plus(1.0, space.project(pulling))
            bend = curvature(singular[:rank], eps, dtype)
            cg_tol = max(1e-8, least, min(cg_share * change, 1e-2))
            x = solve(space, bend, weights, mean, target, space.project(X), cg_tol)
            before = F, G
            F, G, values = _orthonormal(*space.factors(x), n_threads)
            length = moved = ops.square(F) ** 0.5
            if not is_zero:
                moved = distance_squared(F, G, *before, n_threads) ** 0.5
            change = moved / length if length > 0 else 0.0
            residuals = observations.residuals(F, G)
            residual = observations.relative(residuals)
            history.append(CompletionState(iteration, change, residual, eps**2, rank))
            values = values[:rank].astype(np.float64)
            yield Iterate(observations, F, G, values, history, change < tol)
            if change < tol:
                return


class _MissingEntries:
    """Weights on missing entries: `share` samples per observed entry, or all of them."""

    def __init__(self, problem: CompletionProblem, share: float, sparsity: float) -> None:
        self._problem, self._sparsity = problem, sparsity
        pattern = problem.observations.pattern
        n, m = pattern.shape
        self._observed = entry_rows(pattern.indptr) * m + pattern.indices
        self._count, self._samples = n * m - len(self._observed), int(share * len(self._observed))
        self._whole: ops.Pattern | None = None

    def _draw(self) -> ops.Pattern:
        """Return distinct missing entries, uniformly at random, about `self._samples`."""
        if self._whole is not None:
            return self._whole
        n, m = shape = self._problem.observations.shape
        if self._count <= self._samples:
            places = np.arange(n * m)
        else:
            # Draw more, because some places are observed or drawn twice.
            hits = self._samples * (1 + len(self._observed) / self._count)
            places = np.sort(self._problem.rng.integers(n * m, size=int(hits)))
            places = places[np.diff(places, prepend=-1) > 0]
        places = np.setdiff1d(places, self._observed, assume_unique=True)
        rows, columns = np.divmod(places, m)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        ranges = column_ranges(np.bincount(columns, minlength=m), self._problem.n_threads)
        pattern = ops.Pattern(shape, indptr.astype(np.int64), columns.astype(np.int32), ranges)
        if self._count <= self._samples:
            self._whole = pattern
        return pattern

    def weigh(self, F: Array, G: Array, eps: float) -> tuple[EntryWeights | None, Array | None]:
        """Return weights, rescaled to stand for all missing entries, and their targets."""
        observations, floor = self._problem.observations, self._problem.floor
        if self._count == 0 or (self._sparsity == 0 and floor == -np.inf):
            return None, None
        pattern = self._draw()
        count, dtype, n_threads = len(pattern.indices), observations.dtype, observations.n_threads
        if count == 0:  # all drawn places may be observed
            return None, None
        nothing = np.zeros(count, dtype)
        z = -Observations(pattern, nothing, 1.0, 0.0, n_threads).residuals(F, G)
        strength = min(self._sparsity * eps**2, _SPARSITY_CAP)
        weights = strength / np.sqrt((z / observations.root_mean_square) ** 2 + _ROUNDING**2)
        below, scale = z < floor, self._count / count
        weights[below] = _NEGATIVITY
        pull: Array | None = None
        if np.isfinite(floor) and floor != 0.0:
            pull = (scale * np.where(below, _NEGATIVITY * floor, 0.0)).astype(dtype)
        return EntryWeights(pattern, (scale * weights).astype(dtype), dtype, n_threads), pull


def _orthonormal(F: Array, G: Array, n_threads: int) -> tuple[Array, Array, Array]:
    """Return padded factors of the same product, U diag(s) and V, and the singular values s."""
    columns = F.shape[1]
    if columns > min(len(F), len(G)):  # more columns than the full rank
        Q, R = np.linalg.qr(G)
        left, singular, right = ops.svd(F @ R.T)
        return padded(left * singular, F.dtype), padded(Q @ right.T, F.dtype), singular
    P, Q = F.copy(), G.copy()
    core = orthonormal(P, columns, n_threads) @ orthonormal(Q, columns, n_threads).T
    left, singular, right = ops.svd(core)
    return ops.times(P, left * singular, n_threads), ops.times(Q, right.T, n_threads), singular
