"""The page: figures, bars, heat maps, pictures and a card for every topic in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._common.optional import require_package
from .._config import config
from .._topics import real_terms
from .._version import __version__
from ._content import Example, Report
from ._pictures import data_uri, objective_picture, small_image
from ._tables import confusion_table, most_confused, share_table


def write_report(path: Path, report: Report) -> None:
    """Write the page; raise MissingPackageError if matplotlib or jinja2 is not installed."""
    with require_package("jinja2"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
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
        topics=topic_cards(report),
        classes=len(report.topics[0].shares) if report.topics else 0,
        shares=share_table(report),
        confusion=confusion_table(report.confusion),
        confused=most_confused(report.confusion),
        curve=data_uri(objective_picture(report.objective)),
        last_objective=f"{report.objective[-1][1]:.6g}",
        machine=config(),
        version=__version__,
    )
    path.write_text(page, encoding="utf-8")


def _accuracies(report: Report) -> list[tuple[str, float, tuple[float, float] | None]]:
    """Return names, scores and intervals, None where there is none."""
    pairs = list(report.accuracies)
    if not pairs and report.confusion is not None:
        pairs = [("this model", report.confusion.accuracy)]
    intervals: list[Any] = list(report.intervals) or [None] * len(pairs)
    return [(*pair, ends) for pair, ends in zip(pairs, intervals, strict=True)]


def topic_cards(report: Report) -> list[dict[str, Any]]:
    """Return the content of the page for every topic."""
    if not report.topics:
        return []
    some = report.examples or [[]] * len(report.topics)
    images = [None] * len(report.topics) if report.parts is None else report.parts
    return [
        {
            "title": f"Topic {topic.topic}: {topic.name}" if topic.name else f"Topic {topic.topic}",
            "named": bool(topic.name),
            "size": _percent(topic.size),
            "tags": [f"{label} {share:.0%}" for label, share in topic.leading],
            "image": _uri(image),
            "bars": _bars(topic) if image is None else [],
            "examples": [_example(one) for one in examples],
        }
        for topic, examples, image in zip(report.topics, some, images, strict=True)
    ]


def _bars(topic: Any) -> list[tuple[str, str, float]]:
    """Return terms, weights, and the lengths of their bars in percent."""
    longest = max(topic.weights, default=0.0)
    return [
        (term, f"{weight:.3g}", round(100 * weight / longest, 1))
        for term, weight in real_terms(topic)
    ]


def _example(one: Example) -> dict[str, Any]:
    return {
        "sample": one.id or f"sample {one.sample}",
        "share": _percent(one.share),
        "label": one.label,
        "text": one.text,
        "image": _uri(one.image),
    }


def _percent(share: float | None) -> str | None:
    """Return a share as text: 12 %, 0.3 %, or 0 % for next to nothing."""
    if share is None:
        return None
    if share >= 0.00995:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.1f} %" if share >= 0.0005 else "0 %"


def _uri(image: Any) -> str | None:
    return None if image is None else data_uri(small_image(image))
