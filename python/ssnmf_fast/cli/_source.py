"""Where data come from: files or standard input; text, lines and matrices in them."""

from __future__ import annotations

import codecs
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
from typing import Any, TextIO

import numpy as np
import scipy.io
import scipy.sparse as sp

from .._data.arrays import read_sparse


class UsageError(Exception):
    """Something the user gave cannot be used; the message explains what and how to fix it."""


TABLES = (".csv", ".tsv", ".jsonl")
MATRICES = (".npz", ".npy", ".mtx")
STANDARD = "-"  # standard input or output, in place of a file

MATRIX_HINT = "a matrix is read from a .npy, .npz or .mtx file"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 8  # bytes of a file by which binary ones are known
_ARRAY_NAME = "X"
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


def source(options: Any) -> Source:
    """Return the data that the options name: data, format, encoding and delimiter.

    A format or delimiter of None is that of the ending of the file.
    """
    given = None if options.format is None else f".{options.format}"
    path = None if options.data == STANDARD else Path(options.data)
    kind = given or ".csv" if path is None else _kind(path, given)
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
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
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


def open_text(path: Path | None, encoding: str) -> TextIO:
    """Open text, plain or gzipped; a byte order mark is no part of it."""
    known = codecs.lookup(encoding).name
    if path is not None:
        opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
        binary = opener(path, "rb")
    elif sys.stdin is None:
        raise UsageError("standard input is closed; give a file in place of -")
    else:
        binary = sys.stdin.buffer
    head = binary.peek(_HEAD)[:_HEAD] if hasattr(binary, "peek") else b""
    if (b"\0" in head or head.startswith(b"PAR1")) and not known.startswith(("utf-16", "utf-32")):
        _refuse_binary(binary, head, "standard input" if path is None else path)
    encoding = "utf-8-sig" if known == "utf-8" else encoding
    return io.TextIOWrapper(binary, encoding=encoding, newline="")


def _refuse_binary(file: Any, head: bytes, name: object) -> None:
    """Raise UsageError for what holds the byte 0, but for UTF-16 with its mark, as decoders do."""
    if head.startswith(_UTF16_MARKS):
        return
    file.close()
    if not (any(head[::2]) and any(head[1::2])):
        raise UsageError(f"{name} is text in UTF-16; give --encoding utf-16-le or utf-16-be")
    raise UsageError(
        f"{name} is a binary file; expected text: one value on each line, as numpy.savetxt writes "
        f"them, or a table ({', '.join(TABLES)})"
    )


@contextmanager
def reporting(name: object) -> Iterator[None]:
    """Turn what readers raise on a damaged file into one line that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        marked = bytes(error.object[:2]) in _UTF16_MARKS
        guess = "utf-16" if marked else "cp1252 or latin-1"
        encoding = "UTF-8" if error.encoding.startswith("utf-8") else error.encoding
        raise UsageError(
            f"{name} is not {encoding} text ({error}); name its encoding with --encoding, "
            f"perhaps {guess}"
        ) from error
    except UnicodeError as error:  # such as UTF-16 without a byte order mark
        raise UsageError(
            f"{name} is not in the encoding that was given ({error}); name another with --encoding"
        ) from error
    except _DAMAGED as error:
        raise UsageError(f"{name} cannot be read: {error}") from error


def read_lines(path: Path, encoding: str) -> list[str]:
    """Return the lines of a text file, stripped; empty lines at the very end count too."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    with reporting(path), open_text(path, encoding) as file:
        return [line.strip() for line in file]


def read_matrix(source: Source) -> Any:
    """Read a .npz (scipy.sparse.save_npz, or one array), .npy or .mtx file; sparse ones as CSR."""
    X = load_matrix(source)
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind == "f" and values.size and np.isnan(values).all():
        raise UsageError(f"{source} has no value: all of its entries are NaN, which is missing")
    return X.tocsr() if sp.issparse(X) else X


def load_matrix(source: Source) -> Any:
    """The same as the file has it, in which an entry may stand twice: csr, csc, bsr or coo."""
    path = source.path
    assert path is not None  # standard input is a table
    with reporting(source):
        X = scipy.io.mmread(path) if source.kind == ".mtx" else _load_array(path)
        X = read_sparse(X, "the matrix") if sp.issparse(X) and X.ndim == 2 else X
    if X.ndim != 2 or 0 in X.shape:
        raise UsageError(f"{path} has shape {X.shape}; expected samples x features, not empty")
    return X


def _load_array(path: Path) -> Any:
    """Read a .npy or .npz file, which may be zipped once more."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        names = list(loaded.files)
        if "format" in names:
            file.seek(0)
            return sp.load_npz(file)
        if _ARRAY_NAME not in names and len(names) != 1:
            raise UsageError(
                f"{path} holds several arrays ({', '.join(names)}); expected a single one, one "
                f"named {_ARRAY_NAME}, or a file of scipy.sparse.save_npz"
            )
        return loaded[_ARRAY_NAME if _ARRAY_NAME in names else names[0]]
