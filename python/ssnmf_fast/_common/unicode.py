"""Text in the form NFC of Unicode: an accent is part of its letter, or a character of its own."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any


def nfc(value: Any) -> Any:
    """Return text in the form NFC; all else as it is."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def as_first_given(names: Iterable[Any], known: Iterable[Any] = ()) -> dict[Any, Any]:
    """Return for each name the first one, of those known and of these, that equals it in NFC."""
    first: dict[Any, Any] = {nfc(name): name for name in reversed(list(known))}
    return {name: first.setdefault(nfc(name), name) for name in names}
