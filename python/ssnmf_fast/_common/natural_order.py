"""The order in which people write names: numbers by their size."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


def sort_naturally(names: Sequence[str]) -> list[str]:
    """Return names in the order "1", "2", "10", "part 2", "part 10".

    If all are numbers, with a sign or a decimal point too, they are ordered by value.
    """
    with suppress(ValueError):
        if all(math.isfinite(float(name)) for name in names):
            return sorted(names, key=float)
    return sorted(names, key=lambda name: (_key(name), name))


def _key(text: str) -> list[Any]:
    """Split into text and digits, in turn."""
    parts: list[Any] = re.split(r"(\d+)", text.casefold())
    # By length and digits: integers of any length compare, without their leading zeros.
    parts[1::2] = [(len(part.lstrip("0")), part.lstrip("0")) for part in parts[1::2]]
    return parts
