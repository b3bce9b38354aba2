"""Methods "nnm" and "structured-nnm": convex completion by ADMM, on dense arrays of small size.

min ||X||_* + alpha ||P_c X||  subject to  P_O X = P_O M  (thesis (2.2), (2.7)), with the 1-norm or
the 2-norm of the missing entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.checks import check_option
from .._data.csr import entry_rows
from .._linalg.tall import svd
from ._observations import Observations
from ._problem import Check, Method, Outcome, Problem
from ._result import CompletionState


@dataclass(frozen=True)
class NNM(Method):
    """Nuclear norm minimization by ADMM (Kassab 2021, (2.2)), for small matrices.

    It determines the rank itself, and stores n x m arrays.
    """

    takes_rank: ClassVar[bool] = False

    def _run(self, problem: Problem) -> Outcome:
        tol = 1e-5 if problem.options.tol is None else problem.options.tol
        return _run_nuclear(
            problem.observations,
            *self._penalty(),
            problem.floor,
            tol,
            problem.options.max_iter or 2000,
            problem.check,
        )

    def _penalty(self) -> tuple[float, str]:
        return 0.0, "l1"


@dataclass(frozen=True)
class StructuredNNM(NNM):
    """Nuclear norm minimization with a norm of the missing entries (Kassab 2021, (2.7)).

    Parameters
    ----------
    sparsity : float
        Weight alpha of that norm, at least 0, for data of spectral norm 1; 0 turns it off.
    missing_norm : {"l1", "l2"}
        The norm.
    """

    sparsity: float = 0.01
    missing_norm: Literal["l1", "l2"] = "l1"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(self.missing_norm, "missing_norm", ("l1", "l2"))

    def _penalty(self) -> tuple[float, str]:
        return self.sparsity, self.missing_norm


def _run_nuclear(
    observations: Observations,
    alpha: float,
    missing_norm: str,
    floor: float,
    tol: float,
    max_iter: int,
    check: Check,
) -> Outcome:
    """Alternate singular value thresholding of X with the constraints on its copy Y."""
    Y, missing = _dense(observations)
    n, m = Y.shape
    dual = np.zeros((n, m))
    penalty = 10.0  # of X = Y; the scaled data have spectral norm 1
    outcome = Outcome(np.zeros((n, 1)), np.zeros((m, 1)), np.zeros(1), 0.0)
    for iteration in range(1, max_iter + 1):
        left, singular, right = svd(Y - dual)
        kept = max(1, int(np.count_nonzero(singular > 1 / penalty)))
        shrunk = np.maximum(singular[:kept] - 1 / penalty, 0.0)
        F, G = left[:, :kept] * shrunk, right[:kept].T
        X = F @ G.T
        before = Y[missing]
        Y[missing] = _shrunk((X + dual)[missing], alpha / penalty, missing_norm, floor)
        dual += X - Y
        size = max(float(np.linalg.norm(Y)), 1e-300)
        primal = float(np.linalg.norm(X - Y)) / size
        change = float(np.linalg.norm(Y[missing] - before)) / size
        outcome.F, outcome.G, outcome.singular = F, G, shrunk
        outcome.n_iter = iteration
        outcome.converged = primal < tol and change < tol
        if iteration % 20 == 0 or outcome.converged:
            progress = CompletionState(iteration, change, primal, 0.0, kept)
            outcome.history.append(progress)
            if check(progress, F, G, observations.scale) or outcome.converged:
                break
        # Residual balancing (Boyd and others 2011, 3.4.1).
        if primal > 10 * change * penalty:
            penalty, dual = penalty * 2, dual / 2
        elif change * penalty > 10 * primal:
            penalty, dual = penalty / 2, dual * 2
    outcome.F = padded(outcome.F, observations.dtype)
    outcome.G = padded(outcome.G, observations.dtype)
    return outcome


def _dense(observations: Observations) -> tuple[Array, Array]:
    """The observed entries with zeros elsewhere, and where that is."""
    indptr, indices, values = observations.csr
    rows = entry_rows(indptr)
    missing = np.ones(observations.shape, dtype=bool)
    missing[rows, indices] = False
    Y = np.zeros(observations.shape)
    Y[rows, indices] = values
    return Y, missing


def _shrunk(z: Array, step: float, missing_norm: str, floor: float) -> Array:
    """The proximal step of alpha ||z||, then the bound."""
    if step > 0 and missing_norm == "l1":
        z = np.sign(z) * np.maximum(np.abs(z) - step, 0.0)
    elif step > 0:
        length = float(np.linalg.norm(z))
        z = z * max(0.0, 1 - step / length) if length > 0 else z
    return np.maximum(z, floor)
