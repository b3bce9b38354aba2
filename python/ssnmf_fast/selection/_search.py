"""The fits of all ranks: several splits of the data, several starts, many fits at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._common.arrays import Array
from .._data.threads import Stop, resolve_jobs, run_side_by_side
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from ._held_out import (
    EstimatorFits,
    Hidden,
    HiddenLabels,
    PlainFits,
    Seen,
    Unseen,
    hide_entries,
    hide_labels,
)

# A rank is given up where, after a few splits, its mean error is further from the best one than so
# many standard errors; the rule takes ranks within one of them.
_SPLITS, _FAR = 3, 5.0


class Outcome(NamedTuple):
    """What became of a fit: the value it minimizes, how well it does, and the model to keep."""

    objective: float
    measures: dict[str, float]
    model: Any = None


class Split(Protocol):
    """Data of which a part is held out."""

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        """Fit what is seen, and judge the fit by what is not."""


@dataclass(frozen=True)
class Search:
    """Which fits are made, and how many at a time."""

    ranks: tuple[int, ...]
    n_splits: int
    n_starts: int
    n_jobs: int | None
    n_threads: int | None
    verbose: int

    def run(
        self, splits: Iterable[Split], rng: np.random.Generator, main: str = "error"
    ) -> dict[str, Array]:
        """Return the measures, each (ranks, splits), with NaN from where a rank is given up.

        Of the starts of a rank the one counts that fits best what it sees; `main` is the measure
        that is shown, and by which ranks are given up.
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
                    tried &= ~_hopeless(found[main][:, : number + 1])
        return found

    def starts(
        self, split: Split, ranks: Sequence[int], seeds: Sequence[int]
    ) -> Iterable[list[Outcome]]:
        """Give the outcomes of all starts of each rank, in their order."""
        jobs, threads = resolve_jobs(self.n_jobs, self.n_threads, len(ranks) * len(seeds))
        tasks = (partial(split.run, rank, seed) for rank in ranks for seed in seeds)
        outcomes = run_side_by_side(tasks, jobs, threads)
        for _ in ranks:
            yield [next(outcomes) for _ in seeds]


def standard_errors(scores: Array) -> Array:
    """Return the standard errors of the means of rows, by what differs between the splits."""
    n = scores.shape[1]
    if n < 2:
        return np.full(len(scores), np.nan)
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(n))


def _hopeless(errors: Array) -> Array:
    """Return which ranks need no further split; NaN, of a rank given up before, stays so."""
    means = np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))
    best = int(means.argmin())
    with np.errstate(invalid="ignore"):
        of_differences = standard_errors(errors - errors[best])
    unsure = np.fmax(of_differences, standard_errors(errors[best : best + 1]))
    return np.asarray(means - means[best] > _FAR * unsure)


@dataclass(frozen=True)
class EntrySplit:
    """Hidden entries anywhere in X and, of labeled samples, hidden labels."""

    X: Any
    hidden: Hidden
    fits: PlainFits | EstimatorFits
    labels: HiddenLabels | None = None

    @cached_property
    def _unseen(self) -> Unseen:
        hidden = self.hidden
        seen = Seen.of(hidden.X_weights.seen(hidden.X))
        return Unseen(hidden.values, hidden.weights, seen)

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        y = None if self.labels is None else self.labels.y
        seen = self.hidden.X, self.hidden.X_weights, y
        fit = self.fits.fit(*seen, rank, seed, threads, stop)
        measures = self._unseen.measures(fit.S, fit.A, self.fits.loss, threads)
        if self.labels is not None:
            measures["label_score"] = self.labels.score(fit.model, self.X)
        return Outcome(fit.objective, measures)


def entry_splits(
    X: Any,
    X_weights: Any,
    y: Any,
    fits: PlainFits | EstimatorFits,
    share: float,
    zeros: bool,
    rng: np.random.Generator,
) -> Iterator[EntrySplit]:
    """Give one split after the other, without an end."""
    while True:
        hidden = hide_entries(X, X_weights, share, zeros, rng)
        labels = None
        if y is not None and isinstance(fits, EstimatorFits):
            labels = hide_labels(y, fits.estimator, X.shape[0], share, rng)
        yield EntrySplit(X, hidden, fits, labels)
