"""Warnings that a caller inside of the library answers for itself.

The filters of the warnings module belong to the whole process: to set them in one thread, even for
a moment, changes them in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EMPTY_LINES = "rows and columns without an entry"
IDLE = "idle components"

_topics: ContextVar[tuple[str, ...]] = ContextVar("quiet_topics", default=())


@contextmanager
def quiet(topic: str) -> Iterator[None]:
    """Leave out the warnings about a topic, in this thread alone."""
    token = _topics.set((*_topics.get(), topic))
    try:
        yield
    finally:
        _topics.reset(token)


def is_quiet(topic: str) -> bool:
    """Whether warnings about a topic are to be left out."""
    return topic in _topics.get()
