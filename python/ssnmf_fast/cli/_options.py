"""Options as given: on the command line, in a file of options, or by default."""

from __future__ import annotations

import difflib
import math
import warnings
from argparse import Action, ArgumentParser, Namespace, _AppendAction
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from .._common.optional import COMMAND_HINT, require_package

TABLES = (".csv", ".tsv", ".jsonl")
MATRICES = (".npz", ".npy", ".mtx")
KINDS = ("csv", "jsonl")  # of tables that are written
STANDARD = "-"  # standard input or output, instead of a file
SEEDS_EXAMPLE = '{"space": ["orbit", "nasa"], "sport": {"game": 2, "team": 1}}'


class UsageError(Exception):
    """Something the user gave cannot be used; the message explains what and how to fix it."""


warn = partial(warnings.warn, stacklevel=1)  # the command shows no place in the code


def refuse(options: Namespace, names: Iterable[str], reason: str) -> None:
    """Raise UsageError if one of the options is given."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False:
            raise UsageError(f"--{name.replace('_', '-')} {reason}")


def changed(options: Namespace, **values: Any) -> Namespace:
    """Return options of which some have other values."""
    return Namespace(**{**vars(options), **values})


def for_json(content: Any) -> Any:
    """Return content with None for NaN and infinity, which JSON does not have."""
    if isinstance(content, dict):
        return {name: for_json(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [for_json(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def options_of_file(name: str, parser: ArgumentParser) -> dict[str, Any]:
    """Return the options in a JSON, TOML or YAML file, read like those of the command line."""
    content = _read(Path(name))
    if not isinstance(content, Mapping):
        raise UsageError(f"--config {name}: expected options by name, such as rank: 5")
    actions: dict[str, Action] = {
        option[2:]: action
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and action.dest not in ("help", "config")
    }
    words = [STANDARD for action in parser._actions if not action.option_strings]
    for key, value in content.items():
        option = str(key).replace("_", "-")
        if option not in actions:
            close = difflib.get_close_matches(option, actions, 1)
            hint = f"; perhaps {close[0]}" if close else f"; see {parser.prog} --help"
            raise UsageError(f"--config {name}: there is no option {str(key)!r}{hint}")
        words += _words(option, value, actions[option])
    try:
        options = vars(parser.parse_args(words))
    except UsageError as error:
        raise UsageError(f"--config {name}: {error}") from error
    names = {action.dest for action in actions.values()}
    return {name: value for name, value in options.items() if name in names}


def _words(option: str, value: Any, action: Action) -> list[str]:
    """Return an option of a file as words of a command line."""
    if value is None:
        return []
    if isinstance(value, bool) and action.nargs == 0:
        no = f"--no-{option}"
        return [f"--{option}"] if value else [no] * (no in action.option_strings)
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, Mapping):
        parts = [",".join(f"{name}={number}" for name, number in value.items())]
    elif isinstance(value, list) and not isinstance(action, _AppendAction):
        parts = [",".join(map(str, value))]
    return [f"--{option}={number}" for number in parts]


def _read(path: Path) -> Any:
    kind, package = path.suffix.lower(), {".toml": "tomllib", ".json": "json"}
    if kind not in (".json", ".toml", ".yaml", ".yml"):
        raise UsageError(f"--config {path}: expected a .json, .toml or .yaml file")
    hint = "TOML needs Python 3.11; use JSON or YAML" if kind == ".toml" else COMMAND_HINT
    with require_package(package.get(kind, "yaml"), hint):
        module = import_module(package.get(kind, "yaml"))
    text = path.read_text(encoding="utf-8-sig")
    try:
        return module.loads(text) if kind in package else module.safe_load(text) or {}
    except (ValueError, RecursionError, getattr(module, "YAMLError", ValueError)) as error:
        raise UsageError(f"--config {path} cannot be read: {error}") from error
