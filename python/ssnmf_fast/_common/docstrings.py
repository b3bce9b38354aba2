"""Docstrings in parts: what several classes or functions share is described once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import cleandoc
from itertools import chain

_INHERITED = ("Returns", "Raises", "Warns")
_ORDER = ("Parameters", "Attributes", *_INHERITED, "See Also", "Notes", "References", "Examples")
_ENTRY = r"\n(?=\S)"
_SECTION = re.compile(rf"^({'|'.join(_ORDER)})\n-+\n", re.MULTILINE)


def complete(
    doc: str, shared: Iterable[str | None], arguments: Iterable[str], attributes: Iterable[str] = ()
) -> str:
    """Return a docstring with what others have of its parameters, attributes and results."""
    sources = [doc, *filter(None, shared)]
    sections = _sections(doc)
    for section, names in (("Parameters", arguments), ("Attributes", attributes)):
        found = [entries_of(source, section) for source in sources]
        of_names = [next((part[n] for part in found if n in part), "") for n in names]
        # Attributes of the class itself come first, in their order; parameters as in the signature.
        ahead = found[0].values() if section == "Attributes" else ()
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


def _sections(doc: str) -> dict[str, str]:
    head, *rest = _SECTION.split(cleandoc(doc))
    return {"": head.strip()} | {s: t.strip() for s, t in zip(rest[::2], rest[1::2], strict=True)}


def entries_of(doc: str, section: str) -> dict[str, str]:
    """Return the entries of a section by the names that they document."""
    found = {}
    for entry in re.split(_ENTRY, _sections(doc).get(section, "")):
        names = entry.partition("\n")[0].partition(" :")[0]
        found.update(dict.fromkeys(re.findall(r"\w+", names), entry))
    return found
