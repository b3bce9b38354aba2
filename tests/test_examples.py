"""The examples run, and draw: on a part of their data."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
GALLERY = sorted((FOLDER / "gallery").glob("*/plot_*.py"))

# Runs examples, each with the first so many digits, in one process: to import everything takes
# longer than they do.  Of each it prints a line: its name, and how many lines it has printed.
RUN = """
import contextlib, io, pathlib, runpy, sys
from sklearn import datasets
digits = datasets.load_digits
def some_digits(**options):
    data = digits(**options)
    if options.get("return_X_y"):
        return tuple(part[:number] for part in data)
    data.data = data.data[:number]
    return data
datasets.load_digits = some_digits
for asked in sys.argv[1:]:
    number, _, path = asked.partition(" ")
    number, name = int(number), pathlib.Path(path).stem
    printed = io.StringIO()
    sys.argv = [path, name + ".png"]
    with contextlib.redirect_stdout(printed):
        runpy.run_path(path, run_name="__main__")
    print(name, printed.getvalue().count("\\n"), flush=True)
"""
DIGITS = {"topic_supervised": 1400}  # it learns from 1300


def run(folder, *arguments):
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def on_cluster(path):
    return "dask" in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_examples_run(tmp_path):
    paths = [path for path in EXAMPLES if not on_cluster(path)]
    lines = run(tmp_path, "-c", RUN, *(f"{DIGITS.get(path.stem, 300)} {path}" for path in paths))
    printed = dict(line.split() for line in lines.splitlines())
    assert printed.keys() == {path.stem for path in paths}
    for name, count in printed.items():
        assert int(count) >= 2, name
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_survey_is_invented_filled_in_and_checked(tmp_path):
    script = str(FOLDER / "survey" / "make_survey.py")
    run(tmp_path, script)
    with (tmp_path / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3000
    assert sum(row["code"] != "" for row in rows) == 200
    table = tmp_path / "table.csv"
    head, lines = "respondent,code,source,check", "R0003,,predicted,\nR0004,noise,predicted,x\n"
    table.write_text(f"{head}\n{lines}", encoding="utf-8")
    run(tmp_path, script, "--fill", "table.csv")
    assert "R0003,noise,predicted," in table.read_text(encoding="utf-8-sig")
    assert "right: 100.0% of 2 all" in run(tmp_path, script, "--check", "table.csv")


@pytest.mark.slow
@pytest.mark.parametrize("path", [*filter(on_cluster, EXAMPLES)], ids=lambda path: path.stem)
def test_example_of_a_cluster_runs(path, tmp_path):
    pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    picture = tmp_path / "picture.png"
    printed = run(tmp_path, str(path), str(picture))  # its workers import it by its name
    assert printed.count("\n") >= 2
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_page_of_the_gallery_leads_to_the_guides(path):
    """That it runs and draws is seen where the documentation is built."""
    text = path.read_text(encoding="utf-8")
    assert ":doc:`" in text
    compile(text, str(path), "exec")
