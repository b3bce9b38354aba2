"""The public names: each is in the reference, and the reference names nothing else."""

import importlib
import re
from pathlib import Path

import pytest
from helpers.each import each
from helpers.optional_packages import need_anndata

import ssnmf_fast as sf

API = Path(__file__).parent.parent / "docs" / "api" / "index.md"
SECTION = re.compile(
    r"\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   \w+\n)+)"
)
MODULES = ["completion", "extend", "io", "linalg", "metrics", "papers", "penalties", "plotting"]
MODULES += ["results", "selection", "trees", "weights"]
EXTRAS = ["anndata", "dask", "metrics.ranking", "sklearn"]  # are imported by their own names


@pytest.fixture(scope="module")
def documented():
    if not API.exists():
        pytest.skip("away from the source tree")
    names = {}
    for module, lines in SECTION.findall(API.read_text(encoding="utf-8")):
        names.setdefault(module, []).extend(lines.split())
    return names


def test_every_public_name_has_a_page(documented):
    names = documented["ssnmf_fast"]
    assert len(names) == len(set(names))
    assert set(names) == set(sf.__all__) - {*MODULES, "__version__"}
    assert set(sf.__all__) >= set(MODULES)
    # The last one, set_thread_backend, is about the process, as show_config is: no module has it.
    assert len(sf.__all__) - len(MODULES) <= 27


def test_every_estimator_and_result_is_public():
    public = {name for module in ("", *MODULES) for name in _module(module).__all__}
    for part in ("estimators", "selection"):
        assert set(_module(part).__all__) <= public


def _module(name):
    return importlib.import_module(f"ssnmf_fast.{name}" if name else "ssnmf_fast")


@each("module", MODULES + EXTRAS)
def test_every_public_name_of_a_module_has_a_page(documented, module):
    if module == "dask":
        pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    if module == "anndata":
        need_anndata()
    others = {*sf.__all__, *sf.results.__all__} if module == "selection" else set()
    assert sorted(documented[f"ssnmf_fast.{module}"]) == sorted({*_module(module).__all__} - others)


def test_every_public_name_answers():
    for name in sf.__all__:
        assert getattr(sf, name) is not None


def test_a_missing_package_is_an_import_error():
    assert issubclass(sf.MissingPackageError, ImportError)
