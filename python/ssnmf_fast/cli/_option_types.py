"""Values of options: read from the text that the user gives."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from .._data.times import FREQUENCIES

_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t"}


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
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}: {text!r}")
    return value


def fraction(text: str) -> float:
    """Read a number from 0 to 1."""
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1: {text!r}")
    return value


def positive_number(text: str) -> float:
    """Read a number above 0."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0: {text!r}")
    return value


def loss(text: str) -> str | float:
    """Read the name of a loss, or the beta of a beta-divergence."""
    from .._solver.beta_divergences import loss_named

    given = _number(text) if text[:1].isdigit() else text
    try:
        loss_named(given, "the loss")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return given


def weight(*words: str, infinite: bool = False) -> Callable[[str], float | str]:
    """Return a reader of a number of at least 0, or of a word that stands for one."""

    def read(text: str) -> float | str:
        if text in words:
            return text
        value = _number(text)
        if not 0 <= value < float("inf") and not (infinite and value == float("inf")):
            known = " or ".join([*words, *(["inf"] if infinite else [])])
            raise argparse.ArgumentTypeError(f"expected a number >= 0, or {known}: {text!r}")
        return value

    return read


def rounds(text: str) -> int | str:
    """Read a whole number of at least 0, or the word auto."""
    return text if text == "auto" else natural(text)


def frequency(text: str) -> str | int:
    """Read the length of slices of time, or their number."""
    if text in FREQUENCIES:
        return text
    try:
        return _integer(text, 2)
    except argparse.ArgumentTypeError:
        names = ", ".join(FREQUENCIES)
        message = f"expected one of {names}, or a number of slices from 2: {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def separator(text: str) -> str:
    """Read a text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("expected at least one character")
    return text


def texts(text: str) -> list[str]:
    """Read texts with commas between."""
    found = [part.strip() for part in text.split(",")]
    return [part for part in found if part]


class ImageShape(tuple[int, int]):
    """Height and width of images, in pixels; as text 28x28."""

    def __str__(self) -> str:
        return f"{self[0]}x{self[1]}"


def image_shape(text: str) -> ImageShape:
    """Read height and width, as 28x28."""
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() and int(side) > 0 for side in sides):
        raise argparse.ArgumentTypeError(f"expected height and width as in 28x28: {text!r}")
    return ImageShape(int(side) for side in sides)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0


def encoding(text: str) -> str:
    """Read the name of an encoding of text."""
    try:
        "".encode(text)
    except (LookupError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"no such encoding: {text!r}; some are utf-8, utf-16, latin-1 and cp1252"
        ) from error
    return text


def delimiter(text: str) -> str:
    """Read what stands between the cells of a line."""
    mark = _NAMED_DELIMITERS.get(text, text)
    if len(mark) != 1 or mark in '"\r\n':
        raise argparse.ArgumentTypeError(f"expected one character, or tab: {text!r}")
    return mark


def ngram_range(text: str) -> tuple[int, int]:
    """Read how many words a term has: LOW,HIGH, or one number for both."""
    parts = text.split(",")
    numbers = [int(part) for part in parts if part.strip().isdecimal()]
    if len(numbers) != len(parts) or len(parts) > 2 or not 1 <= numbers[0] <= numbers[-1]:
        raise argparse.ArgumentTypeError(
            f"expected two numbers of words as 1,2, the larger one last, or one as 2: {text!r}"
        )
    return numbers[0], numbers[-1]


def token_pattern(text: str) -> str:
    """Read a regular expression that finds words."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"no regular expression: {text!r} ({error})") from error
    if pattern.groups > 1:
        raise argparse.ArgumentTypeError(
            f"expected at most one group; write the others as (?:...): {text!r}"
        )
    if pattern.fullmatch(""):
        raise argparse.ArgumentTypeError(f"the empty text is no word: {text!r}")
    return text
