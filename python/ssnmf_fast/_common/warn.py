"""Warnings that point to the user's code, and that callers in the library can suppress.

The filters of the warnings module would apply to all threads of the process.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

UNINFORMED = "rows and columns without an entry, entries that are all equal"
IDLE = "idle components"
LABELS = "labels"

_topics: ContextVar[tuple[str, ...]] = ContextVar("quiet_topics", default=())
_PASSED_OVER = ("ssnmf_fast", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost frame outside of this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _PASSED_OVER:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def quietly(topic: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call without the warnings about a topic, in this thread only."""
    context = copy_context()
    context.run(_topics.set, (*_topics.get(), topic))
    return context.run(call, *arguments, **named)


def is_quiet(topic: str) -> bool:
    return topic in _topics.get()
