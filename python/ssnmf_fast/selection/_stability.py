"""Choosing a rank by how well the components of many starts agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.csr_file import check_data
from .._data.threads import limited_openmp, resolve_threads
from .._linalg.operators import unit_rows
from .._models.many_starts import fit_starts
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from ._fits import PlainFits
from ._rank_choice import RankChoice
from ._search import Search
from ._spectra import clusters_of, distances_between


def choose_by_stability(
    X: Any, X_weights: Any, fits: PlainFits, search: Search, rule: str, rng: np.random.Generator
) -> RankChoice:
    """Cluster the components of all starts, as :func:`consensus` does; compare silhouettes."""
    if search.ranks[0] < 2 or search.n_starts < 2:
        raise ValueError(
            "criterion 'stability' compares the components of starts with each other: it needs "
            f"ranks and n_starts of at least 2; got {search.ranks[0]} and {search.n_starts}."
        )
    clean = CleanMatrix(check_data(X, resolve_threads(search.n_threads)))
    of_clusters, *seeds = rng.integers(2**31 - 1, size=search.n_starts + 1).tolist()
    silhouettes = []
    with verbose_progress(
        search.verbose, len(search.ranks), "choose_rank", "stability", unit="rank"
    ) as bar:
        for rank in search.ranks:
            found = fit_starts(
                clean,
                seeds,
                n_jobs=search.n_jobs,
                n_threads=search.n_threads,
                n_components=rank,
                X_weights=X_weights,
                init="random",
                **fits.settings,
            )
            components = np.concatenate([fit.A for fit in found])
            silhouettes.append(_silhouette(components, rank, of_clusters))
            if bar is not None:
                bar(FitState(len(silhouettes), silhouettes[-1]))
    return RankChoice.of(search.ranks, np.array(silhouettes)[:, None], "stability", rule)


def _silhouette(components: Array, rank: int, seed: int) -> float:
    """Return the mean silhouette of components in clusters; 0 where they make no clusters."""
    spectra = unit_rows(components)
    spectra = spectra[spectra.any(axis=1)]  # a start may leave components at zero
    with limited_openmp(1):
        found = clusters_of(spectra, distances_between(spectra), rank, seed).silhouettes
    return float(np.nan_to_num(found).mean()) if len(found) else 0.0
