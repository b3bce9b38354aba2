"""What Windows does differently, simulated on other systems."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast import cli


@pytest.fixture(params=["linux", "win32"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(sys, "platform", request.param)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return bool(request.param == "win32")


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often a move to a name is refused, as while another program reads the file."""
    refusals: dict[str, int] = {}
    replace = os.replace

    def refuse_or_replace(source: Path, target: Path) -> None:
        if Path(source).read_bytes() != b"old" and refusals.get(target.name, 0):
            refusals[target.name] -= 1
            raise PermissionError(errno.EACCES, "used by another process", str(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse_or_replace)
    return refusals


def test_replace_a_file_that_a_scanner_reads(
    windows: bool, tmp_path: Path, moves: dict[str, int]
) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(b"old")
    moves[path.name] = 2
    model = sf.NMF(n_components=1, random_state=0).fit(np.eye(2))
    if windows:
        sf.save(model, path)
    else:  # where only the rights of the user refuse it
        with pytest.raises(PermissionError):
            sf.save(model, path)
    assert (path.read_bytes() == b"old") != windows
    assert os.listdir(tmp_path) == [path.name]


def test_replace_a_file_that_stays_open(
    windows: bool, tmp_path: Path, moves: dict[str, int]
) -> None:
    """All files stay as they were, and the error has the name that the user knows."""
    found = sf.selection.consensus(np.eye(6) + 0.1, 2, n_starts=4, random_state=0)
    paths = found.to_cnmf(tmp_path, "run")
    for path in paths:
        path.write_bytes(b"old")
    moves[paths[-1].name] = 9
    with pytest.raises(PermissionError, match="another process") as caught:
        found.to_cnmf(tmp_path, "run")
    assert caught.value.filename == str(paths[-1])
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"old"}


def test_rights_of_new_files(
    windows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows, files keep the access list of the folder that they come from."""
    modes, replace = [], os.replace

    def record(source: Path, target: Path) -> None:
        assert source.parent.parent == target.parent
        modes.append(stat.S_IMODE(source.parent.stat().st_mode))
        replace(source, target)

    monkeypatch.setattr(os, "replace", record)
    sf.save(sf.NMF(n_components=1, random_state=0).fit(np.eye(2)), tmp_path / "model.npz")
    os.umask(mask := os.umask(0))
    if os.name == "posix":
        assert modes == [0o777 & ~mask if windows else 0o700]


def test_waits_let_ctrl_c_through(windows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, nothing interrupts a wait for a result that is not there."""
    done, result = [], Future.result

    def record(future: Future[Any], timeout: float | None = None) -> Any:
        done.append(future.done())
        return result(future, timeout)

    monkeypatch.setattr(Future, "result", record)
    X = np.random.default_rng(0).random((200, 100))
    sf.factorize(X, n_components=8, n_starts=4, n_threads=2, max_iter=100, random_state=0)
    assert done
    assert all(done) or not windows


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EINVAL, errno.ENOSPC])
def test_the_reader_of_a_pipe_ends(
    number: int, windows: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    class Closed:
        encoding = "cp1252"

        def write(self, text: str = "") -> None:
            raise OSError(number, os.strerror(number))

        flush = fileno = write

    monkeypatch.setattr(sys, "stdout", Closed())
    code = cli.main(["show-config"])
    ended = number == errno.EPIPE or (windows and number == errno.EINVAL)
    assert code == (0 if ended else 2)
    message = f"ssnmf-fast: error: standard output: {os.strerror(number)}\n"
    assert capsys.readouterr().err == ("" if ended else message)
