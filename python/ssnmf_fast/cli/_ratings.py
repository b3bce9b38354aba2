"""Tables of ratings: user, item and number, read line by line; also without the number."""

from __future__ import annotations

import math
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TextIO

import numpy as np

from .._common.arrays import Array
from ._errors import UsageError
from ._read import check_cell, delimited_rows, delimiter_hint, json_rows, no_column
from ._source import Source, reporting

Cells = tuple[Any, ...]

ROLES = ("user", "item", "rating")
DUPLICATES = ("error", "mean", "first", "last")  # what becomes of several ratings of a pair


@dataclass(frozen=True)
class Ratings:
    """Ratings in the order of the table.

    `rows` and `columns` number users and items from 0, in the order in which they first appear.
    `empty` holds the places, (e, 2), of pairs without a rating; `n_merged` counts ratings that were
    merged with others of the same pair.
    """

    names: tuple[str, ...]
    users: list[str]
    items: list[str]
    rows: Array
    columns: Array
    values: Array
    empty: Array
    n_merged: int


def read_ratings(source: Source, given: Sequence[str | None], duplicates: str) -> Ratings:
    """Read a table of any kind.

    `given` holds the columns of user, item and rating; None takes the usual name or place.
    `duplicates` is one of DUPLICATES.
    """
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    rows, columns, values = array("q"), array("q"), array("d")
    with reporting(source), source.open() as file:
        names, lines = _lines(source, file, given)
        for number, cells in lines:
            user = _identifier(cells[0], names[0], source, number)
            item = _identifier(cells[1], names[1], source, number)
            rows.append(users.setdefault(user, len(users)))
            columns.append(items.setdefault(item, len(items)))
            values.append(_number(cells[2], names[2], source, number))
    places = np.column_stack([np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)])
    numbers = np.array(values)
    rated = ~np.isnan(numbers)
    if not rated.any():
        raise UsageError(f"{source} has no ratings")
    names_of = list(users), list(items)
    pairs, kept = _merged(str(source), names_of, places[rated], numbers[rated], duplicates)
    n_merged = int(rated.sum()) - len(kept)
    return Ratings(names, *names_of, pairs[:, 0], pairs[:, 1], kept, places[~rated], n_merged)


def read_pairs(source: Source, given: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Read the user and the item on every line; `given` holds their columns, None for the usual."""
    users, items = [], []
    with reporting(source), source.open() as file:
        (user, item), lines = _lines(source, file, given)
        for number, cells in lines:
            users.append(_identifier(cells[0], user, source, number))
            items.append(_identifier(cells[1], item, source, number))
    if not users:
        raise UsageError(f"{source} has no {_contents(given)}")
    return users, items


def _lines(
    source: Source, file: TextIO, given: Sequence[str | None]
) -> tuple[tuple[str, ...], Iterator[tuple[int, Cells]]]:
    """Return the names of the columns, and the number and the cells of every line."""
    return (_json_lines if source.kind == ".jsonl" else _csv_lines)(source, file, given)


def _contents(given: Sequence[str | None]) -> str:
    return "ratings" if len(given) == len(ROLES) else "pairs of users and items"


def chosen_columns(
    source: Source, columns: Sequence[str], given: Sequence[str | None]
) -> tuple[str, ...]:
    """Return the columns of user, item and rating: as given, else by name, else by place.

    `given` may hold user and item only.  Two that are neither given nor named are taken by place
    of a table of at most three columns only.
    """
    for name in given:
        if name is not None and name not in columns:
            raise UsageError(no_column(source, name, list(columns)))
    roles = ROLES[: len(given)]
    needed, options, number = "users and items", "--user and --item", "two"
    if len(roles) == len(ROLES):
        needed, options, number = (
            "users, items and ratings",
            "--user, --item and --rating",
            "three",
        )
    listed = ", ".join(columns)
    if len(columns) < len(roles):
        hint = delimiter_hint(source, list(columns))
        raise UsageError(
            f"{source} has the columns {listed}; expected {number}, for {needed}{hint}"
        )
    found = _named(columns, given)
    missing = [place for place, name in enumerate(found) if name is None]
    if len(missing) == 1 and len(columns) == len(roles):
        found[missing[0]] = next(name for name in columns if name not in found)
    elif len(missing) == 1 or len(columns) <= len(ROLES):
        for place in missing:
            found[place] = columns[place]
    names = [name for name in found if name is not None]
    name_them = f"name their columns with {options}, among: {listed}"
    if len(set(names)) < len(roles):
        raise UsageError(f"{source}: cannot tell {needed} apart; {name_them}")
    if math.isfinite(_parsed(names[-1])) and len(roles) == len(ROLES):
        raise UsageError(
            f"{source}: the first line, {source.delimiter.join(columns)}, looks like a rating; it "
            "must hold the names of the columns"
        )
    if len(missing) > 1:
        read = ", ".join(f"{role} {name!r}" for role, name in zip(roles, names, strict=True))
        warnings.warn(
            f"{source}: columns are taken by their place: {read}; if that is wrong, {name_them}",
            stacklevel=2,
        )
    return tuple(names)


def _named(columns: Sequence[str], given: Sequence[str | None]) -> list[str | None]:
    """Return the columns that are given, or called as user, userId or user_id; None for others."""
    exact = {name.strip().lower(): name for name in reversed(columns)}
    as_id = {re.sub("[ _-]?id$", "", name): column for name, column in exact.items()}
    roles = ROLES[: len(given)]
    return [
        name or exact.get(role) or as_id.get(role) for role, name in zip(roles, given, strict=True)
    ]


def _csv_lines(
    source: Source, file: TextIO, given: Sequence[str | None]
) -> tuple[tuple[str, ...], Iterator[tuple[int, Cells]]]:
    header, rows = delimited_rows(file, source)
    if not header:
        raise UsageError(f"{source} has no {_contents(given)}")
    names = chosen_columns(source, header, given)
    places = [header.index(name) for name in names]
    return names, ((number, tuple(row[place] for place in places)) for number, row in rows)


def _json_lines(
    source: Source, file: TextIO, given: Sequence[str | None]
) -> tuple[tuple[str, ...], Iterator[tuple[int, Cells]]]:
    rows = json_rows(file, source)
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{source} has no {_contents(given)}")
    names = chosen_columns(source, list(first[1]), given)
    return names, (
        (number, tuple(row.get(name) for name in names)) for number, row in chain([first], rows)
    )


def _identifier(cell: Any, name: str, source: Source, number: int) -> str:
    check_cell(cell, name, source, number)
    text = "" if cell is None else str(cell).strip()
    if not text:
        raise UsageError(f"{source}, line {number}: no value in column {name!r}")
    return text


def _number(cell: Any, name: str, source: Source, number: int) -> float:
    """Return a rating; NaN for an empty cell, whose rating is to be predicted."""
    if cell is None or not str(cell).strip() or (isinstance(cell, float) and math.isnan(cell)):
        return math.nan
    value = _parsed(cell)
    if not math.isfinite(value):
        raise UsageError(
            f"{source}, line {number}: the rating in column {name!r} is {cell!r}, not a number; "
            "leave it empty if it is to be predicted, or name the columns with --user, --item and "
            "--rating"
        )
    return value


def _parsed(cell: Any) -> float:
    """The number that a cell holds; NaN if it holds none."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _merged(
    name: str, ids: tuple[list[str], list[str]], places: Array, values: Array, how: str
) -> tuple[Array, Array]:
    """Return each pair once, and its rating.

    `ids` are users and items, `places` (e, 2) their numbers, `values` (e,) the ratings, and `how`
    is one of DUPLICATES.
    """
    numbers = places[:, 0] * len(ids[1]) + places[:, 1]
    order = np.argsort(numbers, kind="stable")
    first = np.concatenate([[True], np.diff(numbers[order]) > 0])
    starts = np.flatnonzero(first)
    if len(starts) == len(order):
        return places, values
    if how == "error":
        raise UsageError(_repeated(name, ids, places, values, order, first))
    sizes = np.diff(np.append(starts, len(order)))
    if how == "mean":
        kept = np.add.reduceat(values[order], starts) / sizes
    else:
        kept = values[order[starts if how == "first" else starts + sizes - 1]]
    return places[order[starts]], kept


def _repeated(
    name: str,
    ids: tuple[list[str], list[str]],
    places: Array,
    values: Array,
    order: Array,
    first: Array,
) -> str:
    repeats = np.flatnonzero(~first)
    one, other = order[repeats[0] - 1], order[repeats[0]]
    user, item = (part[place] for part, place in zip(ids, places[one], strict=True))
    more = f" ({len(repeats)} such repeats in all)" if len(repeats) > 1 else ""
    return (
        f"{name}: user {user!r} has more than one rating of item {item!r}: {values[one]:g} and "
        f"{values[other]:g}{more}; keep one for each pair, or give --duplicates mean, first or last"
    )
