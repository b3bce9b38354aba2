"""What is kept of each of many starts, and the settings of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._backend import dispatch
from .._common.arrays import Array
from .._data.border import CleanMatrix, check_integer, check_option, check_random_state, check_real
from .._solver.result import Factorization

MOST_SAMPLES = 1000  # of the consensus matrix
STARTS = ("random", "least-squares", "random-acol")  # that differ by their seeds


class Start(NamedTuple):
    """What is kept of a start: its components (r, m), and the main one of some samples, (s,).

    `level` is that of the kernels of the process that has fitted it.
    """

    components: Array
    assignments: Array
    objective: float
    level: str = dispatch.level


Fits = Callable[[CleanMatrix, Sequence[int], "Recipe", Array], Iterator[Start]]


@dataclass(frozen=True)
class Recipe:
    """The settings of a consensus; `fitting` are arguments of :func:`factorize`."""

    n_starts: int
    density_threshold: float
    n_neighbors: float
    fitting: dict[str, Any]
    random_state: Any

    @classmethod
    def checked(
        cls,
        n_components: Any,
        n_starts: Any,
        density_threshold: Any,
        n_neighbors: Any,
        init: Any,
        random_state: Any,
        fitting: dict[str, Any],
    ) -> Recipe:
        """Return settings that a user gave, or raise an error."""
        rank = check_integer(n_components, "n_components", 1)
        init = check_option(init, "init", STARTS)
        threshold = check_real(density_threshold, "density_threshold")
        share = check_real(n_neighbors, "n_neighbors")
        if not 0 < share <= 1:
            raise ValueError(
                f"n_neighbors is a share of the starts, above 0 and at most 1; got {n_neighbors!r}."
            )
        n_starts = check_integer(n_starts, "n_starts", 1)
        fitting = {"n_components": rank, "init": init, **fitting}
        return cls(n_starts, threshold, share, fitting, random_state)

    def draw(self, n_samples: int) -> tuple[int, Array, list[int]]:
        """Return the seed of the clusters, samples to keep the main components of, and the seeds.

        More starts have the same first ones.
        """
        rng = check_random_state(self.random_state)
        of_clusters = int(rng.integers(2**31 - 1))
        count = min(n_samples, MOST_SAMPLES)
        samples = np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))
        return of_clusters, samples, rng.integers(2**31 - 1, size=self.n_starts).tolist()


def start_of(fit: Factorization, samples: Array) -> Start:
    """Return what is kept of a fit."""
    parts = fit.S[samples] * fit.A.sum(axis=1)
    main = np.where(parts.any(axis=1), parts.argmax(axis=1), -1)
    return Start(fit.A, main.astype(np.int32), fit.objective[-1][1])
