"""How good the topics of a fit are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._common.arrays import Array
from ..report import Measure
from ._fitted import Fitted

_COHERENT_TERMS = 10


def topic_measures(fitted: Fitted) -> list[Measure]:
    """Return how well named topics of the held-out documents agree with their labels."""
    assert fitted.labels is not None
    if not fitted.held_out.any():
        return []
    names = [str(name) for name in fitted.model.topic_names_]
    S = fitted.amounts[fitted.held_out, : len(names)]
    truth = fitted.labels.indicators(names)[fitted.held_out]
    right = float(np.mean(truth[np.arange(len(S)), S.argmax(axis=1)] * S.any(axis=1)))
    largest = Measure(
        "largest_topic_right",
        f"largest topic among the labels of {len(S)} held-out samples",
        right,
        f"{right:.1%}",
        "Share of the held-out samples whose largest named topic, the one that explains most of "
        "the sample, is one of their labels.",
    )
    return [largest] if len(names) < 2 else [largest, *_matching(S, truth)]


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
    from .. import metrics

    S = fitted.model.representation_
    if S.size < 2:
        return []
    value = metrics.hoyer_sparsity(S)
    meaning = (
        "Hoyer sparsity of the topics' weights in the samples: near 1 if few weights carry "
        "everything, 0 if all are equal."
    )
    return [Measure("sparsity", "sparsity", value, f"{value:.3f}", meaning)]


def label_sparsity_measures(fitted: Fitted) -> list[Measure]:
    """Return how few classes use each topic."""
    from .. import metrics

    assert fitted.labels is not None
    shown = fitted.training
    labels = fitted.labels.single()[shown].astype(str)
    value = metrics.inter_label_sparsity(
        fitted.model.representation_[shown], labels, unlabeled=None
    ).score
    meaning = (
        "Hoyer sparsity of the topics' weights summed over each class of the labeled samples: "
        "near 1 if each class has few topics of its own, 0 if all classes use all alike; "
        "--rate-shape steers it."
    )
    return [Measure("inter_label_sparsity", "inter-label sparsity", value, f"{value:.3f}", meaning)]


def coherence_measures(fitted: Fitted) -> list[Measure]:
    """Return the coherence of the topics of texts."""
    from .. import metrics

    usable = fitted.model.components_[(fitted.model.components_ > 0).sum(axis=1) >= 2]
    if not fitted.is_text or not len(usable):
        return []
    value = metrics.topic_coherence(fitted.X, usable, n_terms=_COHERENT_TERMS).score
    meaning = (
        f"How often the first {_COHERENT_TERMS} terms of a topic occur in the same texts (NPMI), "
        "averaged over the topics: 1 if always together, 0 if as often as by chance, -1 if never."
    )
    return [Measure("coherence", "topic coherence (NPMI)", value, f"{value:.3f}", meaning)]


def _matching(S: Array, truth: Array) -> list[Measure]:
    """Return similarity and resolved topics of weights and labels, (h, k) each."""
    from .. import metrics

    matching = metrics.match_topics(S, truth)
    k, seen = truth.shape[1], int(truth.any(axis=0).sum())
    similarity = (
        "Weighted Jaccard similarity of the named topics' shares in the held-out samples and of "
        "their labels, matched one to one, on average: 1 if they agree, 0 if they never meet."
    )
    resolved = (
        "Topics whose similarity with the label they are matched with lies above 0.1; the held-out "
        f"samples show {seen} of the {k} labels."
    )
    score, count = matching.score, matching.n_resolved
    return [
        Measure("similarity", "similarity of topics and labels", score, f"{score:.3f}", similarity),
        Measure("resolved_topics", "resolved topics", count, f"{count} of {k}", resolved),
    ]


def as_json(measures: Sequence[Measure]) -> dict[str, float]:
    """Return the values by key."""
    return {measure.key: measure.value for measure in measures}
