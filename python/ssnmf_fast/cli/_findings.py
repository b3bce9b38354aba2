"""What is made of a fit: topics, predictions for the held-out samples, measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import scipy.sparse.linalg

from .._common.arrays import Array
from .._common.natural_order import natural_order
from .._topics import Topics, class_means
from ..report import Confusion, Example, Measure, confusion
from ._fitted import Fitted
from ._judged import MODEL, features, judged
from ._learning_curve import LearningCurve
from ._models import Model
from ._quality import coherence_measures, not_known, quality_measures, shortfalls
from ._sample_labels import SampleLabels


class Findings:
    """What is made of a fit: topics, predictions for the held-out samples, measures."""

    def __init__(
        self, model: Model, fitted: Fitted, n_terms: int, curve: LearningCurve | None = None
    ) -> None:
        self.described = data_topics(fitted, n_terms)
        self.topics = self.described.topics
        self.examples: list[list[Example]] = examples(fitted)
        self.judged = judged(fitted)
        self.curve = curve
        self.measures: list[Measure] = []
        self.warnings: list[str] = []
        self.remarks: list[str] = []
        if self.judged is not None:
            self.measures += quality_measures(self.judged)
            self.warnings += shortfalls(self.judged)
            if not self.judged.trained:
                self.remarks.append("no simple classifier stands beside it: the data are too large")
        elif model.targets is not None:
            self.remarks.append(not_known(fitted))
        for measure in (*model.measures, coherence_measures):
            self.measures += measure(fitted)

    def confusion(self) -> Confusion | None:
        """Return the table of true and predicted classes, where there is one label a sample."""
        if self.judged is None or self.judged.several:
            return None
        return confusion(self.judged.truth, self.judged.guesses[MODEL], self.judged.classes)


def facts(fitted: Fitted) -> list[tuple[str, str]]:
    """Return the figures at the head of the report."""
    model = fitted.model
    pairs = [("samples", str(fitted.X.shape[0])), ("topics", str(len(model.components_)))]
    if fitted.labels is not None:
        kind = "labels" if fitted.labels.several else "classes"
        pairs += [
            (kind, str(len(fitted.labels.names))),
            ("labeled", str(int(fitted.training.sum()))),
        ]
        if fitted.held_out.any():
            pairs.append(("held out", str(int(fitted.held_out.sum()))))
    if fitted.dated:
        pairs.append(("slices of time", str(len(model.slices_))))
    return [*pairs, ("iterations", str(model.n_iter_)), ("fit", f"{fitted.seconds:.2f} s")]


_ENOUGH = 10  # held-out samples of every class, for shares that are read from them alone


@dataclass(frozen=True)
class DataTopics:
    """Topics with sizes and, where there are labels, shares of the classes.

    `note` explains the shares, `counts` from how many samples of each class they come.
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


_LENGTH = 200  # characters of a text
_LEAST = 0.01  # share of a topic in a sample that is worth showing
_MAIN = 0.5  # of the largest share of a topic: what samples of that topic have


def examples(fitted: Fitted, count: int = 3) -> list[list[Example]]:
    """Return for every topic the samples that are typical of it.

    These are, of the samples of which it explains much, those most like the topic by the cosine: a
    text of two words may have a share of 100 %, and shows little.  Of texts that begin alike only
    one is shown.
    """
    shares, alike = fitted.shares, _cosines(fitted)
    labels = fitted.labels.text("; ") if fitted.labels is not None else [""] * len(shares)
    ids = None if fitted.ids is None else fitted.ids[1]
    found = []
    for share, cosine in zip(shares.T, alike.T, strict=True):
        chosen: dict[str, Example] = {}
        main = np.flatnonzero(share >= max(_LEAST, _MAIN * share.max()))
        for sample in main[np.lexsort((-share[main], -cosine[main]))]:
            if len(chosen) == count:
                break
            text = "" if fitted.texts is None else excerpt(fitted.texts[sample])
            example = Example(
                int(sample),
                float(share[sample]),
                labels[sample],
                text,
                _image(fitted, sample),
                "" if ids is None else str(ids[sample]),
            )
            chosen.setdefault(text or str(sample), example)
        found.append(list(chosen.values()))
    return found


def _cosines(fitted: Fitted) -> Array:
    """Return the cosines of samples and topics, (n, r)."""
    X, A = features(fitted), fitted.model.components_
    lengths = scipy.sparse.linalg.norm(X, axis=1) if sp.issparse(X) else np.linalg.norm(X, axis=1)
    products = np.asarray(X @ A.T)
    scales = np.outer(lengths, np.linalg.norm(A, axis=1))
    return np.asarray(np.divide(products, scales, out=np.zeros_like(products), where=scales > 0))


def _image(fitted: Fitted, sample: int) -> npt.NDArray[Any] | None:
    if fitted.image_shape is None:
        return None
    row = fitted.X[[sample]]
    return np.asarray(row.toarray() if sp.issparse(row) else row).reshape(fitted.image_shape)


def excerpt(text: str, length: int = _LENGTH) -> str:
    """Return the beginning of a text on one line, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    words = cut.rpartition(" ")[0]
    return (words if len(words) > length / 2 else cut).rstrip() + "…"
