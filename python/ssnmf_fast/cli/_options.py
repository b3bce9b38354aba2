"""How the arguments of a subcommand are added to its parser, by the table of their usage."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from ._models import MODELS
from ._option_types import option_type


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
