"""Iteratively reweighted least squares on sparse plus low rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from .. import _linalg as ops
from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._linalg import leading_triplets, sketch
from ._problem import IDENTITY, CompletionProblem, Iterate, Observations, Pair, Shrink
from ._result import CompletionState

OVERSAMPLING = 5
_FIRST_POWER_STEPS, _POWER_STEPS = 3, 1
NEGLIGIBLE = 1e-12  # relative size of singular values that are dropped
LARGE = 1e-2  # of those that count, if the rank is not known
_EPS_DECAY, _LEAST_EPS = 0.9, 1e-30
_UNIFORM_ERROR = 1e-9  # relative error of replacing the map of the entries by a factor
_INNER_TOL = 1e-4
_CHECK_EVERY = 20
_TINY = 1e-300

Rule: TypeAlias = Callable[..., float]


def takes_iterate(rule: object) -> bool:
    """Return whether a schedule is a function of k and of the iterate."""
    given = signature(rule).parameters.values() if callable(rule) else ()
    places = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    return sum(one.kind in places and one.default is one.empty for one in given) > 1


def value_of(rule: Rule, name: str, iteration: int, sizes: Array | None = None) -> float:
    """Return the value of a function of k, or of k and the sizes in an iterate."""
    value = rule(iteration, sizes) if takes_iterate(rule) else rule(iteration)
    if not isinstance(value, Real) or not 0 < value < np.inf:
        raise ValueError(f"{name}({iteration}) must return a positive number; got {value!r}.")
    return float(value)


@dataclass(frozen=True)
class Schedule:
    """Regularizers, in units of the scaled entries, and numbers of steps by iteration."""

    gamma: float
    gamma_decay: float
    gamma_floor: float
    p: float = 1.0
    q: float = 1.0
    sparsity: float = 0.0  # the step c, or weight alpha, that pulls missing entries to zero
    sparsity_decay: float = 1.0
    eps_decay: float = _EPS_DECAY
    eps_floor: float = 1e-17
    floor: float = -np.inf  # smallest value of a missing entry
    sparse_steps: int = 1  # k_s
    inner_steps: int = 1  # k_l
    inner_tol: float = _INNER_TOL
    exact: bool = False  # exact solutions of rows instead of gradient steps
    explicit: bool = False  # Algorithm 2 as printed, see `printed_iterates`
    step_size: float | None = None  # s of its steps towards low rank; None is gamma^(1 - p/2)
    oversampling: int = OVERSAMPLING
    max_iter: int = 1000
    check_every: int = _CHECK_EVERY
    rules: Mapping[str, Rule] = field(default_factory=dict)  # instead of numbers

    def gamma_at(self, iteration: int, singular: Array | None = None) -> float:
        if "gamma" in self.rules:
            value = value_of(self.rules["gamma"], "gamma", iteration, singular)
            return max(value, self.gamma_floor)
        return max(self.gamma * self.gamma_decay ** (iteration - 1), self.gamma_floor)

    def eps_at(self, iteration: int, missing: Array | None = None) -> float:
        """Return eps in the weights of an iteration, which follows from the previous one."""
        if "eps" in self.rules and iteration > 1:
            rule, sizes = self.rules["eps"], None
            if missing is not None and takes_iterate(rule):
                sizes = np.sort(np.abs(missing))[::-1]
            return max(value_of(rule, "eps", iteration - 1, sizes), self.eps_floor)
        return max(self.eps_decay ** (iteration - 1), self.eps_floor)

    def step_at(self, iteration: int) -> float:
        c = self.sparsity
        if "sparsity" in self.rules:
            c = value_of(self.rules["sparsity"], "sparsity", iteration)
        return c * self.sparsity_decay ** (iteration - 1)

    def step_size_at(self, iteration: int) -> float | None:
        if "step_size" in self.rules:
            return value_of(self.rules["step_size"], "step_size", iteration)
        return self.step_size

    def map_at(self, iteration: int, largest: float) -> tuple[float, Shrink]:
        """Return the step towards sparsity as (scale, map), for entries up to `largest`."""
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
    return Schedule(1e-2 / eta, 1 / eta, gamma_min or 1e-10, max_iter=5000, **others)


def structured(
    gamma_min: float | None = None,
    step: str = "proximal",
    k_s: int = 1,
    k_l: int = 10,
    gamma: float | Rule = 0.5,
    eps: float | Rule = _EPS_DECAY,
    sparsity: float | Rule = 0.0,
    step_size: float | Rule | None = None,
    **others: Any,
) -> Schedule:
    """Structured sIRLS with the parameters of the authors' code, or Algorithm 2 of the thesis."""
    given: dict[str, Any] = {"gamma": gamma, "eps": eps}
    given |= {"sparsity": sparsity, "step_size": step_size}
    rules = {name: rule for name, rule in given.items() if callable(rule)}
    ratio, eps_ratio, c, size = (1.0 if callable(value) else value for value in given.values())
    others |= {"sparse_steps": k_s, "inner_steps": k_l, "eps_decay": eps_ratio, "rules": rules}
    others |= {"sparsity": c, "step_size": size}
    if step == "proximal":
        return Schedule(1.0, ratio, gamma_min or 1e-17, **others)
    others |= {"explicit": True, "eps_floor": _TINY}
    return Schedule(ratio, ratio, gamma_min or _TINY, **others)


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
    """State of the loop: factors F (n x R) and G (m x R), and the row space for the next SVD.

    With `dense`, it is Algorithm 1 of the thesis, which also weights missing entries of X (n x m).
    """

    def __init__(
        self,
        observations: Observations,
        rank: int | None,
        start: Pair | None,
        rng: np.random.Generator,
        *,
        dense: bool = False,
        oversampling: int = OVERSAMPLING,
    ) -> None:
        n, m = observations.shape
        self.observations = observations
        self._estimated, self._dense = rank is None, dense
        self.rank = min(observations.largest_rank() if rank is None else rank, n, m)
        self._columns = min(self.rank + oversampling, n, m)
        self._space = sketch(m, self._columns, observations.dtype, rng)
        self._power_steps = _FIRST_POWER_STEPS
        F, G = start if start is not None else (np.zeros((n, 1)), np.zeros((m, 1)))
        self.F, self.G = padded(F, observations.dtype), padded(G, observations.dtype)
        self._largest = 0.0  # bound of the missing entries
        self.gamma, self.singular = np.inf, np.zeros(0)
        self.X: Array | None = None  # the iterate, if it is stored

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        observations, n_threads = self.observations, self.observations.n_threads
        gamma = self.gamma = schedule.gamma_at(iteration)
        if self._dense:
            if self.X is None:
                self.X = np.ascontiguousarray(self.F @ self.G.T)
                indptr, indices, values = observations.csr
                self.X[entry_rows(indptr), indices] = values
            _, self.G = self._leading(ops.MatrixOperator(self.X, n_threads))
            self.F = np.zeros((len(self.X), self.G.shape[1]), dtype=observations.dtype)
            weights = ridge(self.singular, gamma, schedule.p)
            sparsity = schedule.sparsity * gamma ** (1 - schedule.p / 2)
            eps, q = max(schedule.eps_at(iteration), _LEAST_EPS), schedule.q
            kernels.structured_rows(
                *observations.csr, self.G, weights, sparsity, eps, q, self.X, self.F, n_threads
            )
            return
        scale, shrink = schedule.map_at(iteration, self._largest)
        residuals = observations.residuals(self.F, self.G, scale, shrink)
        sparse = ops.SparseOperator(observations.pattern, residuals, n_threads)
        mapped = None if shrink == IDENTITY else shrink
        product, G = self._leading(ops.SparsePlusLowRank(sparse, self.F, self.G, scale, mapped))
        if schedule.exact:
            F = observations.exact_rows(G, ridge(self.singular, gamma, schedule.p))
        else:
            F = self._steps(product, G, schedule)
        self.F, self.G = F, G
        # A bound of the entries of F G^T (Cauchy-Schwarz).
        rows, columns = (np.einsum("ik,ik->i", factor, factor).max() for factor in (F, G))
        self._largest = float(np.sqrt(rows * columns))

    def _leading(self, X: ops.Operator) -> Pair:
        """Return X G and the leading right singular vectors G of X; set the singular values."""
        # The space of the last iterate is a good start.
        U, singular, V = leading_triplets(X, self._space, self._columns, self._power_steps)
        self._space, self._power_steps = V, _POWER_STEPS
        count = max(1, min(self.rank, int((singular > NEGLIGIBLE * singular[0]).sum())))
        if self._estimated:
            above = int((singular[: self.rank] > LARGE * singular[0]).sum())
            self.rank = max(1, min(self.rank, above))
        self.singular = singular[:count].astype(np.float64)
        return padded(U[:, :count] * singular[:count], U.dtype), padded(V[:, :count], V.dtype)

    def _steps(self, product: Array, G: Array, schedule: Schedule) -> Array:
        """Gradient steps F <- (X G) diag(d) with fixed weights; `product` is the first X G."""
        csr, n_threads = self.observations.csr, self.observations.n_threads
        d = np.zeros(G.shape[1], G.dtype)
        d[: len(self.singular)] = damping(self.singular, self.gamma, schedule.p)
        F = product * d
        before: Pair | None = None
        for _ in range(1, schedule.inner_steps):
            # F + P_O(M - F G^T) G is X G, for orthonormal columns of G.
            product, residuals = np.empty_like(F), np.empty_like(csr[2])
            kernels.residual_step(*csr, F, G, residuals, product, n_threads)
            if before is not None:  # the change of the missing entries
                moved = ops.square(F - before[0]) - ops.square(residuals - before[1])
                if self.relative(moved, F, residuals) < schedule.inner_tol:
                    break
            before = F, residuals
            F = product * d
        return F

    def relative(self, moved: float, F: Array, residuals: Array) -> float:
        """Return a length, given its square, relative to the iterate with these residuals."""
        fitted = ops.square(self.observations.values - residuals)
        whole = self.observations.norm**2 + max(ops.square(F) - fitted, 0.0)
        return float((max(moved, 0.0) / (whole if whole > 0 else 1.0)) ** 0.5)


def distance_squared(
    F: Array, G: Array, F_before: Array, G_before: Array, n_threads: int = 1
) -> float:
    """||F G^T - F' G'^T||^2 for orthonormal columns of G and of G', without cancellation."""
    overlap = ops.cross(G, G_before, n_threads)
    outside, along = G_before.copy(), F.copy()
    ops.add_times(outside, G, overlap, n_threads, -1.0)
    ops.add_times(along, F_before, overlap.T, n_threads, -1.0)
    across = ops.times(F_before, ops.cross(outside, outside, n_threads), n_threads)
    return ops.square(along) + ops.inner(across, F_before)


def iterations(state: Iteration, schedule: Schedule, tol: float) -> Iterator[Iterate]:
    """Iterate until the relative change of an iteration is below `tol` at a check."""
    history: list[CompletionState] = []
    for iteration in range(1, schedule.max_iter + 1):
        before = state.F, state.G
        state.reweight(schedule, iteration)
        if iteration % schedule.check_every and iteration != schedule.max_iter:
            continue
        # Both iterates have low rank outside the observed entries.
        observations, F, G = state.observations, state.F, state.G
        residuals = observations.residuals(F, G)
        moved = distance_squared(F, G, *before, observations.n_threads)
        moved -= ops.square(residuals - observations.residuals(*before))
        change, residual = state.relative(moved, F, residuals), observations.relative(residuals)
        singular, gamma = state.singular, state.gamma
        history.append(CompletionState(iteration, change, residual, gamma, len(singular)))
        yield Iterate(observations, F, G, singular, history, change < tol, X=state.X)
        if change < tol:
            return


def estimated_rank(problem: CompletionProblem, schedule: Schedule) -> int:
    state = Iteration(problem.observations, None, problem.start, problem.rng)
    for _ in iterations(state, schedule, 1e-4):
        pass
    return state.rank
