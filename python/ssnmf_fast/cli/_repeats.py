"""Several ratings of one item by the same user."""

from __future__ import annotations

import numpy as np

from .._common.arrays import Array
from ._errors import UsageError

DUPLICATES = ("error", "mean", "first", "last")


def merged(
    name: str, ids: tuple[list[str], list[str]], places: Array, values: Array, how: str
) -> tuple[Array, Array]:
    """Return each pair once, and its rating.

    Parameters
    ----------
    name : str
        Of the table, for messages.
    ids : tuple of list of str
        Users and items.
    places : ndarray of int, shape (e, 2)
    values : ndarray, shape (e,)
    how : str
        One of DUPLICATES.
    """
    numbers = places[:, 0] * len(ids[1]) + places[:, 1]
    order = np.argsort(numbers, kind="stable")
    first = np.concatenate([[True], np.diff(numbers[order]) > 0])
    starts = np.flatnonzero(first)
    if len(starts) == len(order):
        return places, values
    if how == "error":
        raise UsageError(_message(name, ids, places, values, order, first))
    sizes = np.diff(np.append(starts, len(order)))
    if how == "mean":
        kept = np.add.reduceat(values[order], starts) / sizes
    else:
        kept = values[order[starts if how == "first" else starts + sizes - 1]]
    return places[order[starts]], kept


def _message(
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
