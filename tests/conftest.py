"""Shared by all tests: the helpers of a folder can be imported by name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Before NumPy is loaded: threads of BLAS wait for each other by spinning, which takes many times as
# long for the small problems of these tests when several processes share the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
import scipy
import scipy.sparse as sp
from hypothesis import settings

# The same examples in every run; times depend on the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

HERE = Path(__file__).parent
_packages = {path.parent for path in HERE.glob("*/__init__.py")}
_folders = {folder for folder in HERE.iterdir() if folder.is_dir()}
sys.path[:0] = map(str, [HERE, *sorted(_folders - _packages)])

from helpers.levels import IS_REFERENCE  # noqa: E402


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A process runs all tests of a file, whose fixtures are made once; those of a cluster too."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return file.rpartition("/")[0] if "/dask/" in file else file

    # Not by their numbers of tests: that would start a file of one long test last.
    config.option.loadscopereorder = False
    return ByFile(config, log) if config.getvalue("dist") == "load" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("compiled")
    if marker is not None and IS_REFERENCE:
        pytest.skip(*marker.args)


def _random_array(shape, *, density=0.01, format="coo", dtype=None, rng=None):
    drawn = sp.random(*shape, density=density, dtype=dtype, random_state=rng)
    return sp.coo_array(drawn).asformat(format)


# Tests draw sparse arrays as newer SciPy does; the package itself needs nothing of these.
if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 15):
    sp.random_array = _random_array
    sp.eye_array = lambda m, n=None: sp.dia_array(sp.eye(m, n))
