"""The content of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.natural_order import natural_order
from ._pictures import data_uri


@dataclass(frozen=True)
class Confusion:
    """Counts of (true class, predicted class)."""

    classes: list[str]
    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """Number of samples."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Share of the samples on the diagonal."""
        return float(np.trace(self.counts)) / self.total


@dataclass(frozen=True)
class Picture:
    """A PNG with its heading and caption."""

    title: str
    caption: str
    png: bytes

    @property
    def uri(self) -> str:
        """The picture as a data: URI."""
        return data_uri(self.png)


@dataclass(frozen=True)
class Measure:
    """How good a fit is in one respect; `meaning` explains the value in a sentence."""

    key: str  # in files that programs read
    name: str
    value: float
    text: str
    meaning: str
    interval: tuple[float, float] | None = None


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

    `shares_note` explains the shares of the classes in the topics, `shares_file` which file
    has them too, and `class_counts` from how many samples of each class they come; `examples` has a
    list for each topic, and `parts` an image for each, (r, height, width), where features are
    pixels. `intervals` belong to `accuracies`; `warnings` and `remarks` stand above everything
    else.
    """

    title: str
    lead: str
    facts: Sequence[tuple[str, str]]
    settings: Sequence[tuple[str, str]]
    objective: Sequence[tuple[int, float]]
    topics: Any = None
    confusion: Confusion | None = None
    accuracies: Sequence[tuple[str, float]] = ()
    intervals: Sequence[tuple[float, float]] = ()
    accuracy_title: str = "Accuracy"
    accuracy_note: str = ""
    warnings: Sequence[str] = ()
    remarks: Sequence[str] = ()
    pictures: Sequence[Picture] = field(default=())
    measures: Sequence[Measure] = field(default=())
    shares_note: str = ""
    shares_file: str = ""
    class_counts: Sequence[int] = ()
    examples: Sequence[Sequence[Example]] = ()
    parts: npt.NDArray[Any] | None = None


def confusion(truth: Any, predicted: Any, classes: Any) -> Confusion:
    """Count pairs of true and predicted classes, in natural order of their names.

    A class unknown to the model is added.
    """
    from sklearn.metrics import confusion_matrix

    truth, predicted = np.asarray(truth).astype(str), np.asarray(predicted).astype(str)
    names = sorted({*map(str, classes), *truth.tolist()})
    names = [names[k] for k in natural_order(names)]
    return Confusion(names, confusion_matrix(truth, predicted, labels=names))
