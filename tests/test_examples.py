"""The examples run, and draw: on a part of their data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
GALLERY = sorted((FOLDER / "gallery").glob("plot_*.py"))

# Runs an example in a process of its own, with the first so many digits.
RUN = """
import runpy, sys
from sklearn import datasets
_, number, path, picture = sys.argv
digits = datasets.load_digits
def some_digits(**options):
    data = digits(**options)
    if options.get("return_X_y"):
        return tuple(part[: int(number)] for part in data)
    data.data = data.data[: int(number)]
    return data
datasets.load_digits = some_digits
sys.argv = [path, picture]
runpy.run_path(path, run_name="__main__")
"""
DIGITS = {"topic_supervised": 1400}  # it learns from 1300


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    picture = tmp_path / "picture.png"
    command = [sys.executable, "-W", "error"]
    if "dask" in path.read_text(encoding="utf-8"):
        pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
        command += [str(path), str(picture)]  # its workers import it by its name
    else:
        command += ["-c", RUN, str(DIGITS.get(path.stem, 300)), str(path), str(picture)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 2
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_page_of_the_gallery_leads_to_the_guides(path):
    """That it runs and draws is seen where the documentation is built."""
    text = path.read_text(encoding="utf-8")
    assert ":doc:`" in text
    compile(text, str(path), "exec")
