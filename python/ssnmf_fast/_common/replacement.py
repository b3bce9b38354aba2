"""Files that appear whole or not at all, several of them together."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType

# Links to these may lead to a plain file, which the shell has open and goes on writing to.
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_STEM, _SUFFIX = 40, 20  # characters that are kept of a name, which has a largest length


class Replacement:
    """New files, written beside the old ones and renamed together at the end.

    As a context manager it renames them on leaving; an exception leaves the old files, or none.
    Links are followed, and permissions stay.
    """

    def __init__(self) -> None:
        self._new: dict[Path, Path] = {}  # file -> what is written in its place
        self._removed: list[Path] = []

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def path(self, name: Path) -> Path:
        """Return where to write what becomes a file, with the same ending.

        A device or a pipe cannot be replaced; it is written to as it is.
        """
        if _is_device(name):
            return name
        target = Path(os.path.realpath(name))
        if target not in self._new:
            try:
                self._new[target] = _beside(target)
            except OSError as error:  # tell the name that the user knows
                raise OSError(error.errno, error.strerror, str(name)) from error
        return self._new[target]

    def drop(self, name: Path) -> None:
        """Forget what was written for a file."""
        temporary = self._new.pop(Path(os.path.realpath(name)), None)
        if temporary is not None:
            temporary.unlink(missing_ok=True)

    def remove(self, name: Path) -> None:
        """Remove an old file in the end."""
        self._removed.append(name)

    def finish(self) -> None:
        """Put the new files in place, all or none of them."""
        old: dict[Path, Path] = {}  # file -> copy of what it was
        moved: list[Path] = []
        try:
            for target, temporary in self._new.items():
                _complete(temporary, target)
            if len(self._new) + len(self._removed) > 1:
                for target in self._new:
                    if target.exists():
                        old[target] = _unused(target)
                        _copy(target, old[target])
            for target, temporary in self._new.items():
                moved.append(target)
                os.replace(temporary, target)
            for name in self._removed:
                if os.path.lexists(name):
                    old[name] = _unused(name)
                    os.replace(name, old[name])
        except BaseException:
            self._restore(old, moved)
            raise
        finally:
            self._new, self._removed = {}, []
            for copy in old.values():
                with suppress(OSError):
                    copy.unlink(missing_ok=True)

    def _restore(self, old: dict[Path, Path], moved: list[Path]) -> None:
        for target, copy in old.items():
            with suppress(OSError):
                os.replace(copy, target)
        for target, temporary in self._new.items():
            if target in moved and target not in old and not temporary.exists():
                with suppress(OSError):
                    target.unlink(missing_ok=True)
        self.discard()

    def discard(self) -> None:
        """Take away what was written."""
        for temporary in self._new.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        self._new = {}


def _is_device(name: Path) -> bool:
    stream = os.path.abspath(name).startswith(_STREAMS)
    return stream or (name.exists() and not name.is_file())


def _beside(target: Path) -> Path:
    """Make an empty file in the same folder."""
    exists = target.exists()
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    temporary = _unused(target)
    # What only some may read is not shown to others meanwhile; a new file follows the umask.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    os.close(os.open(temporary, flags, 0o600 if exists else 0o666))
    return temporary


def _unused(target: Path) -> Path:
    stem, suffix = target.stem[:_STEM].lstrip("."), target.suffix[-_SUFFIX:]
    return target.with_name(f".{stem}.unfinished-{secrets.token_hex(4)}{suffix}")


def _complete(temporary: Path, target: Path) -> None:
    """Bring the contents to the disk, and give the file the owner and rights of the old one."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    with suppress(FileNotFoundError):
        status = target.stat()
        if hasattr(os, "chown"):
            with suppress(OSError):  # only some users may
                os.chown(temporary, status.st_uid, status.st_gid)
        temporary.chmod(stat.S_IMODE(status.st_mode))


def _copy(target: Path, copy: Path) -> None:
    try:
        os.link(target, copy)
    except OSError:  # not every file system has hard links
        shutil.copy2(target, copy)
