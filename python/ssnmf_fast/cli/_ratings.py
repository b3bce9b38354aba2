"""Tables of ratings: user, item and number, read part by part; also without the number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from .._common.arrays import Array
from .._common.optional import TABLES_HINT, require_package
from .._common.text import nfc
from ._read import MATRIX_HINT, Source, UsageError, delimiter_hint, read_parts, warn

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("user", "item", "rating")
DUPLICATES = ("error", "mean", "first", "last")  # what becomes of several ratings of a pair


@dataclass(frozen=True)
class Ratings:
    """Ratings, and the columns with user, item and rating."""

    names: dict[str, str]
    users: list[str]
    items: list[str]
    matrix: sp.csr_array
    empty: Array
    n_merged: int


def read_ratings(source: Source, columns: Sequence[str | None], duplicates: str) -> Ratings:
    """Read a table of any kind."""
    with require_package("pandas", TABLES_HINT):
        import pandas as pd

    users: dict[str, int] = {}
    items: dict[str, int] = {}
    parts, names = [], tuple[str, ...]()
    for names, part in _read_columns(source, columns):
        part["user"] = [users.setdefault(name, len(users)) for name in part["user"]]
        part["item"] = [items.setdefault(name, len(items)) for name in part["item"]]
        cells = part["rating"].items()
        part["rating"] = [_parse_rating(cell, names[2], source, line) for line, cell in cells]
        parts.append(part)
    table = pd.concat(parts)
    rated = table[table["rating"].notna()]
    if not len(rated):
        raise UsageError(f"{source} has no ratings")
    user_names, item_names = list(users), list(items)
    repeats = rated[rated.duplicated(["user", "item"])]
    kept = rated
    if len(repeats) and duplicates == "error":
        user, item, rating = repeats.iloc[0]
        first = rated[(rated["user"] == user) & (rated["item"] == item)].iloc[0]["rating"]
        more = f" ({len(repeats)} such repeats in all)" if len(repeats) > 1 else ""
        raise UsageError(
            f"{source}: user {user_names[int(user)]!r} has more than one rating of item "
            f"{item_names[int(item)]!r}: {first:g} and {rating:g}{more}; keep one for each pair, "
            "or give --duplicates mean, first or last"
        )
    if len(repeats):
        kept = rated.groupby(["user", "item"], sort=False)["rating"].agg(duplicates).reset_index()
    places = kept["user"].to_numpy(), kept["item"].to_numpy()
    shape = len(user_names), len(item_names)
    return Ratings(
        names=dict(zip(ROLES, names, strict=True)),
        users=user_names,
        items=item_names,
        matrix=sp.coo_array((kept["rating"].to_numpy(), places), shape=shape).tocsr(),
        empty=table.loc[table["rating"].isna(), ["user", "item"]].to_numpy(),
        n_merged=len(rated) - len(kept),
    )


def read_pairs(source: Source, columns: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Read the user and the item on every line; None among the columns takes the usual one."""
    parts = [part for _, part in _read_columns(source, columns)]
    users, items = ([name for part in parts for name in part[role]] for role in ROLES[:2])
    return users, items


def _read_columns(
    source: Source, columns: Sequence[str | None]
) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yield the names of the columns, and some rows of them, called by their roles."""
    names: tuple[str, ...] = ()
    for table in read_parts(source):
        names = names or choose_columns(source, [*table.frame], columns)
        frame = table.frame.reindex(columns=list(dict.fromkeys([*table.frame, *names])))
        part = frame[[*names]].set_axis(ROLES[: len(names)], axis="columns")
        for role, name in zip(ROLES[:2], names, strict=False):
            cells = replace(table, frame=frame).column(name)
            ids = [nfc("" if cell is None else str(cell).strip()) for cell in cells]
            if "" in ids:
                line = frame.index[ids.index("")]
                raise UsageError(f"{source}, line {line}: no value in column {name!r}")
            part[role] = ids
        yield names, part
    if not names:
        contents = "ratings" if len(columns) == len(ROLES) else "pairs of users and items"
        raise UsageError(f"{source} has no {contents}")


def choose_columns(
    source: Source, columns: list[str], chosen: Sequence[str | None]
) -> tuple[str, ...]:
    """Return the columns of user, item and rating: as chosen, else by name, else by place."""
    listed, hint = ", ".join(columns), delimiter_hint(source, columns)
    for name in chosen:
        if name is not None and name not in columns:
            raise UsageError(f"{source} has no column {name!r}; its columns are: {listed}{hint}")
    roles = ROLES[: len(chosen)]
    needed, options = "users and items", "--user and --item"
    if len(roles) == len(ROLES):
        needed, options = "users, items and ratings", "--user, --item and --rating"
    if len(columns) < len(roles):
        raise UsageError(f"{source} has the columns {listed}; expected those of {needed}{hint}")
    # Names such as user, userId and user_id.
    exact = {name.strip().lower(): name for name in reversed(columns)}
    as_id = {re.sub("[ _-]?id$", "", name): column for name, column in exact.items()}
    names = [
        name or exact.get(role) or as_id.get(role) or ""
        for role, name in zip(roles, chosen, strict=True)
    ]
    missing = [place for place, name in enumerate(names) if not name]
    if len(missing) == 1 and len(columns) == len(roles):
        names[missing[0]] = next(name for name in columns if name not in names)
    elif len(missing) == 1 or len(columns) <= len(ROLES):
        for place in missing:
            names[place] = columns[place]
    name_them = f"name their columns with {options}, among: {listed}"
    if len({*names} - {""}) < len(roles):
        raise UsageError(f"{source}: cannot tell {needed} apart; {name_them}; {MATRIX_HINT}")
    if len(roles) == len(ROLES) and math.isfinite(_parse(names[-1])):
        raise UsageError(
            f"{source}: the first line, {source.delimiter.join(columns)}, looks like a rating; it "
            f"must hold the names of the columns; {MATRIX_HINT}"
        )
    if len(missing) > 1:
        read = ", ".join(f"{role} {name!r}" for role, name in zip(roles, names, strict=True))
        warn(f"{source}: columns are taken by their place: {read}; if that is wrong, {name_them}")
    return tuple(names)


def _parse_rating(cell: Any, name: str, source: Source, line: int) -> float:
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
