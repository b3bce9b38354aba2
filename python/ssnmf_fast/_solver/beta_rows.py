"""Rows of a factor that minimize a beta-divergence, the other factor fixed: Newton's method.

In a row s of F, with z = G s, the gradient is G^T (V (z^(beta-1) - x z^(beta-2))) and the second
derivative G^T diag(c) G, c = V ((beta - 1) z^(beta-2) + (2 - beta) x z^(beta-3)).  The least value
over s >= 0 of the quadratic model is the end of the step; gradients alone say how much of the step
lowers the loss.  All of it is in float64, on blocks of rows as dense arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.entries import block_slices
from .._data.tensor_entries import whole
from .._data.threads import one_blas_thread

if TYPE_CHECKING:
    from .terms import Term

_MOST_CUTS = 40
_LEAST_CURVATURE = 0.1  # of the convex part, where the loss is not convex
_LEAST_START = 1e-3  # of the level of a row, for entries of the start
_FLOOR = 1e-60  # of the level of the model, so that no power of it leaves the range
_CURVATURE_FLOOR = 1e-8
_TO_THE_BORDER, _LONGEST = 0.99, 100.0
_CLOSE = 1e-13  # of the sum of the absolute values of what a slope is the sum of
_QP_TOL, _FINEST_QP_TOL, _QP_SWEEPS = 0.05, 1e-15, 300


@one_blas_thread()
def solve_rows(term: Term, beta: float, F: Array, G: Array, tol: float, most: int) -> int:
    """Set every row of F to a minimizer, in at most `most` steps; return how many are unsolved.

    As for the Kullback-Leibler loss, a row is solved if no |min(F_k N_k / <F, N>, 1 - P_k / N_k)|
    is above `tol`.  Rows without data, or weight, become 0.
    """
    wide = padded(whole(G), np.float64)
    reached = wide.any(axis=1)
    unsolved = 0
    for rows in block_slices((len(F), len(wide))):
        X = term.entries.dense(rows, len(wide)).astype(np.float64) * reached
        V = term.form.dense(rows, G).astype(np.float64) * reached
        F[rows], left = _Rows(X, V, wide, beta).solve(F[rows].astype(np.float64), tol, most, term)
        unsolved += left
    return unsolved


@dataclass(frozen=True)
class _Rows:
    """Rows of weighted data V .* X and of weights V, both dense; G is padded."""

    X: Array
    V: Array
    G: Array
    beta: float

    def part(self, rows: Array) -> _Rows:
        return replace(self, X=self.X[rows], V=self.V[rows])

    def solve(self, F: Array, tol: float, most: int, term: Term) -> tuple[Array, int]:
        """Return the minimizers from a start, and the number of those that are not solved."""
        active = np.flatnonzero(self.X.any(axis=1))
        found = np.zeros_like(F)
        if not len(active):
            return found, 0
        rows = self.part(active)
        F = rows._start(F[active])
        for _ in range(most):
            z = F @ self.G.T
            level = z.max(axis=1, keepdims=True)
            down, up = rows._pulls(z, level)
            N, P = down @ self.G, up @ self.G
            found[active] = F
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = F * N / np.sum(F * N, axis=1, keepdims=True)
                slopes = np.where(N > 0, 1 - P / N, 0.0)
            wrong = (np.abs(np.minimum(shares, slopes)) > tol).any(axis=1)
            if not wrong.any():
                return found, 0
            active, F, z, level = active[wrong], F[wrong], z[wrong], level[wrong]
            rows = rows.part(wrong)
            end = rows._least(F, N[wrong], P[wrong], rows._curvature(z, level), tol, term.threads)
            F = rows._search(F, end, z, level)
        return found, len(active)

    def _start(self, F: Array) -> Array:
        """Return a start above 0, on the level of the data of every row."""
        sums = self.V @ self.G.sum(axis=1)
        level = (self.X.sum(axis=1) / sums)[:, None]
        fitted = np.sum(self.V * (F @ self.G.T), axis=1, keepdims=True)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scaled = F * (self.X.sum(axis=1, keepdims=True) / fitted)
        given = np.isfinite(scaled).all(axis=1, keepdims=True)
        above = np.maximum(scaled, _LEAST_START * level)
        return np.asarray(np.where(given, above, level) * self.G.any(axis=0))

    def _pulls(self, z: Array, level: Array) -> tuple[Array, Array]:
        """Return what pulls every entry of the model down, and up: V z^(beta-1), V x z^(beta-2)."""
        floored = np.maximum(z, _FLOOR * level)
        down = self.V * (z if self.beta > 1 else floored) ** (self.beta - 1)
        return down, self.X * floored ** (self.beta - 2)

    def _curvature(self, z: Array, level: Array) -> Array:
        """Return the weights of the squares in the quadratic model: positive, or 0."""
        convex = (2 - self.beta) * self.X * np.maximum(z, _FLOOR * level) ** (self.beta - 3)
        # Where there are no data the curvature is infinite at 0, but a step to there is a good one.
        z = np.maximum(z, _CURVATURE_FLOOR * level)
        rest = (self.beta - 1) * self.V * z ** (self.beta - 2)
        return np.maximum(convex + rest, _LEAST_CURVATURE * convex)

    def _least(self, F: Array, N: Array, P: Array, K: Array, tol: float, n: int) -> Array:
        """Return the least point of the quadratic model of every row."""
        count, m = K.shape
        indptr = np.arange(count + 1, dtype=np.int32) * np.int32(m)
        indices = np.tile(np.arange(m, dtype=np.int32), count)
        pull = (K * (F @ self.G.T)) @ self.G - (N - P)
        # The kernel asks for |slope_k| <= tol sqrt(K_kk) max(pull / sqrt(K_kk)), up to a factor.
        units = np.sqrt(K @ self.G**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.where(units > 0, pull / units, 0.0).max(axis=1, keepdims=True)
            share = np.nan_to_num(N / (units * largest), nan=1.0, posinf=1.0)
        tol = max(_QP_TOL * tol * float(share[share > 0].min(initial=1.0)), _FINEST_QP_TOL)
        end = padded(F, np.float64)
        # Rows of one size: the kernel may see tiny numbers, or huge ones, as 0 or infinity.
        size = K.max(axis=1, keepdims=True)
        entries = (indptr, indices, np.ascontiguousarray((K / size).ravel()))
        kernels.nnls(None, None, *entries, self.G, pull / size, end, tol, _QP_SWEEPS, n)
        return end

    def _search(self, F: Array, end: Array, z: Array, level: Array) -> Array:
        """Return points on the way to the ends of the steps that lower the loss."""
        step = end - F
        moves = step @ self.G.T
        first, _ = self._slopes(z, level, moves)
        falling = (self.X > 0) & (moves < 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            falls = np.where(falling, -moves / z, 0.0).max(axis=1)
            t = np.where(falls > _TO_THE_BORDER, _TO_THE_BORDER / falls, 1.0)
        here = np.arange(len(F))
        for _ in range(_MOST_CUTS):
            there = z[here] + t[here, None] * moves[here]
            slopes, sizes = self.part(here)._slopes(there, level[here], moves[here])
            # For a third-order error, half the sum of both slopes is the change of the loss.
            high = slopes > np.maximum(0.5 * np.abs(first[here]), _CLOSE * sizes)
            here = here[high]
            if not len(here):
                break
            ratio = np.abs(first[here]) / (np.abs(first[here]) + slopes[high])
            t[here] *= np.clip(ratio, 0.1, 0.6)
        if self.beta < 1:
            with np.errstate(divide="ignore", invalid="ignore"):  # how many steps to the border
                entries = np.where(step < 0, -F / step, np.inf).min(axis=1)
                model = np.where(falling, -z / moves, np.inf).min(axis=1)
            self._extend(t, z, level, moves, first, np.minimum(entries, _TO_THE_BORDER * model))
        return np.where((t == 1)[:, None], end, np.maximum(F + t[:, None] * step, 0.0))

    def _extend(
        self, t: Array, z: Array, level: Array, moves: Array, first: Array, room: Array
    ) -> None:
        """Lengthen full steps that fell far short of the least value along them, in place.

        Where the loss is not convex, the quadratic model may have far more curvature.
        """
        slopes, _ = self._slopes(z + moves, level, moves)
        short = np.flatnonzero((t == 1) & (slopes < 0.5 * first) & (room > 1))
        if not len(short):
            return
        fall = np.maximum(1 - slopes[short] / first[short], 1 / _LONGEST)
        further = np.minimum(np.minimum(1 / fall, _LONGEST), room[short])
        there = z[short] + further[:, None] * moves[short]
        slopes, _ = self.part(short)._slopes(there, level[short], moves[short])
        t[short] = np.where(slopes <= 0.5 * np.abs(first[short]), further, 1.0)

    def _slopes(self, z: Array, level: Array, moves: Array) -> tuple[Array, Array]:
        """Return the derivatives of the loss along the moves, and the sizes of what they add up."""
        down, up = self._pulls(np.maximum(z, 0.0), level)
        sizes = (down + up) * np.abs(moves)
        return np.sum((down - up) * moves, axis=1), np.sum(sizes, axis=1)
