"""What imports what: the layers of the package, and what a plain import loads."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ssnmf_fast as sf

ROOT = Path(sf.__file__).parent
CORE = "core"  # the modules beside the folders

# Which folders a folder may import from, besides itself and the core.  `report` and `plotting` know
# each other: a report draws pictures, and both say in the same words which package is missing.
ALLOWED = {
    CORE: set(),
    "completion": set(),
    "metrics": set(),
    "estimators": {"completion"},
    "plotting": {"estimators", "metrics", "report"},
    "report": {"plotting"},
    "cli": {"completion", "estimators", "metrics", "plotting", "report"},
}
# Modules of the core that hold the others together.
EXCEPTIONS = {
    "__init__": {"completion", "estimators", "metrics", "plotting"},
    "__main__": {"cli"},
    "_io": {"completion", "estimators"},
    "_packing": {"completion"},
}
# Only these may name the reference: all else takes the kernels that `_dispatch` chose.
KNOW_THE_REFERENCE = {
    "_dispatch",
    "_reference",
    "_reference_bayes",
    "_reference_completion",
    "completion._dense_reference",
}


def modules() -> dict[str, Path]:
    names = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"] = path
    return names


MODULES = modules()


def folder(module: str) -> str:
    first = module.split(".")[0]
    return first if first in ALLOWED else CORE


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


def test_folders_import_only_what_lies_below_them():
    wrong = [
        f"{module} imports {other}"
        for module in MODULES
        for other in imported(module, at_import=False)
        if folder(other) not in {CORE, folder(module)} | ALLOWED[folder(module)]
        and folder(other) not in EXCEPTIONS.get(module, set())
    ]
    assert wrong == []


def test_only_the_dispatch_knows_the_reference():
    wrong = [
        module
        for module in MODULES
        if module not in KNOW_THE_REFERENCE
        and any("_reference" in other for other in imported(module, at_import=False))
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others():
    graph = {module: imported(module, at_import=True) for module in MODULES}
    for module in ("__init__", *(name for name in graph if MODULES[name].name == "__init__.py")):
        graph[module] = set()  # a folder's list of names; its modules are looked at themselves
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


@pytest.mark.parametrize(
    "module", ["scipy.optimize", "sklearn", "matplotlib", "pandas", "ssnmf_fast._reference"]
)
def test_a_plain_import_does_not_load(module):
    code = f"import sys, ssnmf_fast; sys.exit({module!r} in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "SSNMF_FAST_ISA"}
    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment, timeout=120)
    assert done.returncode == 0
