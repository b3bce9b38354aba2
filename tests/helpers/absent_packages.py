"""Tests of what happens without an optional package."""

from __future__ import annotations

import sys
from typing import Any

import pytest


class Absent:
    """Finder of modules that refuses a package, as if it were not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make imports of a package fail until the test ends."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(package), *sys.meta_path])
