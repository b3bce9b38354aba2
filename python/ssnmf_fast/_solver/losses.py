"""Losses: squares, the I-divergence, and other beta-divergences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, isnan, prod
from numbers import Real
from typing import Any

import numpy as np

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.entries import Entries, Target, block_slices, row_slices
from .._data.tensors import full_columns
from .._data.threads import one_blas_thread
from .terms import Loss, Term, register, registered


class Frobenius(Loss):
    """d(x, z) = (x - z)^2."""

    name = "frobenius"
    powers = (0, 1)
    exponents = (1.0, 0.0)
    slope = 2.0
    degree = 2
    quadratic = True
    compiled = True

    def entrywise(self, sparse: bool, listed: bool, weighted: bool) -> bool:
        return listed and (sparse or not weighted)

    def constant(self, z: Array, w: Array | None) -> float:
        total = 0.0
        for rows in block_slices((len(z), prod(z.shape[1:]))):
            squares = np.square(z[rows], dtype=np.float64)
            squares = squares if w is None else w[rows].astype(np.float64) * squares
            part = float(squares.sum())
            total += float(np.nansum(squares)) if isnan(part) else part
        return total

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Sum listed squared residuals, or return |Z|^2 - 2 <P, F> + <N, F>."""
        if term.data is not None:
            data, weights = term.data  # those of a dense array are not listed
            return float(data.sum("frobenius_loss", F, G, *([weights] if data.sparse else [])))
        below = term.form.squares(F, G)
        P = np.empty_like(F)
        self.P(term.entries, F, G, Target(P))
        above = float(kernels.inner(F, P, term.threads))
        return max(term.constant - 2 * above + below, 0.0)

    def energy(self, values: Array) -> Array:
        return values**2

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        P = np.empty_like(F)
        self.P(term.entries, F, G, Target(P))
        part, unsolved = term.form.quadratic(G), 0
        blocks: Iterable[tuple[slice, tuple[Any, Any, Any], Array]]
        if part.entries is None:
            nothing = (None, None, None), np.empty((0, F.shape[1]), F.dtype)
            blocks = ((rows, *nothing) for rows in row_slices(len(F)))
        else:
            blocks = part.entries.csr_blocks(len(F), G)
        for rows, (indptr, indices, w), here in blocks:
            scale = None if part.rows is None else part.rows[rows]
            rest = here, P[rows], F[rows], tol, most, term.threads
            unsolved += kernels.nnls(part.gram, scale, indptr, indices, w, *rest)
        return unsolved


_LARGEST_FAR_SIDE = 1 << 25


class KullbackLeibler(Loss):
    """d(x, z) = x log(x / z) - x + z with 0 log 0 = 0, the I-divergence."""

    name = "kullback-leibler"
    powers = (-1, 0)
    degree = 1
    descends = True
    compiled = True
    model_free = True
    constant_of_weights = True
    start = "least-squares"

    def constant(self, z: Array, w: Array | None) -> float:
        """Return the sum of -wz log w: w (z log z/y - z) = (wz log wz/y - wz) - wz log w."""
        if w is None:
            return 0.0
        total = 0.0
        for rows in block_slices((len(z), prod(z.shape[1:]))):
            wz, v = w[rows] * z[rows], w[rows]
            positive = wz > 0
            total -= float(np.sum(wz[positive] * np.log(v[positive].astype(np.float64))))
        return total

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Return sum V (z log z/(FG) - z) + <N, F>."""
        N = np.empty_like(F)
        self.N(term.form, F, G, Target(N))
        below = float(kernels.inner(F, N, term.threads))
        value = term.constant + term.entries.sum("kl_loss", F, G) + below
        return max(value, 0.0)  # negative only by rounding of large sums

    def descend(
        self,
        term: Term,
        F: Array,
        G: Array,
        support: Array | None,
        sweeps: int,
        with_value: bool,
        linear: float = 0.0,
    ) -> float | None:
        N = np.empty_like(F[:1] if term.form.equal_rows else F)
        self.N(term.form, F, G, Target(N))
        down = N + N.dtype.type(linear) if linear else N
        csr = term.entries.csr_rows(slice(0, len(F)))
        above = kernels.kl_descent(*csr, G, down, F, support, sweeps, with_value, term.threads)
        if not with_value:
            return None
        if len(N) == len(F):
            below = float(kernels.inner(F, N, term.threads))
        else:
            below = float(N[0].astype(np.float64) @ F.sum(axis=0, dtype=np.float64))
        return float(max(term.constant + above + below, 0.0))

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        """Return about 700 times the sum of these entries: the model counts as a tiny number."""
        if (full_columns(F) & full_columns(G)).any():
            return 0.0
        return entries.sum("kl_unreached", F, G)

    def energy(self, values: Array) -> Array:
        return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        N = np.empty_like(F)
        self.N(term.form, F, G, Target(N))
        unsolved = 0
        for rows, csr, here in term.entries.csr_blocks(len(F), G):
            unsolved += kernels.kl_rows(*csr, here, N[rows], F[rows], tol, most, term.threads)
        return unsolved


class BetaDivergence(Loss):
    """The divergence for other betas from 0 to 2; N needs all entries, even of sparse data."""

    constant_of_weights = True

    def __init__(self, beta: float, name: str | None = None) -> None:
        self.beta = self.degree = beta
        self.name = name or f"beta-divergence of {beta:g}"
        self.exponents = (max(beta - 1, 0.0), beta - 2)
        self.powers = (beta - 2, beta - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BetaDivergence) and other.beta == self.beta

    def __hash__(self) -> int:
        return hash(self.beta)

    def __reduce__(self) -> tuple[Any, ...]:
        return loss_named, (self.beta, "loss")

    def entrywise(self, sparse: bool, listed: bool, weighted: bool) -> bool:
        return weighted or self.beta == 0

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Sum over the listed entries, and z^beta / beta over all others (from N)."""
        data, w = term.data or (term.entries, None)
        # N also covers the zeros of a dense array with weights.
        whole = term.listed and (w is None or data.sparse or self.beta == 0)
        parameters = self.beta, not whole
        if w is None:
            value = term.entries.sum("beta_loss", F, G, *parameters)
        else:
            value = sum(
                kernels.sparse_beta_loss(*csr, *parameters, F[rows], here, term.threads, weights)
                for rows, csr, weights, here in data.weighted(w, G)
            )
        if not whole:
            N = np.empty_like(F)
            self.N(term.form, F, G, Target(N))
            value += float(kernels.inner(F, N, term.threads)) / self.beta
        return max(value, 0.0)

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        if self.beta >= 1 or (full_columns(F) & full_columns(G)).any():
            return 0.0
        infinite = entries.sum("beta_loss", F, G, self.beta, True) == inf
        return inf if infinite else 0.0

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        """Use Newton's method until no |min(F_k N_k / <F, N>, 1 - P_k / N_k)| is above `tol`.

        If the far side of a tensor is too large, use multiplicative steps.
        """
        if term.entries.by_factors and prod(G.shape) > _LARGEST_FAR_SIDE:
            return super().solve_rows(term, F, G, tol, most)
        wide = padded(np.asarray(G[:]), np.float64)
        reached = wide.any(axis=1)
        unsolved = 0
        with one_blas_thread():
            for rows in block_slices((len(F), len(wide))):
                X = term.entries.dense(rows, len(wide)).astype(np.float64) * reached
                V = term.form.dense(rows, G).astype(np.float64) * reached
                start, block = F[rows].astype(np.float64), _Rows(X, V, wide, self.beta)
                F[rows], left = block.solve(start, tol, most, term.threads)
                unsolved += left
        return unsolved

    def check(self, term: Term, name: str) -> None:
        """Refuse zeros with a weight, for which Itakura-Saito is infinite."""
        if self.beta > 0:
            return
        data, w = term.data or (None, None)
        values = np.ones(1) if data is None else data.values
        least = np.finfo(values.dtype).tiny  # smaller numbers count as 0 in the kernels
        zero = values < least
        if isinstance(w, np.ndarray):
            zero &= w > 0
        if zero.any() or not term.listed:
            below = zero.any() and values[zero].min() > 0
            what = f"numbers below {least:.1e}, which count as zeros" if below else "zeros"
            raise ValueError(
                f"{name} has {what}, for which the loss {self.name!r} is not defined. Use a number "
                "slightly above 0 as the loss, add a small constant to the data, or leave zeros "
                "out by NaN in a dense array or weights.observed(...)."
            )

    def energy(self, values: Array) -> Array:
        if self.beta == 0:
            return -np.log(np.where(values > 0, values, 1.0))
        return np.asarray(values**self.beta / (self.beta * (self.beta - 1)))


FROBENIUS = register(Frobenius())
KULLBACK_LEIBLER = register(KullbackLeibler())
ITAKURA_SAITO = register(BetaDivergence(0.0, "itakura-saito"))
_BY_BETA: dict[float, Loss] = {2: FROBENIUS, 1: KULLBACK_LEIBLER, 0: ITAKURA_SAITO}


def loss_named(name: Any, argument: str) -> Loss:
    """Return the loss for an object, a registered name or a beta."""
    if isinstance(name, Loss):
        return name
    number = isinstance(name, Real) and not isinstance(name, (bool, np.bool_))
    if number and 0 <= name <= 2:
        return _BY_BETA.get(float(name)) or BetaDivergence(float(name))
    return registered(name, argument)


def name_of(loss: object) -> Any:
    """Return the name or beta of a loss; names and others stay."""
    return loss.__reduce__()[1][0] if isinstance(loss, Loss) else loss


# Rows of a factor that minimize a beta-divergence, the other factor fixed: Newton's method.
#
# In a row s of F, with z = G s, the gradient is G^T (V (z^(beta-1) - x z^(beta-2))) and the second
# derivative G^T diag(c) G, c = V ((beta - 1) z^(beta-2) + (2 - beta) x z^(beta-3)).  A step ends at
# the minimum over s >= 0 of the quadratic model; only gradients determine how much of the step
# lowers the loss.  Computations are in float64, on blocks of rows as dense arrays.

_MOST_CUTS = 40
_LEAST_CURVATURE = 0.1  # relative to the convex part, if the loss is not convex
_LEAST_START = 1e-3  # of entries of the start, relative to the level of the row
_FLOOR = 1e-60  # of the model, relative to its level, so that powers stay in the range
_CURVATURE_FLOOR = 1e-8
_TO_THE_BORDER, _LONGEST = 0.99, 100.0
_CLOSE = 1e-13  # of a slope, relative to the sum of the absolute values of its terms
_QP_TOL, _FINEST_QP_TOL, _QP_SWEEPS = 0.05, 1e-15, 300


@dataclass(frozen=True)
class _Rows:
    """Rows of weighted data V .* X and of weights V, both dense; G is padded."""

    X: Array
    V: Array
    G: Array
    beta: float

    def part(self, rows: Array) -> _Rows:
        return replace(self, X=self.X[rows], V=self.V[rows])

    def solve(self, F: Array, tol: float, most: int, threads: int) -> tuple[Array, int]:
        """Return the minimizers from a start, and the number of unsolved rows."""
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
            end = rows._least(F, N[wrong], P[wrong], z, level, tol, threads)
            F = rows._search(F, end, z, level)
        return found, len(active)

    def _start(self, F: Array) -> Array:
        """Return a positive start with the level of the data in every row."""
        sums = self.V @ self.G.sum(axis=1)
        level = (self.X.sum(axis=1) / sums)[:, None]
        fitted = np.sum(self.V * (F @ self.G.T), axis=1, keepdims=True)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scaled = F * (self.X.sum(axis=1, keepdims=True) / fitted)
        given = np.isfinite(scaled).all(axis=1, keepdims=True)
        above = np.maximum(scaled, _LEAST_START * level)
        return np.asarray(np.where(given, above, level) * self.G.any(axis=0))

    def _pulls(self, z: Array, level: Array) -> tuple[Array, Array]:
        """Return the pulls at the entries of the model: V z^(beta-1) down, V x z^(beta-2) up."""
        floored = np.maximum(z, _FLOOR * level)
        down = self.V * (z if self.beta > 1 else floored) ** (self.beta - 1)
        return down, self.X * floored ** (self.beta - 2)

    def _least(
        self, F: Array, N: Array, P: Array, z: Array, level: Array, tol: float, n: int
    ) -> Array:
        """Return the minimizers of the quadratic model, with nonnegative weights."""
        convex = (2 - self.beta) * self.X * np.maximum(z, _FLOOR * level) ** (self.beta - 3)
        # Without data the curvature is infinite at 0, but steps to 0 are good.
        z = np.maximum(z, _CURVATURE_FLOOR * level)
        rest = (self.beta - 1) * self.V * z ** (self.beta - 2)
        K = np.maximum(convex + rest, _LEAST_CURVATURE * convex)
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
        # Scale the rows: tiny and huge numbers may be 0 or infinite in the kernel.
        size = K.max(axis=1, keepdims=True)
        entries = (indptr, indices, np.ascontiguousarray((K / size).ravel()))
        kernels.nnls(None, None, *entries, self.G, pull / size, end, tol, _QP_SWEEPS, n)
        return end

    def _search(self, F: Array, end: Array, z: Array, level: Array) -> Array:
        """Return points between the rows and the ends of the steps that lower the loss."""
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
            with np.errstate(divide="ignore", invalid="ignore"):  # number of steps to the border
                entries = np.where(step < 0, -F / step, np.inf).min(axis=1)
                model = np.where(falling, -z / moves, np.inf).min(axis=1)
            room = np.minimum(entries, _TO_THE_BORDER * model)
            # Lengthen full steps that end far from the minimum.
            slopes, _ = self._slopes(z + moves, level, moves)
            short = np.flatnonzero((t == 1) & (slopes < 0.5 * first) & (room > 1))
            fall = np.maximum(1 - slopes[short] / first[short], 1 / _LONGEST)
            further = np.minimum(np.minimum(1 / fall, _LONGEST), room[short])
            there = z[short] + further[:, None] * moves[short]
            slopes, _ = self.part(short)._slopes(there, level[short], moves[short])
            t[short] = np.where(slopes <= 0.5 * np.abs(first[short]), further, 1.0)
        return np.where((t == 1)[:, None], end, np.maximum(F + t[:, None] * step, 0.0))

    def _slopes(self, z: Array, level: Array, moves: Array) -> tuple[Array, Array]:
        down, up = self._pulls(np.maximum(z, 0.0), level)
        sizes = (down + up) * np.abs(moves)
        return np.sum((down - up) * moves, axis=1), np.sum(sizes, axis=1)
