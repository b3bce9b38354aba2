"""The arguments of ``ssnmf-fast``."""

from __future__ import annotations

import math
import re
import sys
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from .._version import __version__
from ._commands import COMMANDS, MODELS
from ._options import UsageError, options_of_file

Read = Callable[[str], Any]
_MOST_RANKS = 1000  # of choose_rank
_LEAST, _MOST = sys.float_info.min, sys.float_info.max


class _ImageShape(tuple[int, int]):
    """Height and width, which are printed as given."""

    def __str__(self) -> str:
        return "x".join(map(str, self))


def _number(kind: Read, low: float, high: float = math.inf) -> Read:
    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return read


def _read_loss(text: str) -> str | float:
    from .._solver.losses import loss_named

    loss = float(text) if text[:1].isdigit() else text
    try:
        loss_named(loss, "the loss")
    except ValueError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from None
    return loss


def _read_image_shape(text: str) -> _ImageShape:
    height, width = map(_number(int, 1), text.lower().split("x"))
    return _ImageShape((height, width))


def _read_ngram_range(text: str) -> tuple[int, int]:
    numbers = [*map(_number(int, 1), text.split(","))]
    if len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise ValueError
    return numbers[0], numbers[-1]


def _read_ranks(text: str) -> tuple[int, ...]:
    """Read ranks: single ones, and LOW:HIGH or LOW:HIGH:STEP with both ends."""
    ranks: set[int] = set()
    for part in text.split(","):
        low, *others = map(_number(int, 1), part.split(":"))
        high, step = [*others, low][0], [*others, 1, 1][1]
        if len(others) > 2 or high < low:
            raise ValueError
        interval = range(low, high + 1, step)
        if len(interval) + len(ranks) > _MOST_RANKS:
            wrong = f"must be at most {_MOST_RANKS} numbers of topics, like 5:100:5; got {text!r}"
            raise ArgumentTypeError(wrong)
        ranks.update(interval)
    return tuple(sorted(ranks))


def _read_shares(text: str) -> dict[str, float]:
    pairs = re.findall(r"(.+?)=([^=,]+)(?:,|$)", text)  # names may contain both signs
    shares = {name.strip(): _number(float, 0, _MOST)(number) for name, number in pairs}
    if len(shares) < len(pairs) or ",".join(map("=".join, pairs)) != text:
        raise ValueError
    return shares


def _read_slices(text: str) -> str | int:
    from .._data.times import Length

    return text if Length.of(text) else int(_number(int, 2)(text))


def _read_token_pattern(text: str) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"not a regular expression: {text!r} ({error})") from error
    if pattern.groups > 1 or pattern.fullmatch(""):
        wrong = "must have at most one group other than (?:...), and must not match empty text"
        raise ArgumentTypeError(f"{wrong}; got {text!r}")
    return text


def _read_character(text: str) -> str:
    return str(re.findall(r'\A[^"\r\n]\Z', "\t" if text in ("tab", "\\t") else text)[0])


_READ: dict[str, tuple[str, Read]] = {  # by metavar: the expected text, and its reader
    "CHARACTER": ("one character, or tab", _read_character),
    "COUNT": ("a whole number of at least 1", _number(int, 1)),
    "ENCODING": (
        "an encoding such as utf-8, utf-16, latin-1 or cp1252",
        lambda text: (text, "".encode(text))[0],
    ),
    "FRACTION": ("a number from 0 to 1", _number(float, 0, 1)),
    "HxW": ("height and width as in 28x28", _read_image_shape),
    "INTEGER": ("a whole number of at least 0", _number(int, 0)),
    "LOSS": ("the name of a loss, or a number from 0 to 2", _read_loss),
    "LOW,HIGH": ("numbers of words such as 1,2, the larger last, or one number", _read_ngram_range),
    "NUMBER": ("a number of at least 0", _number(float, 0, _MOST)),
    "POSITIVE": ("a number above 0", _number(float, _LEAST, _MOST)),
    "RANKS": ("numbers of topics such as 5,10,20 or 2:30:2 (2, 4, ..., 30)", _read_ranks),
    "REGEX": ("a regular expression", _read_token_pattern),
    "SHARE": ("a number above 0 and below 1", _number(float, _LEAST, 1 - 2**-53)),
    "SHARES": ("the share of every class, such as yes=0.3,no=0.7", _read_shares),
    "SLICES": (
        "a multiple such as '2 weeks', or a number of slices of at least 2",
        _read_slices,
    ),
    "TEXT": ("at least one character", lambda text: re.findall(r"(?s)\A.+\Z", text)[0]),
    "WEIGHT": ("a number of at least 0, or inf", _number(float, 0)),
}
_LISTS: dict[str, dict[str, Any]] = {  # extended by repeated options
    "COLUMN...": {"metavar": "COLUMN", "action": "append"},
    "FILE...": {"metavar": "FILE", "action": "append"},
    "LABELS...": {"metavar": "LABELS", "action": "append"},
    "TEXT,...": {
        "metavar": "TEXT,...",
        "action": "extend",
        "type": lambda text: [part.strip() for part in text.split(",") if part.strip()],
    },
}


def kind_of(declared: str) -> dict[str, Any]:
    """Return arguments of `add_argument` for words or a metavar, separated by |, or for none."""
    *words, metavar = declared.split("|")
    if declared in ("", "no"):  # "no": there is also --no-...
        return {"action": BooleanOptionalAction if declared else "store_true"}
    if metavar.islower():
        return {"choices": [*words, metavar]}
    if metavar not in _READ:
        return _LISTS.get(metavar, {"metavar": metavar})
    expected, read = _READ[metavar]

    def parse(text: str) -> object:
        try:
            return text if text in words else read(text)
        except (ValueError, LookupError) as error:
            choices = ", ".join([*words, f"or {expected}"]) if words else expected
            raise ArgumentTypeError(f"must be {choices}; got {text!r}") from error

    return {"type": parse, "metavar": declared}


class _Parser(ArgumentParser):
    """A parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("ambiguous option"):
            likely = min(re.findall(r"--[\w-]+", message.partition(" could match ")[2]), key=len)
            message += f"; perhaps {likely}"
        if message.endswith("expected one argument"):
            message += "; one that begins with - needs an equals sign, such as --unlabeled=-9"
        raise UsageError(f"{message}; see {self.prog} --help")


def _run(module: str, name: str, argument: Any) -> Any:
    """Call a function of a module that is imported only now, such as a subcommand."""
    return getattr(import_module(module, __package__), name)(argument)


# These read data and fit like `fit`, with its defaults or others.
_LIKE_FIT: dict[str, dict[str, Any]] = {
    "demo": {
        "data": "digits",
        "labels": ["digits"],
        "image_shape": _ImageShape((8, 8)),
        "test_size": 0.5,
        "model": "ssnmf",
        "rank": 50,
        "supervision_weight": math.inf,
    },
    **{name: {} for name in ("suggest", "choose-rank", "verify")},
}


class _Formatter(RawDescriptionHelpFormatter):
    """Help that names the models which take an option."""

    def _get_help_string(self, action: Action) -> str | None:
        if "for *)" not in (action.help or ""):
            return action.help
        users = _run("._models", "users_of", action.dest)
        return str(action.help).replace("*)", f"{users})")


class _Commands(_Parser):
    """The parser of all commands."""

    def __init__(self) -> None:
        about = "Semi-supervised nonnegative matrix factorization: topics guided by labels."
        super().__init__(prog="ssnmf-fast", description=about)
        self.add_argument("--version", action="version", version=f"ssnmf-fast {__version__}")
        commands = self.add_subparsers(
            title="commands", metavar="COMMAND", required=True, parser_class=_Parser
        )
        self._parsers: dict[str, ArgumentParser] = {}
        self._defaults_of: dict[str, dict[str, Any]] = {}
        for name, (module, function, text) in COMMANDS.items():
            help, description, options = re.split(r"\s*^---$\s*", text, flags=re.MULTILINE)
            positionals = [*re.findall(r"(?m)^([A-Z]+):", options), "[option ...]"]
            more: Any = {"help": help, "usage": " ".join(["ssnmf-fast", name, *positionals])}
            more |= {"description": description, "formatter_class": _Formatter}
            parser = commands.add_parser(name, argument_default=SUPPRESS, **more)
            parser.set_defaults(run=partial(_run, module, function), command=name)
            self._parsers[name] = parser
            self._defaults_of[name] = _add_options(parser, options)
        width = max(map(len, MODELS))
        models = (f"\n  {name:<{width}}  {about}" for name, (_, about) in MODELS.items())
        self._parsers["fit"].epilog = "models:" + "".join(models)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return all options; `given` names those that differ from the defaults."""
        options = vars(super().parse_args(args, namespace))
        command = options.pop("command")
        parser, defaults = self._parsers[command], self._defaults_of[command]
        if "config" in options:
            options = options_of_file(options["config"], parser) | options
        if command in _LIKE_FIT:
            defaults = {**self._defaults_of["fit"], **defaults}
            options = _LIKE_FIT[command] | options
        changed = {name for name, value in options.items() if defaults.get(name) != value}
        return Namespace(**{**defaults, **options}, given=changed)


def build_parser() -> ArgumentParser:
    """Return the parser of ``ssnmf-fast``."""
    return _Commands()


def _add_options(parser: ArgumentParser, options: str) -> dict[str, Any]:
    """Add options to a parser from a text; return their defaults."""
    target: Any = parser
    defaults: dict[str, Any] = {}
    for part in re.split(r"\n+(?! )", options.strip()):
        if part.startswith("["):
            target = parser.add_argument_group(part[1:-1])
            continue
        declared, _, help = " ".join(part.split()).partition(": ")
        names, _, kind = declared.partition(" ")
        if not names.startswith("-"):
            defaults[names.lower()] = ""
            target.add_argument(names.lower(), metavar=names, help=help)
            continue
        kind, _, default = kind.partition("=")
        more = kind_of(kind)
        if default:
            help = f"{help} (default: {default})"
        action = target.add_argument(*names.split(","), help=help, **more)
        read = more.get("type", str)
        off = False if action.nargs == 0 and kind == "" else None
        defaults[action.dest] = read(default) if default else off
    return defaults
