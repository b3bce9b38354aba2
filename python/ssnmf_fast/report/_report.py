"""The page: figures, bars, heat maps and pictures in one file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._config import config
from .._version import __version__
from ._missing import PLOT_HINT, MissingPackageError
from ._pictures import objective_picture

_NEGLIGIBLE = 1e-6  # terms of a smaller share of the largest weight have no bar
_WORTH_A_TAG = 0.1
_DARK = 0.55  # cells of a larger share have white text


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
        """The picture as a data: address."""
        return _data_uri(self.png)


@dataclass(frozen=True)
class Measure:
    """How good a fit is in one respect; `meaning` says in a sentence what the value tells."""

    key: str  # in files that programs read
    name: str
    value: float
    shown: str
    meaning: str


@dataclass(frozen=True)
class Report:
    """What the page shows; parts that are None or empty are left out."""

    title: str
    lead: str
    facts: Sequence[tuple[str, str]]
    settings: Sequence[tuple[str, str]]
    objective: Sequence[tuple[int, float]]
    topics: Any = None
    confusion: Confusion | None = None
    accuracies: Sequence[tuple[str, float]] = ()
    pictures: Sequence[Picture] = field(default=())
    measures: Sequence[Measure] = field(default=())
    shares_note: str = "Share of every class in a topic: the rows of B, each divided by its sum."


def confusion(truth: Any, predicted: Any, classes: Any) -> Confusion:
    """Count pairs of true and predicted classes; a class unknown to the model is added."""
    truth = [str(label) for label in truth]
    names = [str(label) for label in classes]
    names += sorted(set(truth) - set(names))
    position = {name: k for k, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    for true, guess in zip(truth, predicted, strict=True):
        counts[position[true], position[str(guess)]] += 1
    return Confusion(names, counts)


def write_report(path: Path, report: Report) -> None:
    """Write the page.

    Raises
    ------
    MissingPackageError
        If matplotlib or jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingPackageError(f"jinja2 is missing: {PLOT_HINT}") from error
    environment = Environment(
        loader=PackageLoader("ssnmf_fast.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        report=report,
        accuracies=_accuracies(report),
        topics=_topic_cards(report.topics) if report.topics else [],
        shares=_share_table(report.topics),
        confusion=_confusion_table(report.confusion),
        curve=_data_uri(objective_picture(report.objective)),
        last_objective=f"{report.objective[-1][1]:.6g}",
        machine=config(),
        version=__version__,
    )
    path.write_text(page, encoding="utf-8")


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _accuracies(report: Report) -> list[tuple[str, float]]:
    if report.accuracies or report.confusion is None:
        return list(report.accuracies)
    return [("this model", report.confusion.accuracy)]


def _title(topic: Any) -> str:
    return f"Topic {topic.topic}: {topic.name}" if topic.name else f"Topic {topic.topic}"


def _topic_cards(topics: Any) -> list[dict[str, Any]]:
    """Return terms with the lengths of their bars in percent, topic by topic."""
    cards = []
    for topic in topics:
        longest = max(topic.weights) or 1.0
        bars = [
            (term, f"{weight:.3g}", round(100 * weight / longest, 1))
            for term, weight in zip(topic.terms, topic.weights, strict=True)
            if weight > _NEGLIGIBLE * longest
        ]
        shares = sorted(topic.shares, key=lambda pair: -pair[1])[:2]
        tags = [f"{label} {share:.0%}" for label, share in shares if share >= _WORTH_A_TAG]
        cards.append({"title": _title(topic), "tags": tags, "bars": bars})
    return cards


def _cell(share: float, text: str) -> dict[str, Any]:
    return {"share": f"{share:.3f}", "text": text, "dark": share > _DARK}


def _share_table(topics: Any) -> dict[str, Any] | None:
    """Return the topic-by-class heat map, topics of one class next to each other."""
    if not topics or not topics[0].shares:
        return None
    classes = [str(label) for label, _ in topics[0].shares]
    values = [[float(share) for _, share in topic.shares] for topic in topics]
    order = sorted(range(len(topics)), key=lambda k: (int(np.argmax(values[k])), -max(values[k])))
    rows = [
        {
            "name": topics[k].name or f"topic {topics[k].topic}",
            "cells": [_cell(v, f"{v:.2f}" if v >= 0.005 else "") for v in values[k]],
        }
        for k in order
    ]
    return {"classes": classes, "rows": rows}


def _confusion_table(table: Confusion | None) -> dict[str, Any] | None:
    if table is None:
        return None
    rows = []
    for name, counts in zip(table.classes, table.counts, strict=True):
        total = max(int(counts.sum()), 1)
        cells = [_cell(int(c) / total, str(int(c)) if c else "") for c in counts]
        rows.append({"name": name, "cells": cells})
    return {"classes": table.classes, "rows": rows}
