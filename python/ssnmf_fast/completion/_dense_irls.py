"""Method "structured-irls": its missing entries have weights of their own, so they are stored."""

from __future__ import annotations

import numpy as np

from .._arrays import padded
from .._dispatch import kernels
from .._operators import MatrixOperator
from .._randomized_svd import leading_triplets
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
        n = observations.shape[0]
        indptr, indices, values = observations.csr
        self.X = np.ascontiguousarray(self.F @ self.G.T)
        self.X[np.repeat(np.arange(n), np.diff(indptr)), indices] = values
        self._alpha = alpha

    def reweight(self, schedule: Schedule, iteration: int) -> None:
        """Solve every row exactly with the weights of the last iterate."""
        observations = self.observations
        gamma = schedule.gamma_at(iteration)
        _, eps = schedule.sparsity.values_at(iteration)
        _, singular, V = leading_triplets(
            MatrixOperator(self.X, observations.n_threads),
            self._space,
            self._columns,
            3 if self._fresh else 1,
            observations.n_threads,
        )
        self._space, self._fresh = V, False
        kept = self._truncate(singular)
        self.singular = singular[:kept].astype(np.float64)
        self.G = padded(V[:, :kept], observations.dtype)
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
