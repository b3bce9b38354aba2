"""What imports what: the layers of the package, and what a plain import loads."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ssnmf_fast as sf

ROOT = Path(sf.__file__).parent

# Every module, or folder, has a room.  It may import from its own room and from those above it in
# this list, also within functions.
ROOMS = {
    "common": "_common _version",
    "backend": "_backend",
    "data": "_data _labels _topics _config",
    "linear algebra": "_linalg linalg",
    "solver": "_solver weights penalties",
    "models": "_models extend",
    "completion": "completion",
    "estimators": "estimators papers trees",
    "metrics": "metrics",
    "plotting": "plotting",
    "choosing and trusting": "selection results",
    "files of models": "_persist io",
    "cells and genes": "anndata",
    "report": "report",
    "clusters": "dask",
    "command": "cli",
}
ROOM_OF = {name: room for room, names in ROOMS.items() for name in names.split()}
OUTSIDE = {"__init__", "__main__"}  # the public names, and the way to start the command
# Only these may name the reference: all else takes the kernels that `_backend.dispatch` chose.
KNOW_THE_REFERENCE = {"_backend"}


def modules() -> dict[str, Path]:
    names = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"] = path
    return names


MODULES = modules()


def room(module: str) -> str:
    return ROOM_OF[module.split(".")[0]]


def type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def statements(tree: ast.AST, *, at_import: bool) -> Iterator[ast.ImportFrom]:
    """Relative imports of a module; `at_import` leaves out those within functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and type_checking(node):
            for other in node.orelse:
                yield from statements(other, at_import=at_import)
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node
        if not (at_import and isinstance(node, (ast.FunctionDef, ast.Lambda))):
            yield from statements(node, at_import=at_import)


def imported(module: str, *, at_import: bool) -> set[str]:
    """The modules of this package that a module imports from."""
    path = MODULES[module]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    here = path.relative_to(ROOT).parts[:-1]
    found = set()
    for node in statements(tree, at_import=at_import):
        base = [*here[: len(here) - node.level + 1], *(node.module or "").split(".")]
        name = ".".join(part for part in base if part)
        for alias in node.names:
            inner = f"{name}.{alias.name}" if name else alias.name
            if inner in MODULES:
                found.add(inner)
            elif name in MODULES and name:
                found.add(name)
    return found - {module}


def test_every_module_has_a_room():
    assert {module.split(".")[0] for module in MODULES} - OUTSIDE == set(ROOM_OF)


def test_imports_point_to_rooms_above_in_the_list():
    order = list(ROOMS)
    wrong = [
        f"{module} ({room(module)}) imports {other} ({room(other)})"
        for module in MODULES.keys() - OUTSIDE
        for other in imported(module, at_import=False)
        if other in OUTSIDE or order.index(room(other)) > order.index(room(module))
    ]
    assert sorted(wrong) == []


def test_only_the_dispatch_knows_the_reference():
    wrong = [
        module
        for module in MODULES
        if not {module, module.split(".")[0]} & KNOW_THE_REFERENCE
        and any("_backend.reference" in other for other in imported(module, at_import=False))
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others():
    graph = {module: imported(module, at_import=True) for module in MODULES}
    for module in ("__init__", *(name for name in graph if MODULES[name].name == "__init__.py")):
        graph[module] = set()  # a folder's list of names; its modules are looked at themselves
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


def test_a_plain_import_loads_what_functions_need():
    code = "import sys, ssnmf_fast; print(*sys.modules); ssnmf_fast.NMF"
    environment = {name: value for name, value in os.environ.items() if name != "SSNMF_FAST_ISA"}
    loaded = subprocess.check_output(
        [sys.executable, "-c", code], env=environment, timeout=120, text=True
    ).split()
    for module in ("scipy.optimize", "sklearn", "matplotlib", "pandas"):
        assert module not in loaded
    assert "ssnmf_fast._backend.reference" not in loaded


def test_the_page_for_contributors_has_the_same_parts() -> None:
    page = Path(__file__).parents[1] / "docs" / "developer" / "contributing.md"
    if not page.exists():
        pytest.skip("away from the source tree")
    rows = re.findall(r"^\| ([a-z ]+) \| `([\w ]+)` \|", page.read_text("utf-8"), re.MULTILINE)
    assert dict(rows) == ROOMS
    assert [part for part, _ in rows] == [*ROOMS]
