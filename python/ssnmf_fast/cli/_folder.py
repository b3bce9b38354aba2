"""The folder for results, and what happens to files on the way there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from .._common.optional import PLOT_HINT, MissingPackageError
from .._common.replacement import Replacement
from ._source import STANDARD, UsageError

_SIGNAL_EXIT = 128  # to which the shell adds the number of the signal


class Results:
    """A folder of results; `about` describes the files that there may be, in order of printing."""

    def __init__(self, folder: Path, about: Mapping[str, str], files: Replacement) -> None:
        self.folder = folder
        self._about = about
        self._files = files
        self._written: set[str] = set()
        self._left_out: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The files that are written."""
        return [name for name in self._about if name in self._written]

    def path(self, name: str) -> Path:
        """Return where to write a file until all are there."""
        assert name in self._about  # as only those are compared with the inputs
        self._written.add(name)
        return self._files.path(self.folder / name)

    def written(self, name: str, make: Callable[[], bytes]) -> bytes | None:
        """Write what `make` returns; None if it needs a package that is not installed."""
        try:
            content = make()
        except MissingPackageError:
            self._left_out.add(name)
            return None
        self.path(name).write_bytes(content)
        return content

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


@contextmanager
def results_folder(
    name: str, about: Mapping[str, str], inputs: Iterable[str | Path | None]
) -> Iterator[Results]:
    """Make a folder for results, which replace those of an earlier run together at the end.

    A result of an earlier run that this one does not have would not fit the others, and goes.
    `inputs` are the paths that the command reads, None for those that are not given.
    """
    if name == STANDARD:
        raise UsageError("--out -: the results are several files; --out needs a folder")
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --out needs a folder")
    for one in about:
        refuse_replacing(folder / one, inputs)
    with new_files(folder) as files:
        results = Results(folder, about, files)
        yield results
        for one in about.keys() - set(results.names):
            files.remove(folder / one)


def default_out(data: str, ending: str = "-ssnmf-fast") -> str:
    """Return where results go without --out: the name of the data, in this folder."""
    name = "input" if data == STANDARD else Path(data).name
    return (name.split(".")[0] or name) + ending


def refuse_replacing(out: Path, inputs: Iterable[str | Path | None]) -> None:
    """Raise UsageError if a result would replace what it is made of, by whatever name."""
    for given in inputs:
        if given is not None and out.exists() and Path(given).exists() and out.samefile(given):
            raise UsageError(
                f"--out: {out} would replace {given}, which is an input; name another place"
            )


@contextmanager
def new_files(folder: Path) -> Iterator[Replacement]:
    """Make a folder and those above it, for files that are put in place together at the end.

    An error, Ctrl-C or SIGTERM leaves the files of an earlier run, or none and no new folder.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    with _stopping():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with Replacement() as files:
                yield files
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
