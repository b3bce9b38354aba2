"""Tables of ratings: user, item and number, read line by line into compact arrays."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import numpy.typing as npt

from ._errors import UsageError
from ._read import _LARGEST_FIELD, _json_rows, _open_text, _reporting, kind

Array = npt.NDArray[Any]
Cells = tuple[Any, Any, Any]

ROLES = ("user", "item", "rating")


@dataclass(frozen=True)
class Ratings:
    """Ratings in the order of the table.

    `rows` and `columns` number users and items from 0, in the order in which they first appear.
    """

    names: tuple[str, str, str]
    users: list[str]
    items: list[str]
    rows: Array
    columns: Array
    values: Array


def read_ratings(path: Path, given: Sequence[str | None]) -> Ratings:
    """Read a .csv, .tsv or .jsonl file, plain or gzipped.

    Parameters
    ----------
    path : Path
    given : sequence of str or None, length 3
        Columns of the user, the item and the rating; None takes the usual name or place.

    Raises
    ------
    UsageError
        For missing columns, cells that are empty or not numbers, repeated pairs, an empty table.
    """
    ending = kind(path)
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    rows, columns, values = array("q"), array("q"), array("d")
    with _reporting(path), _open_text(path) as file:
        if ending == ".jsonl":
            names, lines = _json_lines(path, file, given)
        else:
            names, lines = _csv_lines(path, file, given, "\t" if ending == ".tsv" else ",")
        for number, cells in lines:
            user = _identifier(cells[0], names[0], path, number)
            item = _identifier(cells[1], names[1], path, number)
            rows.append(users.setdefault(user, len(users)))
            columns.append(items.setdefault(item, len(items)))
            values.append(_number(cells[2], names[2], path, number))
    if not values:
        raise UsageError(f"{path} has no ratings")
    numbers = (np.array(part) for part in (rows, columns, values))
    ratings = Ratings(names, list(users), list(items), *numbers)
    _refuse_repeats(path, ratings)
    return ratings


def chosen_columns(
    path: Path, columns: Sequence[str], given: Sequence[str | None]
) -> tuple[str, str, str]:
    """Return the columns of user, item and rating: as given, else by name, else by place."""
    listed = ", ".join(columns)
    for name in given:
        if name is not None and name not in columns:
            raise UsageError(f"{path} has no column {name!r}; its columns are: {listed}")
    if len(columns) < len(ROLES):
        raise UsageError(
            f"{path} has the columns {listed}; needed are three, for users, items and ratings"
        )
    by_name = {name.strip().lower(): name for name in reversed(columns)}
    names = [
        name or by_name.get(role, columns[place])
        for place, (role, name) in enumerate(zip(ROLES, given, strict=True))
    ]
    if len(set(names)) < len(names):
        raise UsageError(
            f"{path}: cannot tell users, items and ratings apart; name their columns with --user, "
            f"--item and --rating, among: {listed}"
        )
    return names[0], names[1], names[2]


def _csv_lines(
    path: Path, file: TextIO, given: Sequence[str | None], delimiter: str
) -> tuple[tuple[str, str, str], Iterator[tuple[int, Cells]]]:
    csv.field_size_limit(_LARGEST_FIELD)
    reader = csv.reader(file, delimiter=delimiter)
    header = next((row for row in reader if row), None)
    if header is None:
        raise UsageError(f"{path} has no ratings")
    names = chosen_columns(path, header, given)
    if math.isfinite(_parsed(names[2])):
        raise UsageError(
            f"{path}: the first line, {delimiter.join(header)}, looks like a rating; it must hold "
            "the names of the columns"
        )
    places = [header.index(name) for name in names]

    def lines() -> Iterator[tuple[int, Cells]]:
        for row in reader:
            if row:
                a, b, c = (row[place] if place < len(row) else None for place in places)
                yield reader.line_num, (a, b, c)

    return names, lines()


def _json_lines(
    path: Path, file: TextIO, given: Sequence[str | None]
) -> tuple[tuple[str, str, str], Iterator[tuple[int, Cells]]]:
    counted = _Counted(file)
    rows = _json_rows(cast(TextIO, counted), path)
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{path} has no ratings")
    user, item, rating = names = chosen_columns(path, list(first), given)

    def lines() -> Iterator[tuple[int, Cells]]:
        for row in chain([first], rows):
            yield counted.number, (row.get(user), row.get(item), row.get(rating))

    return names, lines()


class _Counted:
    """The lines of a file, and the number of the one that was read last."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.number += 1
            yield line


def _identifier(cell: Any, name: str, path: Path, number: int) -> str:
    text = "" if cell is None else str(cell).strip()
    if not text:
        raise UsageError(f"{path}, line {number}: no value in column {name!r}")
    return text


def _number(cell: Any, name: str, path: Path, number: int) -> float:
    value = _parsed(cell)
    if not math.isfinite(value):
        shown = "empty" if cell is None or not str(cell).strip() else f"{cell!r}, not a number"
        raise UsageError(f"{path}, line {number}: the rating in column {name!r} is {shown}")
    return value


def _parsed(cell: Any) -> float:
    """The number that a cell holds; NaN if it holds none."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _refuse_repeats(path: Path, ratings: Ratings) -> None:
    places = ratings.rows * len(ratings.items) + ratings.columns
    order = np.argsort(places, kind="stable")
    repeats = np.flatnonzero(places[order][1:] == places[order][:-1])
    if not len(repeats):
        return
    first, second = order[repeats[0]], order[repeats[0] + 1]
    user, item = ratings.users[ratings.rows[first]], ratings.items[ratings.columns[first]]
    more = f" ({len(repeats)} such repeats in all)" if len(repeats) > 1 else ""
    raise UsageError(
        f"{path}: user {user!r} has more than one rating of item {item!r}: "
        f"{ratings.values[first]:g} and {ratings.values[second]:g}{more}; keep one for each pair, "
        "for example their mean"
    )
