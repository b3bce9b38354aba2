"""Topics as tables and on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..report import Example
from ._predictions import write_csv

_NEGLIGIBLE = 1e-6  # relative to the largest weight of the topic
_TERMS_PRINTED = 8
_LABEL_WIDTH = 32


def write_topics(path: Path, topics: Any, *, safe: bool = False) -> None:
    """Write topic, its name where it has one, rank, term and weight."""
    named = any(topic.name for topic in topics)
    rows = (
        (topic.topic, *([topic.name] if named else []), rank, term, weight)
        for topic in topics
        for rank, (term, weight) in enumerate(real_terms(topic), start=1)
    )
    names = ("topic", *(["name"] if named else []), "rank", "term", "weight")
    write_csv(path, names, rows, safe=safe)


def write_shares(path: Path, topics: Any, *, safe: bool = False) -> None:
    """Write the share of every class in every topic."""
    named = any(topic.name for topic in topics)
    names = ["topic", *(["name"] if named else []), *(label for label, _ in topics[0].shares)]
    rows = (
        [topic.topic, *([topic.name] if named else []), *(share for _, share in topic.shares)]
        for topic in topics
    )
    write_csv(path, names, rows, safe=safe)


def write_examples(
    path: Path,
    topics: Any,
    found: list[list[Example]],
    *,
    labels: bool,
    texts: bool,
    safe: bool = False,
) -> None:
    """Write topic, its name where it has one, rank, sample, share, and label and text if any."""
    named = any(topic.name for topic in topics)
    names = ["topic", *(["name"] if named else []), "rank", "sample", "share"]
    rows = (
        [
            topic.topic,
            *([topic.name] if named else []),
            rank,
            example.sample,
            example.share,
            *([example.label] if labels else []),
            *([example.text] if texts else []),
        ]
        for topic, some in zip(topics, found, strict=True)
        for rank, example in enumerate(some, start=1)
    )
    more = [*(["label"] if labels else []), *(["text"] if texts else [])]
    write_csv(path, [*names, *more], rows, safe=safe)


def print_topics(topics: Any, *, terms: bool = True) -> None:
    """Print size, name or else class, and the first terms of every topic."""
    print("\nTopics")
    heads = [_head(topic) for topic in topics]
    width = min(max(map(len, heads)), _LABEL_WIDTH)
    for head, topic in zip(heads, topics, strict=True):
        words = [name for name, _ in real_terms(topic)[:_TERMS_PRINTED]] if terms else []
        print(f"  {head:<{width}}  {', '.join(words)}".rstrip())


def _head(topic: Any) -> str:
    words = [str(topic.topic)]
    if topic.size is not None:
        words.append(f"({topic.size:.0%})")
    if topic.name:
        words.append(topic.name)
    else:
        words += [f"{name} {share:.0%}" for name, share in topic.leading[:1]]
    return " ".join(words)


def real_terms(topic: Any) -> list[tuple[str, float]]:
    """Return terms and weights of a topic without those whose weight is next to nothing."""
    least = _NEGLIGIBLE * max(topic.weights, default=0.0)
    pairs = zip(topic.terms, topic.weights, strict=True)
    return [(term, weight) for term, weight in pairs if weight > least]
