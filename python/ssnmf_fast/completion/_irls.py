"""The loop of reweighted least squares, on iterates that are sparse plus low rank."""

from __future__ import annotations

import numpy as np

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.csr import entry_rows
from .._linalg.operators import MatrixOperator, Operator
from .._linalg.randomized_svd import leading_triplets, sketch
from .._linalg.tall import add_times, cross, inner, square, times
from ._observations import Observations
from ._problem import Check, Outcome
from ._result import CompletionState
from ._schedule import Schedule, damping, ridge

_OVERSAMPLING = 5
_FIRST_POWER_STEPS, _POWER_STEPS = 3, 1
_NEGLIGIBLE = 1e-12  # singular values below this part of the largest are dropped
_LEAST_EPS = 1e-30  # of the weights of missing entries


class Iteration:
    """State of the loop: factors F (n x R) and G (m x R), and the row space for the next SVD."""

    def __init__(
        self,
        observations: Observations,
        rank: int | None,
        start: tuple[Array, Array] | None,
        rng: np.random.Generator,
        oversampling: int = _OVERSAMPLING,
    ) -> None:
        n, m = observations.shape
        self.observations = observations
        self.estimated = rank is None
        self.rank = min(observations.largest_rank() if rank is None else rank, n, m)
        columns = min(self.rank + oversampling, n, m)
        self._columns = columns
        self._space = sketch(m, columns, observations.dtype, rng)
        self._fresh = True
        F, G = start if start is not None else (np.zeros((n, 1)), np.zeros((m, 1)))
        self.F, self.G = padded(F, observations.dtype), padded(G, observations.dtype)
        self.largest = 0.0  # bound of the missing entries
        self.singular = np.zeros(0)

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        """Sparsity step, SVD, and the steps that lower the rank, all with one gamma."""
        observations = self.observations
        gamma = schedule.gamma_at(iteration)
        scale, shrink = schedule.sparsity.at(iteration, self.largest)
        product, G = self._leading(observations.iterate(self.F, self.G, scale, shrink))
        if schedule.exact:
            F = observations.exact_rows(G, ridge(self.singular, gamma, schedule.p))
        else:
            F = self._steps(product, G, schedule, gamma)
        self.F, self.G = F, G
        self.largest = _bound(F, G)

    def _leading(self, X: Operator) -> tuple[Array, Array]:
        """X G and the leading right singular vectors G of an iterate; sets the singular values."""
        # The space of the last iterate is a good start; the first one has to be found.
        steps = _FIRST_POWER_STEPS if self._fresh else _POWER_STEPS
        U, singular, V = leading_triplets(X, self._space, self._columns, steps)
        self._space, self._fresh = V, False
        kept = self._truncate(singular)
        self.singular = singular[:kept].astype(np.float64)
        return padded(U[:, :kept] * singular[:kept], U.dtype), padded(V[:, :kept], V.dtype)

    def _truncate(self, singular: Array) -> int:
        """Number of singular values that are kept, and the rank of the next SVD."""
        above = int(np.count_nonzero(singular > _NEGLIGIBLE * singular[0]))
        kept = max(1, min(self.rank, above))
        if self.estimated:
            found = int(np.count_nonzero(singular[: self.rank] > 1e-2 * singular[0]))
            self.rank = max(1, min(self.rank, found))
        return kept

    def _steps(self, product: Array, G: Array, schedule: Schedule, gamma: float) -> Array:
        """Gradient steps F <- (X G) diag(d) with fixed weights; `product` is the first X G."""
        d = np.zeros(G.shape[1])
        d[: len(self.singular)] = damping(self.singular, gamma, schedule.p)
        d = d.astype(G.dtype)
        F = product * d
        before: tuple[Array, Array] | None = None
        for _ in range(1, schedule.inner_steps):
            product, residuals = self.observations.step(F, G)
            if before is not None and self._moved(F, residuals, *before) < schedule.inner_tol:
                break
            before = F, residuals
            F = product * d
        return F

    def _moved(self, F: Array, residuals: Array, last: Array, before: Array) -> float:
        """Relative change of the missing entries, for one G."""
        moved = square(F - last) - square(residuals - before)
        return float(np.sqrt(max(moved, 0.0) / self.length_squared(F, residuals)))

    def length_squared(self, F: Array, residuals: Array) -> float:
        """Squared norm of the iterate whose low-rank part leaves these residuals."""
        fitted = square(self.observations.values - residuals)
        whole = self.observations.norm**2 + max(square(F) - fitted, 0.0)
        return whole if whole > 0 else 1.0


class StructuredIteration(Iteration):
    """Algorithm 1 of the thesis; X (n x m) is dense, since missing entries are weighted too."""

    def __init__(
        self,
        observations: Observations,
        rank: int | None,
        start: tuple[Array, Array] | None,
        rng: np.random.Generator,
        alpha: float,
        oversampling: int = 5,
    ) -> None:
        super().__init__(observations, rank, start, rng, oversampling=oversampling)
        indptr, indices, values = observations.csr
        self.X = np.ascontiguousarray(self.F @ self.G.T)
        self.X[entry_rows(indptr), indices] = values
        self._alpha = alpha

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        """Solve every row exactly with the weights of the last iterate."""
        observations = self.observations
        gamma = schedule.gamma_at(iteration)
        _, eps = schedule.sparsity.values_at(iteration)
        _, self.G = self._leading(MatrixOperator(self.X, observations.n_threads))
        self.F = np.zeros((observations.shape[0], self.G.shape[1]), dtype=observations.dtype)
        kernels.structured_rows(
            *observations.csr,
            self.G,
            ridge(self.singular, gamma, schedule.p),
            self._alpha * gamma ** (1 - schedule.p / 2),
            max(eps, _LEAST_EPS),
            schedule.sparsity.q,
            self.X,
            self.F,
            observations.n_threads,
        )


def _bound(F: Array, G: Array) -> float:
    """Of the entries of F G^T, by Cauchy and Schwarz."""
    return float(np.sqrt(np.einsum("ik,ik->i", F, F).max() * np.einsum("ik,ik->i", G, G).max()))


def distance_squared(
    F: Array, G: Array, F_before: Array, G_before: Array, n_threads: int = 1
) -> float:
    """||F G^T - F' G'^T||^2 for orthonormal columns of G and of G', without cancellation."""
    overlap = cross(G, G_before, n_threads)
    outside, along = G_before.copy(), F.copy()
    add_times(outside, G, overlap, n_threads, -1.0)
    add_times(along, F_before, overlap.T, n_threads, -1.0)
    across = times(F_before, cross(outside, outside, n_threads), n_threads)
    return square(along) + inner(across, F_before)


def run(state: Iteration, schedule: Schedule, tol: float, check: Check) -> Outcome:
    """Iterate until the relative change of an iteration is below `tol`, looked at now and then."""
    outcome = Outcome(state.F, state.G, state.singular, schedule.gamma)
    before = state.F, state.G
    for iteration in range(1, schedule.max_iter + 1):
        looks = iteration % schedule.check_every == 0 or iteration == schedule.max_iter
        if looks:
            before = state.F, state.G
        state.reweight(schedule, iteration)
        outcome.n_iter = iteration
        if not looks:
            continue
        progress = _progress(state, before, iteration, schedule.gamma_at(iteration))
        outcome.history.append(progress)
        outcome.converged = progress.change < tol
        stop = check(progress, state.F, state.G, state.observations.scale)
        if stop or outcome.converged:
            break
    outcome.F, outcome.G, outcome.singular = state.F, state.G, state.singular
    outcome.gamma = schedule.gamma_at(max(outcome.n_iter, 1))
    return outcome


def _progress(
    state: Iteration, before: tuple[Array, Array], iteration: int, gamma: float
) -> CompletionState:
    """Compare with the iterate before; both are low-rank matrices outside the observed entries."""
    observations = state.observations
    residuals = observations.residuals(state.F, state.G)
    moved = distance_squared(state.F, state.G, *before, observations.n_threads)
    moved -= square(residuals - observations.residuals(*before))
    change = (max(moved, 0.0) / state.length_squared(state.F, residuals)) ** 0.5
    residual = observations.relative(residuals)
    return CompletionState(iteration, change, residual, gamma, len(state.singular))
