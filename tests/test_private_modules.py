"""Tests go through public names: few private modules are imported, or patched, by any of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import ssnmf_fast

TESTS = Path(__file__).parent
PACKAGE = Path(ssnmf_fast.__file__).parent
MOST = 11  # fewer with every test that goes through a public name


def imported(path: Path) -> Iterator[str]:
    """Yield the names that a file imports from the package, and all others in its text."""
    text = path.read_text(encoding="utf-8")
    for module, names in re.findall(
        r"^ *from (ssnmf_fast[\w.]*) import (\([^)]*\)|.*)$", text, re.MULTILINE
    ):
        yield from (f"{module}.{name}" for name in re.findall(r"(?:^|[(,])\s*(\w+)", names))
    yield from re.findall(r"\bssnmf_fast(?:\.\w+)+", text)


@functools.cache
def private_module(name: str) -> str | None:
    """Return the private module of the package that a name is or lies in."""
    parts, found = name.split("."), None
    for end in range(2, len(parts) + 1):
        private = any(part.startswith("_") for part in parts[1:end])
        if private and PACKAGE.joinpath(*parts[1:end]).with_suffix(".py").is_file():
            found = ".".join(parts[:end])
    return found


def test_few_private_modules() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        for name in imported(path):
            module = private_module(name) if name.startswith("ssnmf_fast.") else None
            if module is not None:
                found.setdefault(module, set()).add(str(path.relative_to(TESTS)))
    assert len(found) <= MOST, found
