"""The mathematics in dense long doubles, apart from the library's own reference."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

Array = npt.NDArray[Any]


def finite(results: dict[str, Any]) -> list[str]:
    return [
        f"{name} is not finite" for name, value in results.items() if not np.isfinite(value).all()
    ]


def factors(results: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    given = {name: results[name] for name in names if name in results}
    found = finite(given)
    return found + [f"{name} is negative" for name, F in given.items() if (F < 0).any()]


def slack_of(value: float, rounding: float, dtype: Any, first: float = 0.0) -> float:
    """Return what an objective may be off by; `rounding` is the size of what it is a sum of."""
    if dtype == np.float64:
        return 1e-9 * abs(value) + 1e-13 * rounding
    return 1e-4 * max(abs(value), abs(first)) + 1e-6 * rounding


def trace(
    values: list[float], expected: float, rounding: float, dtype: Any, may_rise: bool = False
) -> list[str]:
    """Complain of objectives that rise, or whose last is not the expected one."""
    if not np.isfinite(values).all() or min(values) < 0:
        return [f"objective {values}"]
    found = []
    slack = slack_of(expected, rounding, dtype, values[0])
    if np.isfinite(expected) and abs(values[-1] - expected) > slack:
        found.append(f"objective {values[-1]!r}, outside {expected!r}, rounding {rounding!r}")
    if not may_rise and any(
        b - a > slack_of(a, rounding, dtype, values[0]) for a, b in itertools.pairwise(values)
    ):
        found.append(f"objective rises: {values}")
    return found


def penalty(penalty: Any, F: Array) -> float:
    """Return the value of a penalty of a factor, by its name."""
    F = F.astype(np.longdouble)
    name, n = type(penalty).__name__, len(F)
    if name == "Orthogonal":
        value = 2 * np.triu(F.T @ F, 1).sum()
    elif name == "Graph":
        edges = np.triu(np.asarray(penalty.weights.todense()), 1)
        value = sum(edges[i, j] * np.sum((F[i] - F[j]) ** 2) for i, j in np.argwhere(edges > 0))
    else:
        value = {
            "L1": lambda: F.sum(),
            "L2": lambda: (F**2).sum(),
            "Temporal": lambda: np.sum((F[: n - 1] - F[1:]) ** 2),
        }[name]()
    return float(penalty.coefficient * value)


def beta_entries(X: Array, Z: Array, loss: Any) -> tuple[Array, Array]:
    """Return the loss of every entry, and the sum of the sizes of its terms.

    `loss` is beta, a name, or "elastic", which is half of the squares with the divergence added.
    """
    beta = {"itakura-saito": 0, "kullback-leibler": 1, "frobenius": 2}.get(loss, loss)
    if beta == "elastic":
        squares, divergences = beta_entries(X, Z, 2), beta_entries(X, Z, 1)
        return squares[0] / 2 + divergences[0], squares[1] / 2 + divergences[1]
    if beta == 2:
        return (X - Z) ** 2, X**2 + Z**2
    if beta == 1:
        logs = np.where(X > 0, X * np.log(np.where(X > 0, X, 1) / Z), 0)
        return logs - X + Z, np.abs(logs) + X + Z
    if beta == 0:
        return X / Z - np.log(X / Z) - 1, X / Z + np.abs(np.log(X / Z)) + 1
    beta = np.longdouble(beta)
    parts = X**beta, (beta - 1) * Z**beta, -beta * X * Z ** (beta - 1)
    scale = beta * (beta - 1)
    return sum(parts) / scale, sum(np.abs(part) for part in parts) / np.abs(scale)


def divergence_of(X: Array, W: Array, S: Array, A: Array, loss: Any) -> tuple[float, float]:
    """Return the weighted loss, and the scale of its rounding errors; NaN in X weighs nothing."""
    least = np.finfo(A.dtype).tiny / np.finfo(A.dtype).eps  # what a model counts as that vanishes
    Z = np.maximum(S.astype(np.longdouble) @ A.astype(np.longdouble), least)
    counts = ~np.isnan(X) & (W > 0)
    entries, rounding = beta_entries(X[counts].astype(np.longdouble), Z[counts], loss)
    # Where a model vanishes the loss is what the floor makes of it: nothing to be compared.
    rounding = np.where(Z[counts] > least, rounding, 1e16 * rounding)
    if loss == "elastic":  # whose value is a difference of sums
        rounding *= 1e4 if A.dtype == np.float64 else 30
    # Sums over all entries lose those of missing ones, at which the model may be large.
    power = {"frobenius": 2, 2: 2, "kullback-leibler": 1, 1: 1}.get(loss)
    lost = 0.0 if power is None else float(np.sum(Z[~counts] ** power))
    return float(np.sum(W[counts] * entries)), float(np.sum(W[counts] * rounding)) + lost + 1e-300


def row_values(
    X: Array, W: Array, S: Array, A: Array, loss: Any, penalties: Sequence[Any] = ()
) -> Array:
    """Return `divergence_of` for every row, with its penalties, (2, n)."""
    rows = [divergence_of(X[[i]], W[[i]], S[[i]], A, loss) for i in range(len(X))]
    costs = [X.shape[1] * sum(penalty(each, row[None]) for each in penalties) for row in S]
    return np.array(rows).T + np.array([costs, costs])


def optimality(X: Array, W: Array, S: Array, A: Array, loss: str, slack: float) -> list[str]:
    """Complain of rows of S that are not optimal for the dictionary A."""
    X, S, A = X.astype(np.float64), S.astype(np.float64), A.astype(np.float64)
    W = np.where(np.isnan(X), 0, W)
    X = np.nan_to_num(X)
    if loss == "frobenius":
        for row in range(min(len(X), 40)):
            root = np.sqrt(W[row])
            length = np.linalg.norm(root * X[row])
            scales = np.linalg.norm(A * root, axis=1)
            scales[scales == 0] = 1
            if length == 0:
                continue
            design = (A / scales[:, None] * root).T
            try:
                best = nnls(design, root * X[row] / length)[1]
            except RuntimeError:  # of SciPy, where it does not converge
                continue
            ours = np.linalg.norm(design @ (S[row] * scales / length) - root * X[row] / length)
            if ours**2 > best**2 + slack / 10:  # of the loss; its root has no digits at 0
                return [f"row {row}: residual {ours}, SciPy {best}"]
        return []
    Z = S @ A
    pull = W.sum(axis=1, where=X > 0)
    ratio = np.where(X > 0, X, 0) / np.where(X > 0, np.maximum(Z, 1e-300), 1)
    down = W @ A.T
    gradient = (down - (W * ratio) @ A.T) / np.where(down > 0, down, 1)
    reachable = ((X > 0) & (W > 0)) @ (A.T > 0)
    rows = (pull > 0) & ~((X > 0) & (W > 0) & ~(A > 0).any(axis=0)).any(axis=1)
    # The conditions: no gradient below zero, and none above it where S is positive and matters.
    part = S * down / np.maximum((S * down).sum(axis=1, keepdims=True), 1e-300)
    wrong = np.maximum(-gradient * reachable, 0) + np.abs(gradient) * part
    worst = np.where(rows, wrong.max(axis=1), 0)
    if worst.max() > 20 * slack:
        return [f"row {worst.argmax()}: the optimality conditions fail by {worst.max()}"]
    return []
