"""Tables of ratings: user, item and number, read line by line; also without the number."""

from __future__ import annotations

import math
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import nfc
from ._read import MATRIX_HINT, Source, UsageError, check_cell, delimiter_hint, no_column, read_rows

ROLES = ("user", "item", "rating")
DUPLICATES = ("error", "mean", "first", "last")  # what becomes of several ratings of a pair

Cells = tuple[int, str, str, Any]  # number of the line, user, item and what rating there is


@dataclass(frozen=True)
class Ratings:
    """Ratings, and the columns with user, item and rating.

    `users` and `items` are the rows and columns of `matrix`, in the order in which they first
    appear.  `empty` holds the places, (e, 2), of pairs without a rating; `n_merged` counts ratings
    that were merged with others of the same pair.
    """

    names: dict[str, str]
    users: list[str]
    items: list[str]
    matrix: sp.csr_array
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
    names, lines = _read_cells(source, given)
    for line, user, item, rating in lines:
        rows.append(users.setdefault(user, len(users)))
        columns.append(items.setdefault(item, len(items)))
        values.append(_read_rating(rating, names[2], source, line))
    places = np.column_stack([np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)])
    numbers = np.array(values)
    rated = ~np.isnan(numbers)
    if not rated.any():
        raise UsageError(f"{source} has no ratings")
    ids = list(users), list(items)
    pairs, kept = _merge(source, ids, places[rated], numbers[rated], duplicates)
    entries = sp.coo_array((kept, (pairs[:, 0], pairs[:, 1])), shape=(len(users), len(items)))
    return Ratings(
        names=dict(zip(ROLES, names, strict=True)),
        users=ids[0],
        items=ids[1],
        matrix=entries.tocsr(),
        empty=places[~rated],
        n_merged=int(rated.sum()) - len(kept),
    )


def read_pairs(source: Source, given: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Read the user and the item on every line; `given` holds their columns, None for the usual."""
    _, lines = _read_cells(source, given)
    pairs = [(user, item) for _, user, item, _ in lines]
    return [user for user, _ in pairs], [item for _, item in pairs]


def _read_cells(
    source: Source, given: Sequence[str | None]
) -> tuple[tuple[str, ...], Iterator[Cells]]:
    """Return the names of the columns, and the cells of every line."""
    rows = read_rows(source)
    first = next(rows, None)
    if first is None:
        contents = "ratings" if len(given) == len(ROLES) else "pairs of users and items"
        raise UsageError(f"{source} has no {contents}")
    names = choose_columns(source, list(first[1]), given)
    user, item, *rest = names

    def cells() -> Iterator[Cells]:
        for line, row in chain([first], rows):
            rating = row.get(rest[0]) if rest else None
            yield line, _read_id(row, user, source, line), _read_id(row, item, source, line), rating

    return names, cells()


def choose_columns(
    source: Source, columns: list[str], given: Sequence[str | None]
) -> tuple[str, ...]:
    """Return the columns of user, item and rating: as given, else by name, else by place.

    `given` may hold user and item only.  Two that are neither given nor named are taken by place
    of a table of at most three columns only.
    """
    for name in given:
        if name is not None and name not in columns:
            raise UsageError(no_column(source, name, columns))
    roles, listed = ROLES[: len(given)], ", ".join(columns)
    needed, options = "users and items", "--user and --item"
    if len(roles) == len(ROLES):
        needed, options = "users, items and ratings", "--user, --item and --rating"
    if len(columns) < len(roles):
        hint = delimiter_hint(source, columns)
        raise UsageError(f"{source} has the columns {listed}; expected those of {needed}{hint}")
    # Names such as user, userId and user_id.
    exact = {name.strip().lower(): name for name in reversed(columns)}
    as_id = {re.sub("[ _-]?id$", "", name): column for name, column in exact.items()}
    found = [
        name or exact.get(role) or as_id.get(role) for role, name in zip(roles, given, strict=True)
    ]
    missing = [place for place, name in enumerate(found) if name is None]
    if len(missing) == 1 and len(columns) == len(roles):
        found[missing[0]] = next(name for name in columns if name not in found)
    elif len(missing) == 1 or len(columns) <= len(ROLES):
        for place in missing:
            found[place] = columns[place]
    names = [name for name in found if name is not None]
    name_them = f"name their columns with {options}, among: {listed}"
    if len(set(names)) < len(roles):
        raise UsageError(f"{source}: cannot tell {needed} apart; {name_them}; {MATRIX_HINT}")
    if len(roles) == len(ROLES) and math.isfinite(_parse(names[-1])):
        raise UsageError(
            f"{source}: the first line, {source.delimiter.join(columns)}, looks like a rating; it "
            f"must hold the names of the columns; {MATRIX_HINT}"
        )
    if len(missing) > 1:
        read = ", ".join(f"{role} {name!r}" for role, name in zip(roles, names, strict=True))
        warnings.warn(
            f"{source}: columns are taken by their place: {read}; if that is wrong, {name_them}",
            stacklevel=2,
        )
    return tuple(names)


def _read_id(row: dict[str, Any], name: str, source: Source, line: int) -> str:
    cell = row.get(name)
    check_cell(cell, name, source, line)
    text = nfc("" if cell is None else str(cell).strip())
    if not text:
        raise UsageError(f"{source}, line {line}: no value in column {name!r}")
    return str(text)


def _read_rating(cell: Any, name: str, source: Source, line: int) -> float:
    """Return a rating; NaN for an empty cell, whose rating is to be predicted."""
    if cell is None or not str(cell).strip() or (isinstance(cell, float) and math.isnan(cell)):
        return math.nan
    value = _parse(cell)
    if not math.isfinite(value):
        raise UsageError(
            f"{source}, line {line}: the rating in column {name!r} is {cell!r}, not a number; "
            "leave it empty if it is to be predicted, or name the columns with --user, --item and "
            "--rating"
        )
    return value


def _parse(cell: Any) -> float:
    """Return the number that a cell holds; NaN if it holds none."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _merge(
    source: Source, ids: tuple[list[str], list[str]], places: Array, values: Array, how: str
) -> tuple[Array, Array]:
    """Return each pair once, and its rating.

    `ids` are users and items, `places` (e, 2) their numbers, `values` (e,) the ratings, and `how`
    is one of DUPLICATES.
    """
    numbers = places[:, 0] * len(ids[1]) + places[:, 1]
    order = np.argsort(numbers, kind="stable")
    is_first = np.diff(numbers[order], prepend=-1) > 0
    starts = np.flatnonzero(is_first)
    if len(starts) == len(order):
        return places, values
    if how == "error":
        repeats = np.flatnonzero(~is_first)
        one, other = order[repeats[0] - 1], order[repeats[0]]
        user, item = (part[place] for part, place in zip(ids, places[one], strict=True))
        more = f" ({len(repeats)} such repeats in all)" if len(repeats) > 1 else ""
        raise UsageError(
            f"{source}: user {user!r} has more than one rating of item {item!r}: {values[one]:g} "
            f"and {values[other]:g}{more}; keep one for each pair, or give --duplicates mean, "
            "first or last"
        )
    sizes = np.diff(np.append(starts, len(order)))
    if how == "mean":
        kept = np.add.reduceat(values[order], starts) / sizes
    else:
        kept = values[order[starts if how == "first" else starts + sizes - 1]]
    return places[order[starts]], kept
