"""Training of a classifier on few labels: topics of the classes, a readout, self-training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization
from .._models.represent import represent
from .._topics import topic_shares
from ._class_topics import SUPPORTS, FitOptions, SamplesInMemory, fit_class_topics
from ._context import Context
from ._readout import Readout, ReadoutOptions, fit_readout, probabilities
from ._training_labels import TrainingLabels, with_neighbors, with_predictions

TRIAL_ITERATIONS = 10  # of topics that only help to choose or to predict labels
_REPRESENT_TOL = 1e-3  # of the representations during training


@dataclass(frozen=True)
class Choice:
    """Settings of a classifier that validation may choose.

    `n_components` is the rank, `rounds` the number of rounds of self-training.
    """

    supervision_weight: float | None  # None: balanced
    n_components: int
    rounds: int
    readout: ReadoutOptions


@dataclass(frozen=True)
class Problem:
    """Checked data with their labels, and what stays the same for all trials.

    `start_seed` is that of random starts, where it is not `seed`.
    """

    X: Any
    X_weights: Any
    labels: TrainingLabels
    context: Context
    options: FitOptions
    init: Any
    seed: int
    start_seed: int | None = None

    def shares(self, A: Array, rows: Array) -> Array:
        """Return the label-blind topic shares of some samples, (rows, r)."""
        X, X_weights = self.X, self.X_weights
        if X_weights is None and not rows.all() and not isinstance(X, CsrFile):
            return topic_shares(self._represent(X[rows], None, A), A)
        return topic_shares(self._represent(X, X_weights, A)[rows], A)

    def shares_of_all(self, fit: Factorization, known: Array) -> Array:
        """Return the same of all samples; a fit has represented those without labels already."""
        shares = topic_shares(fit.S, fit.A)
        shares[known] = self.shares(fit.A, known)
        return shares

    def part(self, rows: Array) -> Problem:
        """Return the problem of some samples."""
        labels = TrainingLabels(
            self.labels.members[rows], self.labels.entry_weights[rows], self.labels.several
        )
        return replace(self, X=self.X[rows], labels=labels, context=self.context[rows])

    def _represent(self, X: Any, X_weights: Any, A: Array) -> Array:
        return represent(
            CleanMatrix(X),
            A,
            loss=self.options.loss,
            X_weights=X_weights,
            tol=_REPRESENT_TOL,
            n_threads=self.options.n_threads,
        )

    def topics(self, labels: TrainingLabels, choice: Choice, options: FitOptions) -> Factorization:
        """Fit the factorization to some labels."""
        samples = SamplesInMemory(self.X, self.X_weights, labels, options)
        n_components, weight = choice.n_components, choice.supervision_weight
        seeds = self.seed, self.start_seed
        return fit_class_topics(samples, n_components, weight, self.init, *seeds)


@dataclass(frozen=True)
class Trained:
    """A factorization, a readout, and the label-blind shares of the labeled samples, (l, r)."""

    fit: Factorization
    readout: Readout
    shares: Array

    @property
    def weight(self) -> float:
        """The supervision weight, as a number."""
        given = self.fit.supervision_weight
        return SUPPORTS if given is None else given


def train(problem: Problem, labels: TrainingLabels, choice: Choice, options: FitOptions) -> Trained:
    """Fit topics and readout to some labels, with rounds of self-training.

    A round takes the surer ones of the samples that are predicted to be of each class as labeled,
    with a small weight, and starts anew from the means of the larger classes.  The first round asks
    the nearest neighbors as well: where the readout has few labels to go by, they see clusters.
    """
    given = labels
    for turn in range(choice.rounds):
        fit = problem.topics(given, choice, options.short(TRIAL_ITERATIONS))
        known = given.known
        shares = problem.shares_of_all(fit, known)
        readout = read_out(problem, given, choice, shares[known], known)
        chance = probabilities(readout.logits(problem.context, shares), False)
        if turn == 0:
            chance = with_neighbors(chance, problem.context.scores, labels, problem.seed)
        given = with_predictions(labels, chance)
    fit = problem.topics(given, choice, options)
    known = given.known
    shares = problem.shares(fit.A, known)
    readout = read_out(problem, given, choice, shares, known)
    return Trained(fit, readout, shares[labels.known[known]])


def read_out(
    problem: Problem, labels: TrainingLabels, choice: Choice, shares: Array, rows: Array
) -> Readout:
    """Fit the readout to the labels of some rows, whose shares are given."""
    fitted = fit_readout(
        problem.context[rows],
        shares,
        labels.targets(rows),
        labels.readout_weights(rows),
        choice.readout,
        labels.several,
    )
    return _padded(fitted, labels.members.shape[1])


def _padded(readout: Readout, k: int) -> Readout:
    """Return the readout with rows for the classes beyond the last one that it has seen."""
    missing = k - len(readout.intercepts)
    if not missing:
        return readout
    unlikely = np.full(missing, readout.intercepts.min(initial=0.0) - 10.0)
    return replace(
        readout,
        coefficients=np.pad(readout.coefficients, ((0, missing), (0, 0))),
        intercepts=np.concatenate([readout.intercepts, unlikely]),
        slopes=np.ones(k),
        offsets=np.zeros(k),
        thresholds=np.full(k, 0.5),
    )
