"""Reading of tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ._source import Source, UsageError, open_text, read_lines, reporting

Row = dict[str, Any]
NumberedRows = Iterator[tuple[int, Row]]  # with the lines on which they begin

_LIKELY_DELIMITERS = (";", "\t", "|", ",")
_LARGEST_FIELD = 2**31 - 1
_EXCERPT = 60  # characters of a value in a message


@dataclass(frozen=True)
class Table:
    """A table with named columns; its rows have the numbers of their lines."""

    source: Source
    columns: list[str]
    rows: list[tuple[int, Row]]

    def __repr__(self) -> str:
        return str(self.source)

    def column(self, name: str, *, lists: bool = False) -> list[Any]:
        """Return the values of a column, None where a row lacks it; `lists` allows lists of them.

        JSON may hold other values than text, numbers and null: they raise UsageError.
        """
        if name not in self.columns:
            raise UsageError(no_column(self.source, name, self.columns))
        for line, row in self.rows:
            check_cell(row.get(name), name, self.source, line, lists=lists)
        return [row.get(name) for _, row in self.rows]


def read_table(source: Source) -> Table:
    """Read a table of any kind."""
    rows = list(read_rows(source))
    if not rows:
        raise UsageError(f"{source} has no rows")
    return Table(source, list(dict.fromkeys(name for _, row in rows for name in row)), rows)


def read_rows(source: Source) -> NumberedRows:
    """Yield the rows of a table of any kind; they need not fit into memory."""
    with reporting(source), open_text(source.path, source.encoding) as file:
        yield from (_json_rows if source.kind == ".jsonl" else _delimited_rows)(file, source)


def _json_rows(file: TextIO, source: Source) -> NumberedRows:
    """Yield the objects of JSON Lines; blank lines are none."""
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


def _delimited_rows(file: TextIO, source: Source) -> NumberedRows:
    """Yield the rows below that of the names.

    Blank lines are not rows, except in a table of one column, where each is an empty cell.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    reader = csv.reader(file, delimiter=source.delimiter)
    names = next((row for row in reader if not _is_blank(row)), [])
    twice = [name for k, name in enumerate(names) if name and name in names[:k]]
    if twice:
        raise UsageError(
            f"{source}, line {reader.line_num}: two columns are called {twice[0]!r}; give each a "
            "name of its own"
        )
    first = reader.line_num + 1
    for row in reader:
        if len(names) == 1:
            row = row or [""]
        if len(names) == 1 or not _is_blank(row):
            if len(row) != len(names):
                raise UsageError(_ragged(source, first, reader.line_num, len(row), names))
            yield first, dict(zip(names, row, strict=True))
        first = reader.line_num + 1


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _ragged(source: Source, first: int, last: int, found: int, names: list[str]) -> str:
    message = (
        f"{source}, line {first}: {found} cell{'s' * (found != 1)} between delimiters "
        f"{source.delimiter!r}; the first line names {len(names)}"
    )
    hint = delimiter_hint(source, names)
    if hint:
        return message + hint
    if last > first:
        return f"{message}. The row goes on to line {last}: is a quotation mark left open?"
    return f"{message}. A cell that holds the delimiter needs quotation marks"


def check_cell(value: Any, name: str, source: Source, line: int, *, lists: bool = False) -> None:
    """Raise UsageError for an object or a list of JSON in place of a text or a number."""
    parts = value if lists and isinstance(value, list) else [value]
    for part in parts:
        if isinstance(part, (dict, list)):
            kind = "an object" if isinstance(part, dict) else "a list"
            wanted = "a text or a number" + (", or a list of them" if lists else "")
            excerpt = json.dumps(part, ensure_ascii=False)
            excerpt = excerpt if len(excerpt) <= _EXCERPT else excerpt[:_EXCERPT] + "..."
            raise UsageError(
                f"{source}, line {line}: column {name!r} holds {kind}, {excerpt}; expected {wanted}"
            )


def no_column(source: Source, name: str, columns: list[str]) -> str:
    """Return the message for a column that is not there."""
    hint = delimiter_hint(source, columns)
    return f"{source} has no column {name!r}; its columns are: {', '.join(columns)}{hint}"


def delimiter_hint(source: Source, columns: list[str]) -> str:
    """Return a question, or nothing."""
    mark = likely_delimiter(source, columns)
    return "" if mark is None else f". Is {mark!r} the delimiter? If so, give --delimiter {mark!r}"


def likely_delimiter(source: Source, columns: list[str]) -> str | None:
    """Return what may stand between the columns, if their names look like more of them."""
    if source.kind == ".jsonl":
        return None
    header = "".join(columns)
    return next((mark for mark in _LIKELY_DELIMITERS if header.count(mark) >= len(columns)), None)


def read_values(
    name: str, data: Table | Source, n: int, things: str = "samples", *, lists: bool = False
) -> list[Any]:
    """Return a column of a table; else the lines of a file of that name, of which there must be n.

    `lists` allows lists in a column.
    """
    if isinstance(data, Table):
        if name in data.columns or not Path(name).is_file():
            return data.column(name, lists=lists)
        data = data.source
    lines = read_lines(Path(name), data.encoding)
    if len(lines) != n:
        wanted = f"expected one for each of the {n} {things}"
        raise UsageError(f"{name} has {len(lines)} lines; {wanted}")
    return lines
