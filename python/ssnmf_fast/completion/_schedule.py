"""How the regularizers of reweighted least squares fall, and how many steps are taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._observations import IDENTITY, Observations, Shrink

_UNIFORM_ERROR = 1e-9  # of replacing the map of the entries by one factor, relative


@dataclass(frozen=True)
class Sparsity:
    """The step that draws missing entries to zero; units are those of the scaled entries."""

    step: float = 0.0  # c
    decay: float = 1.0  # rho: c is multiplied by it in every iteration
    q: float = 1.0
    eps: float = 1.0  # of the first step; falls by `eps_decay`
    eps_decay: float = 0.9
    eps_floor: float = 1e-17
    proximal: bool = True
    floor: float = -np.inf  # smallest value of a missing entry

    def values_at(self, iteration: int) -> tuple[float, float]:
        """Return c and eps of iteration 1, 2, ..."""
        step = self.step * self.decay ** (iteration - 1)
        return step, max(self.eps * self.eps_decay ** (iteration - 1), self.eps_floor)

    def at(self, iteration: int, largest: float) -> tuple[float, Shrink]:
        """Return the map of iteration 1, 2, ... as (scale, elementwise map).

        While no missing entry exceeds `largest`, and largest^2 is far below eps, the map multiplies
        all of them by one factor: then it is a scale, which needs no pass over all entries.
        """
        step, eps = self.values_at(iteration)
        if self.floor > -np.inf:
            return 1.0, (step, eps, self.q, self.proximal, self.floor)
        if step == 0.0:
            return 1.0, IDENTITY
        pull = step * eps ** (self.q / 2 - 1)
        if pull * (1 - self.q / 2) * largest**2 / eps < _UNIFORM_ERROR:
            return (1 / (1 + pull) if self.proximal else 1 - pull), IDENTITY
        return 1.0, (step, eps, self.q, self.proximal, self.floor)


@dataclass(frozen=True)
class Schedule:
    """Parameters of one method; gamma is in units of the squared spectral norm."""

    gamma: float
    gamma_decay: float
    gamma_floor: float
    p: float
    sparsity: Sparsity
    inner_steps: int = 1
    inner_tol: float = 1e-4
    exact: bool = False  # rows are solved exactly instead of by gradient steps
    check_every: int = 20
    max_iter: int = 1000

    def gamma_at(self, iteration: int) -> float:
        """Gamma of iteration 1, 2, ..."""
        return max(self.gamma * self.gamma_decay ** (iteration - 1), self.gamma_floor)


def damping(singular: np.ndarray, gamma: float, p: float) -> np.ndarray:
    """1 - (gamma / (sigma^2 + gamma))^(1 - p/2), without cancellation."""
    s = np.asarray(singular, dtype=np.float64)
    return -np.expm1(-(1 - p / 2) * np.log1p(s * s / gamma))


def ridge(singular: np.ndarray, gamma: float, p: float) -> np.ndarray:
    """1 / damping - 1, without cancellation; finite for a singular value of 0."""
    s = np.asarray(singular, dtype=np.float64)
    grown = np.expm1((1 - p / 2) * np.log1p(s * s / gamma))
    return 1.0 / np.maximum(grown, 1e-100)


def sirls(observations: Observations, rank: int, p: float, gamma_min: float | None) -> Schedule:
    """sIRLS (Mohan and Fazel) with the parameters of the authors' code."""
    hard = observations.freedom(rank) > 0.4
    return Schedule(
        gamma=1e-2 / (1.03 if hard else 1.1),
        gamma_decay=1 / (1.03 if hard else 1.1),
        gamma_floor=1e-10 if gamma_min is None else gamma_min,
        p=p,
        sparsity=Sparsity(),
        max_iter=5000,
    )


def structured(p: float, sparsity: Sparsity, gamma_min: float | None) -> Schedule:
    """Structured sIRLS (thesis, Algorithm 2) with the parameters of the authors' code."""
    return Schedule(
        gamma=1.0,
        gamma_decay=0.5,
        gamma_floor=1e-17 if gamma_min is None else gamma_min,
        p=p,
        sparsity=sparsity,
        inner_steps=10,
    )
