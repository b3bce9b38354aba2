"""Names and values in messages, which never hold more than a part of the data."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import Repr
from typing import Any

_SHOWN = 10
_LONGEST = 100  # characters of a value

_repr = Repr()
_repr.maxstring = _repr.maxlong = _repr.maxother = _LONGEST
_repr.maxdict = _repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxfrozenset = _SHOWN


def short(value: Any) -> str:
    """Return the repr of a value, without the middle where it is long."""
    text = " ".join(_repr.repr(value).split())
    return text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}...{text[-_LONGEST // 2 :]}"


def listed(names: Sequence[Any]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(map(short, names[:_SHOWN])) + (f" and {more} more" * (more > 0))
