"""Names in messages."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 10


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {more} more" * (more > 0))
