"""The public names: each is in the reference, and the reference names nothing else."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import ssnmf_fast as sf

API = Path(__file__).parent.parent / "docs" / "api.md"
SECTION = re.compile(r"\.\. automodule:: (\S+)\n   :members: ?([^\n]*)")


@pytest.fixture(scope="module")
def documented():
    sections = SECTION.findall(API.read_text(encoding="utf-8"))
    return {
        module: {n.strip() for n in names.split(",") if n.strip()} for module, names in sections
    }


def test_every_public_name_is_in_the_reference(documented):
    names = documented["ssnmf_fast"] | documented["ssnmf_fast.estimators"]
    modules = {name.split(".")[1] for name in documented if "." in name}
    assert set(sf.__all__) - names - modules == {"__version__"}
    assert names <= set(sf.__all__)


def test_the_reference_lists_the_names_of_every_module(documented):
    for module, names in documented.items():
        if module in ("ssnmf_fast", "ssnmf_fast.dask") or not names:
            continue
        assert names == set(importlib.import_module(module).__all__), module


def test_every_public_name_answers():
    for name in sf.__all__:
        assert getattr(sf, name) is not None


def test_a_missing_package_is_an_import_error():
    assert issubclass(sf.MissingPackageError, ImportError)
