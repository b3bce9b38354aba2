"""Structured sIRLS as the thesis prints it, on n x m arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from numbers import Real
from typing import TypeAlias

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._linalg import square, svd
from ._problem import CompletionProblem, Iterate
from ._result import CompletionState

Rule: TypeAlias = Callable[..., float]

NEGLIGIBLE = 1e-12  # relative size of singular values that are dropped
LARGE = 1e-2  # of those that count, if the rank is not known
TINY = 1e-300
_MAX_ITER = 1000


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


def damping(singular: np.ndarray, gamma: float, p: float) -> np.ndarray:
    """1 - (gamma / (sigma^2 + gamma))^(1 - p/2), without cancellation."""
    s = np.asarray(singular, dtype=np.float64)
    with np.errstate(over="ignore"):  # of a tiny gamma
        return -np.expm1(-(1 - p / 2) * np.log1p(s * s / gamma))


def printed_iterates(
    problem: CompletionProblem,
    *,
    p: float,
    q: float,
    sparsity: float | Rule,
    sparsity_decay: float,
    gamma: float | Rule,
    eps: float | Rule,
    step_size: float | Rule | None,
    k_s: int,
    k_l: int,
) -> Iterator[Iterate]:
    """Yield X^{k+1} of Algorithm 2 (Kassab 2021) for k = 1, 2, ..., with exact singular vectors."""
    observations, most = problem.observations, problem.max_iter or _MAX_ITER
    tol, least = 1e-5 if problem.tol is None else problem.tol, float(problem.gamma_min or TINY)
    rows, columns = entry_rows(observations.csr[0]), observations.csr[1]
    missing = np.ones(observations.shape, dtype=bool)
    missing[rows, columns] = False
    X = np.zeros(observations.shape, dtype=observations.dtype)
    first = 1.0 if callable(gamma) else gamma
    if problem.start is not None:
        F, G = (padded(factor, observations.dtype) for factor in problem.start)
        X = np.ascontiguousarray(F @ G.T)
        if not callable(gamma):  # begin as if the residual were the next value
            first = float(np.clip(square(observations.residuals(F, G)), least, gamma))
    X[rows, columns] = observations.values
    history: list[CompletionState] = []
    for k in range(1, most + 1):
        before, z = X.copy(), X[missing].astype(np.float64)
        e = 1.0
        if k > 1:
            largest = np.sort(np.abs(z))[::-1] if takes_iterate(eps) else None
            e = value_of(eps, "eps", k - 1, largest) if callable(eps) else eps ** (k - 1)
        c = value_of(sparsity, "sparsity", k) if callable(sparsity) else sparsity
        weights = (z * z + max(e, TINY)) ** (q / 2 - 1)
        with np.errstate(over="ignore", invalid="ignore"):  # `svd` raises an error if it diverges
            for _ in range(k_s):
                z -= c * sparsity_decay ** (k - 1) * (weights * z)
        X[missing] = np.maximum(z, problem.floor)
        U, singular, Vt = svd(X)
        rank = problem.rank
        if rank is None:  # 2.3.3
            rank = min(observations.largest_rank(), int((singular > LARGE * singular[0]).sum()))
        count = max(1, min(rank, int((singular > NEGLIGIBLE * singular[0]).sum())))
        s, G = singular[:count].astype(np.float64), Vt[:count].T
        power = value_of(gamma, "gamma", k, singular) if callable(gamma) else gamma ** (k - 1)
        g = max(first * power, least)
        # X - s^k X W^k multiplies the parts of X within the singular vectors, and outside of them.
        within, outside = damping(s, g, p).astype(X.dtype), 0.0
        if step_size is not None:
            size = value_of(step_size, "step_size", k) if callable(step_size) else step_size
            within = (1 - size * (s * s + g) ** (p / 2 - 1)).astype(X.dtype)
            outside = 1 - size * g ** (p / 2 - 1)
        F = U[:, :count] * singular[:count]
        for step in range(k_l):
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
