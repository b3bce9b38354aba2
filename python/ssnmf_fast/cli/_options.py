"""Types of options: how their values are read from the text that the user gives."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from ._models import MODELS

_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t"}


def option_type(metavar: str) -> Callable[[str], Any]:
    """Return what reads the values of an option; `auto|COUNT` is a word or one of TYPES."""
    *words, kind = metavar.split("|")
    expected, read_other = TYPES[kind]

    def read(text: str) -> Any:
        if text in words:
            return text
        try:
            return read_other(text)
        except (ValueError, LookupError) as error:
            needed = ", ".join([*words, f"or {expected}"]) if words else expected
            raise argparse.ArgumentTypeError(f"must be {needed}; got {text!r}") from error

    return read


def _within(kind: type[int] | type[float], low: float, high: float) -> Callable[[str], Any]:
    """Return a reader of numbers in a range."""

    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _loss(text: str) -> str | float:
    """Read the name of a loss, or the beta of a beta-divergence."""
    from .._solver.losses import loss_named

    given = float(text) if text[:1].isdigit() else text
    try:
        loss_named(given, "the loss")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return given


def _separator(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share < 1:
        raise ValueError
    return share


class ImageShape(tuple[int, int]):
    """Height and width of images, in pixels; as text 28x28."""

    def __str__(self) -> str:
        return f"{self[0]}x{self[1]}"


def _image_shape(text: str) -> ImageShape:
    height, width = map(_COUNT, text.lower().split("x"))
    return ImageShape((height, width))


def _encoding(text: str) -> str:
    "".encode(text)  # LookupError if it is unknown
    return text


def _delimiter(text: str) -> str:
    mark = _NAMED_DELIMITERS.get(text, text)
    if len(mark) != 1 or mark in '"\r\n':
        raise ValueError
    return mark


def _ngram_range(text: str) -> tuple[int, int]:
    """Read how many words a term has: LOW,HIGH, or one number for both."""
    numbers = [_COUNT(part) for part in text.split(",")]
    if len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise ValueError
    return numbers[0], numbers[-1]


class Ranks(tuple[int, ...]):
    """Ranks to try, as text 2,3,5."""

    def __str__(self) -> str:
        return ",".join(map(str, self))


def _ranks(text: str) -> Ranks:
    """Read ranks: single ones, and LOW:HIGH or LOW:HIGH:STEP with both ends."""
    from ..selection._rank import MOST_RANKS

    found: set[int] = set()
    for part in text.split(","):
        low, *others = map(_COUNT, part.split(":"))
        high, step = others[0] if others else low, others[1] if len(others) > 1 else 1
        if len(others) > 2 or high < low:
            raise ValueError
        some = range(low, high + 1, step)
        if len(some) + len(found) > MOST_RANKS:
            raise argparse.ArgumentTypeError(
                f"must be at most {MOST_RANKS} numbers of topics, as 5:100:5; got {text!r}"
            )
        found.update(some)
    return Ranks(sorted(found))


def _token_pattern(text: str) -> str:
    """Read a regular expression that finds words."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"no regular expression: {text!r} ({error})") from error
    if pattern.groups > 1:
        raise argparse.ArgumentTypeError(
            f"must have at most one group; write the others as (?:...); got {text!r}"
        )
    if pattern.fullmatch(""):
        raise argparse.ArgumentTypeError(f"must not match the empty text; got {text!r}")
    return text


def _slices(text: str) -> str | int:
    """Read a length of slices of time, or a number of slices."""
    from .._data.times import Length

    return text if Length.of(text) else _within(int, 2, math.inf)(text)


_COUNT = _within(int, 1, math.inf)

# By their names in the help: what a value must be, and what reads it.  A reader refuses a value by
# ValueError, LookupError or, to give a reason of its own, argparse.ArgumentTypeError.
TYPES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "INTEGER": ("a whole number of at least 0", _within(int, 0, math.inf)),
    "COUNT": ("a whole number of at least 1", _COUNT),
    "SLICES": ("a multiple as '2 weeks', or a number of slices of at least 2", _slices),
    "FRACTION": ("a number from 0 to 1", _within(float, 0, 1)),
    "SHARE": ("a number above 0 and below 1", _share),
    "POSITIVE": ("a number above 0", _within(float, sys.float_info.min, sys.float_info.max)),
    "NUMBER": ("a number of at least 0", _within(float, 0, sys.float_info.max)),
    "WEIGHT": ("a number of at least 0 (inf too)", _within(float, 0, math.inf)),
    "LOSS": ("the name of a loss, or a number from 0 to 2", _loss),
    "HxW": ("height and width as in 28x28", _image_shape),
    "LOW,HIGH": ("two numbers of words as 1,2, the larger one last, or one as 2", _ngram_range),
    "RANKS": ("numbers of topics as 5,10,20 or 2:30:2, from 2 to 30 by twos", _ranks),
    "REGEX": ("a regular expression", _token_pattern),
    "TEXT": ("at least one character", _separator),
    "TEXT,...": ("texts with commas between", _texts),
    "FILE...": ("a text", lambda text: [text]),
    "CHARACTER": ("one character, or tab", _delimiter),
    "ENCODING": ("an encoding such as utf-8, utf-16, latin-1 or cp1252", _encoding),
    **dict.fromkeys(("COLUMN", "DIR", "FILE", "LABELS", "LIST", "PATH"), ("a text", str)),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        line = f"{self.prog.split()[0]}: error: {message}; see {self.prog} --help"
        print(line, file=sys.stderr)
        raise SystemExit(2)


def add(parser: Any, options: Mapping[str, str], **more: Any) -> None:
    """Add options that are written as `--name|--other-name TYPE=DEFAULT`, each with its help.

    The type is one of TYPES or words with | between; a name alone is a switch.  In the help
    {users} stands for the models that take the option.
    """
    for usage, about in options.items():
        spellings, _, value = usage.partition(" ")
        metavar, _, default = value.partition("=")
        names = spellings.split("|")
        name = names[0][2:].replace("-", "_")
        users = ", ".join(model.name for model in MODELS.values() if name in model.options)
        kind: dict[str, Any]
        if not value:
            kind = {"action": "store_true"}
        elif metavar.islower():
            kind = {"choices": metavar.split("|")}
        else:
            action = "extend" if metavar.endswith("...") else "store"
            kind = {"type": option_type(metavar), "metavar": metavar, "action": action}
        if default:
            kind["default"] = default
            about += " (default: %(default)s)"
        parser.add_argument(*names, help=about.format(users=users), **kind, **more)


def runner(module: str, name: str = "run") -> Callable[[Any], Any]:
    """Return a function that runs a subcommand; its module is imported only then."""
    return lambda options: getattr(import_module(f".{module}", __package__), name)(options)
