"""Docstrings in parts: entries that several classes or functions share are written once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc, signature
from itertools import chain
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_INHERITED = ("Returns", "Raises", "Warns")
_ORDER = ("Parameters", "Attributes", *_INHERITED, "See Also", "Notes", "References", "Examples")
_ENTRY = r"\n(?=\S)"
_SECTION = re.compile(rf"^({'|'.join(_ORDER)})\n-+\n", re.MULTILINE)


def complete(
    doc: str, shared: Iterable[str | None], arguments: Iterable[str], attributes: Iterable[str] = ()
) -> str:
    """Return a docstring with the entries that it lacks and `shared` docstrings have."""
    sources = [doc, *filter(None, shared)]
    sections = _sections(doc)
    for section, names in (("Parameters", arguments), ("Attributes", attributes)):
        entries_by_source = [entries_of(source, section) for source in sources]
        of_names = [next((part[n] for part in entries_by_source if n in part), "") for n in names]
        # Attributes of the class itself come first, in their order; parameters as in the signature.
        ahead = entries_by_source[0].values() if section == "Attributes" else ()
        entries = dict.fromkeys(entry for entry in (*ahead, *of_names) if entry)
        if entries:
            sections[section] = "\n".join(entries)
    for section in _INHERITED:
        results = [_sections(source)[section] for source in sources if section in _sections(source)]
        if results:  # all errors and warnings, but only the last result
            kept = results[:1] if section == "Returns" else reversed(results)
            split = chain.from_iterable(re.split(_ENTRY, part) for part in kept)
            sections[section] = "\n".join(dict.fromkeys(split))
    body = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in _ORDER if name in sections]
    return "\n\n".join([sections[""], *body]) + "\n"


def completing(shared: str) -> Callable[[Function], Function]:
    """Return a decorator that completes the docstrings of functions by shared entries."""

    def completed(function: Function) -> Function:
        if function.__doc__:
            parameters = signature(function).parameters
            function.__doc__ = complete(function.__doc__, [shared], parameters)
        return function

    return completed


def _sections(doc: str) -> dict[str, str]:
    head, *rest = _SECTION.split(cleandoc(doc))
    return {"": head.strip()} | {s: t.strip() for s, t in zip(rest[::2], rest[1::2], strict=True)}


def entries_of(doc: str, section: str) -> dict[str, str]:
    """Return the entries of a section by the names that they document."""
    entries = {}
    for entry in re.split(_ENTRY, _sections(doc).get(section, "")):
        names = entry.partition("\n")[0].partition(" :")[0]
        entries.update(dict.fromkeys(re.findall(r"\w+", names), entry))
    return entries
