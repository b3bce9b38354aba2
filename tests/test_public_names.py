"""The public names: each is in the reference, and the reference names nothing else."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from each import each
from optional_packages import need_anndata

import ssnmf_fast as sf

API = Path(__file__).parent.parent / "docs" / "api" / "index.md"
SECTION = re.compile(
    r"\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   \w+\n)+)"
)
MODULES = ["weights", "penalties", "completion", "metrics", "plotting", "linalg", "extend"]
MODULES += ["anndata", "dask"]


@pytest.fixture(scope="module")
def documented():
    if not API.exists():
        pytest.skip("away from the source tree")
    names = {}
    for module, lines in SECTION.findall(API.read_text(encoding="utf-8")):
        names.setdefault(module, []).extend(lines.split())
    return names


def test_every_public_name_has_a_page(documented):
    modules = {name for name in sf.__all__ if name in MODULES}
    names = documented["ssnmf_fast"]
    assert len(names) == len(set(names))
    assert set(names) == set(sf.__all__) - modules - {"__version__"}
    assert set(importlib.import_module("ssnmf_fast.estimators").__all__) <= set(names)


@each("module", MODULES)
def test_every_public_name_of_a_module_has_a_page(documented, module):
    if module == "dask":
        pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    if module == "anndata":
        need_anndata()
    name = f"ssnmf_fast.{module}"
    assert sorted(documented[name]) == sorted(importlib.import_module(name).__all__)


def test_every_public_name_answers():
    for name in sf.__all__:
        assert getattr(sf, name) is not None


def test_a_missing_package_is_an_import_error():
    assert issubclass(sf.MissingPackageError, ImportError)
