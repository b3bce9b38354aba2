"""Training of :class:`SSNMFClassifier`, also on few labels: parameters, topics, self-training."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from .._common.arrays import Array
from .._data.checks import check_integer, check_option, check_real
from .._data.threads import one_blas_thread
from .._models.factorize import Factorization
from .._solver.starts import INITS
from .._topics import topic_shares
from ._class_topics import SUPPORTS, LabeledSamples
from ._readout import LogisticReadout, fit_readout, probabilities
from ._training_data import Context, TrainingLabels

_PER_CLASS = (1, 3)  # components of a class that are tried
_ROUNDS = 2
_PSEUDO_WEIGHT = 0.1  # of a predicted label beside 1 for a given one
# Share of the samples predicted to be of a class whose label is taken as known, for few labels and
# from so many a class on: more labels predict better.
_CONFIDENT, _MORE_CONFIDENT, _MORE_LABELS = 0.5, 0.8, 4
_NEIGHBORS, _SPREADING_STEPS, _SPREADING_TOLERANCE = 20, 1000, 1e-2
_MOST_SPREAD = 3000  # samples in the graph of neighbors


@dataclass(frozen=True)
class Choice:
    """Settings that validation may choose; `readout` are those of :func:`fit_readout`."""

    supervision_weight: float | str  # or "balanced"
    n_components: int
    rounds: int  # of self-training
    readout: dict[str, Any]


def choices_of(model: Any, labels: TrainingLabels, classes: Array) -> tuple[list[Choice], bool]:
    """Check parameters; return what to try, first the rule for few labels, and whether to."""
    if not labels.several and (labels.counts > 0).sum() < 2:
        raise ValueError(
            "The labels of one class only have a weight above 0; expected two classes. Give "
            "labeled samples of another class a weight above 0."
        )
    kind, k = model._chosen_readout(), labels.members.shape[1]
    ranks = [per_class * k for per_class in _PER_CLASS]
    any_rank = _is_auto(model.n_components, "n_components")
    if not any_rank:
        ranks = [check_integer(model.n_components, "n_components", 1)]
    weight = model.supervision_weight
    any_weight = _is_auto(weight, "supervision_weight", "balanced")
    if not isinstance(weight, str) and weight != SUPPORTS:
        weight = check_real(weight, "supervision_weight")
    validates = kind == "logistic" and (any_rank or any_weight)
    rounds = _ROUNDS if validates else 0
    if not _is_auto(model.self_training, "self_training"):
        rounds = check_integer(model.self_training, "self_training", 0)
    refuse_unused(model, kind)
    check_threshold(model.threshold)
    init = model.init
    if not isinstance(init, (tuple, list)):
        check_option(init, "init", ("labels", *INITS))
    elif len(init) not in (2, 3):
        raise ValueError(f"init holds {len(init)} arrays; expected S, A and, optionally, B.")
    if labels.several or labels.known.all() or kind != "logistic":
        rounds = 0
    class_weight = _by_number(model.class_weight, [0, 1] if labels.several else classes.tolist())
    readout = {"C": 10.0, "row_scale": 1.0, "class_weight": class_weight}
    choices = []
    for rank in dict.fromkeys(ranks):
        if any_weight:
            weight = SUPPORTS if rank >= k else "balanced"
        if weight == SUPPORTS and rank < k:
            raise ValueError(
                f"n_components={rank} is too small for supervision_weight=inf, which gives each of "
                f"the {k} classes a component. Set n_components to {k} or more, or give a finite "
                "supervision_weight."
            )
        choices.append(Choice(weight, rank, rounds, readout))
    return choices, validates


def _is_auto(value: Any, name: str, *others: str) -> bool:
    """Whether a parameter is "auto"; ValueError for text that is none of the others."""
    return isinstance(value, str) and check_option(value, name, ("auto", *others)) == "auto"


def _by_number(class_weight: Any, classes: list[Any]) -> Any:
    """Check the weights of classes, and return them by the number of the class."""
    if class_weight is None or isinstance(class_weight, str):
        balanced = check_option(class_weight or "auto", "class_weight", ("auto", "balanced"))
        return class_weight if balanced == "balanced" else None
    if not isinstance(class_weight, dict) or any(name not in classes for name in class_weight):
        raise ValueError(
            f"class_weight must be 'auto', None, 'balanced' or a dict of weights for some of "
            f"{classes}; got {class_weight!r}."
        )
    given = [class_weight.get(name, 1.0) for name in classes]
    pairs = zip(given, classes, strict=True)
    return dict(enumerate(check_real(w, f"class_weight[{name!r}]") for w, name in pairs))


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


def check_threshold(threshold: Any) -> float | None:
    """Return a threshold, None for "auto"; raise an error for anything else."""
    if not isinstance(threshold, str):
        return check_real(threshold, "threshold", allow_negative=True)
    if threshold != "auto":
        raise ValueError(f"threshold must be 'auto' or a number; got {threshold!r}.")
    return None


def train(
    samples: LabeledSamples, choice: Choice, predicts: bool = True
) -> tuple[Factorization, LogisticReadout | None, Array]:
    """Fit topics and, if it `predicts`, the logistic readout, with rounds of self-training.

    The third result are the shares of the labeled samples, (labeled samples, r), found without
    their labels.
    """
    context, given = samples.context, samples  # which have more labels after each round
    for turn in range(choice.rounds):
        fit = given.for_trials().fit_topics(choice.n_components, choice.supervision_weight)
        rows = given.labels.known
        shares = topic_shares(fit.S, fit.A)  # those without labels are represented already
        shares[rows] = samples.shares(fit.A, rows)
        readout = fit_readout(context[rows], shares[rows], given.labels, **choice.readout)
        chance = probabilities(readout.logits(context, shares), False)
        if turn == 0:  # where the readout has few labels to go by, neighbors see clusters
            chance = _blend_neighbors(chance, context, samples.labels, samples.seed)
        given = replace(given, labels=_add_predictions(samples.labels, chance))
    fit = given.fit_topics(choice.n_components, choice.supervision_weight)
    rows = given.labels.known
    shares = samples.shares(fit.A, rows)
    of_labeled, found = shares[samples.labels.known[rows]], None
    if predicts:
        found = fit_readout(context[rows], shares, given.labels, **choice.readout)
    return fit, found, of_labeled


@one_blas_thread()
def _blend_neighbors(chance: Array, context: Context, labels: TrainingLabels, seed: int) -> Array:
    """Return the mean of probabilities and of those that labels spread to (Zhou et al. 2004)."""
    known = labels.known
    if not context.parts or len(known) < 2:
        return chance
    rng = np.random.default_rng(seed)
    others = rng.permutation(np.flatnonzero(~known))[: max(0, _MOST_SPREAD - int(known.sum()))]
    rows = np.sort(np.concatenate([np.flatnonzero(known), others]))
    codes = np.where(known, labels.codes, -1)[rows]
    machine = LabelSpreading(
        kernel="knn",
        n_neighbors=min(_NEIGHBORS, len(rows) - 1),
        max_iter=_SPREADING_STEPS,
        tol=_SPREADING_TOLERANCE,
    )
    machine.fit(context.parts[0][rows], codes)
    spread = np.zeros((len(rows), chance.shape[1]))
    spread[:, machine.classes_] = machine.label_distributions_
    blended = np.array(chance)
    blended[rows] = (chance[rows] + spread) / 2
    return blended


def _add_predictions(labels: TrainingLabels, chance: Array) -> TrainingLabels:
    """Return labels to which the surer ones of the predictions of each class are added."""
    predicted, sureness = chance.argmax(axis=1), chance.max(axis=1)
    members, entry_weights = labels.members.copy(), labels.entry_weights.copy()
    known = labels.known
    enough = known.sum() >= _MORE_LABELS * members.shape[1]
    share = _MORE_CONFIDENT if enough else _CONFIDENT
    unit = entry_weights[known].max(axis=1).mean() if known.any() else 1.0
    for c in range(members.shape[1]):
        rows = np.flatnonzero((predicted == c) & ~known)
        surest = rows[np.argsort(-sureness[rows], kind="stable")]
        chosen = surest[: math.ceil(share * len(rows))]
        members[chosen] = 0
        members[chosen, c] = 1
        entry_weights[chosen] = _PSEUDO_WEIGHT * unit
    return replace(labels, members=members, entry_weights=entry_weights)
