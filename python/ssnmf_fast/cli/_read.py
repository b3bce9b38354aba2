"""Reading of tables, matrices and labels."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.io
import scipy.sparse as sp

from .._data.arrays import read_sparse
from ._errors import UsageError
from ._source import Source, open_text, reporting

Row = dict[str, Any]

_ARRAY_NAME = "X"
_EXCERPT = 60  # characters of a value in a message


@dataclass(frozen=True)
class Table:
    """A table with named columns."""

    source: Source
    columns: list[str]
    rows: list[Row]
    lines: list[int]  # of the file, on which the rows begin or end

    def column(self, name: str, *, lists: bool = False) -> list[Any]:
        """Return the values of a column, None where a row lacks it; `lists` allows lists of them.

        JSON may hold other values than text, numbers and null: they raise UsageError.
        """
        if name not in self.columns:
            raise UsageError(no_column(self.source, name, self.columns))
        values = [row.get(name) for row in self.rows]
        for line, value in zip(self.lines, values, strict=True):
            check_cell(value, name, self.source, line, lists=lists)
        return values


def check_cell(value: Any, name: str, source: Source, line: int, *, lists: bool = False) -> None:
    """Raise UsageError for an object or a list of JSON in place of a text or a number."""
    parts = value if lists and isinstance(value, list) else [value]
    found = next((part for part in parts if isinstance(part, (dict, list))), None)
    if found is None:
        return
    kind = "an object" if isinstance(found, dict) else "a list"
    wanted = "a text or a number" + (", or a list of them" if lists else "")
    excerpt = json.dumps(found, ensure_ascii=False)
    excerpt = excerpt if len(excerpt) <= _EXCERPT else excerpt[:_EXCERPT] + "..."
    raise UsageError(
        f"{source}, line {line}: column {name!r} holds {kind}, {excerpt}; expected {wanted}"
    )


def no_column(source: Source, name: str, columns: list[str]) -> str:
    """Return the message for a column that is not there."""
    listed = ", ".join(columns)
    return f"{source} has no column {name!r}; its columns are: {listed}" + delimiter_hint(
        source, columns
    )


def read_table(source: Source) -> Table:
    """Read a table of any kind."""
    with reporting(source), source.open() as file:
        if source.kind == ".jsonl":
            numbered = list(json_rows(file, source))
            columns = list(dict.fromkeys(name for _, row in numbered for name in row))
        else:
            columns, cells = delimited_rows(file, source)
            numbered = [(line, dict(zip(columns, row, strict=True))) for line, row in cells]
    if not numbered:
        raise UsageError(f"{source} has no rows")
    return Table(source, columns, [row for _, row in numbered], [line for line, _ in numbered])


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
    with reporting(path):
        if source.kind == ".mtx":
            X = scipy.io.mmread(path)
        elif source.kind == ".npy":
            X = np.load(_raw(path), allow_pickle=False)
        else:
            X = _read_npz(path)
        X = read_sparse(X, "the matrix") if sp.issparse(X) and X.ndim == 2 else X
    if X.ndim != 2 or 0 in X.shape:
        raise UsageError(f"{path} has shape {X.shape}; expected samples x features, not empty")
    return X


def read_lines(path: Path, encoding: str) -> list[str]:
    """Return the lines of a text file, stripped; empty lines at the very end count too."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    with reporting(path), open_text(path, encoding) as file:
        return [line.strip() for line in file]


def _read_npz(path: Path) -> Any:
    with np.load(_raw(path), allow_pickle=False) as archive:
        names = list(archive.files)
        if "format" not in names:
            if _ARRAY_NAME in names:
                return archive[_ARRAY_NAME]
            if len(names) == 1:
                return archive[names[0]]
            raise UsageError(
                f"{path} holds several arrays ({', '.join(names)}); expected a single one, one "
                f"named {_ARRAY_NAME}, or a file of scipy.sparse.save_npz"
            )
    return sp.load_npz(_raw(path))


def _raw(path: Path) -> Any:
    """Return what numpy.load reads: the path, or an unzipped stream of bytes."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path


def json_rows(file: TextIO, source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the objects of JSON Lines, each with the number of its line; blank lines are none."""
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"{source}, line {number}: not JSON ({error})") from error
        except RecursionError as error:
            raise UsageError(f"{source}, line {number}: lists or objects too deep") from error
        if not isinstance(row, dict):
            raise UsageError(f"{source}, line {number}: expected a JSON object, {{...}}")
        yield number, row


NumberedRows = Iterator[tuple[int, list[str]]]

_LARGEST_FIELD = 2**31 - 1
_LIKELY = (";", "\t", "|", ",")


def delimited_rows(file: TextIO, source: Source) -> tuple[list[str], NumberedRows]:
    """Return the names of the columns, and the rows below them.

    Blank lines are not rows, except in a table of one column, where each is an empty cell.  A name
    that occurs twice raises UsageError; so do rows of another length, while iterating.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    reader = csv.reader(file, delimiter=source.delimiter)
    names = next((row for row in reader if not _blank(row)), [])
    twice = [name for k, name in enumerate(names) if name and name in names[:k]]
    if twice:
        raise UsageError(
            f"{source}, line {reader.line_num}: two columns are called {twice[0]!r}; give each a "
            "name of its own"
        )

    def rows() -> NumberedRows:
        while True:
            first = reader.line_num + 1
            row = next(reader, None)
            if row is None:
                return
            if len(names) == 1:
                row = row or [""]
            elif _blank(row):
                continue
            if len(row) != len(names):
                raise UsageError(_ragged(source, first, reader.line_num, len(row), names))
            yield first, row

    return names, rows()


def delimiter_hint(source: Source, columns: list[str]) -> str:
    """Return a question, or nothing."""
    mark = likely_delimiter(source, columns)
    return "" if mark is None else f". Is {mark!r} the delimiter? If so, give --delimiter {mark!r}"


def likely_delimiter(source: Source, columns: list[str]) -> str | None:
    """Return what may stand between the columns, if their names look like more of them."""
    if source.kind == ".jsonl":
        return None
    header = "".join(columns)
    return next((mark for mark in _LIKELY if header.count(mark) >= len(columns)), None)


def _blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _ragged(source: Source, first: int, last: int, found: int, names: list[str]) -> str:
    cells = "1 cell" if found == 1 else f"{found} cells"
    message = (
        f"{source}, line {first}: {cells} between delimiters {source.delimiter!r}; the first line "
        f"names {len(names)}"
    )
    hint = delimiter_hint(source, names)
    if hint:
        return message + hint
    if last > first:
        return f"{message}. The row goes on to line {last}: is a quotation mark left open?"
    return f"{message}. A cell that holds the delimiter needs quotation marks"
