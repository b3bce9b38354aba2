"""Files of the command appear together or not at all, and never in the place of an input."""

from __future__ import annotations

import csv
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from levels import environment
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

FIT = ("--rank", "2", "--max-iter", "3", "--model", "nmf", "--quiet", "--threads", "1")
USERS = ["=u0", *(f"u{k}" for k in range(1, 12))]
RATINGS = [
    f"{user},i{i},{1 + k * i % 5}"
    for k, user in enumerate(USERS)
    for i in range(8)
    if (k + i) % 4 != 3
]


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "X.npy"
    np.save(path, np.random.default_rng(0).random((12, 6)))
    return path


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" + "\n".join(RATINGS) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def model(matrix: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    assert main(["fit", str(matrix), "--out", str(folder), *FIT]) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file under a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def same(path: Path, link: Path) -> Path:
    return path


def symlink(path: Path, link: Path) -> Path:
    link.symlink_to(path)
    return link


def hard_link(path: Path, link: Path) -> Path:
    os.link(path, link)
    return link


every_name = pytest.mark.parametrize("name", [same, symlink, hard_link])
Name = Callable[[Path, Path], Path]


@every_name
@pytest.mark.parametrize("which", ["X.npy", "model/model.npz", "model/metrics.json"])
def test_predict_replaces_no_input(
    name: Name,
    which: str,
    matrix: Path,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = name(tmp_path / which, tmp_path / "link.csv")
    before = contents(tmp_path)
    given = ["predict", str(model), str(matrix), "--out", str(out), "--out-format", "csv"]
    assert main(given) == 2
    assert "would replace" in error_line(capsys)
    assert contents(tmp_path) == before


@every_name
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("fit", "predictions.csv"),
        ("fit", "topics.csv"),
        ("fit", "topic_classes.csv"),  # not written, but one of an earlier run would be removed
        ("complete", "users.csv"),
        ("complete", "predictions.csv"),
    ],
)
def test_no_result_replaces_an_input(
    name: Name, command: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    data = out / file
    text = "\n".join(["user,item,rating", *RATINGS] if command == "complete" else ["text", "a b"])
    data.write_text(text, encoding="utf-8")
    given = name(data, tmp_path / "link.csv")
    before = contents(tmp_path)
    assert main([command, str(given), "--out", str(out), "--rank", "1"]) == 2
    assert f"{file} would replace" in error_line(capsys)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("option", ["--labels", "--features", "--stop-words"])
def test_no_result_replaces_another_input(
    option: str, matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "topics.csv").write_text("a\n" * 12, encoding="utf-8")
    before = contents(tmp_path)
    given = f"{'english,' if option == '--stop-words' else ''}{tmp_path / 'topics.csv'}"
    assert (
        main(
            ["fit", str(matrix), "--out", str(tmp_path), option, given, *FIT[:2], "--model", "nmf"]
        )
        == 2
    )
    assert "would replace" in error_line(capsys)
    assert contents(tmp_path) == before


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("place", ["metrics.json", "topics.csv", "rename", "last rename"])
def test_a_full_disk_leaves_the_old_files_or_none(
    before: bool, place: str, matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    if before:
        assert main(["fit", str(matrix), "--out", str(out), *FIT]) == 0
        (out / "topic_classes.csv").write_text("of an earlier run", encoding="utf-8")
    old = contents(tmp_path)
    if place.endswith("rename"):  # with `before` the old files are moved aside first
        rename, count = os.replace, 0
        fails_at = 4 if place == "rename" else 12 if before else 6

        def fails_once(source: Path, target: Path) -> None:
            nonlocal count
            count += 1
            if count == fails_at:
                count += 1
                full_disk()
            rename(source, target)

        monkeypatch.setattr(os, "replace", fails_once)
    else:
        opened = Path.open

        def fails_there(path: Path, mode: str = "r", *given: Any, **more: Any) -> Any:
            return (full_disk if (path.name, mode) == (place, "w") else opened)(
                path, mode, *given, **more
            )

        monkeypatch.setattr(Path, "open", fails_there)
    assert main(["fit", str(matrix), "--out", str(out), "--seed", "1", *FIT]) == 2
    assert contents(tmp_path) == old
    assert out.exists() == before


def test_results_of_an_earlier_run_that_do_not_fit_go(matrix: Path, tmp_path: Path) -> None:
    (tmp_path / "topic_classes.csv").write_text("of an earlier run", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("of the user", encoding="utf-8")
    assert main(["fit", str(matrix), "--out", str(tmp_path), *FIT]) == 0
    assert not (tmp_path / "topic_classes.csv").exists()
    assert (tmp_path / "notes.txt").exists()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_predictions_that_fail_leave_the_old_file(
    matrix: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old", encoding="utf-8")
    before = contents(tmp_path)

    def some_cells(file: Any, **how: Any) -> None:
        file.write("sample,topic\n0,")
        full_disk()

    monkeypatch.setattr(csv, "writer", some_cells)
    assert main(["predict", str(model), str(matrix), "--out", str(out)]) == 2
    assert contents(tmp_path) == before


def test_links_and_permissions_stay(matrix: Path, model: Path, tmp_path: Path) -> None:
    real, link = tmp_path / "deep" / "real.csv", tmp_path / "link.csv"
    real.parent.mkdir()
    real.write_text("old", encoding="utf-8")
    real.chmod(0o600)
    link.symlink_to(real)
    assert main(["predict", str(model), str(matrix), "--out", str(link)]) == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert len(rows_of(real)) == 12


@pytest.mark.slow
def test_a_pipe_is_written_to(matrix: Path, model: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    given = ["predict", str(model), str(matrix), "--out", str(pipe), "--quiet"]
    code = f"from ssnmf_fast.cli import main; raise SystemExit(main({given!r}))"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        lines = pipe.read_text(encoding="utf-8").splitlines()
        assert process.wait(300) == 0
    assert len(lines) == 13
    assert pipe.is_fifo()


_STUCK = """
import csv, sys, time
from ssnmf_fast.cli import main

class Slow:
    def __init__(self, file, **how):
        self.writer = csv_writer(file, **how)

    def writerow(self, cells):
        self.writer.writerow(cells)
        print("writing", flush=True)
        time.sleep(600)

csv_writer, csv.writer = csv.writer, Slow
raise SystemExit(main(["complete", *sys.argv[1:]]))
"""


@pytest.mark.slow
def test_sigterm_while_writing_leaves_the_old_files(ratings: Path, tmp_path: Path) -> None:
    with ratings.open("a", encoding="utf-8") as file:
        file.write("u1,i99,\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "predictions.csv").write_text("old", encoding="utf-8")
    before = contents(tmp_path)
    given = [str(ratings), "--out", str(out), "--threads", "1", "--max-iter", "3", "--rank", "1"]
    with subprocess.Popen(
        [sys.executable, "-c", _STUCK, *given],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "writing\n":
                break
        assert contents(tmp_path) != before  # what is half written lies beside
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM
    assert contents(tmp_path) == before


class TestFormulas:
    def test_safe_csv(self, ratings: Path, tmp_path: Path) -> None:
        given = ["complete", str(ratings), "--out", str(tmp_path), "--quiet", "--rank", "1"]
        assert main([*given, "--max-iter", "3"]) == 0
        assert rows_of(tmp_path / "users.csv")[0]["user"] == "=u0"
        assert main([*given, "--max-iter", "3", "--safe-csv"]) == 0
        rows = rows_of(tmp_path / "users.csv")
        assert [row["user"] for row in rows[:2]] == ["'=u0", "u1"]
        assert rows[0]["place"] == "0"
        assert rows_of(tmp_path / "highest_predictions.csv")[0]["user"] == "'=u0"

    def test_cells(self, tmp_path: Path) -> None:
        cells = {"=1+1": "'=1+1", "+cmd": "'+cmd", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)"}
        cells |= {cell: cell for cell in ("-5", "+3e5", "plain = text")}
        table = tmp_path / "a.csv"
        rows = [[user, f"i{k}", k % 5] for user in cells for k in range(3)]
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["user", "item", "rating"], *rows])
        given = [str(table), "--out", str(tmp_path), "--quiet", "--rank", "1", "--max-iter", "3"]
        assert main(["complete", *given, "--test-size", "0", "--safe-csv"]) == 0
        found = [row["user"] for row in rows_of(tmp_path / "users.csv")]
        assert sorted(found) == sorted(cells.values())

    def test_is_for_tables_of_text(
        self, matrix: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = str(tmp_path / "out.jsonl")
        assert main(["predict", str(model), str(matrix), "--out", out, "--safe-csv"]) == 2
        assert "--safe-csv is only for csv" in error_line(capsys)
        holes = np.array([[1.0, np.nan], [2.0, 3.0]])
        np.save(tmp_path / "holes.npy", holes)
        out = str(tmp_path / "full.csv")
        assert main(["complete", str(tmp_path / "holes.npy"), "--out", out, "--safe-csv"]) == 2
        assert "--safe-csv is for names" in error_line(capsys)


def test_models_that_load_are_saved_in_place(model: Path) -> None:
    """The command saves its model like the library, in a file that follows the umask."""
    assert isinstance(sf.load(model / "model.npz"), sf.NMF)
    assert (model / "model.npz").stat().st_mode == (model / "topics.csv").stat().st_mode
