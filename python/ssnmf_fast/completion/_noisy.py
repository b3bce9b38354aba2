"""Completion of noisy data: lasting shrinkage, chosen by held-out entries, and biases.

With gamma -> 0 shrinkage vanishes, and noise is fitted.  Here gamma falls level by level to
`gamma_min`; "validate" chooses the level with the least error at held-out observed entries.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import drop_entries, entry_rows, with_values
from .._linalg import square
from ._irls import Iteration, Schedule, distance_squared
from ._problem import CompletionProblem, Iterate, Observations, Pair
from ._result import CompletionState

FIRST_GAMMA = 4.0
MEANS_ONLY = 1e6  # a gamma that leaves no low-rank part
BIAS_WEIGHTS = 5.0, 5.0  # of zero, in entries, for means of rows and of columns
COLUMN_MEANS = np.inf, 0.0
_BIAS_SWEEPS, _SETTLED, _LEAST = 200, 1e-6, 1e-100
_LAST_GAMMA = 1e-12
_LEVEL = 2**-0.5
_TOL = 1e-3
_ITERATIONS_PER_LEVEL = 10
_LEVELS_WITHOUT_GAIN = 3
_HELD_OUT = 0.1
_PATIENCE, _FAR, _SURE = 4, 3.0, 1.5
_RANKS = (1, 2, 5, 10, 20, 40)
_LEAD = 2.0  # first level of a rank, relative to a level near the best of the previous rank
_GAIN = 1e-3  # relative gain of the error that counts
_RANKS_WITHOUT_GAIN = 2


class Biases:
    """Means of rows and columns of the residual of the low-rank part.

    They are shrunk to zero, by the weight of at most `most` zero entries, less if they are large.
    """

    def __init__(self, matrix: sp.csr_array, most: tuple[float, float] = BIAS_WEIGHTS) -> None:
        self._raw, self._most = matrix.data.astype(np.float64), most
        self._places = entry_rows(matrix.indptr), matrix.indices.astype(np.intp, copy=False)
        self._counts = [
            np.bincount(places, minlength=length)
            for places, length in zip(self._places, matrix.shape, strict=True)
        ]
        self.mean = float(self._raw.mean())
        self._unit = float(np.abs(self._raw - self.mean).max()) or 1.0  # no square is lost
        self._values = [np.zeros(length) for length in matrix.shape]
        self._set_weights(1.0)
        self.refit(0.0)

    def _set_weights(self, variance: float) -> None:
        """Set the shrinkage of each mean from the variance of the entries around the means."""
        self._weights = []
        for values, counts, most in zip(self._values, self._counts, self._most, strict=True):
            squares = values**2
            distance = np.maximum(squares, np.median(squares[counts > 0])) / max(variance, _LEAST)
            weights = counts + most / np.maximum(distance, 1.0)
            self._weights.append(np.maximum(weights, _LEAST))

    def refit(self, low_rank: Array | float) -> Array:
        """Fit the biases to the data minus `low_rank`; return the data minus the biases."""
        left = (self._raw - self.at(*self._places) - low_rank) / self._unit
        for _ in range(_BIAS_SWEEPS):
            before = left
            for side, places in reversed(list(enumerate(self._places))):  # columns first
                left = left + self._values[side][places]
                sums = np.bincount(places, left, len(self._values[side]))
                self._values[side] = sums / self._weights[side]
                left = left - self._values[side][places]
            pairs = zip(self._counts, self._weights, strict=True)
            not_drawn = [float((counts / weights).sum()) for counts, weights in pairs]
            free = len(left) - not_drawn[0] - not_drawn[1]
            self._set_weights(square(left) / max(free, 1.0))
            if square(left - before) <= _SETTLED * square(left):
                break
        return np.asarray(left * self._unit + low_rank)

    @property
    def sides(self) -> Pair:
        """Row biases and column biases."""
        rows, columns = self._values
        return rows * self._unit, columns * self._unit

    def at(self, rows: Array, columns: Array) -> Array:
        of_rows, of_columns = self.sides
        return np.asarray(self.mean + of_rows[rows] + of_columns[columns])


class _NoisyFit:
    """A fit to some entries at falling levels of gamma."""

    def __init__(
        self,
        problem: CompletionProblem,
        schedule: Schedule,
        entries: sp.csr_array,
        rank: int,
        rng: np.random.Generator,
        start: Pair | None = None,
    ) -> None:
        self._problem, self._schedule = problem, schedule
        self._biases = None if problem.biases is None else Biases(entries, problem.biases)
        if self._biases is not None:
            entries = with_values(entries, self._biases.refit(0.0).astype(entries.dtype))
        observations = Observations.of(entries, problem.fill_value, problem.n_threads)
        self.state = Iteration(observations, rank, start, rng, oversampling=schedule.oversampling)
        if start is not None:
            self._refit_biases()

    def levels(self, last: float, first: float = FIRST_GAMMA) -> Iterator[Iterate]:
        """Yield the fit at every gamma from `first` down to `last`."""
        problem, state = self._problem, self.state
        most = problem.max_iter or np.inf
        tol = _TOL if problem.tol is None else problem.tol
        gamma, n_iter = max(first, last), 0
        history: list[CompletionState] = []
        while True:
            schedule, change = replace(self._schedule, gamma=gamma), 0.0
            for _ in range(_ITERATIONS_PER_LEVEL):
                before = state.F, state.G
                state.reweight(schedule, 1)
                self._refit_biases()
                n_iter += 1
                moved = distance_squared(state.F, state.G, *before, problem.n_threads)
                length = square(state.F)
                change = (moved / length) ** 0.5 if length > 0 else 0.0
                if change < tol or n_iter >= most:
                    break
            observations, rank = state.observations, len(state.singular)
            residual = observations.relative(observations.residuals(state.F, state.G))
            history.append(CompletionState(n_iter, change, residual, gamma, rank))
            biases = None
            if self._biases is not None:
                biases = self._biases.sides
                observations = replace(observations, offset=self._biases.mean)
            converged = gamma <= last and n_iter < most
            yield Iterate(
                observations, state.F, state.G, state.singular, history, converged, biases
            )
            if gamma <= last or n_iter >= most:
                return
            gamma = max(min(gamma * _LEVEL, FIRST_GAMMA), last)

    def _refit_biases(self) -> None:
        if self._biases is None:
            return
        observations = self.state.observations
        fitted = observations.values - observations.residuals(self.state.F, self.state.G)
        values = self._biases.refit(fitted.astype(np.float64) * observations.scale)
        scaled = (values / observations.scale).astype(observations.dtype)
        self.state.observations = replace(observations, values=scaled)

    def errors(self, places: Pair, truth: Array) -> Array:
        """Return errors at some places, in scaled units."""
        (rows, columns), observations = places, self.state.observations
        model = np.einsum("er,er->e", self.state.F[rows], self.state.G[columns])
        model = model * observations.scale
        model = model + (observations.offset if self._biases is None else self._biases.at(*places))
        return np.asarray((model - truth) / observations.scale)


def ranks(rank: int | None, shape: tuple[int, ...]) -> list[int]:
    return [rank] if rank is not None else [number for number in _RANKS if number <= min(shape)]


class _Best(NamedTuple):
    """Best level of a rank: error, gamma and factors."""

    error: float
    gamma: float
    near: float = FIRST_GAMMA  # the largest gamma with nearly the same error
    factors: Pair | None = None
    is_first: bool = False  # whether it was tried first, so that a larger gamma may be better


def _divisions(
    problem: CompletionProblem, count: int
) -> Iterator[tuple[sp.csr_array, Pair, Array]]:
    """Hide tenths of the entries; yield the other entries, and the hidden places and values."""
    entries = problem.entries
    order, size = problem.rng.permutation(entries.nnz), max(1, int(_HELD_OUT * entries.nnz))
    for start in range(0, min(count, entries.nnz // size) * size, size):
        held = np.zeros(entries.nnz, dtype=bool)
        held[order[start : start + size]] = True
        places = entry_rows(entries.indptr)[held], entries.indices[held]
        yield drop_entries(entries, held), places, entries.data[held]


def _search(
    problem: CompletionProblem, schedule: Schedule, gamma_min: float | None
) -> Generator[Iterate, None, tuple[int, float]]:
    """Choose rank and gamma by the error at a tenth of the observed entries.

    A rank starts from the factors of the previous one, slightly above its best gamma.
    """
    ((part, places, truth),) = _divisions(problem, 1)
    candidates = ranks(problem.rank, problem.entries.shape)
    least, choice, fruitless = np.inf, (candidates[0], FIRST_GAMMA), 0
    best = nothing = _Best(np.inf, FIRST_GAMMA)
    for rank in candidates:
        for before in (best, nothing):
            rng = np.random.default_rng(0)
            fit = _NoisyFit(problem, schedule, part, rank, rng, before.factors)
            best = yield from _best_level(fit, gamma_min, truth, places, before)
            if not best.is_first:
                break
        fruitless += 1
        if best.error < least * (1 - _GAIN):
            least, choice, fruitless = best.error, (rank, best.gamma), 0
        if fruitless == _RANKS_WITHOUT_GAIN:
            break
    return choice


def _best_level(
    fit: _NoisyFit, gamma_min: float | None, truth: Array, places: Pair, before: _Best
) -> Generator[Iterate, None, _Best]:
    """Lower gamma, from near the best level of the previous rank, until the error stops falling."""
    best, worse = _Best(np.inf, FIRST_GAMMA), 0
    first = min(FIRST_GAMMA, _LEAD * before.near)
    patience = _LEVELS_WITHOUT_GAIN if before.factors is None else 1
    errors: dict[float, float] = {}
    for iterate in fit.levels(gamma_min or _LAST_GAMMA, first):
        gamma, worse = iterate.history[-1].gamma, worse + 1
        errors[gamma] = error = float(np.sqrt(np.mean(fit.errors(places, truth) ** 2)))
        if error < best.error:
            best, worse = _Best(error, gamma, factors=(iterate.F, iterate.G)), 0
        yield iterate._replace(converged=False)
        if worse == patience:
            break
    enough = best.error * (1 + _GAIN)
    near = max((g for g, error in errors.items() if error <= enough), default=FIRST_GAMMA)
    is_first = first < FIRST_GAMMA and best.gamma == max(errors)
    return best._replace(gamma=gamma_min or best.gamma, near=near, is_first=is_first)


def _validated(
    problem: CompletionProblem, schedule: Schedule, rank: int
) -> Generator[Iterate, None, float]:
    """Choose gamma by the Huber losses at several hidden tenths, among levels reached by all."""
    sums: dict[float, Array] = {}
    for part, places, truth in _divisions(problem, problem.tenths):
        fit = _NoisyFit(problem, schedule, part, rank, problem.rng)
        losses: dict[float, Array] = {}
        for iterate in fit.levels(_LAST_GAMMA, MEANS_ONLY):
            errors = np.abs(fit.errors(places, truth)) * iterate.observations.scale
            if not losses:
                limit = _FAR * float(np.mean(errors**2)) ** 0.5
            huber = np.where(errors < limit, errors**2, limit * (2 * errors - limit))
            losses[iterate.history[-1].gamma] = huber
            yield iterate._replace(converged=False)
            if len(losses) - np.argmin([loss.sum() for loss in losses.values()]) > _PATIENCE:
                break
        gammas = [gamma for gamma in losses if not sums or gamma in sums]
        sums = {gamma: np.append(sums.get(gamma, []), losses[gamma]) for gamma in gammas}
    best = min(sums, key=lambda gamma: float(sums[gamma].sum()))
    gain = sums[MEANS_ONLY] - sums[best]
    return best if gain.sum() > _SURE * square(gain) ** 0.5 else MEANS_ONLY


def noisy_iterates(problem: CompletionProblem, **parameters: Any) -> Iterator[Iterate]:
    schedule = Schedule(FIRST_GAMMA, 1.0, 0.0, inner_steps=10, **parameters)
    rank, gamma = problem.rank, problem.gamma_min
    if problem.entries.nnz == 1:  # nothing can be held out
        rank = rank or 1
        if isinstance(gamma, str):
            gamma = MEANS_ONLY if problem.tenths else FIRST_GAMMA
    if problem.tenths and rank is not None and isinstance(gamma, str):
        gamma = yield from _validated(problem, schedule, rank)
    if rank is None or isinstance(gamma, str):
        least = None if isinstance(gamma, str) else gamma
        rank, gamma = yield from _search(problem, schedule, least)
    assert gamma is not None
    fit = _NoisyFit(problem, schedule, problem.entries, rank, problem.rng)
    yield from fit.levels(gamma, MEANS_ONLY if problem.tenths else FIRST_GAMMA)
