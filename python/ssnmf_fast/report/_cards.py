"""A card for every topic: size, classes, terms or image, and samples that show it best."""

from __future__ import annotations

from typing import Any

from .._topics import real_terms
from ._content import Example, Report
from ._pictures import data_uri, small_image


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
