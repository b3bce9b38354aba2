"""What :class:`SSNMFClassifier` learns: the choice, the topics, the readout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.checks import (
    check_integer,
    check_option,
    check_random_state,
    check_real,
    require_memory,
)
from .._models.factorize import Factorization
from .._solver.starts import INITS
from ._choose import Validation, calibrated, choose
from ._class_topics import SUPPORTS, FitOptions
from ._label_guided import Choice, Problem, train
from ._missing import filled
from ._predicting import shares_of_classes
from ._readout import (
    Context,
    Readout,
    ReadoutOptions,
    context_of,
    directions_of,
    probabilities,
)
from ._training_labels import TrainingLabels

_PER_CLASS = (1, 3)  # components of a class that are tried
_ROUNDS = 2
_FEW_POSITIVE = 10.0  # validated samples of a label that speak as loud as those of all labels


@dataclass(frozen=True)
class Wishes:
    """Parameters of the classifier, checked; None where the choice is ours."""

    n_components: int | None
    supervision_weight: float | str | None
    rounds: int | None
    readout: str
    class_weight: Any
    may_balance: bool

    @classmethod
    def checked(cls, model: Any) -> Wishes:
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

    def named(self, classes: Array, several: bool) -> Wishes:
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
        readout = ReadoutOptions(class_weight=self.class_weight)
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


@dataclass(frozen=True)
class Learned:
    """Result of the training."""

    fit: Factorization
    choice: Choice
    readout: Readout
    directions: Array | None
    thresholds: Array
    validation: Validation
    labels: TrainingLabels
    supervision_weight: float
    class_shares: Array

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of an estimator that say what was chosen, and why."""
        labels, validation = self.labels, self.validation
        return {
            "supervision_weight_": self.supervision_weight,
            "self_training_": self.choice.rounds,
            "validation_scores_": validation.scores,
            "validation_accuracy_": validation.accuracy(labels),
            "validation_interval_": validation.interval(labels),
            "validation_folds_": validation.folds_of_all(labels),
            "validation_proba_": validation.probabilities(labels, self.readout),
        }

    def warn_if_poor(self) -> None:
        """Warn if always predicting the largest class would be better, as validation has it."""
        labels, validation = self.labels, self.validation
        accuracy, largest = validation.accuracy(labels), float(labels.prior().max())
        if validation.interval(labels)[1] < largest:
            warn_user(
                f"By validation the accuracy to expect is {accuracy:.1%}, less than the "
                f"{largest:.1%} of always predicting the largest class. Label more samples, or "
                "look whether X tells the classes apart.",
                UserWarning,
            )


def learn(
    X: Any,
    X_weights: Any,
    labels: TrainingLabels,
    wishes: Wishes,
    options: FitOptions,
    init: Any,
    random_state: Any,
) -> Learned:
    """Choose, fit topics and readout; `labels` count where their weight is above 0."""
    seed = int(check_random_state(random_state).integers(2**31))
    directions, context = None, Context()
    if wishes.readout == "logistic":
        directions = directions_of(X, X_weights, seed, options.n_threads)
        if directions is not None:
            context = context_of(filled(X, None, None), directions)
    choices = wishes.choices(labels)
    for choice in choices:
        require_memory(choice.n_components, X.shape, X.dtype)
    if init == "auto":
        init = "labels" if choices[0].n_components >= labels.members.shape[1] else "random"
    # A random start is then that of factorize with the same number.
    start_seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    problem = Problem(X, X_weights, labels, context, options, init, seed, start_seed)
    choice, validation = choices[0], Validation()
    if wishes.validates:
        choice, validation = choose(problem, choices, labels.several and wishes.may_balance)
    trained = train(problem, labels, choice, options)
    readout = calibrated(trained.readout, labels, validation)
    thresholds = choose_thresholds(labels, validation, readout)
    weight = trained.weight
    shares = shares_of_classes(trained.shares, labels)
    return Learned(
        trained.fit, choice, readout, directions, thresholds, validation, labels, weight, shares
    )


def choose_thresholds(labels: TrainingLabels, validation: Validation, readout: Readout) -> Array:
    """Return the probability above which each label is predicted, (k,).

    The best for F of each label by validation, drawn to the best for all labels together where the
    label has few validated samples.
    """
    k = labels.members.shape[1]
    if not labels.several or validation.logits is None or validation.folds is None:
        return np.full(k, 0.5)
    rows = validation.folds >= 0
    logits = validation.logits[rows] * readout.slopes + readout.offsets
    chance, truth = probabilities(logits, True), labels.members[rows] > 0
    grid = np.linspace(0.05, 0.9, 35)
    micro = [f1_score(truth, chance > t, average="micro", zero_division=0) for t in grid]
    common = float(grid[int(np.argmax(micro))])
    found = np.full(k, common)
    for label in np.flatnonzero(truth.any(axis=0)):
        scores = [_f(truth[:, label], chance[:, label] > t) for t in grid]
        own = float(grid[int(np.argmax(scores))])
        count = float(truth[:, label].sum())
        found[label] = (count * own + _FEW_POSITIVE * common) / (count + _FEW_POSITIVE)
    return found


def _f(truth: Array, guess: Array) -> float:
    both = float((truth & guess).sum())
    return 2 * both / max(float(truth.sum() + guess.sum()), 1.0)
