"""Files that appear whole or not at all, several of them together."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

# Links to these may lead to a plain file, which the shell has open and goes on writing to.
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


class Replacement:
    """New files, written into a hidden folder beside the old ones and moved together at the end.

    As a context manager it moves them on leaving; an exception leaves the old files, or none.
    Links are followed, and permissions stay.
    """

    def __init__(self) -> None:
        self._hidden: dict[Path, Path] = {}  # folder -> temporary folder in it
        self._new: dict[Path, Path] = {}  # file -> what is written in its place
        self._removed: list[Path] = []

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def path(self, name: Path) -> Path:
        """Return where to write what becomes a file, with the same name.

        A device or a pipe cannot be replaced; it is written to as it is.
        """
        if _is_device(name):
            return name
        target = Path(os.path.realpath(name))
        try:
            if target.exists() and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._new[target] = self._beside(target) / target.name
        except OSError as error:  # with the name that the user knows
            raise OSError(error.errno, error.strerror, str(name)) from error
        return self._new[target]

    def _beside(self, target: Path) -> Path:
        """Return a folder on the file system of a file; only its owner may look into it."""
        if target.parent not in self._hidden:
            hidden = tempfile.mkdtemp(prefix=".unfinished-", dir=target.parent)
            self._hidden[target.parent] = Path(hidden)
        return self._hidden[target.parent]

    def drop(self, name: Path) -> None:
        """Forget what was written for a file."""
        temporary = self._new.pop(Path(os.path.realpath(name)), None)
        if temporary is not None:
            temporary.unlink(missing_ok=True)

    def remove(self, name: Path) -> None:
        """Remove an old file in the end."""
        if os.path.lexists(name):
            self._removed.append(name)

    def finish(self) -> None:
        """Put the new files in place, all or none of them."""
        try:
            for target, new in self._new.items():
                if target.exists():
                    shutil.copymode(target, new)
            if len(self._new) + len(self._removed) > 1:
                self._move()
            else:  # in one step
                for target, new in self._new.items():
                    os.replace(new, target)
                for target in self._removed:
                    target.unlink(missing_ok=True)
        finally:
            self.discard()

    def _move(self) -> None:
        """Move old files aside and new ones into their places; an exception moves them back."""
        old: dict[Path, Path] = {}  # file -> where the old one is meanwhile
        try:
            for target in (*self._new, *self._removed):
                if os.path.lexists(target):
                    aside = Path(tempfile.mkdtemp(dir=self._beside(target)), target.name)
                    old[target] = aside
                    os.replace(target, aside)
            for target, new in self._new.items():
                os.replace(new, target)
        except BaseException:
            for target, new in self._new.items():
                if target not in old and not new.exists():
                    with suppress(OSError):
                        target.unlink(missing_ok=True)
            for target, aside in old.items():
                if os.path.lexists(aside):
                    with suppress(OSError):
                        os.replace(aside, target)
            raise

    def discard(self) -> None:
        """Take away what is not in place."""
        for hidden in self._hidden.values():
            shutil.rmtree(hidden, ignore_errors=True)
        self._hidden, self._new, self._removed = {}, {}, []


def _is_device(name: Path) -> bool:
    stream = os.path.abspath(name).startswith(_STREAMS)
    return stream or (name.exists() and not name.is_file())
