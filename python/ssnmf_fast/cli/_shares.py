"""Topics of a fit, with the classes that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._topics import Topics, make_topics
from ._fitted import Fitted

SHARES_OF_B = "Share of every class in a topic: the rows of B, each divided by its sum."
SHARES_OF_RATES = (
    "Share of every class in a topic: the topic's expected weight in a sample of each class, "
    "divided by the sum over the classes."
)
SHARES_OF_S = (
    "Share of every class in a topic: the topic's weights in the samples with labels, those held "
    "out apart, summed over each class; a sample of several labels counts for each in equal parts."
)
_WITHOUT_LABELS = " The weights are those that the samples get as new ones, without their labels."


def with_shares(fitted: Fitted, n_terms: int) -> tuple[Topics, str]:
    """Return the topics with shares of the classes, where there are labels, and what these are.

    Some models have shares of their own; others get them from the representation.
    """
    model = fitted.model
    topics: Topics = model.topics(fitted.terms, n_terms)
    if topics[0].shares:
        return topics, SHARES_OF_B if hasattr(model, "label_components_") else SHARES_OF_RATES
    if fitted.labels is None:
        return topics, ""
    # In the fit labels decide which named topics a sample may have: they would be seen again.
    named = hasattr(model, "topic_names_")
    names, sums = _class_sums(fitted, fitted.transformed if named else model.representation_)
    shared = make_topics(model.components_, fitted.terms, n_terms, names, sums)
    note = SHARES_OF_S + (_WITHOUT_LABELS if named else "")
    return shared.named([topic.name for topic in topics]), note


def _class_sums(fitted: Fitted, S: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Return the labels, and the sums of S over the samples of each, (r, k)."""
    assert fitted.labels is not None
    used = fitted.training
    members = fitted.labels.indicators()[used]
    members /= members.sum(axis=1, keepdims=True)
    return np.array(fitted.labels.names, dtype=object), S[used].T @ members
