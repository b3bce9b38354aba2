"""Iteratively reweighted least squares, on iterates that are sparse plus low rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._linalg.operators import (
    MatrixOperator,
    Operator,
    add_times,
    cross,
    inner,
    square,
    svd,
    times,
)
from .._linalg.randomized_svd import leading_triplets, sketch
from ._problem import IDENTITY, Fit, Observations, Problem, Shrink
from ._result import CompletionState

_OVERSAMPLING = 5
_FIRST_POWER_STEPS, _POWER_STEPS = 3, 1
_NEGLIGIBLE = 1e-12  # singular values below this part of the largest are dropped
_EPS_DECAY, _LEAST_EPS = 0.9, 1e-30
_UNIFORM_ERROR = 1e-9  # of replacing the map of the entries by one factor, relative
_INNER_TOL = 1e-4
_CHECK_EVERY = 20
_TINY = 1e-300

Rule = Callable[[int], float]
Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class Schedule:
    """How regularizers fall, and how many steps are taken; the scaled entries are the unit."""

    gamma: float
    gamma_decay: float
    gamma_floor: float
    p: float = 1.0
    q: float = 1.0
    sparsity: float = 0.0  # the step c, or weight alpha, that draws missing entries to zero
    sparsity_decay: float = 1.0
    eps_decay: float = _EPS_DECAY
    eps_floor: float = 1e-17
    floor: float = -np.inf  # smallest value of a missing entry
    sparse_steps: int = 1  # k_s
    inner_steps: int = 1  # k_l
    inner_tol: float = _INNER_TOL
    exact: bool = False  # rows are solved exactly instead of by gradient steps
    explicit: bool = False  # the sparsity step is one of its gradient, on an n x m array
    max_iter: int = 1000
    check_every: int = _CHECK_EVERY
    rules: Rules = field(default_factory=dict)  # "gamma" and "eps" as functions of the iteration

    def gamma_at(self, iteration: int) -> float:
        if "gamma" in self.rules:
            return max(self._by_rule("gamma", iteration), self.gamma_floor)
        return max(self.gamma * self.gamma_decay ** (iteration - 1), self.gamma_floor)

    def eps_at(self, iteration: int) -> float:
        """Return that of the weights of an iteration, which the one before has set."""
        if "eps" in self.rules and iteration > 1:
            return max(self._by_rule("eps", iteration - 1), self.eps_floor)
        return max(self.eps_decay ** (iteration - 1), self.eps_floor)

    def _by_rule(self, name: str, iteration: int) -> float:
        value = self.rules[name](iteration)
        if not isinstance(value, Real) or not 0 < value < np.inf:
            raise ValueError(f"{name}({iteration}) must return a positive number; got {value!r}.")
        return float(value)

    def step_at(self, iteration: int) -> float:
        return self.sparsity * self.sparsity_decay ** (iteration - 1)

    def map_at(self, iteration: int, largest: float) -> tuple[float, Shrink]:
        """Return the step towards sparsity, of entries up to `largest`, as (scale, map)."""
        step, eps = self.step_at(iteration) * self.sparse_steps, self.eps_at(iteration)
        if self.floor == -np.inf:
            pull = step * eps ** (self.q / 2 - 1)
            if pull * (1 - self.q / 2) * largest**2 / eps < _UNIFORM_ERROR:
                return 1 / (1 + pull), IDENTITY
        return 1.0, (step, eps, self.q, True, self.floor)


def sirls(
    observations: Observations, rank: int, gamma_min: float | None = None, **others: Any
) -> Schedule:
    """sIRLS (Mohan and Fazel) with the parameters of the authors' code."""
    eta = 1.03 if observations.freedom(rank) > 0.4 else 1.1
    floor = 1e-10 if gamma_min is None else gamma_min
    return Schedule(1e-2 / eta, 1 / eta, floor, max_iter=5000, **others)


def structured(
    gamma_min: float | None = None,
    step: str = "proximal",
    k_s: int = 1,
    k_l: int = 10,
    gamma: float | Rule = 0.5,
    eps: float | Rule = _EPS_DECAY,
    **others: Any,
) -> Schedule:
    """Structured sIRLS with the parameters of the authors' code, or Algorithm 2 of the thesis."""
    named = {"gamma": gamma, "eps": eps}
    rules = {name: rule for name, rule in named.items() if callable(rule)}
    ratio, eps_ratio = (1.0 if callable(value) else value for value in named.values())
    floor = 1e-17 if gamma_min is None else gamma_min
    others |= {"sparse_steps": k_s, "inner_steps": k_l, "eps_decay": eps_ratio, "rules": rules}
    if step == "proximal":
        return Schedule(1.0, ratio, floor, **others)
    others |= {"explicit": True, "inner_tol": 0.0, "check_every": 1, "eps_floor": _TINY}
    return Schedule(ratio, ratio, _TINY if gamma_min is None else gamma_min, **others)


def damping(singular: np.ndarray, gamma: float, p: float) -> np.ndarray:
    """1 - (gamma / (sigma^2 + gamma))^(1 - p/2), without cancellation."""
    s = np.asarray(singular, dtype=np.float64)
    with np.errstate(over="ignore"):  # of a tiny gamma
        return -np.expm1(-(1 - p / 2) * np.log1p(s * s / gamma))


def ridge(singular: np.ndarray, gamma: float, p: float) -> np.ndarray:
    """1 / damping - 1, without cancellation; finite for a singular value of 0."""
    s = np.asarray(singular, dtype=np.float64)
    grown = np.expm1((1 - p / 2) * np.log1p(s * s / gamma))
    return 1.0 / np.maximum(grown, 1e-100)


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
        self._estimated = rank is None
        self.rank = min(observations.largest_rank() if rank is None else rank, n, m)
        self._columns = min(self.rank + oversampling, n, m)
        self._space = sketch(m, self._columns, observations.dtype, rng)
        self._power_steps = _FIRST_POWER_STEPS
        F, G = start if start is not None else (np.zeros((n, 1)), np.zeros((m, 1)))
        self.F, self.G = padded(F, observations.dtype), padded(G, observations.dtype)
        self._largest = 0.0  # bound of the missing entries
        self.singular = np.zeros(0)
        self.X: Array | None = None  # the iterate, where it is stored

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        observations = self.observations
        gamma = schedule.gamma_at(iteration)
        if schedule.explicit:
            product, G = self._leading(self._explicit(schedule, iteration))
        else:
            scale, shrink = schedule.map_at(iteration, self._largest)
            product, G = self._leading(observations.iterate(self.F, self.G, scale, shrink))
        if schedule.exact:
            F = observations.exact_rows(G, ridge(self.singular, gamma, schedule.p))
        else:
            F = self._steps(product, G, schedule, gamma)
        self.F, self.G = F, G
        # Of the entries of F G^T, by Cauchy and Schwarz.
        rows, columns = (np.einsum("ik,ik->i", one, one).max() for one in (F, G))
        self._largest = float(np.sqrt(rows * columns))

    def _explicit(self, schedule: Schedule, iteration: int) -> Array:
        """Return the iterate, (n, m), after the gradient steps of the missing entries."""
        z = np.asarray(self.F @ self.G.T, dtype=np.float64)
        weights = (z * z + schedule.eps_at(iteration)) ** (schedule.q / 2 - 1)
        with np.errstate(over="ignore", invalid="ignore"):  # `svd` refuses what has diverged
            for _ in range(schedule.sparse_steps):
                z -= schedule.step_at(iteration) * (weights * z)
        np.maximum(z, schedule.floor, out=z)
        indptr, indices, values = self.observations.csr
        z[entry_rows(indptr), indices] = values
        return z.astype(self.observations.dtype, copy=False)

    def _leading(self, X: Operator | Array) -> tuple[Array, Array]:
        """X G and the leading right singular vectors G of an iterate; sets the singular values."""
        if isinstance(X, np.ndarray):
            U, singular, rows = svd(X)
            V = rows.T
        else:
            # The space of the last iterate is a good start; the first one has to be found.
            U, singular, V = leading_triplets(X, self._space, self._columns, self._power_steps)
            self._space, self._power_steps = V, _POWER_STEPS
        above = int(np.count_nonzero(singular > _NEGLIGIBLE * singular[0]))
        kept = max(1, min(self.rank, above))
        if self._estimated:
            found = int(np.count_nonzero(singular[: self.rank] > 1e-2 * singular[0]))
            self.rank = max(1, min(self.rank, found))
        self.singular = singular[:kept].astype(np.float64)
        return padded(U[:, :kept] * singular[:kept], U.dtype), padded(V[:, :kept], V.dtype)

    def _steps(self, product: Array, G: Array, schedule: Schedule, gamma: float) -> Array:
        """Gradient steps F <- (X G) diag(d) with fixed weights; `product` is the first X G."""
        d = np.zeros(G.shape[1])
        d[: len(self.singular)] = damping(self.singular, gamma, schedule.p)
        d = d.astype(G.dtype)
        F = product * d
        before: tuple[Array, Array] | None = None
        for _ in range(1, schedule.inner_steps):
            product, residuals = self.observations.step(F, G)
            if before is not None:  # how far the missing entries moved, for one G
                moved = square(F - before[0]) - square(residuals - before[1])
                if self._relative(moved, F, residuals) < schedule.inner_tol:
                    break
            before = F, residuals
            F = product * d
        return F

    def _relative(self, moved: float, F: Array, residuals: Array) -> float:
        """A squared length as a length, relative to the iterate that leaves these residuals."""
        fitted = square(self.observations.values - residuals)
        whole = self.observations.norm**2 + max(square(F) - fitted, 0.0)
        return float((max(moved, 0.0) / (whole if whole > 0 else 1.0)) ** 0.5)

    def state(self, before: tuple[Array, Array], iteration: int, gamma: float) -> CompletionState:
        """Compare with the iterate before; both have low rank outside the observed entries."""
        observations = self.observations
        residuals = observations.residuals(self.F, self.G)
        moved = distance_squared(self.F, self.G, *before, observations.n_threads)
        moved -= square(residuals - observations.residuals(*before))
        change = self._relative(moved, self.F, residuals)
        residual = observations.relative(residuals)
        return CompletionState(iteration, change, residual, gamma, len(self.singular))


class StructuredIteration(Iteration):
    """Algorithm 1 of the thesis; X (n x m) is dense, since missing entries are weighted too."""

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        observations = self.observations
        gamma = schedule.gamma_at(iteration)
        if self.X is None:
            self.X = np.ascontiguousarray(self.F @ self.G.T)
            indptr, indices, values = observations.csr
            self.X[entry_rows(indptr), indices] = values
        _, self.G = self._leading(MatrixOperator(self.X, observations.n_threads))
        self.F = np.zeros((observations.shape[0], self.G.shape[1]), dtype=observations.dtype)
        kernels.structured_rows(
            *observations.csr,
            self.G,
            ridge(self.singular, gamma, schedule.p),
            schedule.sparsity * gamma ** (1 - schedule.p / 2),
            max(schedule.eps_at(iteration), _LEAST_EPS),
            schedule.q,
            self.X,
            self.F,
            observations.n_threads,
        )


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


def iterations(state: Iteration, schedule: Schedule, tol: float) -> Iterator[Fit]:
    """Iterate until the relative change of an iteration is below `tol`, looked at now and then."""
    history: list[CompletionState] = []
    for iteration in range(1, schedule.max_iter + 1):
        before = state.F, state.G
        state.reweight(schedule, iteration)
        if iteration % schedule.check_every and iteration != schedule.max_iter:
            continue
        history.append(state.state(before, iteration, schedule.gamma_at(iteration)))
        converged = history[-1].change < tol
        observations, singular = state.observations, state.singular
        yield Fit(observations, state.F, state.G, singular, history, converged, iterate=state.X)
        if converged:
            return


def estimated_rank(problem: Problem, schedule: Schedule) -> int:
    state = Iteration(problem.observations, None, problem.start, problem.rng)
    for _ in iterations(state, schedule, 1e-4):
        pass
    return state.rank
