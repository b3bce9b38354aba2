"""Training of :class:`FewLabelsClassifier`: parameters, topics, self-training, members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.text import nfc, short
from .._data.border import check_integer, check_option, check_real
from .._models.factorize import Factorization
from .._topics import topic_shares
from ._class_topics import SUPPORTS, LabeledSamples, drawn_evenly
from ._committee import fit_tables, joined, probabilities, product_of_tables, taught_by_tables
from ._members import (
    Linear,
    fit_coordinates,
    fit_margins,
    fit_naive_bayes,
    fit_readout,
)
from ._readout import LogisticReadout
from ._training_data import TrainingLabels, surest
from ._views import log_chances

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


@dataclass(frozen=True)
class Plan:
    """How to train, with how many `rounds` of self-training."""

    n_components: int
    rounds: int
    class_weight: Any
    corrects: bool  # whether the shares of the classes are found without the labels


def plan_of(model: Any, samples: LabeledSamples, labels: TrainingLabels, classes: Array) -> Plan:
    """Check parameters; return how to train samples, a part of those with all the labels.

    Labels that were drawn evenly from uneven classes mislead.
    """
    k, given = labels.members.shape[1], model.class_weight
    class_weight = _by_number(given, [0, 1] if labels.several else classes.tolist())
    if labels.several and isinstance(given, str):
        class_weight = "balanced"
    share = np.average(labels.known, weights=labels.weight)
    learns = not labels.several and share < _MANY_KNOWN
    mislead = learns and class_weight is None and drawn_evenly(samples)
    rounds = model.self_training
    if isinstance(rounds, str):
        check_option(rounds, "self_training", ("auto",))
        rounds = _ROUNDS if learns and not mislead else 0
    rounds = check_integer(rounds, "self_training", 0)
    if labels.several or samples.labels.known.all():
        rounds = 0
    return Plan(_FOR_UNEVEN * k if mislead else k, rounds, class_weight, mislead)


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


def prior_of(samples: LabeledSamples) -> dict[str, float]:
    """Return the members, and their weights before any is validated; they sum to 1.

    Of texts the topics carry the labels, of images the neighbors.  Margins are sure of nothing:
    they are added only where validation finds them good.
    """
    prior = _prior_of_X(samples) | dict.fromkeys(samples.side, _PRIOR_OF_TABLE)
    return {name: weight / sum(prior.values()) for name, weight in prior.items()}


def _prior_of_X(samples: LabeledSamples) -> dict[str, float]:
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


def self_trained(
    samples: LabeledSamples, plan: Plan, names: set[str]
) -> tuple[LabeledSamples, Array | None]:
    """Return the samples with labels by self-training, and probabilities by neighbors, (n, k)."""
    context, given, labels = samples.context, samples, samples.labels
    spread, taught = None, None
    if plan.rounds:
        taught = taught_by_tables(samples.side, labels, samples.seed, plan.class_weight)
    if samples.graph is not None and (plan.rounds or "neighbors" in names):
        spread = samples.graph.spread(labels)
    for turn in range(plan.rounds):
        fit = given.for_trials().fit_topics(plan.n_components, SUPPORTS)
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
    return given, spread


def train_members(
    samples: LabeledSamples,
    given: LabeledSamples,
    fit: Factorization,
    plan: Plan,
    names: set[str],
    spread: Array | None,
) -> Trained:
    """Fit members of a committee to a fit of the topics of samples, `given` after self-training."""
    context, labels, rows = samples.context, samples.labels, given.labels.known
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
