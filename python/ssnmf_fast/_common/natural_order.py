"""The order in which people write names: numbers by their size."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any


def natural_order(names: Sequence[Any]) -> list[int]:
    """Return the places of names in the order "1", "2", "10", "part 2", "part 10".

    If all names are numbers, with a sign or a decimal point too, they are ordered by value.
    """
    texts = [str(name) for name in names]
    try:
        values = [float(text) for text in texts]
    except ValueError:
        values = [math.nan]
    if all(map(math.isfinite, values)):
        return sorted(range(len(texts)), key=lambda k: values[k])
    return sorted(range(len(texts)), key=lambda k: (_key(texts[k]), texts[k]))


def _key(text: str) -> list[Any]:
    """Split into text and digits, in turn."""
    parts: list[Any] = re.split(r"(\d+)", text.casefold())
    # By length and digits: integers of any length compare, without their leading zeros.
    parts[1::2] = [(len(part.lstrip("0")), part.lstrip("0")) for part in parts[1::2]]
    return parts
