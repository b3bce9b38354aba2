"""Methods "nnm" and "structured-nnm": convex completion by ADMM, on dense arrays of small size.

min ||X||_* + alpha ||P_c X||  subject to  P_O X = P_O M  (thesis (2.2), (2.7)), with the 1-norm or
the 2-norm of the missing entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._linalg.operators import svd
from ._problem import Fit, Method, Problem
from ._result import CompletionState

_CHECK_EVERY = 20


@dataclass(frozen=True)
class NNM(Method):
    """Nuclear norm minimization by ADMM (Kassab 2021, (2.2)), for small matrices.

    It determines the rank itself, and stores n x m arrays.
    """

    takes_rank: ClassVar[bool] = False

    def _fits(self, problem: Problem) -> Iterator[Fit]:
        """Alternate singular value thresholding of X with the constraints on its copy Y."""
        observations = problem.observations
        tol = 1e-5 if problem.tol is None else problem.tol
        indptr, indices, values = observations.csr
        rows = entry_rows(indptr)
        missing = np.ones(observations.shape, dtype=bool)
        missing[rows, indices] = False
        Y, dual = np.zeros(observations.shape), np.zeros(observations.shape)
        Y[rows, indices] = values
        penalty = 10.0  # of X = Y; the scaled data have spectral norm 1
        history: list[CompletionState] = []
        last = problem.max_iter or 2000
        for iteration in range(1, last + 1):
            left, singular, right = svd(Y - dual)
            kept = max(1, int(np.count_nonzero(singular > 1 / penalty)))
            shrunk = np.maximum(singular[:kept] - 1 / penalty, 0.0)
            F, G = left[:, :kept] * shrunk, right[:kept].T
            X = F @ G.T
            before = Y[missing]
            Y[missing] = np.maximum(self._drawn((X + dual)[missing], penalty), problem.floor)
            dual += X - Y
            size = max(float(np.linalg.norm(Y)), 1e-300)
            primal = float(np.linalg.norm(X - Y)) / size
            change = float(np.linalg.norm(Y[missing] - before)) / size
            converged = primal < tol and change < tol
            if iteration % _CHECK_EVERY == 0 or iteration == last or converged:
                history.append(CompletionState(iteration, change, primal, 0.0, kept))
                F, G = (padded(one, observations.dtype) for one in (F, G))
                yield Fit(observations, F, G, shrunk, history, converged)
                if converged:
                    return
            # Residual balancing (Boyd and others 2011, 3.4.1).
            if primal > 10 * change * penalty:
                penalty, dual = penalty * 2, dual / 2
            elif change * penalty > 10 * primal:
                penalty, dual = penalty / 2, dual * 2

    def _drawn(self, z: Array, penalty: float) -> Array:
        """Missing entries after the proximal step of their norm."""
        return z


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

    def _drawn(self, z: Array, penalty: float) -> Array:
        step = self.sparsity / penalty
        if step == 0:
            return z
        if self.missing_norm == "l1":
            return np.asarray(np.sign(z) * np.maximum(np.abs(z) - step, 0.0))
        length = float(np.linalg.norm(z))
        return z * max(0.0, 1 - step / length) if length > 0 else z
