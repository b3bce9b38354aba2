"""Weighted least squares on the tangent space of matrices of one rank, by conjugate gradients.

At U diag(s) V^T (orthonormal U: n x r, V: m x r) a tangent matrix is U (C V^T + R^T) + L V^T with a
core C (r x r) and two blocks R (m x r) with V^T R = 0, L (n x r) with U^T L = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import aligned_zeros, kernels, padded, padded_zeros
from .._common.arrays import Array
from .._data.arrays import kernel_parts, transpose
from .._linalg.operators import Operator, Pattern, add_times, cross, inner, times

_MAX_STEPS = 300  # of conjugate gradients


class Tangent(NamedTuple):
    """A tangent matrix, or a vector or a diagonal operator of the same blocks."""

    core: Array
    right: Array
    left: Array

    def plus(self, step: float, other: Tangent) -> Tangent:
        return Tangent(*(x + step * y for x, y in zip(self, other, strict=True)))

    def dot(self, other: Tangent) -> float:
        return float(sum(inner(x, y) for x, y in zip(self, other, strict=True)))

    def times(self, diagonal: Tangent) -> Tangent:
        return Tangent(*(x * d for x, d in zip(self, diagonal, strict=True)))

    def divided(self, diagonal: Tangent, shift: float) -> Tangent:
        return Tangent(*(x / (d + shift) for x, d in zip(self, diagonal, strict=True)))


class Weighted:
    """Entries of a pattern with their weights (None stands for ones), by rows and by columns."""

    def __init__(self, pattern: Pattern, weights: Array | None, dtype: Any, n_threads: int) -> None:
        self.pattern = pattern
        self.mean = 1.0 if weights is None else float(weights.mean())
        self.rows = (pattern.indptr, pattern.indices, weights)
        values = np.ones(len(pattern.indices), dtype) if weights is None else weights
        matrix = sp.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)
        indptr, indices, data = kernel_parts(transpose(matrix, n_threads))
        self.columns = (indptr, indices, None if weights is None else data)


class TangentSpace:
    """The space at U, V (unpadded, orthonormal columns), and the data term on some entries."""

    def __init__(self, U: Array, V: Array, n_threads: int) -> None:
        self.U, self.V = U, V
        self.rank = U.shape[1]
        self._n_threads = n_threads
        self._left = padded_zeros(len(U), 2 * self.rank, U.dtype)
        self._right = padded_zeros(len(V), 2 * self.rank, U.dtype)

    def factors(self, x: Tangent) -> tuple[Array, Array]:
        """Two padded factors of rank 2 r whose product is x; they are overwritten by the next."""
        r = self.rank
        self._left[:, :r], self._left[:, r : 2 * r] = self.U, x.left
        self._right[:, :r] = times(self.V, x.core.T, self._n_threads)
        self._right[:, :r] += x.right
        self._right[:, r : 2 * r] = self.V
        return self._left, self._right

    def _part(self, times_V: Array, transposed_times_U: Array) -> Tangent:
        """The tangent part of a matrix known by its products with V and, transposed, with U."""
        threads = self._n_threads
        left, right = np.ascontiguousarray(times_V), np.ascontiguousarray(transposed_times_U)
        core = cross(self.U, left, threads)
        add_times(left, self.U, core, threads, -1.0)
        add_times(right, self.V, core.T, threads, -1.0)
        return Tangent(core, right, left)

    def project(self, X: Operator) -> Tangent:
        """The tangent part of an operator."""
        U, V = (padded(factor, factor.dtype) for factor in (self.U, self.V))
        return self._part(X.times(V)[:, : self.rank], X.transposed_times(U)[:, : self.rank])

    def weigh(self, x: Tangent, entries: Sequence[Weighted]) -> Tangent:
        """The tangent part of W .* x, summed over several sets of entries."""
        r = self.rank
        left, right = self.factors(x)
        # One pass gives (W .* x) [., V], the other (W .* x)^T [U, .]
        rows = aligned_zeros(left.shape, left.dtype)
        columns = aligned_zeros(right.shape, right.dtype)
        for part in entries:
            kernels.sparse_pass(1, *part.rows, left, right, rows, 1.0, True, self._n_threads)
            kernels.sparse_pass(1, *part.columns, right, left, columns, 1.0, True, self._n_threads)
        return self._part(rows[:, r : 2 * r], columns[:, :r])


def curvature(singular: Array, eps: float, dtype: Any) -> Tangent:
    """Return the weights of log-determinant IRLS, relative to that of the complement, 1 / eps^2.

    They are a diagonal: (r, r) for the core, and (r,) for the columns of the other blocks.
    """
    s = np.maximum(np.asarray(singular, dtype=np.float64), eps * (1 + 1e-9))
    core = eps**2 / np.maximum(np.outer(s, s) - eps**2, 1e-300)
    sides = np.minimum(eps / np.maximum(s - eps, 1e-300), 1e12).astype(dtype)
    return Tangent(np.minimum(core, 1e12).astype(dtype), sides, sides)


def solve(
    space: TangentSpace,
    curvature: Tangent,
    entries: Sequence[Weighted],
    mean_weight: float,
    target: Tangent,
    start: Tangent,
    tol: float,
) -> Tangent:
    """Minimize x^T D x + sum of w (x - y)^2 by preconditioned conjugate gradients."""

    def apply(x: Tangent) -> Tangent:
        return space.weigh(x, entries).plus(1.0, x.times(curvature))

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
        if not bend > 0:  # rounding, at the end of what this precision can solve
            break
        length = rz / bend
        x = x.plus(length, direction)
        residual = residual.plus(-length, image)
        z = residual.divided(curvature, mean_weight)
        rz, before = residual.dot(z), rz
        direction = z.plus(rz / before, direction)
    return x
