"""The iterations of scikit-learn's NMF by the kernels: coordinate descent, multiplicative steps.

X ~ W H with W (n x r) and the transpose of H (m x r) in padded storage; F is one of the factors and
G the other.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array, Matrix
from .._common.locks import cached_property
from .._data.arrays import column_ranges
from .._data.border import check_matrix
from .._data.entries import DenseEntries, Entries, SparseEntries, Target
from .._data.weight_forms import Separable

EPSILON = float(np.finfo(np.float32).eps)  # scikit-learn's lower bound of models and denominators
_ZERO = float(np.finfo(np.float64).eps)  # smaller entries become 0 if beta is at most 1

Penalty = tuple[float, float]  # of the sum of the entries, of half the sum of their squares
Penalties = tuple[Penalty, Penalty]  # of W, of H


class Sides:
    """Checked data by rows and by columns, with the sums for the updates of both factors.

    With `once`, no transposed copy is made, since few passes follow.
    """

    def __init__(self, X: Any, beta: float, threads: int, once: bool = False) -> None:
        self.X, self.beta, self.threads, self.sparse = X, beta, threads, sp.issparse(X)
        self.values = X.data if self.sparse else X
        if self.sparse:
            bounds = np.array([0, X.shape[1]]) if once else None
            if once and threads > 1:
                bounds = column_ranges(np.bincount(X.indices, minlength=X.shape[1]), threads)
            self._rows: Entries = SparseEntries(X, threads, bounds)
        else:
            self._rows = DenseEntries(X, threads)
        self._ones = Separable((None, None), threads)
        self.exponent = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0

    @cached_property
    def _columns(self) -> Entries:
        return self._rows.transposed()

    @cached_property
    def _square(self) -> float:
        return float(np.sum(np.square(self.values, dtype=np.float64)))

    def noise(
        self, W: Array, H: Array, solver: str, penalties: Penalties, update_H: bool
    ) -> str | None:
        """Return why rounding errors decide the iterations from a start, or None."""
        total, count = self.values.sum(dtype=np.float64), np.count_nonzero(self.values) or 1
        eps, factors = np.finfo(W.dtype).eps, (padded(W, W.dtype), padded(H.T, W.dtype))
        if self.error(*factors) ** 2 <= eps * count * (total / count) ** self.beta:
            return "the start fits X up to rounding."
        if not update_H:
            return None
        components = [each.tobytes() for each in np.hstack([W.T, H]) if each.any()]
        if len({*components}) < len(components):
            return "components of the start are equal, so that rounding decides their differences."
        if solver == "cd":
            squares = penalties[0][1], penalties[1][1]
            model, most = W.sum(axis=0) @ H.sum(axis=1), 10 if any(squares) else eps**-0.25
            if not model / most < total < model * most:
                return "the start is far from X, so that coordinate descent amplifies rounding."
            for F, square in zip((H.T, W), squares, strict=True):
                curvature = np.square(F, dtype=np.float64).sum(axis=0)
                if square > curvature.max() or (square and not curvature.all()):
                    return "the L2 penalty dominates, so that the components become alike."
        return None

    def product(self, F: Array, G: Array, at: int) -> Array:
        """Return (X .* (F G^T)^(beta - 2)) G for F = W at 0; of the transposed X for H at 1."""
        P = np.empty_like(F)
        power: Any = self.beta - 2 if self.beta >= 2 else (self.beta - 2, EPSILON)
        (self._columns if at else self._rows).power(power, F, G, Target(P))
        return P

    def times(self, G: Array, at: int) -> Array:
        """Return X (at 0) or its transpose (at 1) times a dense matrix."""
        wide = padded(G, self.X.dtype)
        P = np.empty((self.X.shape[at], wide.shape[1]), self.X.dtype)
        (self._columns if at else self._rows).power(0, None, wide, Target(P))
        return P[:, : G.shape[1]]

    def denominator(self, F: Array, G: Array, at: int) -> Array:
        """Return (F G^T)^(beta - 1) G, one row for all where beta is 1."""
        if self.beta == 1:
            sums = np.asarray(G.sum(axis=0, keepdims=True))
            if at:
                sums[sums == 0] = 1
            return sums
        N = np.empty_like(F)
        power: Any = self.beta - 1 if self.beta >= 1 else (self.beta - 1, EPSILON)
        self._ones.power(power, F, G, Target(N))
        return N

    def divergence(self, W: Array, Ht: Array, cross: float | None = None) -> float:
        """Return the beta-divergence; `cross` is the inner product of X and W H, if known."""
        beta = self.beta
        if beta == 2:
            if not self.sparse and cross is None:
                return self._rows.sum("frobenius_loss", W, Ht) / 2
            if cross is None:
                cross = float(kernels.inner(W, self.product(W, Ht, 0), self.threads))
            return max(self._square - 2 * cross + self._ones.squares(W, Ht), 0.0) / 2
        bounded: Any = beta, EPSILON
        listed = beta == 1 or (self.sparse and beta != 0)  # X has no zeros if beta is 0
        value = self._rows.sum("beta_loss", W, Ht, bounded, listed)
        if beta == 1:
            value += float(W.sum(axis=0, dtype=np.float64) @ Ht.sum(axis=0, dtype=np.float64))
        elif listed:
            N = np.empty_like(W)
            self._ones.power(beta - 1, W, Ht, Target(N))
            value += float(kernels.inner(W, N, self.threads)) / beta
        return value

    def error(self, W: Array, Ht: Array, cross: float | None = None) -> float:
        return float(np.sqrt(2 * max(self.divergence(W, Ht, cross), 0.0)))


class FastCsr(sp.csr_matrix):  # type: ignore[misc]
    """Data with products by the kernels, for scikit-learn's SVD; the transpose has no entries."""

    sides: Sides | None = None
    at = 0

    def __matmul__(self, other: Any) -> Any:
        if self.sides is None or not isinstance(other, np.ndarray) or other.ndim != 2:
            return super().__matmul__(other)
        return self.sides.times(other, self.at)

    def __rmatmul__(self, other: Any) -> Any:
        return (self.T @ other.T).T

    def transpose(self, axes: Any = None, copy: bool = False) -> FastCsr:
        turned = FastCsr(self.shape[::-1], dtype=self.dtype)
        turned.sides, turned.at = self.sides, 1 - self.at
        return turned


def for_start(X: Any, sides: Sides, penalties: Penalties) -> Any:
    """Return data with fast products where their rounding errors do not matter for the fit."""
    squares = penalties[0][1] or penalties[1][1]
    if not sides.sparse or squares or X.dtype != np.float64 or sides._square > 1e12:
        return X
    fast = FastCsr(sides.X)
    fast.sides = sides
    return fast


def clean(X: Any, threads: int) -> Matrix:
    """Convert data that scikit-learn has checked to the form of the kernels."""
    if sp.issparse(X):
        return check_matrix(X, "X", n_threads=threads, allow_negative=True, limited=False)
    return X if all(s % X.itemsize == 0 for s in X.strides) else np.ascontiguousarray(X)


def descend(
    sides: Sides, W: Array, H: Array, model: Any, penalties: Penalties, update_H: bool
) -> tuple[Array, Array, int]:
    """Descend by coordinates until the violation is `model.tol` times that of the first iteration.

    The violation is the sum of the projected gradient before every step of the first sweep, as in
    scikit-learn; `model` is its estimator.
    """
    W, Ht, rank, first = np.ascontiguousarray(W), np.ascontiguousarray(H.T), W.shape[1], 0.0
    factors = [padded(W, W.dtype), padded(Ht, W.dtype)]
    known: tuple[Array, Array] | None = None
    rng = check_random_state(model.random_state)
    for n_iter in range(1, model.max_iter + 1):
        violation = 0.0
        for at in (0, 1) if update_H else (0,):
            F, G = factors[at], factors[1 - at]
            if known is None:
                P, gram = sides.product(F, G, at), np.empty((F.shape[1],) * 2, F.dtype)
                kernels.gram(G, None, gram, sides.threads)
                linear, square = penalties[at]
                gram[range(rank), range(rank)] += gram.dtype.type(square)
                if linear:
                    P -= P.dtype.type(linear)
                known = None if update_H else (P, gram)
            else:
                P, gram = known
            if model.shuffle:
                chosen = np.append(rng.permutation(rank), np.arange(rank, F.shape[1]))
                F, P = padded(F[:, chosen], F.dtype), padded(P[:, chosen], F.dtype)
                gram = np.ascontiguousarray(gram[chosen][:, chosen])
            rest = None, None, None, None, G[:0], P, F, None
            violation += kernels.coordinate_descent(gram[None], *rest, 1, 0, sides.threads, True)
            if model.shuffle:
                factors[at][:, chosen] = F
        first = violation if n_iter == 1 else first
        if not first:
            break
        if model.verbose:
            print("violation:", violation / first)
        if violation / first <= model.tol:
            if model.verbose:
                print("Converged at iteration", n_iter + 1)
            break
    return *_written(factors, W, Ht, update_H), n_iter


def multiply(
    sides: Sides, W: Array, H: Array, model: Any, penalties: Penalties, update_H: bool
) -> tuple[Array, Array, int]:
    """Multiply until ten steps lower the root of the divergence by less than `tol` of the first.

    The rule of scikit-learn: Lee and Seung (2001), with the exponents of Fevotte and Idier (2011).
    """
    start, F, G = time.perf_counter(), padded(W, W.dtype), padded(H.T, W.dtype)
    P, beta = F, sides.beta
    first = before = sides.error(F, G) if model.tol > 0 else 0.0
    for n_iter in range(1, model.max_iter + 1):
        if update_H or beta != 2 or n_iter == 1:
            P = sides.product(F, G, 0)
        linear, square_W = penalties[0]
        if beta == 1 and not update_H:  # scikit-learn adds it to its sums again in each iteration
            linear *= n_iter
        step(sides, F, G, 0, P, (linear, square_W))
        cut(F, beta, 0)
        last = F
        if update_H:
            P, last = sides.product(G, F, 1), G
            step(sides, G, F, 1, P, penalties[1])
            cut(G, beta, 1)
        if model.tol > 0 and n_iter % 10 == 0:
            error = sides.error(F, G, kernels.inner(last, P, sides.threads) if beta == 2 else None)
            if model.verbose:
                passed = time.perf_counter() - start
                print(f"Epoch {n_iter:02d} reached after {passed:.3f} seconds, error: {error:f}")
            if (before - error) / first < model.tol:
                break
            before = error
    if model.verbose and (model.tol == 0 or n_iter % 10):
        passed = time.perf_counter() - start
        print(f"Epoch {n_iter:02d} reached after {passed:.3f} seconds.")
    return *_written([F, G], W, H.T, update_H), n_iter


def step(sides: Sides, F: Array, G: Array, at: int, P: Array, penalty: Penalty) -> None:
    """Multiply F (W at 0) by the ratio of P and the penalized denominator."""
    ratio = P / penalized(sides.denominator(F, G, at), F, penalty)
    if sides.exponent != 1:
        ratio **= F.dtype.type(sides.exponent)
    F *= ratio


def cut(F: Array, beta: float, at: int) -> None:
    """Set tiny entries to 0, as scikit-learn does for small beta."""
    if beta < 1 or (beta == 1 and at):
        F[F < _ZERO] = 0


def penalized(N: Array, F: Array, penalty: Penalty) -> Array:
    """Return a denominator with the gradient of the penalty, and zeros replaced."""
    linear, square = (F.dtype.type(weight) for weight in penalty)
    if linear:
        N = N + linear
    if square:
        N = N + square * F
    N[N == 0] = EPSILON
    return N


def _written(factors: list[Array], W: Array, Ht: Array, update_H: bool) -> tuple[Array, Array]:
    """Write factors into the arrays of the start, as scikit-learn does, and return W and H."""
    W[...] = factors[0][:, : W.shape[1]]
    if update_H:
        Ht[...] = factors[1][:, : W.shape[1]]
    return W, Ht.T
