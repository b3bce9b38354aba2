"""Rows of tables with delimiters, each with the number of its first line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TextIO

from ._errors import UsageError
from ._source import Source

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
