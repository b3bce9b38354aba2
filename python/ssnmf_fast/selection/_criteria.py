"""Fits of all ranks from several starts, and the criteria that hold nothing out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from .._common.arrays import Array, MatrixLike
from .._common.warn import IDLE, quietly
from .._data.arrays import DataLike
from .._data.border import CleanMatrix, check_data
from .._data.threads import Stop, limited_openmp, resolve_jobs, resolve_threads, run_side_by_side
from .._linalg.operators import unit_rows
from .._models.many_starts import fit_starts
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from .._solver.weights import WeightsLike
from ..estimators._bayesian import BayesianBase, BayesianNMF
from ..metrics import core_consistency, factor_match_score
from ._consensus import clusters_of, distances_between
from ._held_out import Data, Fits, Outcome, Run, fit_copy, refuse_both, require_no_start

# After a few splits a rank is pruned if its mean error is this many standard errors above the best.
_SPLITS, _FAR = 3, 5.0


@dataclass(frozen=True)
class Search:
    """The ranks, splits and starts of all fits, and how many run at a time."""

    ranks: tuple[int, ...]
    n_splits: int
    n_starts: int
    n_jobs: int | None
    n_threads: int | None
    verbose: int

    def run(
        self, splits: Iterable[Run], rng: np.random.Generator, main: str = "error"
    ) -> dict[str, Array]:
        """Return the measures, each (ranks, splits), with NaN after a rank is pruned.

        Of the starts of a rank the one with the smallest objective counts.  Progress shows the
        measure `main`, by which ranks are pruned.
        """
        shape = len(self.ranks), self.n_splits
        found: dict[str, Array] = {}
        tried = np.ones(len(self.ranks), dtype=bool)
        n_fits = self.n_starts * len(self.ranks) * self.n_splits
        with verbose_progress(self.verbose, n_fits, "choose_rank", main, unit="fit") as progress:
            for number, split in enumerate(splits):
                seeds = rng.integers(2**31 - 1, size=self.n_starts).tolist()
                places = np.flatnonzero(tried).tolist()
                outcomes = self.starts(split, [self.ranks[place] for place in places], seeds)
                for place, several in zip(places, outcomes, strict=True):
                    best = min(several, key=lambda one: one.objective)
                    for name, value in best.measures.items():
                        found.setdefault(name, np.full(shape, np.nan))[place, number] = value
                    if progress is not None:
                        done = self.n_starts * (number * len(self.ranks) + place + 1)
                        progress(FitState(done, best.measures[main]))
                if _SPLITS <= number + 1 < self.n_splits:
                    tried &= ~_far_from_best(found[main][:, : number + 1])
        return found

    def starts(
        self, split: Run, ranks: Sequence[int], seeds: Sequence[int]
    ) -> Iterable[list[Outcome]]:
        """Give the outcomes of all starts of each rank, in their order."""
        jobs, threads = resolve_jobs(self.n_jobs, self.n_threads, len(ranks) * len(seeds))
        tasks = (partial(split, rank, seed) for rank in ranks for seed in seeds)
        outcomes = run_side_by_side(tasks, jobs, threads)
        for _ in ranks:
            yield [next(outcomes) for _ in seeds]


def standard_errors(scores: Array) -> Array:
    """Return the standard errors of the means of rows."""
    n = scores.shape[1]
    if n < 2:
        return np.full(len(scores), np.nan)
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(n))


def _far_from_best(errors: Array) -> Array:
    """Return which ranks are pruned; ranks pruned before, with NaN, stay so."""
    means = np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))
    best = int(means.argmin())
    with np.errstate(invalid="ignore"):
        of_differences = standard_errors(errors - errors[best])
    unsure = np.fmax(of_differences, standard_errors(errors[best : best + 1]))
    return np.asarray(means - means[best] > _FAR * unsure)


def bounds(
    X: MatrixLike,
    y: npt.ArrayLike | None,
    model: BaseEstimator | None,
    given: dict[str, Any],
    search: Search,
    rng: np.random.Generator,
) -> tuple[Array, Any]:
    """Return the bound of a Bayesian model for every rank and start, and the best model."""
    model = BayesianNMF() if model is None else model
    if not isinstance(model, BayesianBase):
        raise TypeError(
            "criterion 'bound' needs a BayesianNMF or SupervisedBayesianNMF as estimator, whose "
            f"bounds can be compared; got {type(model).__name__}."
        )
    refuse_both(model, {name: value for name, value in given.items() if value is not None})
    require_no_start(model)
    seeds = rng.integers(2**31 - 1, size=search.n_starts).tolist()

    def run(rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        # More components than the data need are tried on purpose.
        found = quietly(IDLE, fit_copy, model, X, y, rank, seed, threads, stop)
        return Outcome(-found.lower_bound_, {}, found)

    best, found = Outcome(np.inf, {}), []
    for outcomes in search.starts(run, search.ranks, seeds):
        best = min([best, *outcomes], key=lambda one: one.objective)
        found.append([-one.objective for one in outcomes])
    return np.array(found), best.model


def stabilities(
    X: DataLike, X_weights: WeightsLike, fits: Fits, search: Search, rng: np.random.Generator
) -> Array:
    """Return the mean silhouette of the components of all starts for every rank, (ranks, 1)."""
    if search.ranks[0] < 2 or search.n_starts < 2:
        raise ValueError(
            "criterion 'stability' compares the components of starts with each other: it needs "
            f"ranks and n_starts of at least 2; got {search.ranks[0]} and {search.n_starts}."
        )
    clean = CleanMatrix(check_data(X, resolve_threads(search.n_threads)))
    of_clusters, *seeds = rng.integers(2**31 - 1, size=search.n_starts + 1).tolist()
    settings = {name: fits.settings[name] for name in ("loss", "max_iter", "tol")}
    silhouettes = []
    with verbose_progress(
        search.verbose, len(search.ranks), "choose_rank", "stability", unit="rank"
    ) as progress:
        for rank in search.ranks:
            found = fit_starts(
                clean,
                seeds,
                n_jobs=search.n_jobs,
                n_threads=search.n_threads,
                n_components=rank,
                X_weights=X_weights,
                init="random",
                **settings,
            )
            components = np.concatenate([fit.A for fit in found])
            silhouettes.append(_silhouette(components, rank, of_clusters))
            if progress is not None:
                progress(FitState(len(silhouettes), silhouettes[-1]))
    return np.array(silhouettes)[:, None]


def _silhouette(components: Array, rank: int, seed: int) -> float:
    """Return the mean silhouette of clustered components; 0 without clusters."""
    spectra = unit_rows(components)
    spectra = spectra[spectra.any(axis=1)]  # a start may leave components at zero
    with limited_openmp(1):
        found = clusters_of(spectra, distances_between(spectra), rank, seed).silhouettes
    return float(np.nan_to_num(found).mean()) if len(found) else 0.0


def _whole(data: Data, fits: Fits, consistency: bool) -> Run:
    def run(rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        fit = fits.fit(data.X, data.weights, None, rank, seed, threads, stop)
        model, measures = (fit.weights, fit.factors), {}
        if consistency:
            measures["core consistency"] = float(np.nan_to_num(core_consistency(model, data.X)))
        return Outcome(fit.objective, measures, model)

    return run


def core_consistencies(
    data: Data, X_weights: WeightsLike, fits: Fits, search: Search, rng: np.random.Generator
) -> Array:
    """Return the core consistency of the best fit to the whole tensor, (ranks, 1)."""
    if X_weights is not None:
        raise ValueError(
            "criterion 'corcondia' takes no X_weights: its core is fitted to all entries; mark "
            "missing ones by NaN in a dense X, or use criterion='held-out'."
        )
    once = replace(search, n_splits=1)
    name = "core consistency"
    return once.run([_whole(data, fits, consistency=True)], rng, name)[name]


def agreements(data: Data, fits: Fits, search: Search, rng: np.random.Generator) -> Array:
    """Return the median factor match score of pairs of starts for every rank, (ranks, 1).

    The mean would depend on how many starts end in a poor optimum.
    """
    if search.n_starts < 2:
        raise ValueError(
            "criterion 'stability' compares the components of starts with each other: it needs "
            f"n_starts of at least 2; got {search.n_starts}."
        )
    seeds = rng.integers(2**31 - 1, size=search.n_starts).tolist()
    run = _whole(data, fits.with_random_starts(), consistency=False)
    scores: list[float] = []
    given = search.verbose, len(search.ranks), "choose_rank", "agreement"
    with verbose_progress(*given, unit="rank") as progress:
        for outcomes in search.starts(run, search.ranks, seeds):
            pairs = combinations([outcome.model for outcome in outcomes], 2)
            scores.append(float(np.median([factor_match_score(A, B) for A, B in pairs])))
            if progress is not None:
                progress(FitState(len(scores), scores[-1]))
    return np.array(scores)[:, None]
