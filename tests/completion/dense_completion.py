"""Completion in plain dense NumPy, as the thesis writes it with the details of the authors' code.

The oracle of the tests and of the benchmarks: every iterate is an n x m array, every SVD is exact.
Matrices are scaled to spectral norm 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
INNER_TOL = 1e-4


def shrunk(X: Array, step: float, eps: float, schedule: Any) -> Array:
    """Draw entries to zero: X / (1 + c w), with w = (X^2 + eps)^(q/2 - 1)."""
    w = step * (X**2 + eps) ** (schedule.q / 2 - 1)
    return np.maximum(X / (1 + w), schedule.floor)


def weights(X: Array, gamma: float, p: float, rank: int) -> tuple[Array, Array]:
    """Return V (m x r) and the eigenvalues of gamma^(1 - p/2) W_p on it.

    W_p = (X^T X + gamma I)^(p/2 - 1), where all beyond the leading `rank` singular values counts as
    0, so that the complement of V has the weight gamma^(p/2 - 1).
    """
    _, singular, Vt = np.linalg.svd(X, full_matrices=False)
    return Vt[:rank].T, (gamma / (singular[:rank] ** 2 + gamma)) ** (1 - p / 2)


def gradient_step(X: Array, V: Array, kept: Array) -> Array:
    """X - s X W_p with s = gamma^(1 - p/2): the complement of V vanishes."""
    return np.asarray((X @ V) * (1 - kept) @ V.T)


def exact_step(
    M: Array, observed: Array, V: Array, kept: Array, entry_weights: Array | None
) -> Array:
    """Minimize trace(X W_p X^T) + sum of entry_weights x^2 over the missing entries, row by row."""
    n, m = M.shape
    W = np.eye(m) - V @ V.T + (V * kept) @ V.T
    X = np.where(observed, M, 0.0)
    for i in range(n):
        known, missing = observed[i], ~observed[i]
        H = W[np.ix_(missing, missing)]
        if entry_weights is not None:
            H = H + np.diag(entry_weights[i, missing])
        X[i, missing] = -np.linalg.solve(H, W[np.ix_(missing, known)] @ M[i, known])
    return X


def iterates(
    M: Array, observed: Array, schedule: Any, rank: int, alpha: float = 0.0
) -> Iterator[Array]:
    """Yield the iterates of a schedule; `alpha` > 0 is that of Structured IRLS (Algorithm 1)."""
    M = np.where(observed, M, 0.0)
    X = M.copy()
    iteration = 0
    while True:
        iteration += 1
        gamma = schedule.gamma_at(iteration)
        eps = schedule.eps_at(iteration)
        if alpha == 0.0:
            step = schedule.sparsity * schedule.sparsity_decay ** (iteration - 1)
            moved = shrunk(X, step, eps, schedule)
            X = np.where(observed, M, moved)
        V, kept = weights(X, gamma, schedule.p, rank)
        if not schedule.exact:
            X = _inner_steps(M, observed, X, V, kept, schedule)
        elif alpha == 0.0:
            X = exact_step(M, observed, V, kept, None)
        else:
            entries = alpha * gamma ** (1 - schedule.p / 2) * (X * X + eps) ** (schedule.q / 2 - 1)
            X = exact_step(M, observed, V, kept, entries)
        yield X


def _inner_steps(
    M: Array, observed: Array, X: Array, V: Array, kept: Array, schedule: Any
) -> Array:
    """At most so many gradient steps; from the third on they may end early."""
    for step in range(schedule.inner_steps):
        moved = np.where(observed, M, gradient_step(X, V, kept))
        change = np.linalg.norm(moved - X) / np.linalg.norm(moved)
        X = moved
        if step >= 1 and change < INNER_TOL:
            break
    return X


def algorithm_2(
    M: Array,
    observed: Array,
    rank: int | None,
    q: float,
    k_s: int,
    k_l: int,
    c: Any = lambda k: 1e-3,
    gamma: Any = lambda k, singular: 0.5**k,
    eps: Any = lambda k, sizes: 0.9**k,
    step_size: Any = None,
) -> Iterator[Array]:
    """Yield the iterates of Algorithm 2 as it is printed, with the rank of 2.3.3 if it is None."""
    n, m = M.shape
    largest = int(np.ceil(min(n, m) * (1 - np.sqrt(1 - observed.mean()))))
    M = np.where(observed, M, 0.0)
    X, w = M.copy(), np.ones(M.shape)
    k = 0
    while True:
        k += 1
        for _ in range(k_s):
            X = np.where(observed, M, X - c(k) * (w * X))
        _, singular, Vt = np.linalg.svd(X)
        used = min(largest, int((singular > 1e-2 * singular[0]).sum())) if rank is None else rank
        squares = np.zeros(M.shape[1])
        squares[: len(singular)] = singular**2
        squares[used:] = 0.0
        g = gamma(k, singular)
        s = g**0.5 if step_size is None else step_size(k)
        W = (Vt.T * (squares + g) ** (0.5 - 1)) @ Vt
        for _ in range(k_l):
            X = np.where(observed, M, X - s * (X @ W))
        w = (X**2 + eps(k, np.sort(np.abs(X[~observed]))[::-1])) ** (q / 2 - 1)
        yield X
