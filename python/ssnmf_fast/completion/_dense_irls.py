"""Method "structured-irls": its missing entries have weights of their own, so they are stored."""

from __future__ import annotations

import numpy as np

from .._backend.dispatch import kernels
from .._data.csr import entry_rows
from .._linalg.operators import MatrixOperator
from ._irls import Iteration
from ._observations import Observations
from ._schedule import Schedule, ridge

_LEAST_EPS = 1e-30


class StructuredIteration(Iteration):
    """Algorithm 1 of the thesis; the iterate X (n x m) is dense."""

    def __init__(
        self,
        observations: Observations,
        rank: int | None,
        start: tuple[np.ndarray, np.ndarray] | None,
        rng: np.random.Generator,
        alpha: float,
        oversampling: int = 5,
    ) -> None:
        super().__init__(observations, rank, start, rng, oversampling=oversampling)
        indptr, indices, values = observations.csr
        self.X = np.ascontiguousarray(self.F @ self.G.T)
        self.X[entry_rows(indptr), indices] = values
        self._alpha = alpha

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        """Solve every row exactly with the weights of the last iterate."""
        observations = self.observations
        gamma = schedule.gamma_at(iteration)
        _, eps = schedule.sparsity.values_at(iteration)
        _, self.G = self._leading(MatrixOperator(self.X, observations.n_threads))
        self.F = np.zeros((observations.shape[0], self.G.shape[1]), dtype=observations.dtype)
        kernels.structured_rows(
            *observations.csr,
            self.G,
            ridge(self.singular, gamma, schedule.p),
            self._alpha * gamma ** (1 - schedule.p / 2),
            max(eps, _LEAST_EPS),
            schedule.sparsity.q,
            self.X,
            self.F,
            observations.n_threads,
        )
