"""The folder for results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ._errors import UsageError
from ._source import STANDARD


@contextmanager
def results_folder(name: str) -> Iterator[Path]:
    """Make a folder for results; on an error or Ctrl-C, take it away again if it is empty."""
    if name == STANDARD:
        raise UsageError("--out -: the results are several files; --out needs a folder")
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --out needs a folder")
    with made(folder):
        yield folder


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; take away what is new and empty if it comes to nothing."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for path in new:  # the innermost first
            if not path.is_dir() or any(path.iterdir()):
                break
            path.rmdir()
        raise
