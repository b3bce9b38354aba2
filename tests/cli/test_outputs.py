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
from command import contents, rows_of, run, write_lines, write_table
from helpers.levels import environment

import ssnmf_fast as sf
from ssnmf_fast.cli import main

FIT = "--rank 2 --max-iter 3 --model nmf --quiet --threads 1 --out out"
COMPLETE = "--out out --quiet --rank 1 --max-iter 3"


def same(path: Path, link: Path) -> Path:
    return path


def symlink(path: Path, link: Path) -> Path:
    link.symlink_to(path.resolve())
    return link


def hard_link(path: Path, link: Path) -> Path:
    os.link(path, link)
    return link


every_name = pytest.mark.parametrize("name", [same, symlink, hard_link])
Name = Callable[[Path, Path], Path]


@every_name
@pytest.mark.parametrize("which", ["X.npy", "model/model.npz", "model/metrics.json"])
def test_predict_replaces_no_input(name: Name, which: str, matrix: Path, model: Path) -> None:
    Path("X.npy").write_bytes(matrix.read_bytes())
    out = name(Path(which), Path("link.csv"))
    before = contents()
    refused = run(f"predict {model} X.npy --out {out} --out-format csv", code=2)
    assert "would replace" in refused.error
    assert contents() == before


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
def test_no_result_replaces_an_input(name: Name, command: str, file: str, ratings: Path) -> None:
    Path("out").mkdir()
    data = Path("out", file)
    data.write_text(ratings.read_text("utf-8") if command == "complete" else "text\na b", "utf-8")
    given = name(data, Path("link.csv"))
    before = contents()
    refused = run(f"{command} {given} --out out --rank 1", code=2)
    assert f"{file} would replace" in refused.error
    assert contents() == before


@pytest.mark.parametrize("option", ["--labels", "--features", "--stop-words"])
def test_no_result_replaces_another_input(option: str, matrix: Path) -> None:
    write_lines("topics.csv", "a" * 12)
    before = contents()
    given = f"{'english,' if option == '--stop-words' else ''}topics.csv"
    refused = run(f"fit {matrix} --out . {option} {given} --rank 2 --model nmf", code=2)
    assert "would replace" in refused.error
    assert contents() == before


def test_predictions_replace_no_result(matrix: Path, model: Path) -> None:
    before = contents()
    refused = run(f"predict {model} {matrix} --out {model}/predictions.csv", code=2)
    assert "would replace a result of `ssnmf-fast fit`" in refused.error
    assert contents() == before
    # Windows and macOS find a file by its name in capitals: here, by a link.
    capitals = model / "PREDICTIONS.csv"
    if not capitals.exists():
        os.link(model / "predictions.csv", capitals)
    assert "would replace" in run(f"predict {model} {matrix} --out {capitals}", code=2).error
    for _ in range(2):  # a file of another name may be replaced
        run(f"predict {model} {matrix} --out {model}/new.csv")


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("place", ["metrics.json", "topics.csv", "rename", "last rename"])
def test_a_full_disk_leaves_the_old_files_or_none(
    before: bool, place: str, matrix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before:
        run(f"fit {matrix} {FIT}")
        Path("out/topic_classes.csv").write_text("of an earlier run", encoding="utf-8")
    old = contents()
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
    run(f"fit {matrix} {FIT} --seed 1", code=2)
    assert contents() == old
    assert Path("out").exists() == before


def test_results_of_an_earlier_run_that_do_not_fit_go(matrix: Path) -> None:
    found = run(f"fit {matrix} {FIT} --labels", write_lines("labels.txt", "ab" * 6))
    write_lines("out/notes.txt", ["of the user"])
    assert "topic_classes.csv" in found.files
    run(f"fit {matrix} {FIT}")
    assert "topic_classes.csv" not in found.files
    assert "notes.txt" in found.files
    assert not [name for name in found.files if name.startswith(".")]


@pytest.mark.slow
def test_predictions_that_fail_leave_the_old_file(
    matrix: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines("out.csv", ["old"])
    before = contents()

    def some_cells(file: Any, **how: Any) -> None:
        file.write("sample,topic\n0,")
        full_disk()

    monkeypatch.setattr(csv, "writer", some_cells)
    run(f"predict {model} {matrix} --out out.csv", code=2)
    assert contents() == before


def test_links_and_permissions_stay(matrix: Path, model: Path) -> None:
    real, link = Path("deep/real.csv").absolute(), Path("link.csv")
    real.parent.mkdir()
    real.write_text("old", encoding="utf-8")
    real.chmod(0o600)
    link.symlink_to(real)
    run(f"predict {model} {matrix} --out {link}")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert len(rows_of(real)) == 12


@pytest.mark.slow
def test_a_pipe_is_written_to(matrix: Path, model: Path) -> None:
    pipe = Path("pipe.csv")
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
def test_sigterm_while_writing_leaves_the_old_files(ratings: Path) -> None:
    text = ratings.read_text(encoding="utf-8")
    Path("ratings.csv").write_text(text + "u1,i99,\n", encoding="utf-8")
    given = "ratings.csv --out out --threads 1 --max-iter 3 --rank 1"
    run(f"complete {given}")
    before = contents()
    with subprocess.Popen(
        [sys.executable, "-c", _STUCK, *given.split()],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "writing\n":
                break
        assert contents() != before  # a temporary file holds what is half written
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM
    assert contents() == before


@pytest.fixture
def commands(matrix: Path, ratings: Path) -> dict[str, str]:
    """Return every command that draws, quick and with its inputs."""
    shared = "--out out --threads 1"
    return {
        "fit": f"fit {matrix} --model nmf --image-shape 2x3 {shared} --max-iter 3 --rank 2",
        "choose-rank": f"choose-rank {matrix} --ranks 1,2 --splits 2 {shared}",
        "complete": f"complete {ratings} {shared} --max-iter 3 --rank 2",
        "recommend": f"recommend {ratings} --rank 2 {shared}",
    }


every_command = pytest.mark.parametrize("name", ["fit", "choose-rank", "complete", "recommend"])


class TestWhatIsDrawn:
    """The model and the tables do not wait for pictures and pages, nor for what is printed."""

    @every_command
    @pytest.mark.parametrize(
        "place", ["matplotlib.figure.Figure.savefig", "jinja2.Template.render"]
    )
    def test_is_left_out_if_it_fails(
        self, name: str, place: str, commands: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: object, **__: object) -> None:
            raise RuntimeError("no pen")

        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(place, fails)
        found = run(commands[name])
        assert "is left out; drawing it failed with RuntimeError: no pen" in found.err
        assert "; RuntimeError: no pen" in found.out.partition("  left out: ")[2]
        kept = found.files
        assert kept & {"model.npz", "ranks.csv"}
        assert kept & {"metrics.json", "report.json"}
        summary = json.loads(run(f"{commands[name]} --json").out)  # the folder is known
        assert set(summary["files"]) == kept
        assert {*summary["left_out"].values()} == {"RuntimeError: no pen"}

    @every_command
    def test_may_be_stopped(
        self, name: str, commands: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stopped(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        pytest.importorskip("matplotlib")
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", stopped)
        assert run(commands[name], code=130).files & {"model.npz", "ranks.csv"}

    @every_command
    @pytest.mark.parametrize(("error", "code"), [(BrokenPipeError, 0), (OSError, 2)])
    def test_outlives_the_printing(
        self,
        name: str,
        error: type[OSError],
        code: int,
        commands: dict[str, str],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        class Ended(io.StringIO):
            def write(self, text: str) -> int:
                raise error(errno.ENOSPC, "no room")

        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Ended())
            assert main(commands[name].split()) == code
        assert Path("out/report.html").exists()
        assert ("error: standard output: no room" in capsys.readouterr().err) == (code == 2)


@every_command
@pytest.mark.parametrize("owner", ["a person", "another command", "nobody", "a hidden file"])
def test_only_own_folders_are_written_to(name: str, owner: str, commands: dict[str, str]) -> None:
    out = Path("out")
    (out / "deep").mkdir(parents=True) if owner == "a person" else out.mkdir()
    if owner == "another command":
        run(commands["complete" if name == "fit" else "fit"])
    elif owner != "nobody":
        place = out / (".DS_Store" if owner == "a hidden file" else "metrics.json")
        place.write_text('{"accuracy": 1, "files": []}', encoding="utf-8")
    before = contents()
    if owner in ("a person", "another command"):
        assert "name a new or empty one" in run(commands[name], code=2).error
        assert contents() == before
    else:
        for _ in range(2):  # then it is one of its own
            run(commands[name])


class TestPageMadeAgain:
    @every_command
    def test_is_the_same(self, name: str, commands: dict[str, str]) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        out = run(commands[name]).path
        before = contents(out)
        (out / "report.html").unlink()
        run(f"report {out}")
        assert contents(out) == before

    @pytest.mark.parametrize(
        ("content", "given", "message"),
        [
            (None, "model", "has no page.json"),
            ("{", "model", "needs a new folder of fit"),
            ('{"topics": [], "examples": [], "of a later version": 1}', "model", "this version"),
            ("", "model/absent", "a new folder of fit, choose-rank, complete or recommend"),
        ],
    )
    def test_errors(self, content: str | None, given: str, message: str, model: Path) -> None:
        stored = model / "page.json"
        if content is None:
            stored.unlink()
        else:
            stored.write_text(content, encoding="utf-8")
        before = contents(model)
        assert message in run(f"report {given}", code=2).error
        assert contents(model) == before


class TestFormulas:
    def test_safe_csv(self, ratings: Path) -> None:
        plain = run(f"complete {ratings} {COMPLETE}")
        assert plain.column("user", "users.csv")[0] == "=u0"
        found = run(f"complete {ratings} {COMPLETE} --safe-csv")
        assert found.column("user", "users.csv")[:2] == ["'=u0", "u1"]
        assert found.column("place", "users.csv")[0] == "0"
        assert found.column("user", "highest_predictions.csv")[0] == "'=u0"

    def test_cells(self) -> None:
        cells = {"=1+1": "'=1+1", "+cmd": "'+cmd", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)"}
        cells |= {cell: cell for cell in ("-5", "+3e5", "plain = text")}
        rows = [[user, f"i{k}", k % 5] for user in cells for k in range(3)]
        table = write_table("a.csv", [["user", "item", "rating"], *rows])
        found = run(f"complete {table} {COMPLETE} --test-size 0 --safe-csv")
        assert sorted(found.column("user", "users.csv")) == sorted(cells.values())

    def test_is_for_tables_of_text(self, matrix: Path, model: Path) -> None:
        refused = run(f"predict {model} {matrix} --out out.jsonl --safe-csv", code=2)
        assert "--safe-csv is only for csv" in refused.error
        np.save("holes.npy", np.array([[1.0, np.nan], [2.0, 3.0]]))
        refused = run("complete holes.npy --out full.csv --safe-csv", code=2)
        assert "--safe-csv is for names" in refused.error


def test_models_that_load_are_saved_in_place(matrix: Path) -> None:
    """The command saves its model like the library, in a file that follows the umask."""
    found = run(f"fit {matrix} {FIT}")
    assert isinstance(found.model, sf.NMF)
    model, table = (found.path / name for name in ("model.npz", "topics.csv"))
    assert model.stat().st_mode == table.stat().st_mode
