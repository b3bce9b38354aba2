"""The result of a factorization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .._common.arrays import Array
from .loop import Run, Shown
from .units import Units


@dataclass(frozen=True, eq=False)
class Factorization:
    """Result of :func:`factorize`.

    Attributes
    ----------
    S : ndarray, shape (n, r)
        Representation of the samples.
    A : ndarray, shape (r, m)
        Dictionary: the components over the features.
    B : ndarray, shape (r, k), or None
        Classifier: the components over the labels.
    objective : list of (int, float)
        Iterations at which the objective was evaluated, and its values.
    n_iter : int
        Number of iterations (updates of every factor).
    converged : bool
        Whether the stopping rule was met before `max_iter`.
    supervision_weight : float or None
        Weight (lambda) of the loss of the labels, as a number also where it was "balanced"; None
        without labels.
    """

    S: Array
    A: Array
    B: Array | None = None
    objective: list[tuple[int, float]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    supervision_weight: float | None = None

    def __repr__(self) -> str:
        factors = {"S": self.S, "A": self.A, "B": self.B}
        shapes = [f"{name}: {M.shape}" for name, M in factors.items() if M is not None]
        last = f"objective={self.objective[-1][1]:.6g}, " if self.objective else ""
        return (
            f"Factorization({', '.join(shapes)}, {last}n_iter={self.n_iter}, "
            f"converged={self.converged})"
        )


def factorization(run: Run, shown: Shown, weight: float | None = None) -> Factorization:
    """Return the result of a fit of S, A and, where there is one, B."""
    factors = {name: None if F is None else np.ascontiguousarray(F) for name, F in shown().items()}
    return Factorization(
        **factors,  # type: ignore[arg-type]
        objective=run.objective,
        n_iter=run.n_iter,
        converged=run.converged,
        supervision_weight=weight,
    )


def named(factors: Mapping[str, Array], rank: int, units: Units | None = None) -> Shown:
    """Return what shows S by rows, and A and B, which are stored by rows as well, by columns."""
    units = units or Units()

    def shown() -> Mapping[str, Array | None]:
        views = {name: units.factor(name, F[:, :rank]) for name, F in factors.items()}
        return {"B": None} | {name: F if name == "S" else F.T for name, F in views.items()}

    return shown
