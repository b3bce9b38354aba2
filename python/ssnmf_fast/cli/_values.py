"""Values of options: how they are read from the text that the user gives."""

from __future__ import annotations

import math
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from .._data.times import Length
from .._solver.losses import loss_named
from ..selection._rank import MOST_RANKS

Read = Callable[[str], Any]
_LEAST, _MOST = sys.float_info.min, sys.float_info.max


class Numbers(tuple[int, ...]):
    """Numbers that are printed as they are given."""

    mark = ","

    def __str__(self) -> str:
        return self.mark.join(map(str, self))


class _ImageShape(Numbers):
    mark = "x"


def _number(kind: Read, low: float, high: float = math.inf) -> Read:
    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _read_loss(text: str) -> str | float:
    loss = float(text) if text[:1].isdigit() else text
    try:
        loss_named(loss, "the loss")
    except ValueError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from None
    return loss


def _read_image_shape(text: str) -> Numbers:
    height, width = map(_number(int, 1), text.lower().split("x"))
    return _ImageShape((height, width))


def _read_ngram_range(text: str) -> tuple[int, int]:
    numbers = [*map(_number(int, 1), text.split(","))]
    if len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise ValueError
    return numbers[0], numbers[-1]


def _read_ranks(text: str) -> Numbers:
    """Read ranks: single ones, and LOW:HIGH or LOW:HIGH:STEP with both ends."""
    ranks: set[int] = set()
    for part in text.split(","):
        low, *others = map(_number(int, 1), part.split(":"))
        high, step = [*others, low][0], [*others, 1, 1][1]
        if len(others) > 2 or high < low:
            raise ValueError
        some = range(low, high + 1, step)
        if len(some) + len(ranks) > MOST_RANKS:
            wrong = f"must be at most {MOST_RANKS} numbers of topics, as 5:100:5; got {text!r}"
            raise ArgumentTypeError(wrong)
        ranks.update(some)
    return Numbers(sorted(ranks))


def _read_token_pattern(text: str) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"no regular expression: {text!r} ({error})") from error
    if pattern.groups > 1 or pattern.fullmatch(""):
        wrong = "must have at most one group, (?:...) aside, and must not match the empty text"
        raise ArgumentTypeError(f"{wrong}; got {text!r}")
    return text


_MARKS = {"tab": "\t", "\\t": "\t"}
_READ: dict[str, tuple[str, Read]] = {  # by metavar: what is expected, and how it is read
    "CHARACTER": (
        "one character, or tab",
        lambda text: re.findall(r'\A[^"\r\n]\Z', _MARKS.get(text, text))[0],
    ),
    "COUNT": ("a whole number of at least 1", _number(int, 1)),
    "ENCODING": (
        "an encoding such as utf-8, utf-16, latin-1 or cp1252",
        lambda text: (text, "".encode(text))[0],
    ),
    "FRACTION": ("a number from 0 to 1", _number(float, 0, 1)),
    "HxW": ("height and width as in 28x28", _read_image_shape),
    "INTEGER": ("a whole number of at least 0", _number(int, 0)),
    "LOSS": ("the name of a loss, or a number from 0 to 2", _read_loss),
    "LOW,HIGH": ("numbers of words as 1,2, the larger one last, or one as 2", _read_ngram_range),
    "NUMBER": ("a number of at least 0", _number(float, 0, _MOST)),
    "POSITIVE": ("a number above 0", _number(float, _LEAST, _MOST)),
    "RANKS": ("numbers of topics as 5,10,20 or 2:30:2, from 2 to 30 by twos", _read_ranks),
    "REGEX": ("a regular expression", _read_token_pattern),
    "SHARE": ("a number above 0 and below 1", _number(float, _LEAST, 1 - 2**-53)),
    "SLICES": (
        "a multiple as '2 weeks', or a number of slices of at least 2",
        lambda text: text if Length.of(text) else _number(int, 2)(text),
    ),
    "TEXT": ("at least one character", lambda text: re.findall(r"(?s)\A.+\Z", text)[0]),
    "WEIGHT": ("a number of at least 0 (inf too)", _number(float, 0)),
}
_LISTS: dict[str, dict[str, Any]] = {  # that an option given again goes on with
    "FILE...": {"metavar": "FILE", "action": "append"},
    "TEXT,...": {
        "metavar": "TEXT,...",
        "action": "extend",
        "type": lambda text: [part.strip() for part in text.split(",") if part.strip()],
    },
}


def kind_of(declared: str) -> dict[str, Any]:
    """Return the arguments of `add_argument` for words or a metavar, with | between, or none."""
    *words, metavar = declared.split("|")
    if not declared:
        return {"action": "store_true"}
    if metavar.islower():
        return {"choices": [*words, metavar]}
    if metavar not in _READ:
        return _LISTS.get(metavar, {"metavar": metavar})
    expected, read = _READ[metavar]

    def parse(text: str) -> object:
        try:
            return text if text in words else read(text)
        except (ValueError, LookupError) as error:
            needed = ", ".join([*words, f"or {expected}"]) if words else expected
            raise ArgumentTypeError(f"must be {needed}; got {text!r}") from error

    return {"type": parse, "metavar": declared}
