"""The examples run, and draw."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
GALLERY = sorted((FOLDER / "gallery").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    if "dask" in path.read_text(encoding="utf-8"):
        pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    picture = tmp_path / "picture.png"
    command = [sys.executable, "-W", "error", str(path), str(picture)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 2
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_page_of_the_gallery_runs(path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(path.parent)
    made = runpy.run_path(str(path))
    drawn = [*plt.get_fignums(), *(thing for thing in made.values() if hasattr(thing, "savefig"))]
    plt.close("all")
    assert drawn
    assert ":doc:`" in path.read_text(encoding="utf-8")
