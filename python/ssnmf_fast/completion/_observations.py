"""Observed entries, scaled for the algorithms, and the passes over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._linalg.operators import (
    MappedLowRank,
    Operator,
    Pattern,
    SparseOperator,
    SparsePlusLowRank,
)
from .._linalg.randomized_svd import truncated_svd
from .._linalg.tall import square

Shrink = tuple[float, float, float, bool, float]

IDENTITY: Shrink = (0.0, 1.0, 1.0, True, -np.inf)
_NORM_SKETCH, _NORM_STEPS = 5, 8


@dataclass(frozen=True)
class Observations:
    """P_O(M - offset) / scale, of spectral norm 1: values on a pattern, zero elsewhere.

    An iterate of completion is ``P_O(M) + P_c(phi(F G^T))`` = sparse + phi(low rank).
    """

    pattern: Pattern
    values: Array
    scale: float
    offset: float
    n_threads: int

    @classmethod
    def of(cls, matrix: sp.csr_array, offset: float, n_threads: int) -> Observations:
        """Scale the entries of a CSR array with sorted rows."""
        pattern = Pattern.of(matrix, n_threads)
        values = matrix.data - matrix.dtype.type(offset)
        rng = np.random.default_rng(0)
        largest = float(np.abs(values).max())
        if largest > 0:
            shifted = SparseOperator(pattern, values / values.dtype.type(largest), n_threads)
            _, singular, _ = truncated_svd(shifted, 1, _NORM_SKETCH, _NORM_STEPS, rng)
            scale = largest * float(singular[0])
        else:
            scale = 1.0
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
        """Frobenius norm of the observed entries."""
        return float(square(self.values) ** 0.5)

    def relative(self, residuals: Array) -> float:
        """Length of residuals, relative to that of the observed entries."""
        return float(square(residuals) ** 0.5 / self.norm) if self.norm > 0 else 0.0

    @property
    def root_mean_square(self) -> float:
        """Of an observed entry."""
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
        if shrink == IDENTITY:
            return SparsePlusLowRank(sparse, F, G, scale)
        return MappedLowRank(sparse, F, G, shrink)
