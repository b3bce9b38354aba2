"""Topics of a fit as its data show them: the classes that they stand for, their sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._common.natural_order import natural_order
from .._topics import Topics, class_means
from ._fitted import Fitted
from ._sample_labels import SampleLabels

_ENOUGH = 10  # held-out samples of every class, for shares that are read from them alone


@dataclass(frozen=True)
class DataTopics:
    """Topics with sizes and, where there are labels, shares of the classes.

    `note` says what the shares are, `counts` from how many samples of each class they come.
    """

    topics: Topics
    note: str = ""
    counts: tuple[int, ...] = ()


def data_topics(fitted: Fitted, n_terms: int) -> DataTopics:
    """Return the topics of any model, described by its representation of the data.

    A matrix over the classes, where the model has one, tells what the fit made of labels that it
    saw, and soon is 0 or 1 everywhere.  What the samples show that are represented without their
    labels is what the topics are worth.
    """
    topics: Topics = fitted.model.topics(fitted.terms, n_terms)
    topics = topics.with_sizes(fitted.amounts.sum(axis=0))
    if fitted.labels is None:
        return DataTopics(topics)
    used, what = _samples(fitted, fitted.labels)
    known = fitted.guided and bool((used & fitted.training).any())
    names = fitted.labels.names
    names = [names[k] for k in natural_order(names)]
    members = fitted.labels.indicators(names)[used]
    topics = topics.with_shares(names, class_means(fitted.shares[used], members))
    counts = tuple(int(count) for count in members.sum(axis=0))
    return DataTopics(topics, _note(fitted.labels, what, known), counts)


def _samples(fitted: Fitted, labels: SampleLabels) -> tuple[npt.NDArray[np.bool_], str]:
    """Return from which samples shares are read, and what these are."""
    if not fitted.guided:
        return labels.known, f"the {labels.known.sum()} samples that have labels"
    held_out = fitted.held_out
    if (labels.indicators()[held_out].sum(axis=0) >= _ENOUGH).all():
        return held_out, f"the {held_out.sum()} samples whose labels were hidden from the fit"
    more = ", hidden ones and others" if held_out.any() else ""
    return labels.known, f"all {labels.known.sum()} samples with labels{more}"


def _note(labels: SampleLabels, what: str, known: bool) -> str:
    text = (
        "Share of every class in a topic, in percent: how much of a sample of the class the topic "
        "explains on average, divided by the sum over the classes. A class of few samples counts "
        f"like one of many. Read from {what}, which are represented without their labels; in "
        "brackets their numbers."
    )
    if known:
        text += " The fit knew labels of these samples: on new ones the shares are less clear."
    several = " A sample of several labels counts for each in equal parts."
    return text + several if labels.several else text
