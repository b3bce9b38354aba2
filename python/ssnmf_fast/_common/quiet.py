"""Warnings that a caller inside of the library answers for itself.

The filters of the warnings module belong to the whole process: to set them in one thread, even for
a moment, changes them in all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

UNINFORMED = "rows and columns without an entry, entries that are all equal"
IDLE = "idle components"

_topics: ContextVar[tuple[str, ...]] = ContextVar("quiet_topics", default=())


def quietly(topic: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call without the warnings about a topic, in this thread alone.

    The call has a context of its own, which no interrupt can leave behind.
    """
    context = copy_context()
    context.run(_topics.set, (*_topics.get(), topic))
    return context.run(call, *arguments, **named)


def is_quiet(topic: str) -> bool:
    """Whether warnings about a topic are to be left out."""
    return topic in _topics.get()
