"""Reading of tables, matrices and labels."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import scipy.io
import scipy.sparse as sp

from ._errors import UsageError

Row = dict[str, Any]
TABLES = (".csv", ".tsv", ".jsonl")
MATRICES = (".npz", ".npy", ".mtx")

_LARGEST_FIELD = 2**31 - 1
_ARRAY_NAME = "X"


@dataclass(frozen=True)
class Table:
    """A table with named columns."""

    path: Path
    columns: list[str]
    rows: list[Row]

    def column(self, name: str) -> list[Any]:
        """Return the values of a column; None where a row lacks it."""
        if name not in self.columns:
            listed = ", ".join(self.columns)
            raise UsageError(f"{self.path} has no column {name!r}; its columns are: {listed}")
        return [row.get(name) for row in self.rows]


def kind(path: Path) -> str:
    """Return the extension without .gz, one of TABLES or MATRICES."""
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; needed is a file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if ending not in (*TABLES, *MATRICES):
        known = ", ".join((*TABLES, *MATRICES))
        raise UsageError(f"{path}: unknown kind of file {ending!r}; known are {known} (and .gz)")
    return ending


def read_table(path: Path) -> Table:
    """Read a .csv, .tsv or .jsonl file, plain or gzipped."""
    ending = kind(path)
    with _reporting(path), _open_text(path) as file:
        if ending == ".jsonl":
            rows = list(_json_rows(file, path))
            columns = list(dict.fromkeys(name for row in rows for name in row))
        else:
            csv.field_size_limit(_LARGEST_FIELD)
            reader = csv.DictReader(file, delimiter="\t" if ending == ".tsv" else ",")
            rows = cast("list[Row]", list(reader))
            columns = list(reader.fieldnames or [])
    if not rows:
        raise UsageError(f"{path} has no rows")
    return Table(path, columns, rows)


def read_matrix(path: Path) -> Any:
    """Read a .npz (scipy.sparse.save_npz, or one array), .npy or .mtx file; sparse ones as CSR."""
    X = load_matrix(path)
    return X.tocsr() if sp.issparse(X) else X


def load_matrix(path: Path) -> Any:
    """The same in the form of the file, in which an entry may stand twice."""
    ending = kind(path)
    with _reporting(path):
        if ending == ".mtx":
            X = scipy.io.mmread(path)
        elif ending == ".npy":
            X = np.load(_raw(path), allow_pickle=False)
        else:
            X = _read_npz(path)
    if X.ndim != 2 or 0 in X.shape:
        raise UsageError(f"{path} has shape {X.shape}; needed are samples x features, not empty")
    return X


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, stripped; empty lines at the very end count too."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    with _reporting(path), _open_text(path) as file:
        return [line.strip() for line in file]


def clean_labels(values: list[Any]) -> list[str | None]:
    """Return labels as text, None where there is none."""
    return [None if v is None or v != v else str(v).strip() or None for v in values]


def _read_npz(path: Path) -> Any:
    with np.load(_raw(path), allow_pickle=False) as archive:
        names = list(archive.files)
        if "format" not in names:
            if _ARRAY_NAME in names:
                return archive[_ARRAY_NAME]
            if len(names) == 1:
                return archive[names[0]]
            raise UsageError(
                f"{path} holds several arrays ({', '.join(names)}); needed is a single one, one "
                f"named {_ARRAY_NAME}, or a file of scipy.sparse.save_npz"
            )
    return sp.load_npz(_raw(path))


def _raw(path: Path) -> Any:
    """Return what numpy.load reads: the path, or an unzipped stream of bytes."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _json_rows(file: TextIO, path: Path) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"{path}, line {number}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise UsageError(f"{path}, line {number}: needed is a JSON object, {{...}}")
        yield row


class _reporting:
    """Turn what readers raise on a damaged file into one line that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise UsageError(f"{self._path} is not UTF-8 text: {error}") from error
        damaged = (ValueError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error, KeyError)
        if isinstance(error, (*damaged, gzip.BadGzipFile)):
            raise UsageError(f"{self._path} cannot be read: {error}") from error
