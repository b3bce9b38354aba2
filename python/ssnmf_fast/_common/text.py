"""Text: Unicode form NFC, natural order, and lists for messages."""

from __future__ import annotations

import math
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from reprlib import Repr
from typing import Any


def nfc(value: object) -> Any:
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def as_first_given(names: Iterable[Any], earlier: Iterable[Any] = ()) -> dict[Any, Any]:
    """Return for each name the first of `earlier` and `names` that is equal in form NFC."""
    first: dict[Any, Any] = {nfc(name): name for name in reversed(list(earlier))}
    return {name: first.setdefault(nfc(name), name) for name in names}


def sort_naturally(names: Sequence[str]) -> list[str]:
    """Return names in natural order ("2" before "10"), or by value if all are numbers."""
    with suppress(ValueError):
        if all(math.isfinite(float(name)) for name in names):
            return sorted(names, key=float)
    return sorted(names, key=lambda name: (_key(name), name))


def _key(text: str) -> list[Any]:
    parts: list[Any] = re.split(r"(\d+)", text.casefold())
    # Compare integers of any size by the number of digits and the digits, without leading zeros.
    parts[1::2] = [(len(part.lstrip("0")), part.lstrip("0")) for part in parts[1::2]]
    return parts


_SHOWN = 10
_LONGEST = 100  # characters of a value
_repr = Repr()
_repr.maxstring = _repr.maxlong = _repr.maxother = _LONGEST
_repr.maxdict = _repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxfrozenset = _SHOWN


def short(value: object) -> str:
    """Return the repr of a value, without the middle if it is long."""
    text = " ".join(_repr.repr(value).split())
    return text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}...{text[-_LONGEST // 2 :]}"


def shorten(text: str, length: int = 200) -> str:
    """Return the beginning of a text on one line, cut between words if possible."""
    line = " ".join(text.split())
    cut = line[: length - 1]
    words = cut.rpartition(" ")[0]
    cut = words if len(words) > length / 2 else cut
    return line if len(line) <= length else f"{cut.rstrip()}…"


def listed(names: Sequence[Any]) -> str:
    """Return a text with the first names, and the number of the others."""
    more = len(names) - _SHOWN
    return ", ".join(map(short, names[:_SHOWN])) + (f" and {more} more" * (more > 0))


def command_line(words: Iterable[str]) -> str:
    """Quote words for the shell; that of Windows knows double quotes alone."""
    if sys.platform != "win32":
        return shlex.join(words)
    return " ".join(w if re.fullmatch(r"[\w@+=:,./\\-]+", w) else f'"{w}"' for w in words)
