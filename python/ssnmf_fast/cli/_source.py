"""Where data come from: a file or standard input, of which kind, and in which encoding."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from ._errors import UsageError

TABLES = (".csv", ".tsv", ".jsonl")
MATRICES = (".npz", ".npy", ".mtx")
STANDARD = "-"  # standard input or output, in place of a file

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_UTF8 = ("utf-8", "utf8", "u8", "utf_8")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_DAMAGED = (
    *(ValueError, EOFError, KeyError, csv.Error),
    *(zipfile.BadZipFile, zlib.error, gzip.BadGzipFile),
)


@dataclass(frozen=True)
class Source:
    """Data to read; `path` is None for standard input, `kind` one of TABLES or MATRICES."""

    path: Path | None
    kind: str
    encoding: str
    delimiter: str

    def __str__(self) -> str:
        return "standard input" if self.path is None else str(self.path)

    @property
    def is_table(self) -> bool:
        """Whether it is a table rather than a matrix."""
        return self.kind in TABLES

    def open(self) -> TextIO:
        """Open the text of a table."""
        if self.path is not None:
            return open_text(self.path, self.encoding)
        if sys.stdin is None:
            raise UsageError("standard input is closed; give a file in place of -")
        encoding = _with_mark(self.encoding)
        return io.TextIOWrapper(sys.stdin.buffer, encoding=encoding, newline="")


def source(options: Any) -> Source:
    """Return the data that the options name: data, format, encoding and delimiter.

    A format or delimiter of None is that of the ending of the file.
    """
    given = None if options.format is None else f".{options.format}"
    if options.data == STANDARD:
        path, kind = None, given or ".csv"
    else:
        path = Path(options.data)
        kind = _kind(path, given)
    if options.delimiter is not None and kind not in _DELIMITERS:
        raise UsageError(
            f"--delimiter belongs to .csv and .tsv; {options.data} is read as {kind[1:]}"
        )
    delimiter = options.delimiter or _DELIMITERS.get(kind, ",")
    return Source(path, kind, options.encoding, delimiter)


def _kind(path: Path, given: str | None) -> str:
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected a file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if given is not None:
        if ending in MATRICES:
            raise UsageError(f"--format is for tables; {path} is a matrix")
        return given
    if ending not in (*TABLES, *MATRICES):
        known = ", ".join((*TABLES, *MATRICES))
        raise UsageError(
            f"{path}: unknown kind of file {ending!r}; known are {known} (and .gz); or name that "
            "of a table with --format"
        )
    return ending


def open_text(path: Path, encoding: str) -> TextIO:
    """Open a text file, plain or gzipped; a byte order mark is no part of the text."""
    encoding = _with_mark(encoding)
    if path.suffix.lower() == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding=encoding, newline=""))
    return path.open(encoding=encoding, newline="")


def _with_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower() in _UTF8 else encoding


@contextmanager
def reporting(name: object) -> Iterator[None]:
    """Turn what readers raise on a damaged file into one line that names the file."""
    try:
        yield
    except UnicodeError as error:
        raise UsageError(f"{name} {_undecoded(error)}") from error
    except _DAMAGED as error:
        raise UsageError(f"{name} cannot be read: {error}") from error


def _undecoded(error: UnicodeError) -> str:
    """Say that the encoding is another, and which it may be."""
    if not isinstance(error, UnicodeDecodeError):  # such as UTF-16 without a byte order mark
        return f"is not in the encoding that was given ({error}); name another with --encoding"
    marked = bytes(error.object[:2]) in _UTF16_MARKS
    guess = "utf-16" if marked else "cp1252 or latin-1"
    name = "UTF-8" if error.encoding.startswith("utf-8") else error.encoding
    return f"is not {name} text ({error}); name its encoding with --encoding, perhaps {guess}"
