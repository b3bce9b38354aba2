"""Packages of which some tests are in need, and without which they are skipped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parents[1]


def need_anndata() -> Any:
    """Return anndata, or skip; it would take the folder of tests for dask to be that package."""
    before = sys.path[:]
    sys.path[:] = [path for path in before if not Path(path).is_relative_to(_TESTS)]
    try:
        return pytest.importorskip("anndata", reason="needs ssnmf-fast[anndata]")
    finally:
        sys.path[:] = before
