"""The folder for results, and what happens to files on the way there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from .._common.optional import PLOT_HINT, MissingPackageError
from .._common.replacement import Replacement
from ._errors import UsageError
from ._source import STANDARD

_SIGNAL_EXIT = 128  # to which the shell adds the number of the signal


class Results:
    """A folder of results, whose files replace those of an earlier run together.

    `about` describes every file that there may be, in the order in which they are printed.
    A result of an earlier run that this one does not have would not fit the others, and goes.
    """

    def __init__(self, folder: Path, about: Mapping[str, str]) -> None:
        self.folder = folder
        self._about = about
        self._written: set[str] = set()
        self._left_out: set[str] = set()
        self._files = Replacement()

    @property
    def names(self) -> list[str]:
        """The files that are written."""
        return [name for name in self._about if name in self._written]

    def path(self, name: str) -> Path:
        """Return where to write a file until all are there."""
        if name not in self._about:
            raise KeyError(f"{name} is no known result; those are checked against the inputs")
        self._written.add(name)
        return self._files.path(self.folder / name)

    def written(self, name: str, make: Callable[[], bytes]) -> bytes | None:
        """Write what `make` returns; None if it needs a package that is not installed."""
        try:
            content = make()
        except MissingPackageError:
            self.leave_out(name)
            return None
        self.path(name).write_bytes(content)
        return content

    def leave_out(self, name: str) -> None:
        """Do without a file, as a package for it is missing."""
        self._written.discard(name)
        self._left_out.add(name)
        self._files.drop(self.folder / name)

    def finish(self) -> None:
        """Put all files in place."""
        for name in self._about:
            if name not in self._written:
                self._files.remove(self.folder / name)
        self._files.finish()

    def show(self) -> None:
        """Print where the files are, and what is missing for want of a package."""
        print("\nFiles")
        paths = {name: str(self.folder / name) for name in self.names}
        width = max(map(len, paths.values()))
        for name, path in paths.items():
            print(f"  {path:<{width}}  {self._about[name]}")
        if self._left_out:
            missing = ", ".join(name for name in self._about if name in self._left_out)
            print(f"  left out: {missing}; to have them: {PLOT_HINT}")

    def discard(self) -> None:
        """Take away what is not in place."""
        self._files.discard()


@contextmanager
def results_folder(name: str, about: Mapping[str, str], inputs: Iterable[Any]) -> Iterator[Results]:
    """Make a folder for results; an error or Ctrl-C leaves those of an earlier run, or none.

    `about` names all files that the command may write there or remove, and describes them.
    `inputs` are the paths that it reads, None for those that are not given.
    """
    if name == STANDARD:
        raise UsageError("--out -: the results are several files; --out needs a folder")
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --out needs a folder")
    for one in about:
        refuse_replacing(folder / one, inputs)
    results = Results(folder, about)
    with made(folder):
        try:
            yield results
        finally:
            results.discard()  # nothing, where it has been finished


def refuse_replacing(out: Path, inputs: Iterable[Any]) -> None:
    """Raise UsageError if a result would replace what it is made of, by whatever name."""
    for given in inputs:
        if given is None or not out.exists():
            continue
        path = Path(given)
        if path.exists() and out.samefile(path):
            raise UsageError(
                f"--out: {out} would replace {path}, which is an input; name another place"
            )


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; take away what is new and empty if it comes to nothing."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    with _stopping():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            yield
        except BaseException:
            for path in new:  # the innermost first
                if not path.is_dir() or any(path.iterdir()):
                    break
                path.rmdir()
            raise


@contextmanager
def _stopping() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does: without half-written files."""
    ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ours or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(_SIGNAL_EXIT + number)
