"""Files that are replaced together, as a whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

# Links to these may lead to a plain file that the shell has open.
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


def _move(source: Path, target: Path) -> None:
    """Move a file; on Windows, another program that reads it (a virus scanner) is waited for."""
    for pause in (0.02, 0.1, 0.5) if sys.platform == "win32" else ():
        with suppress(PermissionError):
            return os.replace(source, target)
        time.sleep(pause)
    return os.replace(source, target)


class Replacement:
    """New files, written into a hidden folder next to their targets and moved together at the end.

    The context manager moves them on exit; after an exception, the old files are unchanged.  Links
    are followed, and permissions stay.
    """

    def __init__(self) -> None:
        self._hidden: dict[Path, Path] = {}  # folder -> temporary folder in it
        self._new: dict[Path, Path | None] = {}  # file -> its replacement; None: remove it

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.move()
        finally:
            for hidden in self._hidden.values():
                shutil.rmtree(hidden, ignore_errors=True)

    def path(self, name: Path) -> Path:
        """Return where to write a file; a device or a pipe is written to directly."""
        if os.path.abspath(name).startswith(_STREAMS) or (name.exists() and not name.is_file()):
            return name
        target = Path(os.path.realpath(name))
        try:
            if target.exists() and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            new = self._folder_near(target) / target.name
        except OSError as error:  # with the user's name of the file
            raise OSError(error.errno, error.strerror, str(name)) from error
        self._new[target] = new
        return new

    def remove(self, name: Path) -> None:
        if os.path.lexists(name):
            self._new[name] = None

    def _folder_near(self, target: Path) -> Path:
        """Return a private folder on the file system of a file."""
        if (place := target.parent) not in self._hidden:
            hidden = self._hidden[place] = place / f".unfinished-{token_hex(8)}"
            # On Windows, files keep the rights of the folder that they were made in.
            hidden.mkdir(0o777 if sys.platform == "win32" else 0o700)
        return self._hidden[place]

    def move(self) -> None:
        """Move old files aside and new files into place; an exception moves them back."""
        aside, placed, tried = [], [], []
        for target, new in self._new.items():
            if new is not None:
                placed.append((new, target))
                if target.exists():
                    shutil.copymode(target, new)
            # A single file is replaced in one step.
            if os.path.lexists(target) and (new is None or len(self._new) > 1):
                place = Path(tempfile.mkdtemp(dir=self._folder_near(target)), target.name)
                aside.append((target, place))
        try:
            for source, place in aside + placed:
                tried.append((source, place))
                _move(source, place)
        except BaseException as error:
            for source, place in reversed(tried):
                if not os.path.lexists(source):
                    with suppress(OSError):
                        _move(place, source)
            if isinstance(error, OSError):  # with the name of the file, not of a hidden one
                name = next(str(path) for path in tried[-1] if path in self._new)
                raise OSError(error.errno, error.strerror, name) from error
            raise
        self._new = {}
