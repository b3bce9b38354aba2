"""Topics as tables and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._topics import real_terms
from ..report import Example
from ._predictions import write_csv

_TERMS_PRINTED = 8
_IMAGES_PRINTED = 10  # topics that are better seen than listed
_LABEL_WIDTH = 32


def write_topics(path: Path, topics: Any, *, safe: bool = False) -> None:
    """Write topic, its name where it has one, rank, term and weight."""
    rows = [
        [(rank, term, weight) for rank, (term, weight) in enumerate(real_terms(topic), start=1)]
        for topic in topics
    ]
    _write(path, topics, ("rank", "term", "weight"), rows, safe)


def write_shares(path: Path, topics: Any, *, safe: bool = False) -> None:
    """Write the share of every class in every topic."""
    names = [label for label, _ in topics[0].shares]
    rows = [[[share for _, share in topic.shares]] for topic in topics]
    _write(path, topics, names, rows, safe)


def write_examples(
    path: Path,
    topics: Any,
    found: list[list[Example]],
    *,
    labels: bool,
    texts: bool,
    safe: bool = False,
) -> None:
    """Write topic, its name where it has one, rank, sample and share; id, label, text if any."""
    ids = any(one.id for some in found for one in some)
    names = [
        "sample",
        *(["id"] if ids else []),
        "share",
        *(["label"] if labels else []),
        *(["text"] if texts else []),
    ]
    rows = [
        [
            [rank, *(getattr(example, name) for name in names)]
            for rank, example in enumerate(some, start=1)
        ]
        for some in found
    ]
    _write(path, topics, ["rank", *names], rows, safe)


def _write(path: Path, topics: Any, names: Sequence[Any], rows: Any, safe: bool) -> None:
    """Write the rows of every topic behind its number and, where topics have one, its name."""
    named = any(topic.name for topic in topics)
    heads = [[topic.topic, topic.name] if named else [topic.topic] for topic in topics]
    lines = ([*head, *row] for head, some in zip(heads, rows, strict=True) for row in some)
    write_csv(path, [*(["topic", "name"] if named else ["topic"]), *names], lines, safe=safe)


def print_topics(topics: Any, *, terms: bool = True) -> None:
    """Print size, name or else class, and the first terms of every topic; fewer without terms."""
    print("\nTopics")
    more = 0 if terms else max(0, len(topics) - _IMAGES_PRINTED)
    topics = list(topics)[: len(topics) - more]
    heads = [_head(topic) for topic in topics]
    width = min(max(map(len, heads)), _LABEL_WIDTH)
    for head, topic in zip(heads, topics, strict=True):
        words = [name for name, _ in real_terms(topic)[:_TERMS_PRINTED]] if terms else []
        print(f"  {head:<{width}}  {', '.join(words)}".rstrip())
    if more:
        print(f"  and {more} more")


def _head(topic: Any) -> str:
    words = [str(topic.topic)]
    if topic.size is not None:
        words.append(f"({topic.size:.0%})")
    if topic.name:
        words.append(topic.name)
    else:
        words += [f"{name} {share:.0%}" for name, share in topic.leading[:1]]
    return " ".join(words)
