"""How good a fit is: predictions of hidden labels beside simple methods', and other measures."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import ssnmf_fast

from .._common.arrays import Array
from ..report import Judged, Measure
from ..report._judged import LARGEST, MODEL, REGRESSION, SVC, Score
from ._fitted import Fitted

_MOST_ENTRIES = 10_000_000  # of the training samples; LinearSVC takes minutes for more
_COHERENT_TERMS, _DIVERSE_TERMS = 10, 25


def judge(fitted: Fitted) -> Judged | None:
    """Return the predictions of a fit and of simple methods trained on the same labels.

    Those for the held-out samples, if there are any, else those of the validation within the fit;
    None without either.
    """
    labels, model = fitted.labels, fitted.model
    if labels is None or not fitted.guided or not fitted.predicts:
        return None
    several = bool(getattr(model, "multilabel_", False))
    classes = [str(name) for name in model.classes_]
    folds = np.where(fitted.held_out, 0, -1)
    if fitted.held_out.any():
        guessed = fitted.predicted[fitted.held_out]
    else:
        folds = getattr(model, "validation_folds_", folds)
        if not (folds >= 0).any():
            return None
        chance = model.validation_proba_[folds >= 0]
        if several:
            guessed = model.validation_predicted_[folds >= 0]
        else:
            guessed = np.asarray(model.classes_[chance.argmax(axis=1)]).astype(str)
    if several:
        truth = labels.indicators(classes).astype(np.int64)
    else:
        truth = np.array([names[0] if names else "" for names in labels.each])
    others = simple_guesses(features(fitted), truth, labels.known, folds)
    guesses = {MODEL: guessed, **others}
    labeled = int(fitted.training.sum())
    by_validation, expected, weights = not fitted.held_out.any(), None, None
    truth = truth[folds >= 0]
    if by_validation and not several:
        expected = Score(model.validation_accuracy_, *model.validation_interval_)
        if not np.isclose(expected.value, np.mean(guessed == truth)):
            codes = np.searchsorted(model.classes_.astype(str), truth)
            weights = model.class_prior_[codes] / np.bincount(codes)[codes]
    return Judged(truth, guesses, classes, by_validation, labeled, expected, weights)


def features(fitted: Fitted) -> Any:
    """Return the data as LinearSVC takes them: without NaN, and of matrices the largest value 1."""
    X = fitted.X
    if fitted.texts is not None:
        return X
    if not sp.issparse(X):
        from sklearn.impute import SimpleImputer

        imputer = SimpleImputer(keep_empty_features=True)
        X = imputer.fit_transform(np.asarray(X, dtype=np.float64))
    return X / (float(X.max()) or 1.0)


def simple_guesses(X: Any, labels: Array, known: Array, folds: Array) -> dict[str, Array]:
    """Predict each fold by methods that learn from the known labels outside of it.

    The labels are text, or 0 and 1 (n, k); `folds` (n,) is the fold in which a label is hidden, -1
    for never.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    largest = DummyClassifier(strategy="most_frequent")
    machines: dict[str, Any] = {SVC: LinearSVC(random_state=0), LARGEST: largest}
    if labels.ndim == 2:
        balanced = LogisticRegression(class_weight="balanced", solver="liblinear", random_state=0)
        machines = {REGRESSION: OneVsRestClassifier(balanced)}
    found: dict[str, Array] = {}
    for fold in range(int(folds.max()) + 1):
        train, test = np.flatnonzero(known & (folds != fold)), np.flatnonzero(folds == fold)
        seen, seen_labels, new = X[train], labels[train], X[test]
        size = seen.nnz if sp.issparse(seen) else seen.size
        for name, machine in machines.items():
            if name != LARGEST and size > _MOST_ENTRIES:
                continue
            if name == SVC and len(np.unique(seen_labels)) == 1:
                machine = largest
            with warnings.catch_warnings():  # a label of all samples, or late convergence
                warnings.simplefilter("ignore")
                guess = machine.fit(seen, seen_labels).predict(new)
            found.setdefault(name, np.zeros_like(labels))[test] = guess
    return {name: found[name][folds >= 0] for name in machines if name in found}


def not_known(fitted: Fitted) -> str:
    """Return why nothing is known of how good the predictions are, and what to do."""
    from ..estimators._committee import LEAST_PER_CLASS

    assert fitted.labels is not None
    model, count, k = fitted.model, int(fitted.training.sum()), len(fitted.labels.names)
    if hasattr(model, "validation_folds_"):  # the fit would have validated, with more labels
        needed = max(LEAST_PER_CLASS * max(k, 2), count + 1)
        return (
            f"the accuracy cannot be estimated from so few labels, {count} of {k} classes; "
            f"expected about {needed}, {LEAST_PER_CLASS} a class on average"
        )
    return (
        "the accuracy is not known, as no labeled sample was held out; --test-size sets how many "
        "are, and every class needs several labels for it"
    )


def topic_measures(fitted: Fitted) -> list[Measure]:
    """Return how well named topics of the held-out documents agree with their labels."""
    if fitted.labels is None or not fitted.held_out.any():
        return []
    names = [str(name) for name in fitted.model.topic_names_]
    S = fitted.amounts[fitted.held_out, : len(names)]
    truth = fitted.labels.indicators(names)[fitted.held_out]
    right = float(np.mean(truth[np.arange(len(S)), S.argmax(axis=1)] * S.any(axis=1)))
    title = f"largest topic among the labels of {len(S)} held-out samples"
    meaning = (
        "Share of the held-out samples whose largest named topic, the one that explains most of "
        "the sample, is one of their labels."
    )
    largest = Measure("largest_topic_right", title, right, f"{right:.1%}", meaning)
    if len(names) < 2:
        return [largest]
    matching = ssnmf_fast.metrics.match_topics(S, truth)
    score, count, k = matching.score, matching.n_resolved, len(names)
    similarity = (
        "Weighted Jaccard similarity of the named topics' shares in the held-out samples and of "
        "their labels, matched one to one, on average: 1 if they agree, 0 if they never meet."
    )
    resolved = (
        "Topics whose similarity with the label they are matched with lies above 0.1; the held-out "
        f"samples show {truth.any(axis=0).sum()} of the {k} labels."
    )
    return [
        largest,
        Measure("similarity", "similarity of topics and labels", score, f"{score:.3f}", similarity),
        Measure("resolved_topics", "resolved topics", count, f"{count} of {k}", resolved),
    ]


def bound_measures(fitted: Fitted) -> list[Measure]:
    """Return the lower bound of a Bayesian model."""
    bound = float(np.ravel(fitted.model.lower_bound_)[-1])
    meaning = (
        "Lower bound of the log evidence that the fit maximizes, hyperparameters included: of two "
        "fits to the same data, as with other ranks or seeds, the higher is the better model."
    )
    return [Measure("lower_bound", "lower bound", bound, f"{bound:.6g}", meaning)]


def sparsity_measures(fitted: Fitted) -> list[Measure]:
    """Return how sparse the representation is."""
    S = fitted.model.representation_
    if S.size < 2:
        return []
    value = ssnmf_fast.metrics.hoyer_sparsity(S)
    meaning = (
        "Hoyer sparsity of the topics' weights in the samples: near 1 if few weights carry "
        "everything, 0 if all are equal."
    )
    return [Measure("sparsity", "sparsity", value, f"{value:.3f}", meaning)]


def label_sparsity_measures(fitted: Fitted) -> list[Measure]:
    """Return how few classes use each topic."""
    assert fitted.labels is not None
    labeled = fitted.training
    labels = fitted.labels.single()[labeled].astype(str)
    value = ssnmf_fast.metrics.inter_label_sparsity(
        fitted.model.representation_[labeled], labels, unlabeled=None
    ).score
    meaning = (
        "Hoyer sparsity of the topics' weights summed over each class of the labeled samples: "
        "near 1 if each class has few topics of its own, 0 if all classes use all alike; "
        "--rate-shape steers it."
    )
    return [Measure("inter_label_sparsity", "inter-label sparsity", value, f"{value:.3f}", meaning)]


def term_measures(fitted: Fitted) -> list[Measure]:
    """Return how coherent the terms of the topics of texts are, and how much the topics differ."""
    metrics, A = ssnmf_fast.metrics, fitted.model.components_
    active = getattr(fitted.model, "active_components_", np.full(len(A), True))
    usable = A[active & ((A > 0).sum(axis=1) >= 2)]
    if fitted.texts is None or not len(usable):
        return []
    coherence = metrics.topic_coherence(fitted.X, usable, n_terms=_COHERENT_TERMS).score
    meaning = (
        f"How often the first {_COHERENT_TERMS} terms of a topic occur in the same texts (NPMI), "
        "averaged over the topics: 1 if always together, 0 if as often as by chance, -1 if never."
    )
    found = [Measure("coherence", "topic coherence (NPMI)", coherence, f"{coherence:.3f}", meaning)]
    if len(usable) < 2:
        return found
    diversity = metrics.topic_diversity(usable, n_terms=_DIVERSE_TERMS).score
    differ = (
        f"Share of different terms among the first {_DIVERSE_TERMS} of all topics: 1 if no two "
        "topics have one in common."
    )
    exclusivity = metrics.topic_exclusivity(usable, n_terms=_COHERENT_TERMS).score
    own = (
        f"How much the first {_COHERENT_TERMS} terms of a topic are its own and frequent in it "
        "(FREX), averaged over the topics: near 1 if no other topic has them."
    )
    return [
        *found,
        Measure("diversity", "topic diversity", diversity, f"{diversity:.3f}", differ),
        Measure("exclusivity", "topic exclusivity (FREX)", exclusivity, f"{exclusivity:.3f}", own),
    ]
