"""Structured sIRLS as the thesis prints it, on n x m arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._backend.dispatch import padded
from .._data.arrays import entry_rows
from .._linalg import square, svd
from ._irls import LARGE, NEGLIGIBLE, Schedule, damping
from ._problem import CompletionProblem, Iterate
from ._result import CompletionState


def printed_iterates(
    problem: CompletionProblem, schedule: Schedule, tol: float
) -> Iterator[Iterate]:
    """Yield X^{k+1} of Algorithm 2 (Kassab 2021) for k = 1, 2, ..., with exact singular vectors."""
    observations, p = problem.observations, schedule.p
    rows, columns = entry_rows(observations.csr[0]), observations.csr[1]
    missing = np.ones(observations.shape, dtype=bool)
    missing[rows, columns] = False
    X = np.zeros(observations.shape, dtype=observations.dtype)
    if problem.start is not None:
        F, G = (padded(factor, observations.dtype) for factor in problem.start)
        X = np.ascontiguousarray(F @ G.T)
    X[rows, columns] = observations.values
    history: list[CompletionState] = []
    for k in range(1, schedule.max_iter + 1):
        before, z = X.copy(), X[missing].astype(np.float64)
        weights, c = (z * z + schedule.eps_at(k, z)) ** (schedule.q / 2 - 1), schedule.step_at(k)
        with np.errstate(over="ignore", invalid="ignore"):  # `svd` raises an error if it diverges
            for _ in range(schedule.sparse_steps):
                z -= c * (weights * z)
        X[missing] = np.maximum(z, schedule.floor)
        U, singular, Vt = svd(X)
        rank = problem.rank
        if rank is None:  # 2.3.3
            rank = min(observations.largest_rank(), int((singular > LARGE * singular[0]).sum()))
        count = max(1, min(rank, int((singular > NEGLIGIBLE * singular[0]).sum())))
        s, G = singular[:count].astype(np.float64), Vt[:count].T
        g, size = schedule.gamma_at(k, singular), schedule.step_size_at(k)
        # X - s^k X W^k multiplies the parts of X within the singular vectors, and outside of them.
        within, outside = damping(s, g, p).astype(X.dtype), 0.0
        if size is not None:
            within = (1 - size * (s * s + g) ** (p / 2 - 1)).astype(X.dtype)
            outside = 1 - size * g ** (p / 2 - 1)
        F = U[:, :count] * singular[:count]
        for step in range(schedule.inner_steps):
            F = X @ G if step else F
            moved = (F * within) @ G.T
            if outside:
                moved += X.dtype.type(outside) * (X - F @ G.T)
            X[missing] = moved[missing]
        F, G = padded(F * within, X.dtype), padded(G, X.dtype)
        change = float((square(X - before) / (square(X) or 1.0)) ** 0.5)
        residual = observations.relative(observations.residuals(F, G))
        history.append(CompletionState(k, change, residual, g, count))
        stored = X if outside else None
        yield Iterate(observations, F, G, s, history, change < tol, X=stored)
        if change < tol:
            return
