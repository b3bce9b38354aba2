"""Fits of all ranks from several starts, and the criteria without held-out entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.metrics.pairwise import euclidean_distances

from .._common.arrays import Array, MatrixLike, VectorLike
from .._common.warn import IDLE, quietly
from .._data.border import CleanMatrix, check_data
from .._data.tensors import TensorLike
from .._data.threads import Stop, limited_openmp, resolve_jobs, resolve_threads, run_side_by_side
from .._linalg.operators import unit_rows
from .._models.many_starts import draw_seeds, fit_starts
from .._ranks.choice import standard_errors
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from .._solver.weights import WeightsLike
from ..estimators._bayesian import BayesianBase, BayesianNMF
from ..metrics import core_consistency, factor_match_score
from ._consensus import clusters_of
from ._held_out import RankData, RankFit, RankFits, Run, fit_copy, refuse_both

# After a few splits a rank is pruned if its mean error is this many standard errors above the best.
_SPLITS, _FAR = 3, 5.0


@dataclass(frozen=True)
class Search:
    """Ranks, splits, starts, jobs and threads of all fits."""

    ranks: tuple[int, ...]
    n_splits: int
    n_starts: int
    n_jobs: int | None
    n_threads: int | None
    verbose: int

    def held_out(self, splits: Iterable[Run], rng: Generator) -> dict[str, Array]:
        """Return the measures of the best start of each rank, (ranks, splits); NaN if pruned."""
        shape = len(self.ranks), self.n_splits
        measures: dict[str, Array] = {}
        active = np.ones(len(self.ranks), dtype=bool)
        n_fits = self.n_starts * len(self.ranks) * self.n_splits
        shown = self.verbose, n_fits, "choose_rank", "error", "fit"
        with verbose_progress(*shown) as progress:
            for number, split in enumerate(splits):
                places = np.flatnonzero(active).tolist()
                fits = self.starts(split, [self.ranks[place] for place in places], rng)
                for place, starts in zip(places, fits, strict=True):
                    best = min(starts, key=lambda fit: fit.objective)
                    for name, value in best.measures.items():
                        measures.setdefault(name, np.full(shape, np.nan))[place, number] = value
                    if progress is not None:
                        done = self.n_starts * (number * len(self.ranks) + place + 1)
                        progress(FitState(done, best.measures["error"]))
                if _SPLITS <= number + 1 < self.n_splits:
                    active &= ~_far_from_best(measures["error"][:, : number + 1])
        return measures

    def starts(self, run: Run, ranks: Sequence[int], rng: Generator) -> Iterable[list[RankFit]]:
        """Return an iterable of the fits of all starts of each rank, in order."""
        seeds = draw_seeds(rng, self.n_starts)
        jobs, threads = resolve_jobs(self.n_jobs, self.n_threads, len(ranks) * len(seeds))
        tasks = (partial(run, rank, seed) for rank in ranks for seed in seeds)
        fits = run_side_by_side(tasks, jobs, threads)
        return ([next(fits) for _ in seeds] for _ in ranks)

    def by_rank(self, scores: Iterable[tuple[float, ...]], name: str) -> dict[str, Array]:
        """Return the scores of the ranks, then their measures, as columns; show progress."""
        rows: list[tuple[float, ...]] = []
        shown = self.verbose, len(self.ranks), "choose_rank", name, "rank"
        with verbose_progress(*shown) as progress:
            for score in scores:
                rows.append(score)
                if progress is not None:
                    progress(FitState(len(rows), score[0]))
        names = "error", "spread", "weakest"
        return dict(zip(names, np.array(rows).T[:, :, None], strict=False))


def _far_from_best(errors: Array) -> Array:
    """Return which ranks are to be pruned; those with NaN already are."""
    means = np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))
    best = int(means.argmin())
    with np.errstate(invalid="ignore"):
        of_differences = standard_errors(errors - errors[best])
    unsure = np.fmax(of_differences, standard_errors(errors[best : best + 1]))
    return np.asarray(means - means[best] > _FAR * unsure)


def bounds(
    X: MatrixLike, y: VectorLike, model: Any, search: Search, rng: Generator, **settings: object
) -> tuple[Array, Any]:
    """Return the bounds of a Bayesian model, (ranks, starts), and the best model."""
    model = BayesianNMF() if model is None else model
    if not isinstance(model, BayesianBase):
        needed = f"a BayesianNMF or SupervisedBayesianNMF as estimator; got {type(model).__name__}"
        raise TypeError(f"criterion 'bound' needs {needed}.")
    refuse_both(model, [name for name, value in settings.items() if value is not None])

    def run(rank: int, seed: int, threads: int, stop: Stop) -> RankFit:
        # Unused components are expected here.
        fitted = quietly(IDLE, fit_copy, model, X, y, rank, seed, threads, stop)
        return RankFit(-fitted.lower_bound_, model=fitted)

    best, values = RankFit(np.inf), []
    for fits in search.starts(run, search.ranks, rng):
        best = min([best, *fits], key=lambda fit: fit.objective)
        values.append([-fit.objective for fit in fits])
    return np.array(values), best.model


def stabilities(
    X: TensorLike, X_weights: WeightsLike, fits: RankFits, search: Search, rng: Generator
) -> dict[str, Array]:
    """Return mean and spread of the silhouettes of components, and the mean of the weakest one."""
    clean = CleanMatrix(check_data(X, resolve_threads(search.n_threads)))
    of_clusters, *seeds = draw_seeds(rng, search.n_starts + 1)
    settings = {name: fits.settings[name] for name in ("loss", "max_iter", "tol")}
    settings |= {"X_weights": X_weights, "init": "random"}
    settings |= {"n_jobs": search.n_jobs, "n_threads": search.n_threads}

    def silhouettes(rank: int) -> tuple[float, float, float]:
        starts = fit_starts(clean, seeds, n_components=rank, **settings)
        spectra = unit_rows(np.concatenate([start.A for start in starts]))
        spectra = spectra[spectra.any(axis=1)]  # components may be zero
        if not len(spectra):
            return 0.0, 0.0, 0.0
        with limited_openmp(1):
            labels, values = clusters_of(spectra, euclidean_distances(spectra), rank, of_clusters)
        values, sizes = np.nan_to_num(values), np.bincount(labels, minlength=rank)
        weakest = (np.bincount(labels, values, minlength=rank) / np.maximum(sizes, 1)).min()
        return float(values.mean()), float(values.std()), float(weakest)

    return search.by_rank(map(silhouettes, search.ranks), "stability")


def tensor_scores(
    criterion: str, data: RankData, fits: RankFits, search: Search, rng: Generator
) -> dict[str, Array]:
    """Return the agreement of starts and its spread, or the core consistency of the best one."""

    def agreement(starts: list[RankFit]) -> tuple[float, float]:
        # The mean would depend on the number of poor optima.
        scores = [factor_match_score(A, B) for A, B in combinations(starts, 2)]
        return float(np.median(scores)), float(np.std(scores))

    def consistency(starts: list[RankFit]) -> tuple[float]:
        best = min(starts, key=lambda fit: fit.objective)
        return (float(np.nan_to_num(core_consistency(best, data.X))),)

    runs = search.starts(partial(fits.fit, data.X, data.weights, None), search.ranks, rng)
    if criterion == "stability":
        return search.by_rank(map(agreement, runs), "agreement")
    return search.by_rank(map(consistency, runs), "core consistency")
