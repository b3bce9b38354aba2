"""What Windows does differently, a function for each."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

Result = TypeVar("Result")

_BETWEEN_WAITS = 0.1  # seconds
_PAUSES = (0.02, 0.1, 0.5)


def _on_windows() -> bool:
    return sys.platform == "win32"  # tests set it


def move(source: Path, target: Path) -> None:
    """Move a file; on Windows, another program that reads it (a virus scanner) is waited for."""
    for pause in _PAUSES if _on_windows() else ():
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


def make_hidden_folder(parent: Path) -> Path:
    """Make a private folder; on Windows not private, as files keep its rights when they move."""
    folder = parent / f".unfinished-{token_hex(8)}"
    folder.mkdir(0o777 if _on_windows() else 0o700)
    return folder


def result_of(future: Future[Result]) -> Result:
    """Wait for a result; on Windows, Ctrl-C takes effect only between two waits."""
    while _on_windows() and not wait([future], _BETWEEN_WAITS).done:
        pass
    return future.result()


def as_broken_pipe(error: OSError) -> OSError:
    """Return BrokenPipeError if the reader of a pipe has ended: on Windows, EINVAL."""
    return BrokenPipeError() if _on_windows() and error.errno == errno.EINVAL else error


def command_line(words: Iterable[str]) -> str:
    """Quote words for the shell: on Windows, only double quotes count."""
    if not _on_windows():
        return shlex.join(words)
    return " ".join(w if re.fullmatch(r"[\w@+=:,./\\-]+", w) else f'"{w}"' for w in words)
