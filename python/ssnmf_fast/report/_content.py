"""The content of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.text import sort_naturally
from .._topics import Topics
from ._judged import Judged, Measure

_NO_TOPICS = Topics()


@dataclass(frozen=True)
class Confusion:
    """Counts of (true class, predicted class)."""

    classes: list[str]
    counts: npt.NDArray[np.int64]


def confusion(truth: Any, predicted: Any, classes: Any) -> Confusion:
    """Count pairs of true and predicted classes, in natural order of their names.

    A class unknown to the model is added.
    """
    from sklearn.metrics import confusion_matrix

    truth, predicted = np.asarray(truth).astype(str), np.asarray(predicted).astype(str)
    names = sort_naturally(sorted({*map(str, classes), *truth.tolist()}))
    return Confusion(names, confusion_matrix(truth, predicted, labels=names))


@dataclass(frozen=True)
class Picture:
    """A PNG with its heading and caption; None without matplotlib, which the page needs too."""

    title: str
    caption: str
    png: bytes | None


@dataclass(frozen=True)
class Example:
    """A sample that a topic explains well: the topic's share of it, its label, and how it looks."""

    sample: int
    share: float
    label: str = ""
    text: str = ""
    image: npt.NDArray[Any] | None = None
    id: str = ""  # what the data call the sample, if they do


@dataclass(frozen=True)
class Report:
    """What the page shows; parts that are None or empty are left out.

    `shares_note` explains the shares of the classes in the topics, and `class_counts` from how many
    samples of each class they come; `examples` has a list for each topic, and `parts` an image for
    each, (r, height, width), where features are pixels. `warnings` and `remarks` stand above
    everything else; `tree` is what a :class:`TopicTree` prints.
    """

    title: str
    lead: str
    facts: Sequence[tuple[str, str]]
    settings: Sequence[tuple[str, str]]
    objective: Sequence[tuple[int, float]] = ()
    topics: Topics = _NO_TOPICS
    residual: float | None = None
    shares_note: str = ""
    class_counts: Sequence[int] = ()
    examples: Sequence[Sequence[Example]] = ()
    parts: npt.NDArray[Any] | None = None
    judged: Judged | None = None
    measures: Sequence[Measure] = ()
    warnings: Sequence[str] = ()
    remarks: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tree: str = ""

    @property
    def scores(self) -> list[Measure]:
        """The measures that are drawn: accuracies, or else micro F, first that of the model."""
        drawn = ("accuracy", "micro_f")
        return [one for one in self.measures if one.interval and one.key.endswith(drawn)]

    @property
    def confusion(self) -> Confusion | None:
        """The table of true and predicted classes, where there is one label a sample."""
        if self.judged is None or self.judged.several:
            return None
        return confusion(self.judged.truth, self.judged.guessed, self.judged.classes)
