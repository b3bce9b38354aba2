"""Files of the command appear together or not at all, and never in the place of an input."""

from __future__ import annotations

import csv
import errno
import io
import json
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
        fails_at = 4 if place == "rename" else 14 if before else 7

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
    out, labels = tmp_path / "out", tmp_path / "labels.txt"
    labels.write_text("a\nb\n" * 6, encoding="utf-8")
    assert main(["fit", str(matrix), "--out", str(out), *FIT, "--labels", str(labels)]) == 0
    (out / "notes.txt").write_text("of the user", encoding="utf-8")
    assert (out / "topic_classes.csv").exists()
    assert main(["fit", str(matrix), "--out", str(out), *FIT]) == 0
    assert not (out / "topic_classes.csv").exists()
    assert (out / "notes.txt").exists()
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]


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
    given = [str(ratings), "--out", str(out), "--threads", "1", "--max-iter", "3", "--rank", "1"]
    assert main(["complete", *given]) == 0
    before = contents(tmp_path)
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


def commands(matrix: Path, ratings: Path, out: Path) -> dict[str, list[str]]:
    """Return every command that draws, quick and with its inputs."""
    shared = ["--out", str(out), "--threads", "1"]
    quick = [*shared, "--max-iter", "3", "--rank", "2"]
    return {
        "fit": ["fit", str(matrix), "--model", "nmf", "--image-shape", "2x3", *quick],
        "choose-rank": ["choose-rank", str(matrix), "--ranks", "1,2", "--splits", "2", *shared],
        "complete": ["complete", str(ratings), *quick],
        "recommend": ["recommend", str(ratings), "--rank", "2", *shared],
    }


every_command = pytest.mark.parametrize("name", ["fit", "choose-rank", "complete", "recommend"])


class TestWhatIsDrawn:
    """The model and the tables do not wait for pictures and pages, nor for what is printed."""

    @every_command
    @pytest.mark.parametrize(
        "place", ["matplotlib.figure.Figure.savefig", "jinja2.Template.render"]
    )
    def test_is_left_out_if_it_fails(
        self,
        name: str,
        place: str,
        matrix: Path,
        ratings: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def fails(*_: object, **__: object) -> None:
            raise RuntimeError("no pen")

        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(place, fails)
        out = tmp_path / "out"
        given = commands(matrix, ratings, out)[name]
        assert main(given) == 0
        shown = capsys.readouterr()
        assert "is left out; drawing it failed with RuntimeError: no pen" in shown.err
        assert "; RuntimeError: no pen" in shown.out.partition("  left out: ")[2]
        kept = {path.name for path in out.iterdir()}
        assert kept & {"model.npz", "ranks.csv"}
        assert kept & {"metrics.json", "report.json"}
        assert main([*given, "--json"]) == 0  # the folder is known
        summary = json.loads(capsys.readouterr().out)
        assert set(summary["files"]) == kept
        assert {*summary["left_out"].values()} == {"RuntimeError: no pen"}

    @every_command
    def test_may_be_stopped(
        self,
        name: str,
        matrix: Path,
        ratings: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def stopped(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        pytest.importorskip("matplotlib")
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", stopped)
        out = tmp_path / "out"
        assert main(commands(matrix, ratings, out)[name]) == 130
        assert {path.name for path in out.iterdir()} & {"model.npz", "ranks.csv"}

    @every_command
    @pytest.mark.parametrize(("error", "code"), [(BrokenPipeError, 0), (OSError, 2)])
    def test_outlives_the_printing(
        self,
        name: str,
        error: type[OSError],
        code: int,
        matrix: Path,
        ratings: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        class Ended(io.StringIO):
            def write(self, text: str) -> int:
                raise error(errno.ENOSPC, "no room")

        out = tmp_path / "out"
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Ended())
            assert main(commands(matrix, ratings, out)[name]) == code
        assert "report.html" in {path.name for path in out.iterdir()}
        assert ("error: standard output: no room" in capsys.readouterr().err) == (code == 2)


@every_command
@pytest.mark.parametrize("owner", ["a person", "another command", "nobody", "a hidden file"])
def test_only_own_folders_are_written_to(
    name: str,
    owner: str,
    matrix: Path,
    ratings: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    (out / "deep").mkdir(parents=True) if owner == "a person" else out.mkdir()
    every = commands(matrix, ratings, out)
    if owner == "another command":
        assert main(every["complete" if name == "fit" else "fit"]) == 0
    elif owner != "nobody":
        place = out / (".DS_Store" if owner == "a hidden file" else "metrics.json")
        place.write_text('{"accuracy": 1, "files": []}', encoding="utf-8")
    before = contents(tmp_path)
    capsys.readouterr()
    refused = owner in ("a person", "another command")
    assert main(every[name]) == (2 if refused else 0)
    if refused:
        assert "name a new or empty one" in error_line(capsys)
        assert contents(tmp_path) == before
    else:
        assert main(every[name]) == 0  # now it is one of its own


class TestPageMadeAgain:
    @every_command
    def test_is_the_same(self, name: str, matrix: Path, ratings: Path, tmp_path: Path) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        out = tmp_path / "out"
        assert main(commands(matrix, ratings, out)[name]) == 0
        before = contents(out)
        (out / "report.html").unlink()
        assert main(["report", str(out)]) == 0
        assert contents(out) == before

    @pytest.mark.parametrize(
        ("content", "given", "message"),
        [
            (None, "{}", "has no page.json"),
            ("{", "{}", "needs a new folder of fit"),
            ('{"topics": [], "examples": [], "of a later version": 1}', "{}", "this version"),
            ("", "{}/absent", "a new folder of fit, choose-rank, complete or recommend"),
        ],
    )
    def test_errors(
        self,
        content: str | None,
        given: str,
        message: str,
        model: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        stored = model / "page.json"
        if content is None:
            stored.unlink()
        else:
            stored.write_text(content, encoding="utf-8")
        before = contents(model)
        assert main(["report", given.format(model)]) == 2
        assert message in error_line(capsys)
        assert contents(model) == before


def test_predictions_replace_no_result(
    matrix: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(model)
    given = ["predict", str(model), str(matrix), "--out"]
    assert main([*given, str(model / "predictions.csv")]) == 2
    assert "would replace a result of `ssnmf-fast fit`" in error_line(capsys)
    assert contents(model) == before
    for _ in range(2):  # a file of another name may be replaced
        assert main([*given, str(model / "new.csv")]) == 0


class TestFormulas:
    def test_safe_csv(self, ratings: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        given = ["complete", str(ratings), "--out", str(out), "--quiet", "--rank", "1"]
        assert main([*given, "--max-iter", "3"]) == 0
        assert rows_of(out / "users.csv")[0]["user"] == "=u0"
        assert main([*given, "--max-iter", "3", "--safe-csv"]) == 0
        rows = rows_of(out / "users.csv")
        assert [row["user"] for row in rows[:2]] == ["'=u0", "u1"]
        assert rows[0]["place"] == "0"
        assert rows_of(out / "highest_predictions.csv")[0]["user"] == "'=u0"

    def test_cells(self, tmp_path: Path) -> None:
        cells = {"=1+1": "'=1+1", "+cmd": "'+cmd", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)"}
        cells |= {cell: cell for cell in ("-5", "+3e5", "plain = text")}
        table = tmp_path / "a.csv"
        rows = [[user, f"i{k}", k % 5] for user in cells for k in range(3)]
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["user", "item", "rating"], *rows])
        out = tmp_path / "out"
        given = [str(table), "--out", str(out), "--quiet", "--rank", "1", "--max-iter", "3"]
        assert main(["complete", *given, "--test-size", "0", "--safe-csv"]) == 0
        found = [row["user"] for row in rows_of(out / "users.csv")]
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
