"""Parameters of :class:`SSNMFClassifier`: their checks, what to try, starts and thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from .._common.arrays import Array
from .._data.checks import check_integer, check_option, check_random_state, check_real
from .._solver.starts import INITS
from ._choose import Validation
from ._class_topics import SUPPORTS
from ._label_guided import Choice
from ._readout import Readout, ReadoutOptions, probabilities
from ._training_labels import TrainingLabels

_PER_CLASS = (1, 3)  # components of a class that are tried
_ROUNDS = 2
_FEW_POSITIVE = 10.0  # validated samples of a label that count as much as those of all labels


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


def start_of(model: Any, labels: TrainingLabels, n_components: int) -> tuple[Any, int, int | None]:
    """Return `init`, the seed of a training, and that of random starts where it is another one."""
    state, init = model.random_state, model.init
    if isinstance(init, str) and init == "auto":
        init = "labels" if n_components >= labels.members.shape[1] else "random"
    seed = int(check_random_state(state).integers(2**31))
    # A random start is then that of factorize with the same number.
    return init, seed, int(state) if isinstance(state, (int, np.integer)) else None


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
    guesses = chance > grid[:, None, None]
    hits, counts = (truth & guesses).sum(axis=1), truth.sum(axis=0)
    best = grid[(2 * hits / np.maximum(counts + guesses.sum(axis=1), 1)).argmax(axis=0)]
    found = (counts * best + _FEW_POSITIVE * common) / (counts + _FEW_POSITIVE)
    return np.asarray(np.where(counts > 0, found, common))
