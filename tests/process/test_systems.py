"""What Windows does differently, simulated on other systems."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
import time
from argparse import Namespace
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ssnmf_fast import cli
from ssnmf_fast._common import systems
from ssnmf_fast._common.replacement import Replacement
from ssnmf_fast.cli._options import UsageError
from ssnmf_fast.cli._outputs import refuse_replacing

each_system = pytest.mark.parametrize("windows", [False, True])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Files by their names, and how often a move to them is refused, as while they are open."""
    refusals: dict[str, int] = {}
    replace = os.replace

    def refuse_or_replace(source: Path, target: Path) -> None:
        if refusals.get(target.name, 0):
            refusals[target.name] -= 1
            raise PermissionError(errno.EACCES, "used by another process", str(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse_or_replace)
    return refusals


def write(*paths: Path) -> None:
    with Replacement() as files:
        for path in paths:
            files.path(path).write_text("new", encoding="utf-8")


def set_windows(monkeypatch: pytest.MonkeyPatch, windows: bool = True) -> None:
    monkeypatch.setattr(systems, "WINDOWS", windows)
    monkeypatch.setattr(systems, "_PAUSES", (0.0, 0.0))


@each_system
def test_replace_a_file_that_a_scanner_reads(
    windows: bool, tmp_path: Path, held: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_windows(monkeypatch, windows)
    (tmp_path / "a").write_text("old", encoding="utf-8")
    held["a"] = 2
    if windows:
        write(tmp_path / "a")
    else:  # where nothing but the rights of the user refuses it
        with pytest.raises(PermissionError):
            write(tmp_path / "a")
    assert (tmp_path / "a").read_text(encoding="utf-8") == ("new" if windows else "old")
    assert os.listdir(tmp_path) == ["a"]


@each_system
@pytest.mark.parametrize("names", ["b", "ab"])
def test_replace_a_file_that_stays_open(
    names: str, windows: bool, tmp_path: Path, held: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is new, and the error has the name that the user knows."""
    set_windows(monkeypatch, windows)
    for name in names:
        (tmp_path / name).write_text("old", encoding="utf-8")
    move = systems.move

    def refuse(source: Path, target: Path) -> None:
        if target == tmp_path / "b" and source.read_text(encoding="utf-8") == "new":
            held["b"] = 3 if windows else 1
        move(source, target)

    monkeypatch.setattr("ssnmf_fast._common.replacement.move", refuse)
    with pytest.raises(PermissionError, match="another process") as caught:
        write(*(tmp_path / name for name in names))
    assert caught.value.filename == str(tmp_path / "b")
    assert {p.name: p.read_text(encoding="utf-8") for p in tmp_path.iterdir()} == dict.fromkeys(
        names, "old"
    )


@each_system
def test_rights_of_the_hidden_folder(
    windows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_windows(monkeypatch, windows)
    modes = []
    mkdir = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", lambda path, mode: modes.append(mode) or mkdir(path, mode))
    with Replacement() as files:
        folder = files.path(tmp_path / "a").parent
        assert folder.name.startswith(".")
        assert folder.parent == tmp_path
        assert windows or os.name == "nt" or stat.S_IMODE(folder.stat().st_mode) == 0o700
        files.path(tmp_path / "a").write_text("new", encoding="utf-8")
    assert modes == [0o777 if windows else 0o700]


@each_system
def test_results_are_waited_for(windows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    set_windows(monkeypatch, windows)
    waits = []
    real = systems.wait

    def wait(futures: Any, seconds: float) -> Any:
        waits.append(seconds)
        return real(futures, seconds)

    monkeypatch.setattr(systems, "wait", wait)
    future: Future[int] = Future()
    thread = Thread(target=lambda: (time.sleep(0.3), future.set_result(7)))
    thread.start()
    assert systems.result_of(future) == 7
    thread.join()
    assert (len(waits) >= 2) == windows
    assert all(seconds <= 0.1 for seconds in waits)
    failed: Future[int] = Future()
    failed.set_exception(ValueError("of the task"))
    with pytest.raises(ValueError, match="of the task"):
        systems.result_of(failed)


@each_system
@pytest.mark.parametrize("number", [errno.EPIPE, errno.EINVAL, errno.ENOSPC])
def test_the_reader_of_a_pipe_ends(
    number: int, windows: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    set_windows(monkeypatch, windows)

    class Closed:
        encoding = "cp1252"

        def write(self, text: str = "") -> None:
            raise OSError(number, os.strerror(number))

        flush = fileno = write

    monkeypatch.setattr(sys, "stdout", Closed())
    code = cli.main(["show-config"])
    ended = number == errno.EPIPE or (windows and number == errno.EINVAL)
    assert code == (0 if ended else 2)
    assert capsys.readouterr().err == (
        "" if ended else f"ssnmf-fast: error: standard output: {os.strerror(number)}\n"
    )


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        (r"C:\data\posts.csv", r"C:\data\posts.csv"),
        (r"C:\my data\posts.csv", r'"C:\my data\posts.csv"'),
        ("|", '"|"'),
        ("a&b", '"a&b"'),
        ("", '""'),
        ("größe.csv", "größe.csv"),
    ],
)
def test_commands_to_copy(word: str, quoted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_windows(monkeypatch, False)
    assert shlex.split(systems.command_line(["fit", word])) == ["fit", word]
    set_windows(monkeypatch, True)
    assert systems.command_line(["fit", word]) == f"fit {quoted}"


def test_a_result_by_a_name_in_capitals(tmp_path: Path) -> None:
    """Windows and macOS find it: here, by a link."""
    content = '{"command": "fit", "files": ["metrics.json", "topics.csv"]}'
    (tmp_path / "metrics.json").write_text(content, encoding="utf-8")
    (tmp_path / "topics.csv").touch()
    refuse_replacing(tmp_path / "Topics.csv" if os.name == "posix" else tmp_path / "other", [])
    if not (tmp_path / "Topics.csv").exists():
        os.link(tmp_path / "topics.csv", tmp_path / "Topics.csv")
    for name in ("topics.csv", "Topics.csv"):
        with pytest.raises(UsageError, match="would replace a result of `ssnmf-fast fit`"):
            refuse_replacing(tmp_path / name, [])


def test_a_stream_without_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a pipe on Windows has them."""
    written: list[str] = []
    stream: Any = Namespace(encoding="cp1252", write=written.append)
    cli._ReportStream(stream).write("größe… ≥ █")
    assert written == ["größe… \\u2265 \\u2588"]
