"""Completion of noisy data: shrinkage that stays, chosen on held-out entries, and biases.

With gamma -> 0 all shrinkage goes, and noise is fitted.  Here gamma falls level by level and stays
at `gamma_min`; by "validate" that is the level with the least error at held-out observed entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.csr import drop_entries, entry_rows
from .._linalg.tall import square
from ._irls import Iteration, distance_squared
from ._methods import IRLS, SIRLS
from ._observations import Observations
from ._problem import Check, Options, Outcome
from ._result import CompletionState
from ._rows import Biases
from ._schedule import Schedule, Sparsity

FIRST_GAMMA = 4.0
LAST_GAMMA = 1e-12
_LEVEL = 2**-0.5
_TOL = 1e-3
_ITERATIONS_PER_LEVEL = 10
_LEVELS_WITHOUT_GAIN = 3
_HELD_OUT = 0.1
_RANKS = (1, 2, 5, 10, 20, 40)
_LEAD = 2.0  # of the first level of a rank over one that was near the best of the rank before
_GAIN, _LOSS = 1e-3, 2e-3  # of the error, relative: what counts, and what ends the search at once
_RANKS_WITHOUT_GAIN = 2


class _Watch:
    """A check that keeps in mind whether it has asked to stop."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self.stopped = False

    def __call__(self, progress: CompletionState, fit: NoisyFit) -> bool:
        F, G = fit.state.F, fit.state.G
        self.stopped = bool(self._check(progress, F, G, fit.observations.scale))
        return self.stopped


class NoisyFit:
    """A fit that goes through levels of gamma."""

    def __init__(
        self,
        matrix: sp.csr_array,
        options: Options,
        rank: int,
        rng: Any,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        self.biases = Biases(matrix) if options.biases else None
        centered = matrix
        if self.biases is not None:
            values = self.biases.refit(0.0).astype(matrix.dtype)
            centered = sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
        self.observations = Observations.of(centered, options.fill_value, options.n_threads)
        self.state = Iteration(self.observations, rank, start, rng)
        if self.biases is not None and start is not None:
            self._refit_biases(self.biases)
        self._options = options
        self.history: list[CompletionState] = []
        self.n_iter = 0
        self.finished = False

    def levels(self, last: float, first: float = FIRST_GAMMA) -> Iterator[CompletionState]:
        """Yield what was reached at every gamma from `first` down to `last`."""
        gamma = max(first, last)
        while True:
            change = self._iterate(gamma)
            observations = self.state.observations
            residual = observations.relative(observations.residuals(self.state.F, self.state.G))
            self.finished = gamma <= last and not self._exhausted
            progress = CompletionState(
                self.n_iter, change, residual, gamma, len(self.state.singular)
            )
            self.history.append(progress)
            yield progress
            if gamma <= last or self._exhausted:
                return
            gamma = max(gamma * _LEVEL, last)

    @property
    def _exhausted(self) -> bool:
        most = self._options.max_iter
        return most is not None and self.n_iter >= most

    def _iterate(self, gamma: float) -> float:
        """Iterate with one gamma; return the last change of the low-rank part."""
        method = self._options.method
        assert isinstance(method, (SIRLS, IRLS))
        schedule = Schedule(
            gamma=gamma,
            gamma_decay=1.0,
            gamma_floor=gamma,
            p=method.p,
            sparsity=Sparsity(),
            inner_steps=10,
            exact=method.exact,
        )
        tol = _TOL if self._options.tol is None else self._options.tol
        change = 0.0
        for _ in range(_ITERATIONS_PER_LEVEL):
            before = self.state.F, self.state.G
            self.state.reweight(schedule, 1)
            if self.biases is not None:
                self._refit_biases(self.biases)
            self.n_iter += 1
            F, G = self.state.F, self.state.G
            moved = distance_squared(F, G, *before, self.observations.n_threads)
            length = square(F)
            change = (moved / length) ** 0.5 if length > 0 else 0.0
            if change < tol or self._exhausted:
                break
        return change

    def _refit_biases(self, biases: Biases) -> None:
        observations = self.state.observations
        fitted = observations.values - observations.residuals(self.state.F, self.state.G)
        values = biases.refit(fitted.astype(np.float64) * observations.scale)
        scaled = (values / observations.scale).astype(observations.dtype)
        self.state.observations = replace(observations, values=scaled)

    def predict(self, rows: Array, columns: Array) -> Array:
        """Values of the model, in the units of the data."""
        F, G = self.state.F, self.state.G
        model = np.einsum("er,er->e", F[rows], G[columns]) * self.observations.scale
        if self.biases is not None:
            return np.asarray(model + self.biases.at(rows, columns))
        return np.asarray(model + self.observations.offset)


def ranks(given: int | None, shape: tuple[int, ...]) -> list[int]:
    """Return the ranks to choose from."""
    return [given] if given is not None else [rank for rank in _RANKS if rank <= min(shape)]


@dataclass(frozen=True)
class _Best:
    """The best level of one rank: its error, its gamma, and the factors reached there.

    `near` is the largest gamma that is hardly worse: where the rank shrinks enough, gamma has no
    say, and the best level may lie far below what a larger rank needs.
    """

    error: float
    gamma: float
    near: float = FIRST_GAMMA
    factors: tuple[Array, Array] | None = None
    is_first: bool = False  # of those tried, so that one above it may be better


def validated(
    matrix: sp.csr_array, options: Options, gamma_min: float | None, watch: _Watch
) -> tuple[int, float] | NoisyFit:
    """Choose rank and gamma by the error at a tenth of the observed entries.

    Return the fit in hand instead if `watch` asks to stop.

    A rank starts from what the one before reached, a little above the gamma that it needed: going
    through all levels anew takes up to three times as long, and chooses no better.  Only where the
    first level is the best one, all are gone through.
    """
    rows = entry_rows(matrix.indptr)
    held = np.zeros(matrix.nnz, dtype=bool)
    held[options.rng.permutation(matrix.nnz)[: max(1, int(_HELD_OUT * matrix.nnz))]] = True
    if held.all():
        return options.rank or 1, gamma_min or FIRST_GAMMA
    part, places = drop_entries(matrix, held), (rows[held], matrix.indices[held])
    candidates = ranks(options.rank, matrix.shape)
    best, choice, fruitless = np.inf, (candidates[0], FIRST_GAMMA), 0
    last: _Best | None = None
    for rank in candidates:
        for before in [None] if last is None else [last, None]:
            start = None if before is None else before.factors
            fit = NoisyFit(part, options, rank, np.random.default_rng(0), start)
            last = _best_level(fit, gamma_min, matrix.data[held], places, watch, before)
            if watch.stopped:
                return fit
            if not last.is_first:
                break
        assert last is not None
        if last.error < best * (1 - _GAIN):
            best, choice, fruitless = last.error, (rank, last.gamma), 0
        else:
            fruitless += 1
        if fruitless == _RANKS_WITHOUT_GAIN or last.error > best * (1 + _LOSS):
            break
    return choice


def _best_level(
    fit: NoisyFit,
    gamma_min: float | None,
    truth: Array,
    places: tuple[Array, Array],
    watch: _Watch,
    before: _Best | None,
) -> _Best:
    """Go through the levels, from near the best one of the rank before, until none gains."""
    best, worse = _Best(np.inf, FIRST_GAMMA), 0
    first = FIRST_GAMMA if before is None else min(FIRST_GAMMA, _LEAD * before.near)
    patience = _LEVELS_WITHOUT_GAIN if before is None else 1
    errors: dict[float, float] = {}
    for progress in fit.levels(gamma_min or LAST_GAMMA, first):
        error = float(np.sqrt(np.mean((fit.predict(*places) - truth) ** 2)))
        errors[progress.gamma] = error
        if error < best.error:
            best, worse = _Best(error, progress.gamma, factors=(fit.state.F, fit.state.G)), 0
        else:
            worse += 1
        if watch(progress, fit) or worse == patience:
            break
    enough = best.error * (1 + _GAIN)
    near = max((g for g, error in errors.items() if error <= enough), default=FIRST_GAMMA)
    is_first = first < FIRST_GAMMA and best.gamma == max(errors)
    return replace(best, gamma=gamma_min or best.gamma, near=near, is_first=is_first)


def run_noisy(matrix: sp.csr_array, options: Options, check: Check) -> tuple[Outcome, Observations]:
    """Fit at the given or chosen rank and gamma; biases become two more columns of the factors."""
    rank = options.rank
    gamma_min = None if options.gamma_min == "validate" else float(options.gamma_min)
    watch = _Watch(check)
    fit: NoisyFit | None = None
    if rank is None or gamma_min is None:
        choice = validated(matrix, options, gamma_min, watch)
        if isinstance(choice, NoisyFit):
            fit = choice
        else:
            rank, gamma_min = choice
    if fit is None:
        assert rank is not None
        assert gamma_min is not None
        fit = NoisyFit(matrix, options, rank, options.rng)
        for progress in fit.levels(gamma_min):
            if watch(progress, fit):
                break
    state, history = fit.state, fit.history
    gamma = history[-1].gamma if watch.stopped or gamma_min is None else gamma_min
    outcome = Outcome(state.F, state.G, state.singular, gamma, history, fit.n_iter)
    outcome.converged = fit.finished and not watch.stopped
    if fit.biases is None:
        return outcome, fit.observations
    return _with_biases(outcome, fit.biases, fit.observations)


def _with_biases(
    outcome: Outcome, biases: Biases, observations: Observations
) -> tuple[Outcome, Observations]:
    rank, scale = len(outcome.singular), observations.scale
    F = np.column_stack(
        [outcome.F[:, :rank], biases.rows / scale, np.full(len(outcome.F), 1 / scale)]
    )
    G = np.column_stack([outcome.G[:, :rank], np.ones(len(outcome.G)), biases.columns])
    outcome.F, outcome.G = padded(F, observations.dtype), padded(G, observations.dtype)
    outcome.n_biases = 2
    return outcome, replace(observations, offset=biases.mean)
