"""Values of options: read from the text that the user gives."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    return _integer(text, 1)


def natural(text: str) -> int:
    """Read a whole number of at least 0."""
    return _integer(text, 0)


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"needed is a whole number of at least {least}: {text!r}")
    return value


def fraction(text: str) -> float:
    """Read a number from 0 to 1."""
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"needed is a number from 0 to 1: {text!r}")
    return value


def positive_number(text: str) -> float:
    """Read a number above 0."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"needed is a number above 0: {text!r}")
    return value


def weight(word: str) -> Callable[[str], float | str]:
    """Return a reader of a number of at least 0, or of the word that stands for one."""

    def read(text: str) -> float | str:
        if text == word:
            return text
        value = _number(text)
        if not 0 <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"needed is a number >= 0, or {word}: {text!r}")
        return value

    return read


def separator(text: str) -> str:
    """Read a text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("needed is at least one character")
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
