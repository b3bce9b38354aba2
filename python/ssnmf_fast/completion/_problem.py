"""What a method of completion is given, scaled observed entries, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._data.border import LARGEST, check_integer, check_option, check_real
from .._linalg.operators import Operator, Pattern, SparseOperator, SparsePlusLowRank, square
from .._linalg.randomized_svd import truncated_svd
from ._result import Completion, CompletionState

# Arguments of the kernels: c, eps and q of the step towards sparsity, that it is proximal, and the
# smallest value.
Shrink = tuple[float, float, float, bool, float]

IDENTITY: Shrink = (0.0, 1.0, 1.0, True, -np.inf)
_NORM_SKETCH, _NORM_STEPS = 5, 8


@dataclass(frozen=True)
class Observations:
    """P_O(M - offset) / scale, of spectral norm 1: values on a pattern, zero elsewhere."""

    pattern: Pattern
    values: Array
    scale: float
    offset: float
    n_threads: int

    @classmethod
    def of(cls, matrix: sp.csr_array, offset: float, n_threads: int) -> Observations:
        pattern = Pattern.of(matrix, n_threads)
        values = matrix.data - matrix.dtype.type(offset)
        largest = float(np.abs(values).max())
        scale = 1.0
        if largest > 0:
            shifted = SparseOperator(pattern, values / values.dtype.type(largest), n_threads)
            rng = np.random.default_rng(0)
            _, singular, _ = truncated_svd(shifted, 1, _NORM_SKETCH, _NORM_STEPS, rng)
            scale = largest * float(singular[0])
        return cls(pattern, values / values.dtype.type(scale), scale, offset, n_threads)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def csr(self) -> tuple[Array, Array, Array]:
        return self.pattern.indptr, self.pattern.indices, self.values

    @property
    def count(self) -> int:
        return len(self.values)

    @cached_property
    def norm(self) -> float:
        return float(square(self.values) ** 0.5)

    def relative(self, residuals: Array) -> float:
        return float(square(residuals) ** 0.5 / self.norm) if self.norm > 0 else 0.0

    @property
    def root_mean_square(self) -> float:
        return float(self.norm / self.count**0.5)

    def freedom(self, rank: int) -> float:
        """Degrees of freedom of a matrix of this rank for every observed entry (FR)."""
        n, m = self.shape
        return rank * (n + m - rank) / self.count

    def largest_rank(self) -> int:
        """Largest rank that the observed entries can fix (thesis 2.3.3)."""
        n, m = self.shape
        share = self.count / (n * m)
        return max(1, int(np.ceil(min(n, m) * (1 - np.sqrt(max(0.0, 1 - share))))))

    def residuals(self, F: Array, G: Array, scale: float = 1.0, shrink: Shrink = IDENTITY) -> Array:
        """P_O(M - phi(scale F G^T)), a value for every observed entry."""
        out = np.empty_like(self.values)
        step, eps, q, proximal, floor = shrink
        kernels.mapped_residuals(
            *self.csr, F, G, scale, step, eps, q, proximal, floor, out, self.n_threads
        )
        return out

    def step(self, F: Array, G: Array) -> tuple[Array, Array]:
        """F + P_O(M - F G^T) G, which is X G for orthonormal columns of G, and the residuals."""
        out, residuals = np.empty_like(F), np.empty_like(self.values)
        kernels.residual_step(*self.csr, F, G, residuals, out, self.n_threads)
        return out, residuals

    def exact_rows(self, G: Array, ridge: Array) -> Array:
        """Rows of F that minimize the weighted norm of the iterate (thesis (2.6))."""
        F = np.zeros((self.shape[0], G.shape[1]), dtype=self.dtype)
        kernels.ridge_rows(*self.csr, G, ridge, F, self.n_threads)
        return F

    def iterate(self, F: Array, G: Array, scale: float, shrink: Shrink) -> Operator:
        """P_O(M) + P_c(phi(scale F G^T)) as an operator; the scale is 1 unless phi is identity."""
        sparse = SparseOperator(self.pattern, self.residuals(F, G, scale, shrink), self.n_threads)
        return SparsePlusLowRank(sparse, F, G, scale, None if shrink == IDENTITY else shrink)


@dataclass(frozen=True)
class Problem:
    """Checked arguments of :func:`ssnmf_fast.complete`, in the units of the data."""

    entries: sp.csr_array
    rank: int | None
    gamma_min: float | str | None
    biases: tuple[float, float] | None  # the weight of zero in means of rows and of columns
    max_iter: int | None
    tol: float | None
    rng: np.random.Generator
    n_threads: int
    fill_value: float = 0.0
    lower: float = -np.inf  # smallest value of a missing entry
    init: tuple[Array, Array] | None = None  # F and G to start from, with orthonormal columns of G
    tenths: int = 0  # to hide, one after the other, for the choice of gamma at a given rank

    @cached_property
    def observations(self) -> Observations:
        return Observations.of(self.entries, self.fill_value, self.n_threads)

    @property
    def floor(self) -> float:
        """Smallest value of a missing entry, in scaled units."""
        return (self.lower - self.fill_value) / self.observations.scale

    @cached_property
    def start(self) -> tuple[Array, Array] | None:
        """The factors of a warm start, in scaled units."""
        if self.init is None:
            return None
        F, G = self.init
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            F = F / F.dtype.type(self.observations.scale)
        limit = LARGEST[F.dtype]
        if not np.abs(F).max(initial=0.0) <= limit:
            raise ValueError(
                f"init is more than {limit:.0e} times as large as M - fill_value, too large to "
                "start from. Leave it out, or divide it by a constant."
            )
        return F, G


class Fit(NamedTuple):
    """What a method has come to: F G^T in scaled units, with orthonormal columns of G."""

    observations: Observations
    F: Array
    G: Array
    singular: Array
    history: list[CompletionState]
    converged: bool
    biases: tuple[Array, Array] | None = None  # of rows and of columns, in the units of the data
    iterate: Array | None = None  # where a method stores it, n x m

    def completion(self, problem: Problem) -> Completion:
        observations, rank = self.observations, len(self.singular)
        dtype, scale = observations.dtype, observations.dtype.type(observations.scale)
        left, right = self.F[:, :rank] * scale, np.ascontiguousarray(self.G[:, :rank].T)
        if self.biases is not None:
            rows, columns = self.biases
            left = np.column_stack([left, rows, np.ones(len(rows))]).astype(dtype)
            right = np.vstack([right, np.ones(len(columns)), columns]).astype(dtype)
        X, entries = self.iterate, problem.entries
        if X is not None:
            X = X * scale + dtype.type(observations.offset)
            np.maximum(X, dtype.type(problem.lower), out=X)
            X[entry_rows(entries.indptr), entries.indices] = entries.data  # not rounded by scaling
        last = self.history[-1] if self.history else None
        return Completion(
            left=left,
            right=right,
            offset=observations.offset,
            singular_values=self.singular * observations.scale,
            n_components=rank,
            scale=observations.scale,
            gamma=0.0 if last is None else last.gamma,
            history=self.history,
            n_iter=0 if last is None else last.iteration,
            converged=self.converged,
            lower=problem.lower,
            observed=entries,
            iterate=X,
        )


class Method(ABC):
    """A method of :func:`ssnmf_fast.complete`."""

    by_levels: ClassVar[bool] = False  # whether it fits noisy data, through levels of gamma
    takes_rank: ClassVar[bool] = True  # and a smallest gamma and a start
    nonnegative: ClassVar[bool] = False  # the default, where no observed entry is negative
    dense: ClassVar[bool] = False  # whether its iterate is an n x m array, not of low rank
    options: ClassVar[dict[str, Sequence[str]]] = {}  # values of the parameters that are names

    def __post_init__(self) -> None:
        for parameter in fields(self):  # type: ignore[arg-type]
            name, value = parameter.name, getattr(self, parameter.name)
            if name in self.options:
                check_option(value, name, self.options[name])
                continue
            if name in ("k_s", "k_l"):
                object.__setattr__(self, name, check_integer(value, name, 1))
                continue
            if name in ("gamma", "eps") and callable(value):
                continue
            number = check_real(value, name)
            if number > 1 and name != "sparsity":
                raise ValueError(f"{name} must be from 0 to 1; got {value!r}.")
            object.__setattr__(self, name, number)

    @abstractmethod
    def _fits(self, problem: Problem) -> Iterator[Fit]:
        """Yield what every look at the iterations has found; the last one is the result."""
