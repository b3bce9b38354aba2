"""Pairs of users and items: their ids, kinds of values, and targets of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import nfc, short
from .._data.arrays import as_array, entry_rows, inspect_sparse, refuse_on_disk

Kind = Literal["graded", "counts", "ones"]
_COLUMNS = ("user", "item", "rating")
_LARGEST_RATING = 10  # of nonnegative scales, unless ratings are spread over the scale
_TYPICAL_COUNT = 0.25  # share of the range: the median of counts is below, that of ratings above


class Pairs(NamedTuple):
    """Matrix of values (users x items, float32), and the ids of its rows and columns."""

    X: sp.csr_array
    user_ids: Array
    item_ids: Array


def matrix_of(X: Any, name: str) -> sp.csr_array | None:
    """Return X as a matrix if it is one; 0 and NaN of an array do not count as pairs."""
    if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)):
        return None
    if sp.issparse(X):
        X = inspect_sparse(X, name)[0]
    else:
        X = np.where(np.isnan(as_array(X, name).astype(np.float64)), 0, X)
    with np.errstate(over="ignore"):
        matrix = sp.csr_array(X, dtype=np.float32, copy=True)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} holds NaN or infinity, or numbers too large for float32.")
    return matrix


def read_triplets(
    users: Any, items: Any, values: Any, columns: Iterable[str] | None
) -> tuple[Array, Array, Array | None]:
    """Return ids and values of pairs, from arrays or from the columns of a data frame."""
    refuse_on_disk(users, "Recommender")
    if type(users).__module__.split(".")[0] in ("dask", "distributed"):
        raise TypeError("users is a Dask object; Recommender needs pairs in memory: .compute().")
    table = hasattr(users, "columns") and hasattr(users, "__getitem__")
    if table:
        if items is not None or values is not None:
            raise TypeError("items and values must be columns of the data frame; use columns.")
        names = list(columns) if columns is not None else [c for c in _COLUMNS if c in users]
        missing = [name for name in names if name not in users]
        if len(names) not in (2, 3) or missing:
            known = ", ".join(map(repr, users.columns))
            raise ValueError(
                f"columns must name the columns of users, items and, optionally, values; got "
                f"{names!r}, but the data frame has {known}."
            )
        users, items, *rest = (users[name] for name in names)
        values = rest[0] if rest else None
    elif columns is not None:
        raise TypeError("columns are for a data frame; give one, or users and items.")
    if items is None:
        raise TypeError(
            f"users is {short(users)} without items; give two arrays of ids, a data frame, or a "
            "sparse matrix of users and items."
        )
    ids = read_ids(users, "users"), read_ids(items, "items")
    if values is not None:
        values = _numbers(values)
    for name, one in (("items", ids[1]), ("values", values)):
        if one is not None and len(one) != len(ids[0]):
            raise ValueError(
                f"{name} has {len(one)} entries, but users has {len(ids[0])}; expected the same."
            )
    return *ids, values


def read_ids(given: Any, name: str) -> Array:
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector of ids; got shape {array.shape}.")
    absent = np.zeros(len(array), dtype=bool)
    if array.dtype.kind == "O":
        absent = np.array([one is None or one != one or _is_na(one) for one in array], dtype=bool)
        kinds = {str if isinstance(one, str) else type(one) for one in array}
        if kinds <= {str} or kinds <= {int, float}:
            array = np.array(array.tolist())
    if array.dtype.kind == "f":
        absent = ~np.isfinite(array)
    elif array.dtype.kind in "mM":
        absent = np.isnat(array)
        array = array.astype(f"{array.dtype.kind}8[us]")  # which Python has too
    if absent.any():
        raise ValueError(
            f"{name}[{int(absent.argmax())}] is missing; drop pairs without a user or an item."
        )
    if array.dtype.kind == "f" and np.array_equal(array, np.trunc(array)):
        array = array.astype(np.int64)
    return array


def _is_na(one: object) -> bool:
    return type(one).__name__ in ("NAType", "NaTType")


def _numbers(values: Any) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values must be numbers; got {short(values)}.") from error
    if array.ndim != 1 or not np.isfinite(array).all():
        place = f"values[{int((~np.isfinite(array)).argmax())}]" if array.ndim == 1 else "values"
        raise ValueError(f"{place} is not finite; drop such pairs, or give None for likes.")
    return array


def read_pairs(users: Any, items: Any, values: Any, columns: Iterable[str] | None) -> Pairs:
    """Return pairs from triplets, a data frame or a matrix.

    The value of a repeated pair is the mean of its values or, without values, its count.
    """
    X = matrix_of(users, "The matrix of users and items") if items is None else None
    if X is not None:
        pairs = Pairs(X, np.arange(X.shape[0]), np.arange(X.shape[1]))
    else:
        of_users, of_items, numbers = read_triplets(users, items, values, columns)
        user_ids, rows = numbered(of_users)
        item_ids, at = numbered(of_items)
        shape = len(user_ids), len(item_ids)
        X = sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, at)), shape))
        if numbers is not None:
            counts = X.data
            X = sp.csr_array(sp.coo_array((numbers, (rows, at)), shape))
            X.data /= counts
        with np.errstate(over="ignore"):
            pairs = Pairs(X.astype(np.float32), user_ids, item_ids)
    if not pairs.X.nnz:
        raise ValueError("There is no pair of a user and an item; give at least one.")
    if not np.isfinite(pairs.X.data).all():
        raise ValueError("values holds a number that is too large for float32; rescale values.")
    pairs.X.sort_indices()
    return pairs


def numbered(ids: Array) -> tuple[Array, Array]:
    """Return unique ids, sorted if possible, and the number of each id."""
    try:
        found, numbers = np.unique(ids, return_inverse=True)
        numbers = np.asarray(numbers).ravel()
    except TypeError:  # such as text and numbers
        place: dict[Any, int] = {}
        numbers = np.array([place.setdefault(one, len(place)) for one in ids], dtype=np.int64)
        found = np.empty(len(place), dtype=object)
        found[:] = list(place)
    forms = [*map(nfc, found.tolist())]
    if len(first := {form: k for k, form in reversed([*enumerate(forms)])}) < len(forms):
        kept, of = np.unique([first[form] for form in forms], return_inverse=True)
        found, numbers = found[kept], np.asarray(of).ravel()[numbers]
    return found, numbers


def places_of(asked: Any, ids: Array) -> Array:
    """Return the numbers of ids, -1 for unknown ids."""
    place = {nfc(one): number for number, one in enumerate(ids.tolist())}
    asked = asked.tolist() if hasattr(asked, "tolist") else list(asked)
    return np.array([place.get(nfc(one), -1) for one in asked], dtype=np.int64)


def kind_of(values: Array) -> Kind:
    """Return the kind of values: ratings on a scale ("graded"), "counts", or equal ("ones")."""
    low, high, middle = float(values.min()), float(values.max()), float(np.median(values))
    if low == high:
        return "ones"
    few_large = low >= 0 and high > _LARGEST_RATING and middle < low + _TYPICAL_COUNT * (high - low)
    return "counts" if few_large or middle == low >= 1 else "graded"


def targets(X: sp.csr_array, kind: Kind, scale: tuple[float, float]) -> sp.csr_array:
    """Return the targets of the model for each pair; 0 means no interest.

    Ratings are scaled to 0 (lowest) to 1; logarithms of counts are divided by the user's mean.
    """
    if kind == "counts" and (X.data < 0).any():
        raise ValueError(f"values are counts, but one is {X.data.min():g}; give values='graded'.")
    Z, unknown = X.copy(), np.isnan(X.data)  # new users like items without values
    if kind == "graded":
        low, high = scale
        Z.data = np.clip((X.data - low) / ((high - low) or 1.0), 0, 1).astype(np.float32)
    elif kind == "counts":
        logs, rows, n = np.log1p(X.data), entry_rows(X.indptr), X.shape[0]
        sums = np.bincount(rows, np.nan_to_num(logs), n)
        means = sums / np.maximum(np.bincount(rows, ~unknown, n), 1)
        Z.data = (logs / np.where(means > 0, means, 1)[rows]).astype(np.float32)
    else:
        Z.data = np.ones_like(X.data)
    Z.data[unknown] = 1
    return Z


def read_histories(
    histories: Any, item_ids: Array, what: str = "histories"
) -> tuple[list[Any], sp.csr_array]:
    """Return names of new users and their values of known items, from {name: items}."""
    m = len(item_ids)
    X = matrix_of(histories, what)
    if X is not None:
        if X.shape[1] != m:
            raise ValueError(f"{what} has {X.shape[1]} columns; expected {m}, one for each item.")
        return list(range(X.shape[0])), X
    if not isinstance(histories, Mapping):
        raise TypeError(
            f"{what} must be a mapping of names to lists of items, or to mappings of items to "
            f"values, or a sparse matrix; got {short(histories)}."
        )
    rows, at, values = [], [], []
    for row, (name, own) in enumerate(histories.items()):
        if isinstance(own, str) or not isinstance(own, Iterable):
            raise TypeError(f"{what}[{name!r}] must be a list of items; got {short(own)}.")
        items = list(own)
        numbers = list(own.values()) if isinstance(own, Mapping) else [np.nan] * len(items)
        rows += [row] * len(items)
        at += items
        values += numbers
    columns = places_of(at, item_ids)
    known = columns >= 0
    parts = np.array(values, dtype=np.float32)[known], (np.array(rows)[known], columns[known])
    X = sp.coo_array(parts, (len(histories), m)) if len(rows) else sp.csr_array((len(histories), m))
    X = sp.csr_array(X, dtype=np.float32)
    X.sum_duplicates()
    X.sort_indices()
    return list(histories), X
