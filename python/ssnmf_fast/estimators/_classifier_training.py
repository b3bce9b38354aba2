"""Training of :class:`FewLabelsClassifier`: settings, self-training, members, validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binomtest

from .._common.arrays import Array
from .._common.text import nfc, short
from .._data.border import check_integer, check_option, check_real, check_vector
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization
from .._topics import topic_shares
from . import _committee as committee
from ._class_topics import LabeledSamples
from ._readout import ClassWeight, Linear, LogisticReadout, fit_member, probabilities
from ._training_data import TrainingLabels, surest
from ._views import NAMES_OF_MEMBERS, Tables, View, Votes, log_chances

_ROUNDS = 2
_PSEUDO_WEIGHT = 0.1  # of a predicted label; a known label has 1
# Share of the predictions for a class that become labels, for fewer and for at least this number of
# labels per class: predictions improve with more labels.
_CONFIDENT, _MORE_CONFIDENT, _MORE_LABELS = 0.5, 0.8, 4
_NEIGHBORS_SHARE = 0.25  # in the first predictions
_MANY_KNOWN = 0.5  # share of labeled samples from which the others do not help
_LEFT_OUT, _MOST_LEFT_OUT = 3, 0.2  # unlabeled samples of a fold: for each label, share of all
_PRIOR_OF_TABLE = 0.3  # all members that see X together have 1; a table of noise does no harm
_MOST_TEMPERED = 2000  # unlabeled samples by which probabilities are tempered
_CHANCE = 0.01  # level of the test whether a table predicts better than the largest class
# Samples in trials by the number of folds, unless more are labeled.  Topics improve with the number
# of samples, so smaller trials would underestimate them.
_MOST_TRIED = {1: 7500, 3: 4000, 4: 3000}


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training."""

    rounds: int  # of self-training
    class_weight: Any
    shares: Array | None  # of the classes, if they are known
    estimates: bool  # whether they are estimated from the predictions


def _by_class(given: Any, name: str, option: str, names: list[Any], default: Any) -> list[float]:
    """Return the number of each class; names are compared in form NFC, and some have a default."""
    pairs = given.items() if hasattr(given, "items") else [(name, 0)]
    numbers = {nfc(key): number for key, number in pairs}
    known = set(map(nfc, names))
    if not set(numbers) <= known or (default is None and len(numbers) < len(known)):
        what = f"a dict of numbers for {'all' if default is None else 'some'} of {short(names)}"
        raise ValueError(f"{name} must be None, {option!r} or {what}; got {short(given)}.")
    return [check_real(numbers.get(nfc(one), default), f"{name}[{one!r}]") for one in names]


def _known_shares(given: Any, classes: Array, several: bool) -> Array | None:
    """Return shares of the classes as given by the user, (k,); None for those of the labels."""
    if isinstance(given, str):
        check_option(given, "class_prior", ("labels",))
    if given is None or isinstance(given, str):
        return None
    if several:
        raise ValueError("class_prior is for one label per sample; leave it out for several.")
    if hasattr(given, "items"):  # also a series of pandas
        given = _by_class(given, "class_prior", "labels", classes.tolist(), None)
    shares = check_vector(given, "class_prior", len(classes), np.float64)
    if not shares.any():
        raise ValueError("class_prior is 0 for all classes; give their shares, or counts.")
    return np.asarray(shares / shares.sum())


def settings_of(
    model: Any, samples: LabeledSamples, labels: TrainingLabels, classes: Array
) -> TrainingSettings:
    """Check parameters; `labels` are those of all samples, not of a part."""
    several, balance = labels.several, model.class_weight
    if isinstance(balance, str):
        check_option(balance, "class_weight", ("balanced",))
    elif balance is not None:
        names = [0, 1] if several else classes.tolist()
        balance = dict(enumerate(_by_class(balance, "class_weight", "balanced", names, 1.0)))
    shares = _known_shares(model.class_prior, classes, several)
    others = not several and not samples.labels.known.all()
    learns = others and np.average(labels.known, weights=labels.weight) < _MANY_KNOWN
    rounds = model.self_training
    if isinstance(rounds, str):
        check_option(rounds, "self_training", ("auto",))
        rounds = _ROUNDS if learns else 0
    rounds = check_integer(rounds, "self_training", 0) if others else 0
    estimates = learns and balance is None and model.class_prior is None
    balance = balance or "balanced" if several else balance
    return TrainingSettings(rounds, balance, shares, bool(estimates))


def check_threshold(threshold: float | str) -> float | None:
    """Return a threshold, None for "auto"; raise an error if it is neither."""
    if not isinstance(threshold, str):
        return check_real(threshold, "threshold", allow_negative=True)
    if threshold != "auto":
        raise ValueError(f"threshold must be 'auto' or a number; got {short(threshold)}.")
    return None


@dataclass(frozen=True)
class Trained:
    """Topics and the fitted members of a committee."""

    fit: Factorization
    shares: Array  # topic shares of labeled samples, computed without labels, (labeled, r)
    members: dict[str, Linear | Votes]

    def logits(self, view: View, n_threads: int | None) -> dict[str, Array]:
        """Return the logits of every member for the samples of a view, (n, k)."""
        return {name: member.logits(view, n_threads) for name, member in self.members.items()}

    def readout(self, view: View, weights: dict[str, float]) -> LogisticReadout:
        """Return the weighted sum of the members, not calibrated."""
        linear, votes = Linear(np.zeros(len(self.fit.A))), None  # each class has a topic
        for name, member in self.members.items():
            if isinstance(member, Votes):
                votes = replace(member, weight=np.array([weights[name]]))
            else:
                linear = linear.plus(member, weights[name])
        return LogisticReadout.of(linear, len(self.fit.A), view, votes)


def prior_of(samples: LabeledSamples) -> dict[str, float]:
    """Return the weights of the members before validation; they sum to 1."""
    prior, several = {"topics": 1.0}, samples.labels.several
    if samples.view.rows is not None:
        texts, neighbors = samples.view.like_counts, samples.graph is not None
        prior = {"topics": 0.6, "features": 0.1, "directions": 0.1}
        if several:  # many labels are not topics
            prior = {"topics": 0.3, "features": 0.6, "directions": 0.1}
        if texts:
            prior |= {"naive Bayes": 0.1}
        if neighbors and texts:
            prior |= {"neighbors": 0.1}
        elif neighbors:
            prior = {"topics": 0.16, "features": 0.02, "directions": 0.02, "neighbors": 0.8}
        if not several:
            prior |= {"margins": 0.0}  # used only if validation favors them
    prior |= dict.fromkeys(samples.view.tables, _PRIOR_OF_TABLE)
    return {name: weight / sum(prior.values()) for name, weight in prior.items()}


def self_trained(
    samples: LabeledSamples, settings: TrainingSettings, names: set[str]
) -> tuple[LabeledSamples, Array | None]:
    """Return the samples with self-trained labels, and probabilities from neighbors, (n, k)."""
    view, taught, labels = samples.view, samples, samples.labels
    spread, of_tables, balance = None, None, settings.class_weight
    if settings.rounds:
        of_tables = _table_logits_for_self_training(view.tables, labels, samples.seed, balance)
    if samples.graph is not None and (settings.rounds or "neighbors" in names):
        spread = samples.graph.spread(labels)
    for turn in range(settings.rounds):
        fit = taught.for_trials().fit_topics()
        rows = taught.labels.rows
        shares = topic_shares(fit.S, fit.A)  # unlabeled samples need no new representation
        shares[rows] = samples.shares(fit.A, rows)
        seen = replace(view, shares=shares)
        readout = fit_member("topics", seen[rows], taught.labels.truth, balance)
        chance = probabilities(readout.logits(seen), False)
        if turn == 0 and spread is not None:
            # A readout fitted to few labels misses clusters, which neighbors see.
            chance = (1 - _NEIGHBORS_SHARE) * chance + _NEIGHBORS_SHARE * spread
        if of_tables is not None:
            chance = probabilities(log_chances(chance) + of_tables, False)
        # The most certain predictions of each class become labels.
        weights, k = labels.truth.entry_weights, chance.shape[1]
        sure = _MORE_CONFIDENT if len(weights) >= _MORE_LABELS * k else _CONFIDENT
        chosen = np.flatnonzero(surest(chance, sure, ~labels.known))
        unit = weights.max(axis=1).mean() if len(weights) else 1.0
        pseudo = np.full((len(chosen), 1), _PSEUDO_WEIGHT * unit)
        members = chance.argmax(axis=1)[chosen, None] == np.arange(k)
        taught = replace(taught, labels=labels.with_labels(chosen, members, pseudo))
    return taught, spread


def train(
    samples: LabeledSamples,
    settings: TrainingSettings,
    names: set[str],
    most_voters: int | None = None,
) -> Trained:
    """Fit topics with self-trained labels, and the members of a committee to them."""
    taught, spread = self_trained(samples, settings, names)
    fit = taught.joined().fit_topics()
    labels, rows = samples.labels, taught.labels.rows
    shares = samples.shares(fit.A, rows)
    own = shares[labels.known[rows]]
    members: dict[str, Linear | Votes] = {}
    seen = replace(samples.view[labels.rows], shares=own), labels.truth
    of_all = replace(samples.view[rows], shares=shares), taught.labels.truth
    for name in (*samples.view.tables, *NAMES_OF_MEMBERS):
        if name != "neighbors" and name in names:
            data = of_all if name == "topics" else seen
            members[name] = fit_member(name, *data, settings.class_weight)
        elif name in names and samples.graph is not None and spread is not None:
            members[name] = samples.graph.votes(spread, labels.known, most_voters)
    return Trained(fit, own, members)


def calibrated(
    samples: LabeledSamples, trained: Trained, validation: committee.Validation
) -> LogisticReadout:
    """Return the readout with the class shares that predictions assume, tempered with these."""
    readout = validation.calibrate(trained.readout(samples.view, validation.weights))
    if validation.others[1].any():
        rest = np.flatnonzero(~samples.labels.known)
        some = rest[:: -(-len(rest) // _MOST_TEMPERED)]
        seen = replace(samples.view[some], shares=samples.shares(trained.fit.A, some))
        logits = np.zeros((len(some), samples.labels.shape[1]))  # of no member, if none is used
        for name, part in trained.logits(seen, samples.options["n_threads"]).items():
            logits += validation.weights[name] * part
        readout = validation.temper(readout, logits, samples.labels.weight[some])
    return readout


def _table_logits_for_self_training(
    tables: Tables, labels: TrainingLabels, seed: int, class_weight: ClassWeight
) -> Array | None:
    """Return the logits of the tables that predict hidden labels, summed, (n, k), or None."""
    folds, sums = committee.folds_of(labels, seed), None
    is_hidden = folds >= 0
    if not is_hidden.any():
        return None
    part = labels.part(is_hidden)
    truth, largest = part.truth, part.prior().max()
    total = round(truth.weight.sum())
    for name, table in tables.items():
        hidden_logits = np.zeros(truth.members.shape)
        for fold in range(int(folds.max()) + 1):
            hidden = folds == fold
            seen = labels.only(~hidden)
            member = fit_member(name, View({name: table[seen.rows]}), seen.truth, class_weight)
            hidden_logits[hidden[is_hidden]] = member.logits(View({name: table[hidden]}))
        right = round(committee.score_of(truth, hidden_logits) * total)
        if binomtest(right, total, largest, alternative="greater").pvalue >= _CHANCE:
            continue
        member = fit_member(name, View({name: table[labels.rows]}), labels.truth, class_weight)
        logits = member.logits(View({name: table}))
        scaled = committee.temperature(hidden_logits, truth) * logits
        sums = scaled if sums is None else sums + scaled
    return sums


def _with_unlabeled(folds: Array, labels: TrainingLabels, rng: np.random.Generator) -> Array:
    """Return folds that leave out unlabeled samples too, which random labels then look like."""
    folds = folds.copy()
    for fold in range(int(folds.max()) + 1):
        rest = rng.permutation(np.flatnonzero(~labels.known & (folds < 0) & (labels.weight > 0)))
        count = min(_LEFT_OUT * int(np.sum(folds == fold)), int(_MOST_LEFT_OUT * len(rest)))
        folds[rest[:count]] = fold
    return folds


def validate(
    samples: LabeledSamples, settings: TrainingSettings, prior: dict[str, float]
) -> committee.Validation:
    """Return the weights of the members and their joint predictions of hidden labels."""
    labels, rng = samples.labels, np.random.default_rng(samples.seed)
    folds = committee.folds_of(labels, samples.seed)
    if (folds < 0).all():
        none = np.zeros((0, labels.shape[1])), np.zeros(0)
        return committee.Validation(labels, folds, none[0], none, settings.shares, weights=prior)
    part, folds_of_part = samples, folds
    if not isinstance(samples.X, CsrFile):  # use some of the unlabeled samples
        rest = rng.permutation(np.flatnonzero(~labels.known))
        most, rows = _MOST_TRIED[int(folds.max()) + 1], labels.known
        rows[rest[: max(0, most - len(labels.rows))]] = True
        if not rows.all():
            part, folds_of_part = samples.part(rows), folds[rows]
    if settings.estimates:
        folds_of_part = _with_unlabeled(folds_of_part, part.labels, rng)
    hidden = folds_of_part >= 0
    known, weight = part.labels.known[hidden], part.labels.weight[hidden]
    predicted = predict_hidden(part.for_trials(), settings, folds_of_part, list(prior))
    truth = part.labels.part(hidden).of_all
    weights = committee.fit_weights(predicted, truth, prior)
    halves = committee.parts_of(folds_of_part[hidden])
    sums = committee.cross_fitted(predicted, truth, prior, halves)
    parts = sums[known], (sums[~known], weight[~known])
    scores = {name: committee.score_of(truth, logits) for name, logits in predicted.items()}
    scores["committee"] = committee.score_of(truth, sums)
    return committee.Validation(labels, folds, *parts, settings.shares, scores, weights)


def predict_hidden(
    samples: LabeledSamples, settings: TrainingSettings, folds: Array, names: list[str]
) -> dict[str, Array]:
    """Return the logits of every member for the samples in folds, (samples in folds, k)."""
    labels, n_threads = samples.labels, samples.options["n_threads"]
    of_fold = folds[folds >= 0]
    predicted = {name: np.zeros((len(of_fold), labels.shape[1])) for name in names}
    for fold in range(int(folds.max()) + 1):
        hidden = folds == fold
        # Leave the samples out entirely: self-training would make predictions for them too certain.
        if isinstance(samples.X, CsrFile):
            seen = replace(samples, labels=labels.only(~hidden))
        else:
            seen = samples.part(~hidden)
        trained = train(seen, settings, set(names))
        rows = np.flatnonzero(hidden)
        view = replace(samples.view[rows], shares=samples.shares(trained.fit.A, rows))
        for name, logits in trained.logits(view, n_threads).items():
            predicted[name][of_fold == fold] = logits
    return predicted
