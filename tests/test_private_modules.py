"""Tests go through public names: few private modules are imported, or patched, by any of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import ssnmf_fast

TESTS = Path(__file__).parent
PACKAGE = Path(ssnmf_fast.__file__).parent
MOST = 28  # fewer with every test that goes through a public name; wanted: 10


def imported(path: Path) -> Iterator[str]:
    """Yield the names that a file imports from the package, and those in its texts."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ssnmf_fast"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\bssnmf_fast(?:\.\w+)+", node.value)


def private_module(name: str) -> str | None:
    """Return the private module of the package that a name is or lies in."""
    parts, found = name.split("."), None
    for end in range(2, len(parts) + 1):
        path = PACKAGE.joinpath(*parts[1:end])
        exists = path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
        if exists and any(part.startswith("_") for part in parts[1:end]):
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
