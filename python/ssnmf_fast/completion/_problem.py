"""Problems of completion: the observed entries, the arguments, the iterates, and the methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import _linalg as ops
from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._common.locks import cached_property
from .._data.arrays import entry_rows
from .._data.border import LARGEST, check_integer, check_option, check_real
from .._linalg import truncated_svd
from ._result import Completion, CompletionState

# Arguments of the kernels: c, eps and q of the step towards sparsity, whether it is proximal, and
# the smallest value.
Shrink = tuple[float, float, float, bool, float]
Pair = tuple[Array, Array]

IDENTITY: Shrink = (0.0, 1.0, 1.0, True, -np.inf)
_NORM_SKETCH, _NORM_STEPS = 5, 8


@dataclass(frozen=True)
class Observations:
    """P_O(M - offset) / scale, of spectral norm 1: values on a pattern, zero elsewhere."""

    pattern: ops.Pattern
    values: Array
    scale: float
    offset: float
    n_threads: int

    @classmethod
    def of(cls, matrix: sp.csr_array, offset: float, n_threads: int) -> Observations:
        pattern = ops.Pattern.of(matrix, n_threads)
        values = matrix.data - matrix.dtype.type(offset)
        largest = float(np.abs(values).max())
        scale = 1.0
        if largest > 0:
            shifted = ops.SparseOperator(pattern, values / values.dtype.type(largest), n_threads)
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

    @cached_property
    def norm(self) -> float:
        return float(ops.square(self.values) ** 0.5)

    def relative(self, residuals: Array) -> float:
        return float(ops.square(residuals) ** 0.5 / self.norm) if self.norm > 0 else 0.0

    @property
    def root_mean_square(self) -> float:
        return float(self.norm / len(self.values) ** 0.5)

    def freedom(self, rank: int) -> float:
        """Degrees of freedom of a matrix of this rank, per observed entry (FR)."""
        n, m = self.shape
        return rank * (n + m - rank) / len(self.values)

    def largest_rank(self) -> int:
        """Largest rank that the observed entries can determine (thesis 2.3.3)."""
        n, m = self.shape
        share = len(self.values) / (n * m)
        return max(1, int(np.ceil(min(n, m) * (1 - np.sqrt(max(0.0, 1 - share))))))

    def residuals(self, F: Array, G: Array, scale: float = 1.0, shrink: Shrink = IDENTITY) -> Array:
        """P_O(M - phi(scale F G^T)), a value for every observed entry."""
        out, threads = np.empty_like(self.values), self.n_threads
        step, eps, q, proximal, floor = shrink
        kernels.mapped_residuals(
            *self.csr, F, G, scale, step, eps, q, proximal, floor, out, threads
        )
        return out

    def exact_rows(self, G: Array, ridge: Array) -> Array:
        """Rows of F that minimize the weighted norm of the iterate (thesis (2.6))."""
        F = np.zeros((self.shape[0], G.shape[1]), dtype=self.dtype)
        kernels.ridge_rows(*self.csr, G, ridge, F, self.n_threads)
        return F


@dataclass(frozen=True)
class CompletionProblem:
    """Checked arguments of :func:`ssnmf_fast.complete`, in the units of the data."""

    entries: sp.csr_array
    rank: int | None
    gamma_min: float | str | None
    biases: tuple[float, float] | None  # the weights of zero in row and column means
    max_iter: int | None
    tol: float | None
    rng: np.random.Generator
    n_threads: int
    fill_value: float = 0.0
    lower: float = -np.inf  # smallest value of a missing entry
    init: Pair | None = None  # F and G to start from, with orthonormal columns of G
    tenths: int = 0  # hidden one after the other to choose gamma at a given rank

    @cached_property
    def observations(self) -> Observations:
        return Observations.of(self.entries, self.fill_value, self.n_threads)

    @property
    def floor(self) -> float:
        """Smallest value of a missing entry, in scaled units."""
        return (self.lower - self.fill_value) / self.observations.scale

    @cached_property
    def start(self) -> Pair | None:
        """The factors of a warm start, in scaled units."""
        if self.init is None:
            return None
        F, G = self.init
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            F = F / F.dtype.type(self.observations.scale)
        limit = LARGEST[F.dtype]
        if not np.abs(F).max(initial=0.0) <= limit:
            raise ValueError(
                f"init is more than {limit:.0e} times as large as M - fill_value, which is too "
                "large. Leave it out, or divide it by a constant."
            )
        return F, G


class Iterate(NamedTuple):
    """Iterate of a method: F G^T in scaled units, with orthonormal columns of G."""

    observations: Observations
    F: Array
    G: Array
    singular: Array
    history: list[CompletionState]
    converged: bool
    biases: Pair | None = None  # of rows and of columns, in the units of the data
    X: Array | None = None  # n x m, if the method stores it

    def pair(self, rank: int) -> Pair:  # in the units of the data
        F, G = ops.signed(self.F[:, :rank], self.G[:, :rank])
        return F * F.dtype.type(self.observations.scale), np.ascontiguousarray(G.T)

    def completion(self, problem: CompletionProblem) -> Completion:
        observations, rank = self.observations, len(self.singular)
        dtype, scale = observations.dtype, observations.dtype.type(observations.scale)
        left, right = self.pair(rank)
        if self.biases is not None:
            rows, columns = self.biases
            left = np.column_stack([left, rows, np.ones(len(rows))]).astype(dtype)
            right = np.vstack([right, np.ones(len(columns)), columns]).astype(dtype)
        X, entries = self.X, problem.entries
        if X is not None:
            X = X * scale + dtype.type(observations.offset)
            np.maximum(X, dtype.type(problem.lower), out=X)
            X[entry_rows(entries.indptr), entries.indices] = entries.data  # not rounded by scaling
        return Completion(
            left,
            right,
            observations.offset,
            self.singular * observations.scale,
            n_components=rank,
            scale=observations.scale,
            gamma=self.history[-1].gamma if self.history else 0.0,
            history=self.history,
            n_iter=self.history[-1].iteration if self.history else 0,
            converged=self.converged,
            lower=problem.lower,
            observed=entries,
            iterate=X,
        )


class Method(ABC):
    """A method of :func:`ssnmf_fast.complete`."""

    by_levels: ClassVar[bool] = False  # whether it fits noisy data by levels of gamma
    takes_rank: ClassVar[bool] = True  # and a smallest gamma and a start
    nonnegative: ClassVar[bool] = False  # the default if no observed entry is negative
    dense: ClassVar[bool] = False  # whether its iterate is an n x m array
    options: ClassVar[dict[str, Sequence[str]]] = {}  # values of text parameters
    counts: ClassVar[dict[str, int]] = {}  # smallest values of integers
    schedules: ClassVar[Sequence[str]] = ()  # parameters that may be functions

    def __post_init__(self) -> None:
        for parameter in fields(self):  # type: ignore[arg-type]
            name, value = parameter.name, getattr(self, parameter.name)
            if name in self.options:
                check_option(value, name, self.options[name])
            elif name in self.counts:
                object.__setattr__(self, name, check_integer(value, name, self.counts[name]))
            elif not (name in self.schedules and (value is None or callable(value))):
                most = None if name in ("sparsity", "step_size") else 1
                object.__setattr__(self, name, check_real(value, name, maximum=most))

    @abstractmethod
    def _iterates(self, problem: CompletionProblem) -> Iterator[Iterate]:
        """Yield the iterate at every check; the last one is the result."""
