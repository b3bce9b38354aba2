"""Reading of tables, lines of text, and matrices."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import sys
import warnings
import zipfile
import zlib
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from inspect import signature
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import numpy as np
import scipy.io
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.optional import COMMAND_HINT, require_package
from .._data.arrays import inspect_sparse, is_missing
from ._options import MATRICES, STANDARD, TABLES, UsageError, warn

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def keeping_warnings() -> Iterator[list[str]]:
    """Collect the warnings of a block in a list, and show them too."""
    show, issued = warnings.showwarning, list[str]()

    def keep(message: Warning | str, *place: Any, **more: Any) -> None:
        issued.append(" ".join(str(message).split()).rstrip("."))
        show(message, *place, **more)

    warnings.showwarning = keep
    try:
        yield issued
    finally:
        warnings.showwarning = show


MATRIX_HINT = "a matrix is read from a .npy, .npz or .mtx file"

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LIKELY_DELIMITERS = (";", "\t", "|", ",")
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # what Excel reads in a first line
_SAVE = (
    "save a workbook or a data frame as CSV (pandas: to_csv(NAME, index=False)), and a JSON list "
    "as JSON Lines (Python: a line json.dumps(row) for each row)"
)
_BINARY = (b"PK\3\4", b"PAR1", b"ARROW1", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"%PDF")
_NOT_ROWS = {
    UnicodeEncodeError: "half of a character of two parts (\\ud800 to \\udfff), which no file can "
    "hold; leave it out",
    RecursionError: "lists or objects too deep",
}
_LINE = re.compile(r"\r\n?|\n")
_MOST_DIGITS = 25  # of a whole number in JSON; decimal has 28
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 8  # bytes of a file that show whether it is binary
_LARGEST_FIELD = 2**31 - 1
_CHUNK = 100_000  # rows
_OF_SPREADSHEETS = "cp1252"
_EXCERPT = 60  # characters of a value in a message
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
    quoting: str | None = None  # "csv" or "none"; None: "csv" if no row can be lost

    def __str__(self) -> str:
        return "standard input" if self.path is None else str(self.path)

    @property
    def is_table(self) -> bool:
        return self.kind in TABLES


def find_source(options: Namespace) -> Source:
    """Return the source for the options data, format, encoding, delimiter and quoting."""
    path = None if options.data == STANDARD else Path(options.data)
    kind, kinds = options.format and f".{options.format}", (*TABLES, *MATRICES)
    if path is not None:
        endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
        ending = endings[-1] if endings else ""
        if not path.exists():
            raise UsageError(f"{path}: no such file")
        if path.is_dir():
            raise UsageError(f"{path} is a folder; expected a file")
        if kind is not None and ending in MATRICES:
            raise UsageError(f"--format is for tables; {path} is a matrix")
        if kind is None and ending not in kinds:
            wrong = f"unknown kind of file {ending!r}; known are {', '.join(kinds)} (and .gz)"
            raise UsageError(f"{path}: {wrong}; {_SAVE}, or name its format with --format")
        kind = kind or ending
    kind = kind or ".csv"
    quoting = getattr(options, "quoting", None)
    for name, option in (("delimiter", options.delimiter), ("quoting", quoting)):
        if option is not None and kind not in _DELIMITERS:
            kind_read = f"{options.data} is read as {kind[1:]}"
            raise UsageError(f"--{name} is only used for .csv and .tsv; {kind_read}")
    delimiter = options.delimiter or _DELIMITERS.get(kind, ",")
    return Source(path, kind, options.encoding, delimiter, quoting)


def _open_binary(path: Path) -> BinaryIO:
    return cast(BinaryIO, (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb"))


def open_text(path: Path | None, encoding: str) -> TextIO:
    """Open text, perhaps gzipped, without its byte order mark; None is standard input."""
    if path is None and sys.stdin is None:
        raise UsageError("standard input is closed; give a file in place of -")
    binary: Any = sys.stdin.buffer if path is None else _open_binary(path)
    codec = codecs.lookup(encoding).name
    head = binary.peek(_HEAD)[:_HEAD] if hasattr(binary, "peek") else b""
    if (
        (b"\0" in head or head.startswith(_BINARY))
        and not codec.startswith(("utf-16", "utf-32"))
        and not head.startswith(_UTF16_MARKS)  # which the decoder reports
    ):
        binary.close()
        name = "standard input" if path is None else path
        if not (any(head[::2]) and any(head[1::2])):
            raise UsageError(f"{name} is text in UTF-16; give --encoding utf-16-le or utf-16-be")
        expected = f"text: one value per line (numpy.savetxt), or a table ({', '.join(TABLES)})"
        raise UsageError(f"{name} is a binary file; expected {expected}; {_SAVE}")
    has_mark = head.startswith(codecs.BOM_UTF8)  # by a spreadsheet program
    if codec == "utf-8" or has_mark:
        encoding = "utf-8-sig"
    return io.TextIOWrapper(binary, encoding, newline="")


def encoding_of(path: Path, encoding: str) -> str:
    """Return the encoding, or that of spreadsheet programs if a file is not in it."""
    try:
        with open_text(path, encoding) as file:
            for _ in file:
                pass
    except UnicodeDecodeError:
        warn(f"{path} is not {encoding}; it is read as {_OF_SPREADSHEETS}, as written by Excel")
        return _OF_SPREADSHEETS
    return encoding


@contextmanager
def reporting(name: object) -> Iterator[None]:
    """Turn the errors of readers on a damaged file into one line that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        has_mark = bytes(error.object[:2]) in _UTF16_MARKS
        guess = "utf-16" if has_mark else "cp1252 or latin-1"
        encoding = "UTF-8" if error.encoding.startswith("utf-8") else error.encoding
        wrong = f"{name} is not {encoding} text ({error})"
        raise UsageError(f"{wrong}; name its encoding with --encoding, perhaps {guess}") from error
    except UnicodeError as error:  # such as UTF-16 without a byte order mark
        wrong = f"{name} cannot be decoded ({error})"
        raise UsageError(f"{wrong}; name its encoding with --encoding") from error
    except _DAMAGED as error:
        raise UsageError(f"{name} cannot be read: {error}") from error


def read_lines(path: Path, encoding: str) -> list[str]:
    """Return the lines of a text file, stripped, with empty lines at the end."""
    if not os.path.isfile(path):  # also False for a name that is too long
        raise UsageError(f"{path}: no such file")
    with reporting(path), open_text(path, encoding) as file:
        return [line.strip() for line in file]


def read_matrix(source: Source) -> Array | sp.csr_array:
    """Read a .npz (scipy.sparse.save_npz, or one array), .npy or .mtx file; sparse ones as CSR."""
    X = load_matrix(source)
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind == "f" and values.size and np.isnan(values).all():
        raise UsageError(f"{source} has no value: all of its entries are NaN, that is, missing")
    return X.tocsr() if sp.issparse(X) else X


def load_matrix(source: Source) -> Any:
    """Read a matrix as stored, perhaps with repeated entries: csr, csc, bsr or coo."""
    path = source.path
    assert path is not None  # standard input is a table
    form = {"spmatrix": False} if "spmatrix" in signature(scipy.io.mmread).parameters else {}
    with reporting(source), _open_binary(path) as file:
        is_numpy = source.kind != ".mtx"
        X = np.load(file, allow_pickle=False) if is_numpy else scipy.io.mmread(path, **form)
        if isinstance(X, np.lib.npyio.NpzFile):
            names = list(X.files)
            if "format" in names:
                file.seek(0)
                X = sp.load_npz(file)
            elif _ARRAY_NAME in names or len(names) == 1:
                X = X[_ARRAY_NAME if _ARRAY_NAME in names else names[0]]
            else:
                expected = f"one, one named {_ARRAY_NAME}, or a file of scipy.sparse.save_npz"
                content = f"{path} holds several arrays ({', '.join(names)})"
                raise UsageError(f"{content}; expected {expected}")
        X = inspect_sparse(X, "the matrix")[0] if sp.issparse(X) and X.ndim == 2 else X
    if X.ndim != 2 or 0 in X.shape:
        raise UsageError(f"{path} has shape {X.shape}; expected samples x features, not empty")
    return X


@dataclass(frozen=True)
class Table:
    """A data frame whose index holds the lines on which the rows begin."""

    source: Source
    frame: pd.DataFrame

    def __str__(self) -> str:
        return str(self.source)

    def column(self, name: str, *, lists: bool = False) -> list[Any]:
        """Return the values of a column, None where one is missing; `lists` allows lists."""
        if name not in self.frame.columns:
            hint = delimiter_hint(self.source, [*self.frame])
            columns = f"its columns are: {', '.join(self.frame)}"
            raise UsageError(f"{self} has no column {name!r}; {columns}{hint}")
        values: list[Any] = self.frame[name].tolist()
        if {*map(type, values)} == {str}:
            return values
        for line, value in zip(self.frame.index, values, strict=True):
            for part in value if lists and isinstance(value, list) else [value]:
                if isinstance(part, (dict, list)):
                    kind = "an object" if isinstance(part, dict) else "a list"
                    excerpt = json.dumps(part, ensure_ascii=False)
                    excerpt = excerpt if len(excerpt) <= _EXCERPT else excerpt[:_EXCERPT] + "..."
                    wrong = f"column {name!r} holds {kind}, {excerpt}; expected a text or a number"
                    alternative = ", or a list of them" if lists else ""
                    raise UsageError(f"{self}, line {line}: {wrong}{alternative}")
        return [None if is_missing(value) else value for value in values]

    def refuse_numbers(self, names: list[str]) -> None:
        """Raise UsageError where columns hold numbers only, though texts are to be read."""
        columns = (name for name in names if name in self.frame.columns)
        cells = (cell for name in columns for cell in self.frame[name])
        values = (cell for cell in cells if not is_missing(cell) and str(cell).strip())
        try:
            count = len([float(cell) for cell in values])
        except (TypeError, ValueError):
            return
        if count:
            where = ", ".join([*names[:5], *["..."] * (len(names) > 5)])
            writers = "numpy.save, scipy.sparse.save_npz or scipy.io.mmwrite write it"
            wrong = f"{self} holds numbers, not texts, in {where}"
            raise UsageError(f"{wrong}; {MATRIX_HINT}, as {writers}")


def read_table(source: Source) -> Table:
    parts = [table.frame for table in read_parts(source)]
    if not parts:
        raise UsageError(f"{source} has no rows")
    import pandas as pd

    return Table(source, pd.concat(parts))


def read_parts(source: Source) -> Iterator[Table]:
    """Yield the rows of a table of any kind, some at a time; they need not fit into memory."""
    with require_package("pandas", COMMAND_HINT):
        import pandas as pd
    with reporting(source), open_text(source.path, source.encoding) as file:
        if source.kind == ".jsonl":
            objects = _read_json(file, source)
            while part := dict(islice(objects, _CHUNK)):
                yield Table(source, pd.DataFrame([*part.values()], [*part], dtype=object))
            return
        rows = _read_delimited(file, source)
        _, *names = next(rows)
        while cells := [*chain.from_iterable(islice(rows, _CHUNK))]:  # faster than lists of rows
            lines, *columns = np.array(cells, dtype=object).reshape(-1, len(names) + 1).T
            frame = pd.DataFrame(dict(zip(names, columns, strict=True)), lines, dtype=object)
            yield Table(source, frame)


def _read_json(file: TextIO, source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield lines and objects of JSON Lines; skip blank lines."""
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        hint = f"; {_SAVE}" if line.lstrip().startswith("[") else ""
        try:
            whole = ".0" in line or "e+" in line or "E+" in line  # a reader in Python is slow
            row = json.loads(line, parse_float=_read_number if whole else None)
            if "\\u" in line and "\\ud" in line.lower():
                json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
            wrong = _NOT_ROWS.get(type(error), f"not JSON ({error}){hint}")
            raise UsageError(f"{source}, line {number}: {wrong}") from error
        if not isinstance(row, dict):
            raise UsageError(f"{source}, line {number}: expected a JSON object, {{...}}{hint}")
        yield number, row


def _read_number(text: str) -> int | float:
    """Return a whole number as such: pandas writes columns of integers with gaps as floats."""
    number = Decimal(text)
    is_whole = abs(number.adjusted()) <= _MOST_DIGITS and number % 1 == 0
    return int(number) if is_whole else float(text)


def _read_delimited(file: TextIO, source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the header and the rows, each with its line in front of its cells.

    pandas.read_csv fills rows that are too short, and does not tell where in a file rows begin.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    head = file.readline()
    if match := _SEPARATOR.fullmatch(head):
        source, head = replace(source, delimiter=match[1]), "\n"
    quoting = csv.QUOTE_NONE if source.quoting == "none" else csv.QUOTE_MINIMAL
    form: Any = {"delimiter": source.delimiter, "skipinitialspace": True, "quoting": quoting}
    reader = csv.reader(chain([head], file), **form)
    names = [name.strip() for name in next((row for row in reader if not _is_blank(row)), [])]
    if repeated := [name for k, name in enumerate(names) if name and name in names[:k]]:
        wrong = f"{source}, line {reader.line_num}: two columns are called {repeated[0]!r}"
        raise UsageError(f"{wrong}; give them different names ({MATRIX_HINT})")
    yield reader.line_num, *names
    last, mark, n_delimiters = reader.line_num, source.delimiter, len(names) - 1
    has_quotes, doubtful = source.quoting is not None, ""
    for row in reader:
        first, last = last + 1, reader.line_num
        if n_delimiters and _is_blank(row):
            continue
        row = row or [""]
        if len(row) != len(names):
            hint = delimiter_hint(source, names)
            if not hint and last > first:
                hint = f". The row continues to line {last}: is a quotation mark left open? "
                hint += "If they are part of texts, give --quoting none"
            elif not hint and not n_delimiters:
                hint = ". Is the first line a title? Delete the lines above the header"
            elif not hint and any("\\" in cell for cell in row):
                hint = ". A quotation mark in a cell is doubled, not escaped by a backslash"
            hint = hint or ". A cell that holds the delimiter needs quotation marks"
            cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
            wrong = f"line {first}: {cells} between delimiters {mark!r}"
            raise UsageError(f"{source}, {wrong}; the first line names {len(names)}{hint}")
        if last > first:
            lines = _LINE.split(mark.join(row).rstrip("\r\n"))
            if any(line.count(mark) != n_delimiters for line in lines):
                has_quotes = True
            elif len(lines) > 1 and not doubtful:
                doubtful = f"{source}, line {first}: the row continues to line {last}, but "
                doubtful += "each of these lines looks like a row"
        elif not has_quotes:  # does a cell hold the delimiter?
            has_quotes = mark.join(row).count(mark) != n_delimiters
        yield first, *row
    if doubtful and source.quoting is None:
        mend = "if quotation marks are part of the texts, give --quoting none"
        if not has_quotes:
            raise UsageError(f"{doubtful}; {mend}; if cells have line breaks, --quoting csv")
        warn(f"{doubtful}; {mend}")


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def delimiter_hint(source: Source, columns: list[str]) -> str:
    mark = likely_delimiter(source, columns)
    if "".join(columns).count("::") >= len(columns):
        return ". The delimiter '::' has two characters; replace it by a tab or a comma"
    return "" if mark is None else f". Is {mark!r} the delimiter? If so, give --delimiter {mark!r}"


def likely_delimiter(source: Source, columns: list[str]) -> str | None:
    """Return the likely delimiter if names of columns look like several names."""
    header = "" if source.kind == ".jsonl" else "".join(columns)
    return next((mark for mark in _LIKELY_DELIMITERS if header.count(mark) >= len(columns)), None)


def read_values(
    name: str, data: Table | Source, n: int, things: str = "samples", *, lists: bool = False
) -> list[Any]:
    """Return a column of a table, or the n lines of a file of that name."""
    if isinstance(data, Table):
        if name in data.frame.columns or not os.path.isfile(name):
            return data.column(name, lists=lists)
        data = data.source
    lines = read_lines(Path(name), data.encoding)
    if len(lines) != n:
        expected = f"one for each of the {n} {things}"
        raise UsageError(f"{name} has {len(lines)} lines; expected {expected}")
    return lines
