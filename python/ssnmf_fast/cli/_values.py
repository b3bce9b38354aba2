"""Values of options: how they are read from the text that the user gives."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from .._data.times import FREQUENCIES, Length
from .._solver.losses import loss_named
from ..selection._rank import MOST_RANKS

Kind = dict[str, Any]  # arguments of `add_argument`
_LEAST, _MOST = sys.float_info.min, sys.float_info.max


def _value(metavar: str, expected: str, read: Callable[[str], object], *words: str) -> Kind:
    """Return the kind of a value, or of one of some words in its place."""

    def parse(text: str) -> object:
        try:
            return text if text in words else read(text)
        except (ValueError, LookupError) as error:
            needed = ", ".join([*words, f"or {expected}"]) if words else expected
            raise argparse.ArgumentTypeError(f"must be {needed}; got {text!r}") from error

    return {"type": parse, "metavar": "|".join([*words, metavar])}


def _number(kind: Callable[[str], Any], low: float, high: float = math.inf) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def word(*choices: str) -> Kind:
    return {"choices": choices}


def integer(*words: str) -> Kind:
    return _value("INTEGER", "a whole number of at least 0", _number(int, 0), *words)


def _read_loss(text: str) -> str | float:
    loss = float(text) if text[:1].isdigit() else text
    try:
        loss_named(loss, "the loss")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return loss


class ImageShape(tuple[int, int]):
    def __str__(self) -> str:
        return f"{self[0]}x{self[1]}"


def _read_image_shape(text: str) -> ImageShape:
    height, width = map(_number(int, 1), text.lower().split("x"))
    return ImageShape((height, width))


def _read_text(text: str, allowed: str = r"(?s).+") -> str:
    if not re.fullmatch(allowed, text):
        raise ValueError
    return text


def _read_encoding(text: str) -> str:
    "".encode(text)  # LookupError if it is unknown
    return text


def _read_ngram_range(text: str) -> tuple[int, int]:
    numbers = [*map(_number(int, 1), text.split(","))]
    if len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise ValueError
    return numbers[0], numbers[-1]


class Ranks(tuple[int, ...]):
    def __str__(self) -> str:
        return ",".join(map(str, self))


def _read_ranks(text: str) -> Ranks:
    """Read ranks: single ones, and LOW:HIGH or LOW:HIGH:STEP with both ends."""
    ranks: set[int] = set()
    for part in text.split(","):
        low, *others = map(_number(int, 1), part.split(":"))
        high, step = [*others, low][0], [*others, 1, 1][1]
        if len(others) > 2 or high < low:
            raise ValueError
        some = range(low, high + 1, step)
        if len(some) + len(ranks) > MOST_RANKS:
            raise argparse.ArgumentTypeError(
                f"must be at most {MOST_RANKS} numbers of topics, as 5:100:5; got {text!r}"
            )
        ranks.update(some)
    return Ranks(sorted(ranks))


def _read_token_pattern(text: str) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"no regular expression: {text!r} ({error})") from error
    for wrong, reason in (
        (pattern.groups > 1, "must have at most one group; write the others as (?:...)"),
        (pattern.fullmatch(""), "must not match the empty text"),
    ):
        if wrong:
            raise argparse.ArgumentTypeError(f"{reason}; got {text!r}")
    return text


ON: Kind = {"action": "store_true"}
COLUMN, FILE, DIR, PATH, LABELS, LIST = (
    {"metavar": name} for name in ("COLUMN", "FILE", "DIR", "PATH", "LABELS", "LIST")
)
FILES: Kind = {"metavar": "FILE", "action": "append"}
COUNT = _value("COUNT", "a whole number of at least 1", _number(int, 1))
FRACTION = _value("FRACTION", "a number from 0 to 1", _number(float, 0, 1))
SHARE = _value("SHARE", "a number above 0 and below 1", _number(float, _LEAST, 1 - 2**-53))
POSITIVE = _value("POSITIVE", "a number above 0", _number(float, _LEAST, _MOST))
WEIGHT = _value(
    *("WEIGHT", "a number of at least 0 (inf too)", _number(float, 0)), *("balanced", "auto")
)
LABELED_WEIGHT = _value(
    "NUMBER", "a number of at least 0", _number(float, 0, _MOST), "inverse-rate"
)
LOSS = _value("LOSS", "the name of a loss, or a number from 0 to 2", _read_loss)
IMAGE_SHAPE = _value("HxW", "height and width as in 28x28", _read_image_shape)
NGRAM = _value(
    *("LOW,HIGH", "two numbers of words as 1,2, the larger one last, or one as 2"),
    _read_ngram_range,
)
RANKS = _value("RANKS", "numbers of topics as 5,10,20 or 2:30:2, from 2 to 30 by twos", _read_ranks)
REGEX = _value("REGEX", "a regular expression", _read_token_pattern)
TEXT = _value("TEXT", "at least one character", _read_text)
TEXTS: Kind = {
    "metavar": "TEXT,...",
    "action": "extend",
    "type": lambda text: [part.strip() for part in text.split(",") if part.strip()],
}
DELIMITER = _value(
    *("CHARACTER", "one character, or tab"),
    lambda text: _read_text({"tab": "\t", "\\t": "\t"}.get(text, text), r'[^"\r\n]'),
)
ENCODING = _value(
    *("ENCODING", "an encoding such as utf-8, utf-16, latin-1 or cp1252"),
    _read_encoding,
)
SLICES = _value(
    *("SLICES", "a multiple as '2 weeks', or a number of slices of at least 2"),
    lambda text: text if Length.of(text) else _number(int, 2)(text),
    *FREQUENCIES,
)
