"""Training of :class:`SSNMFClassifier`, also on few labels: parameters, topics, self-training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.checks import check_integer, check_option, check_random_state, check_real
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization
from .._models.represent import represent
from .._solver.starts import INITS
from .._topics import topic_shares
from ._class_topics import SUPPORTS, SamplesInMemory, fit_class_topics
from ._context import Context
from ._readout import Readout, fit_readout, probabilities
from ._training_labels import TrainingLabels, with_neighbors, with_predictions

Options = dict[str, Any]  # as of fit_options

_PER_CLASS = (1, 3)  # components of a class that are tried
_ROUNDS = 2
_TRIAL_ITERATIONS = 10  # of topics that only help to choose or to predict labels
_REPRESENT_TOL = 1e-3  # of the representations during training


@dataclass(frozen=True)
class Choice:
    """Settings that validation may choose; `readout` are those of :func:`fit_readout`."""

    supervision_weight: float | None  # None: balanced
    n_components: int
    rounds: int  # of self-training
    readout: dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Checked parameters of the classifier; None where validation is to choose."""

    n_components: int | None
    supervision_weight: float | str | None
    rounds: int | None
    readout: str
    class_weight: Any
    may_balance: bool

    @classmethod
    def checked(cls, model: Any) -> Settings:
        """Read the parameters of an estimator."""
        readout = model._chosen_readout()
        rank, weight, rounds = model.n_components, model.supervision_weight, model.self_training
        if isinstance(rank, str):
            rank = check_option(rank, "n_components", ("auto",))
        else:
            rank = check_integer(rank, "n_components", 1)
        if isinstance(weight, str):
            check_option(weight, "supervision_weight", ("auto", "balanced"))
        elif weight != SUPPORTS:
            weight = check_real(weight, "supervision_weight")
        if isinstance(rounds, str):
            rounds = check_option(rounds, "self_training", ("auto",))
        else:
            rounds = check_integer(rounds, "self_training", 0)
        refuse_unused(model, readout)
        _check_threshold(model.threshold)
        _check_init(model.init)
        automatic = isinstance(model.class_weight, str) and model.class_weight == "auto"
        return cls(
            None if rank == "auto" else rank,
            None if weight == "auto" else weight,
            None if rounds == "auto" else rounds,
            readout,
            None if automatic else model.class_weight,
            automatic,
        )

    def named(self, classes: Array, several: bool) -> Settings:
        """Return the same with class weights by the number of the class, which readouts know."""
        given = self.class_weight
        if given is None or isinstance(given, str):
            check_option(given or "auto", "class_weight", ("auto", "balanced"))
            return self
        names = [0, 1] if several else classes.tolist()
        if not isinstance(given, dict) or any(name not in names for name in given):
            raise ValueError(
                f"class_weight must be 'auto', None, 'balanced' or a dict of weights for some of "
                f"{names}; got {given!r}."
            )
        found = [check_real(given.get(name, 1.0), f"class_weight[{name!r}]") for name in names]
        return replace(self, class_weight=dict(enumerate(found)))

    def choices(self, labels: TrainingLabels) -> list[Choice]:
        """Return what to try; the first is the rule for too few labels."""
        k = labels.members.shape[1]
        ranks = [self.n_components or per_class * k for per_class in _PER_CLASS]
        readout = {"C": 10.0, "row_scale": 1.0, "class_weight": self.class_weight}
        found = []
        for rank in dict.fromkeys(ranks):
            if self.supervision_weight is None:
                weight = SUPPORTS if rank >= k else None
            elif self.supervision_weight == "balanced":
                weight = None
            else:
                weight = float(self.supervision_weight)
            if weight == SUPPORTS and rank < k:
                raise ValueError(
                    f"n_components={rank} is too small for supervision_weight=inf, which gives "
                    f"each of the {k} classes a component of its own. Set n_components to {k} or "
                    "more, or give a finite supervision_weight."
                )
            found.append(Choice(weight, rank, self._rounds(labels), readout))
        return found

    def _rounds(self, labels: TrainingLabels) -> int:
        if labels.several or labels.known.all() or self.readout != "logistic":
            return 0
        if self.rounds is not None:
            return self.rounds
        return _ROUNDS if self.validates else 0

    @property
    def validates(self) -> bool:
        """Whether anything is to be chosen by validation."""
        open_choice = self.n_components is None or self.supervision_weight is None
        return open_choice and self.readout == "logistic"


def refuse_unused(model: Any, readout: str) -> None:
    """Raise ValueError for parameters of the logistic readout beside another one."""
    if readout == "logistic":
        return
    rounds, weights = model.self_training, model.class_weight
    for name, used in (
        ("self_training", not isinstance(rounds, str) and rounds > 0),
        ("class_weight", isinstance(weights, dict) or weights == "balanced"),
    ):
        if used:
            raise ValueError(
                f"{name}={getattr(model, name)!r} belongs to readout='logistic'; it has no effect "
                f"with readout={readout!r}. Leave it at 'auto'."
            )


def _check_threshold(threshold: Any) -> None:
    if isinstance(threshold, str):
        if threshold != "auto":
            raise ValueError(f"threshold must be 'auto' or a number; got {threshold!r}.")
    else:
        check_real(threshold, "threshold", allow_negative=True)


def _check_init(init: Any) -> None:
    if not isinstance(init, (tuple, list)):
        check_option(init, "init", ("labels", *INITS))
    elif len(init) not in (2, 3):
        raise ValueError(f"init holds {len(init)} arrays; expected S, A and, optionally, B.")


def start_of(model: Any, labels: TrainingLabels, n_components: int) -> tuple[Any, int, int | None]:
    """Return `init`, the seed of a training, and that of random starts where it is another one."""
    state, init = model.random_state, model.init
    if isinstance(init, str) and init == "auto":
        init = "labels" if n_components >= labels.members.shape[1] else "random"
    seed = int(check_random_state(state).integers(2**31))
    # A random start is then that of factorize with the same number.
    return init, seed, int(state) if isinstance(state, (int, np.integer)) else None


@dataclass(frozen=True)
class Problem:
    """Checked data with their labels, and what stays the same for all trials."""

    X: Any
    X_weights: Any
    labels: TrainingLabels
    context: Context
    options: Options
    init: Any
    seed: int
    start_seed: int | None = None  # of random starts, where it is not `seed`

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
            loss=self.options["loss"],
            X_weights=X_weights,
            tol=_REPRESENT_TOL,
            n_threads=self.options["n_threads"],
        )

    def topics(self, labels: TrainingLabels, choice: Choice, options: Options) -> Factorization:
        """Fit the factorization to some labels."""
        samples = SamplesInMemory(self.X, self.X_weights, labels, options)
        n_components, weight = choice.n_components, choice.supervision_weight
        seeds = self.seed, self.start_seed
        return fit_class_topics(samples, n_components, weight, self.init, *seeds)


def for_trials(options: Options) -> Options:
    """Return the options of a trial: fewer iterations, no callback, no output."""
    max_iter = min(options["max_iter"], _TRIAL_ITERATIONS)
    return options | {"max_iter": max_iter, "callback": None, "verbose": 0}


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


def train(problem: Problem, labels: TrainingLabels, choice: Choice, options: Options) -> Trained:
    """Fit topics and readout to some labels, with rounds of self-training."""
    given = labels
    for turn in range(choice.rounds):
        fit = problem.topics(given, choice, for_trials(options))
        known = given.known
        shares = problem.shares_of_all(fit, known)
        context = problem.context[known]
        readout = fit_readout(context, shares[known], given, known, **choice.readout)
        chance = probabilities(readout.logits(problem.context, shares), False)
        if turn == 0:  # where the readout has few labels to go by, neighbors see clusters
            chance = with_neighbors(chance, problem.context.scores, labels, problem.seed)
        given = with_predictions(labels, chance)
    fit = problem.topics(given, choice, options)
    known = given.known
    shares = problem.shares(fit.A, known)
    readout = fit_readout(problem.context[known], shares, given, known, **choice.readout)
    return Trained(fit, readout, shares[labels.known[known]])
