"""Training of :class:`SSNMFClassifier`, also on few labels: parameters, topics, self-training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.listed import short
from .._common.unicode import nfc
from .._data.checks import check_integer, check_option, check_real
from .._models.factorize import Factorization
from .._solver.starts import INITS
from .._topics import topic_shares
from ._class_topics import SUPPORTS, LabeledSamples
from ._committee import probabilities
from ._label_shift import drawn_evenly
from ._members import (
    Linear,
    fit_coordinates,
    fit_margins,
    fit_naive_bayes,
    fit_readout,
)
from ._neighbors import log_chances
from ._readout import LogisticReadout
from ._side_members import fit_tables, joined, product_of_tables, taught_by_tables
from ._training_data import TrainingLabels, surest

_ROUNDS = 2
_PSEUDO_WEIGHT = 0.1  # of a predicted label beside 1 for a given one
# Share of the samples predicted to be of a class whose label is taken as known, for few labels and
# from so many a class on: more labels predict better.
_CONFIDENT, _MORE_CONFIDENT, _MORE_LABELS = 0.5, 0.8, 4
_NEIGHBORS_SHARE = 0.25  # in the first predictions
_FOR_UNEVEN = 3  # components of a class where classes are uneven and labels are not
_MANY_KNOWN = 0.5  # share of labeled samples from which the others teach nothing more
_MOST_VOTERS = 5000  # of texts, where neighbors count little
_ROW_SCALE = 4.0  # of rows beside topics, for the member that learns from all features
_WEAK_PENALTY = 100.0  # C, for coordinates that are smaller than rows of length 1
_PRIOR_OF_TABLE = 0.3  # beside 1 for all members that see X; noise does no harm with it
LOGISTIC, COMMITTEE = "logistic", "committee"


@dataclass(frozen=True)
class Plan:
    """How to train, with how many `rounds` of self-training, and what predicts."""

    supervision_weight: float | str  # or "balanced"
    n_components: int
    rounds: int
    class_weight: Any
    readout: str
    adapts: bool = False  # whether rank and rounds may be changed where labels mislead
    corrects: bool = False  # whether the shares of the classes are found without the labels

    @property
    def predicts(self) -> bool:
        """Whether logits predict."""
        return self.readout in (LOGISTIC, COMMITTEE)

    def adapted(self, samples: LabeledSamples) -> Plan:
        """Return the plan for labels that were drawn evenly from uneven classes, if they were."""
        if not self.adapts or not drawn_evenly(samples):
            return self
        rank = _FOR_UNEVEN * self.n_components
        return replace(self, n_components=rank, rounds=0, corrects=True)


def plan_of(model: Any, labels: TrainingLabels, classes: Array) -> tuple[Plan, bool]:
    """Check parameters; return how to train, and whether to validate."""
    if not labels.several and (labels.counts > 0).sum() < 2:
        raise ValueError(
            "The labels of one class only have a weight above 0; expected two classes. Give "
            "labeled samples of another class a weight above 0."
        )
    k, rank = labels.members.shape[1], model.n_components
    any_rank = _is_auto(rank, "n_components")
    rank = k if any_rank else check_integer(rank, "n_components", 1)
    weight = model.supervision_weight
    any_weight = _is_auto(weight, "supervision_weight", "balanced")
    if not isinstance(weight, str) and weight != SUPPORTS:
        weight = check_real(weight, "supervision_weight")
    readout = model._chosen_readout()
    if model.readout == "auto" and readout == COMMITTEE and not (any_rank or any_weight):
        readout = LOGISTIC
    predicts = readout in (LOGISTIC, COMMITTEE)
    validates = predicts and (any_rank or any_weight or readout == COMMITTEE)
    rounds = _ROUNDS if validates and labels.known.mean() < _MANY_KNOWN else 0
    any_rounds = _is_auto(model.self_training, "self_training")
    if not any_rounds:
        rounds = check_integer(model.self_training, "self_training", 0)
    refuse_unused(model, readout)
    check_threshold(model.threshold)
    init = model.init
    if not isinstance(init, (tuple, list)):
        check_option(init, "init", ("labels", *INITS))
    elif len(init) not in (2, 3):
        raise ValueError(f"init holds {len(init)} arrays; expected S, A and, optionally, B.")
    if labels.several or labels.known.all() or not predicts:
        rounds = 0
    class_weight = _by_number(model.class_weight, [0, 1] if labels.several else classes.tolist())
    if any_weight:
        weight = SUPPORTS if rank >= k else "balanced"
    if weight == SUPPORTS and rank < k:
        raise ValueError(
            f"n_components={rank} is too small for supervision_weight=inf, which gives each of "
            f"the {k} classes a component. Set n_components to {k} or more, or give a finite "
            "supervision_weight."
        )
    balances = _is_auto(model.class_weight, "class_weight", "balanced")
    if labels.several and readout == COMMITTEE and balances:
        class_weight = "balanced"
    free = any_rank and any_weight and any_rounds and class_weight is None
    adapts = free and rounds > 0 and readout == COMMITTEE
    return Plan(weight, rank, rounds, class_weight, readout, adapts), validates


def _is_auto(value: Any, name: str, *others: str) -> bool:
    """Whether a parameter is "auto"; ValueError for text that is none of the others."""
    return isinstance(value, str) and check_option(value, name, ("auto", *others)) == "auto"


def _by_number(class_weight: Any, classes: list[Any]) -> Any:
    """Check the weights of classes, and return them by the number of the class."""
    if class_weight is None or isinstance(class_weight, str):
        balanced = check_option(class_weight or "auto", "class_weight", ("auto", "balanced"))
        return class_weight if balanced == "balanced" else None
    weights = class_weight if isinstance(class_weight, dict) else {None: 0}
    weights = {nfc(name): weight for name, weight in weights.items()}
    if not set(weights) <= set(map(nfc, classes)):
        raise ValueError(
            f"class_weight must be 'auto', None, 'balanced' or a dict of weights for some of "
            f"{short(classes)}; got {short(class_weight)}."
        )
    given = [weights.get(nfc(name), 1.0) for name in classes]
    pairs = zip(given, classes, strict=True)
    return dict(enumerate(check_real(w, f"class_weight[{name!r}]") for w, name in pairs))


def refuse_unused(model: Any, readout: str) -> None:
    """Raise ValueError for parameters of logistic regression beside another readout."""
    if readout in (LOGISTIC, COMMITTEE):
        return
    rounds, weights = model.self_training, model.class_weight
    for name, used in (
        ("self_training", not isinstance(rounds, str) and rounds > 0),
        ("class_weight", isinstance(weights, dict) or weights == "balanced"),
    ):
        if used:
            raise ValueError(
                f"{name}={short(getattr(model, name))} belongs to readout='committee' or "
                f"'logistic'; it has no effect with readout={readout!r}. Leave it at 'auto'."
            )


def check_threshold(threshold: Any) -> float | None:
    """Return a threshold, None for "auto"; raise an error for anything else."""
    if not isinstance(threshold, str):
        return check_real(threshold, "threshold", allow_negative=True)
    if threshold != "auto":
        raise ValueError(f"threshold must be 'auto' or a number; got {short(threshold)}.")
    return None


@dataclass(frozen=True)
class Trained:
    """Topics, the members of a committee that were fitted, and what else is read of a training."""

    fit: Factorization
    shares: Array  # of the labeled samples, (labeled samples, r), found without their labels
    members: dict[str, Linear]
    of_tables: dict[str, Linear]  # of side information
    spread: Array | None  # probabilities by the graph of neighbors, (n, k)


def prior_of(samples: LabeledSamples, plan: Plan) -> dict[str, float]:
    """Return the members, and their weights before any is validated; they sum to 1.

    Of texts the topics carry the labels, of images the neighbors.  Margins are sure of nothing:
    they are added only where validation finds them good.
    """
    if plan.readout != COMMITTEE:
        return {"topics": 1.0}
    prior = _prior_of_X(samples, plan) | dict.fromkeys(samples.side, _PRIOR_OF_TABLE)
    return {name: weight / sum(prior.values()) for name, weight in prior.items()}


def _prior_of_X(samples: LabeledSamples, plan: Plan) -> dict[str, float]:
    if not samples.context:
        return {"topics": 1.0}
    several, texts = samples.labels.several, samples.context.like_counts
    prior = {"topics": 0.6, "features": 0.1, "directions": 0.1}
    if several:  # many of which are no topics
        prior = {"topics": 0.3, "features": 0.6, "directions": 0.1}
    if texts:
        prior |= {"naive Bayes": 0.1}
    if samples.graph is not None:
        prior |= {"neighbors": 0.1}
        if not texts:
            prior = {"topics": 0.16, "features": 0.02, "directions": 0.02, "neighbors": 0.8}
    if not several:
        prior |= {"margins": 0.0}
    return prior


def train(samples: LabeledSamples, plan: Plan, names: set[str]) -> Trained:
    """Fit topics, with rounds of self-training, and members of a committee (none: no names)."""
    context, given, labels = samples.context, samples, samples.labels
    spread, taught = None, None
    if plan.rounds:
        taught = taught_by_tables(samples.side, labels, samples.seed, plan.class_weight)
    if samples.graph is not None and (plan.rounds or "neighbors" in names):
        spread = samples.graph.spread(labels)
    for turn in range(plan.rounds):
        fit = given.for_trials().fit_topics(plan.n_components, plan.supervision_weight)
        rows = given.labels.known
        shares = topic_shares(fit.S, fit.A)  # those without labels are represented already
        shares[rows] = samples.shares(fit.A, rows)
        readout = fit_readout(
            context[rows], shares[rows], given.labels, class_weight=plan.class_weight
        )
        chance = probabilities(readout.logits(context, shares), False)
        if turn == 0 and spread is not None:
            # Where the readout has few labels to go by, neighbors see clusters.
            chance = (1 - _NEIGHBORS_SHARE) * chance + _NEIGHBORS_SHARE * spread
        if taught is not None:
            chance = probabilities(log_chances(chance) + taught, False)
        given = replace(given, labels=_add_predictions(labels, chance))
    fit = given.fit_topics_of_all(plan.n_components, plan.supervision_weight)
    rows = given.labels.known
    shares, seen = samples.shares(fit.A, rows), context[labels.known]
    own = shares[labels.known[rows]]
    balance = plan.class_weight
    ways: dict[str, Callable[[], Linear]] = {
        "topics": lambda: fit_readout(context[rows], shares, given.labels, class_weight=balance),
        "features": lambda: fit_readout(seen, own, labels, _ROW_SCALE, class_weight=balance),
        "directions": lambda: fit_coordinates(seen, labels, _WEAK_PENALTY, balance),
        "naive Bayes": lambda: fit_naive_bayes(seen, labels),
        "margins": lambda: fit_margins(seen, labels, balance),
    }
    members = {name: way() for name, way in ways.items() if name in names}
    of_tables = fit_tables(samples.side, names, labels, balance)
    return Trained(fit, own, members, of_tables, spread)


def readout_of(
    samples: LabeledSamples, trained: Trained, weights: dict[str, float]
) -> LogisticReadout:
    """Return the weighted sum of the members."""
    labels = samples.labels
    side, intercepts = joined(samples.side, trained.of_tables, weights, labels.members.shape[1])
    linear = Linear(intercepts)
    for name, member in trained.members.items():
        linear = linear + member.scaled(weights[name])
    votes, graph = None, samples.graph
    if "neighbors" in weights and graph is not None and trained.spread is not None:
        most = _MOST_VOTERS if samples.context.like_counts else len(labels.members)
        votes = graph.votes(trained.spread, labels.known, most)
    weight, n_topics = weights.get("neighbors", 0.0), len(trained.fit.A)
    return LogisticReadout.of(linear, n_topics, samples.context, votes, weight, side)


def logits_without_labels(
    samples: LabeledSamples, trained: Trained, readout: LogisticReadout
) -> Array:
    """Return the calibrated logits of the unlabeled samples, (unlabeled samples, k)."""
    rows, A = ~samples.labels.known, trained.fit.A
    S = trained.fit.S if samples.whole is None else trained.fit.S[samples.whole[1]]
    logits = readout.linear(len(A)).logits(samples.context[rows], topic_shares(S[rows], A))
    if readout.votes is not None and trained.spread is not None:
        logits += readout.votes_weight * log_chances(trained.spread[rows])
    if readout.side is not None:
        tables = {name: table[rows] for name, table in samples.side.items()}
        logits += product_of_tables(tables, readout.side)
    return np.asarray(logits * readout.slopes + readout.offsets)


def _add_predictions(labels: TrainingLabels, chance: Array) -> TrainingLabels:
    """Return labels to which the surer ones of the predictions of each class are added."""
    members, entry_weights = labels.members.copy(), labels.entry_weights.copy()
    known, predicted = labels.known, chance.argmax(axis=1)
    enough = known.sum() >= _MORE_LABELS * members.shape[1]
    share = _MORE_CONFIDENT if enough else _CONFIDENT
    unit = entry_weights[known].max(axis=1).mean() if known.any() else 1.0
    chosen = surest(chance, share, ~known)
    members[chosen] = 0
    members[chosen, predicted[chosen]] = 1
    entry_weights[chosen] = _PSEUDO_WEIGHT * unit
    return replace(labels, members=members, entry_weights=entry_weights)
