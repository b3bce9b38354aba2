"""What imports what: the layers of the package, and what a plain import loads."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
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
    "metrics": "metrics",
    "plotting": "plotting",
    "ranks": "_ranks",
    "recommendations": "_recommend",
    "replacements": "sklearn",
    "estimators": "estimators papers trees",
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


@functools.cache
def imported(module: str) -> set[str]:
    """The modules of this package that a module imports from, wherever in it."""
    path = MODULES[module]
    here = path.relative_to(ROOT).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = [*here[: len(here) - node.level + 1], *(node.module or "").split(".")]
        name = ".".join(part for part in base if part)
        for alias in node.names:
            inner = f"{name}.{alias.name}" if name else alias.name
            if inner in MODULES:
                found.add(inner)
            elif name in MODULES and name:
                found.add(name)
    return found - {module}


def reached(module: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that a module imports, by way of others, too."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_every_module_has_a_room():
    assert {module.split(".")[0] for module in MODULES} - OUTSIDE == set(ROOM_OF)


@pytest.mark.slow
def test_imports_point_to_rooms_above_in_the_list():
    order = list(ROOMS)
    wrong = [
        f"{module} ({room(module)}) imports {other} ({room(other)})"
        for module in MODULES.keys() - OUTSIDE
        for other in imported(module)
        if other in OUTSIDE or order.index(room(other)) > order.index(room(module))
    ]
    assert sorted(wrong) == []


def test_only_the_dispatch_knows_the_reference():
    wrong = [
        module
        for module in MODULES
        if not {module, module.split(".")[0]} & KNOW_THE_REFERENCE
        and any("_backend.reference" in other for other in imported(module))
    ]
    assert wrong == []


def test_locks_are_free_in_forked_children():
    """Those of dask's rows are in workers, which fork nothing."""
    locks = re.compile(r"\b(R?Lock|Condition|Semaphore)\(|functools import .*cached_property")
    wrong = [
        module
        for module, path in MODULES.items()
        if module not in ("_common.locks", "dask._rows")
        and locks.search(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others():
    """Imports within functions, and those for types alone, count, too."""
    graph = {module: imported(module) for module in MODULES}
    assert [module for module in graph if module in reached(module, graph)] == []


@pytest.mark.slow
def test_a_plain_import_loads_what_functions_need():
    code = "import sys, ssnmf_fast; print(*sys.modules); ssnmf_fast.NMF"
    environment = {name: value for name, value in os.environ.items() if name != "SSNMF_FAST_ISA"}
    loaded = subprocess.check_output(
        [sys.executable, "-c", code], env=environment, timeout=120, text=True
    ).split()
    for module in ("scipy.optimize", "sklearn", "matplotlib", "pandas"):
        assert module not in loaded
    assert "ssnmf_fast._backend.reference" not in loaded


def test_the_page_of_the_design_has_the_same_rooms() -> None:
    page = Path(__file__).parents[1] / "docs" / "developer" / "design.md"
    if not page.exists():
        pytest.skip("away from the source tree")
    rows = re.findall(r"^\| ([a-z ]+) \| `([\w ]+)` \|", page.read_text("utf-8"), re.MULTILINE)
    assert dict(rows) == ROOMS
    assert [part for part, _ in rows] == [*ROOMS]
