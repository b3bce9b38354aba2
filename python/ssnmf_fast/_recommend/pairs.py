"""Pairs of users and items: their ids, kinds of values, and targets of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import listed, nfc, short
from .._data import arrays

_COLUMNS = ("user", "item", "rating")
_WIDE = (
    "A wide table of users x items becomes pairs by "
    'table.stack().rename_axis(["user", "item"]).reset_index(name="rating").'
)
_LARGEST_RATING = 10  # of nonnegative scales, unless ratings are spread over the scale
_TYPICAL_COUNT = 0.25  # share of the range: the median of counts is below, that of ratings above


class Pairs(NamedTuple):
    """Matrix of values (users x items), and the ids of its rows and columns."""

    X: sp.csr_array
    user_ids: Array
    item_ids: Array
    counted: bool = False  # values are numbers of equal pairs


def matrix_of(X: Any, name: str) -> sp.csr_array | None:
    """Return X as a matrix if it is one; 0 and NaN of an array do not count as pairs."""
    if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)):
        return None
    X = arrays.inspect_sparse(X, name)[0] if sp.issparse(X) else arrays.as_array(X, name)
    dtype = arrays.float_dtype(X.dtype, name)
    X = X if sp.issparse(X) else np.where(np.isnan(X), 0, X)
    matrix = sp.csr_array(X, dtype=dtype, copy=True)
    matrix.sum_duplicates()
    return _in_range(matrix, name)


def _in_range(X: sp.csr_array, name: str) -> sp.csr_array:
    if not (np.abs(X.data) <= np.finfo(np.float32).max).all():
        raise ValueError(f"{name} has NaN, infinity or numbers too large for float32; rescale.")
    return X


def read_triplets(
    users: Any, items: Any, values: Any, columns: Iterable[str] | None
) -> tuple[Array, Array, Array | None]:
    """Return ids and values of pairs, from arrays or from the columns of a data frame."""
    arrays.refuse_on_disk(users, "Recommender")
    if type(users).__module__.split(".")[0] in ("dask", "distributed"):
        raise TypeError("users is a Dask object; Recommender needs pairs in memory: .compute().")
    if hasattr(users, "columns") and hasattr(users, "__getitem__"):
        if items is not None or values is not None:
            raise TypeError("items and values must be columns of the data frame; use columns.")
        names = list(columns) if columns is not None else [c for c in _COLUMNS if c in users]
        missing = [name for name in names if name not in users]
        if len(names) not in (2, 3) or missing:
            raise ValueError(
                f"columns must name the columns of users, items and, optionally, values; got "
                f"{names!r}, but the data frame has {listed([*users.columns])}. {_WIDE}"
            )
        users, items, values = [*(users[name] for name in names), None][:3]
    elif columns is not None:
        raise TypeError("columns are for a data frame; give one, or users and items.")
    if items is None:
        hint = "give two arrays of ids, a data frame, or a sparse matrix of users and items."
        raise TypeError(f"users is {short(users)} without items; {hint}")
    ids = read_ids(users, "users"), read_ids(items, "items")
    values = None if values is None else _numbers(values, "values")
    for name, vector in (("items", ids[1]), ("values", values)):
        if vector is not None and len(vector) != len(ids[0]):
            raise ValueError(
                f"{name} has {len(vector)} entries, but users has {len(ids[0])}; expected the same."
            )
    return *ids, values


def read_ids(ids: Any, name: str) -> Array:
    """Return a vector of ids of one type, or of objects; they are neither rounded nor missing."""
    if isinstance(ids, (str, bytes, Set, Mapping)) or not hasattr(ids, "__iter__"):
        kind = type(ids).__name__
        raise TypeError(f"{name} must be a list of ids; got {short(ids)} of type {kind}.")
    ids = arrays.unmask(ids, name, allow_nan=False)
    array = np.asarray(ids) if hasattr(ids, "__array__") else np.fromiter(ids, object)
    if array.ndim != 1 or (len(array) and isinstance(array[0], (list, np.ndarray))):
        shape = array.shape if array.ndim != 1 else (*array.shape, *np.shape(array[0]))
        raise ValueError(f"{name} must be a vector of ids; got shape {shape}.")
    if array.dtype.kind == "O":
        return _of_one_kind(array.tolist(), name)
    if array.dtype.kind in "fcmM" and not (finite := np.isfinite(array)).all():
        raise ValueError(f"{name}[{int(finite.argmin())}] is missing; leave it out.")
    if array.dtype.kind in "mM":
        exact = array.astype(f"{array.dtype.kind}8[us]")  # which Python has too
        if (exact != array).any():
            raise ValueError(f"{name} holds times finer than microseconds; give text.")
        return exact
    if array.dtype.kind != "f":
        return array
    for k in np.flatnonzero(np.abs(array) >= 2 / np.finfo(array.dtype).eps)[:1]:
        _plain(array[k], f"{name}[{k}]")  # refuses it
    return array.astype(np.int64) if np.array_equal(array, np.trunc(array)) else array


def _of_one_kind(values: list[Any], name: str) -> Array:
    """Return ids as integers, text or times if all are such, and otherwise as objects."""
    if not {*map(type, values)} <= {str, int}:
        values = [_plain(value, f"{name}[{k}]") for k, value in enumerate(values)]
    kinds = {*map(type, values)}
    if kinds <= {str} or kinds <= {bool} or kinds <= {float}:
        return np.array(values)
    if kinds <= {int, bool}:
        array = np.array(values)
        return array if array.dtype.kind in "iu" else np.fromiter(values, object)  # beyond 64 bits
    if all(isinstance(value, date) and getattr(value, "tzinfo", None) is None for value in values):
        return np.array(values, dtype="M8[us]")
    return np.fromiter(values, object)


def _plain(value: Any, name: str) -> Any:
    """Return an id as an object of Python, with whole numbers as integers."""
    if arrays.is_missing(value):
        raise ValueError(f"{name} is missing; leave it out.")
    if isinstance(value, (float, np.floating)) and value == np.trunc(value):
        if not abs(value) < 2 / np.finfo(type(value)).eps:  # from there on floats skip integers
            rounded = f"{name} is {short(float(value))}, a rounded number, not an exact id"
            raise ValueError(f"{rounded}; read the ids as text or as integers.")
        return int(value)
    value = value.to_datetime64() if getattr(value, "nanosecond", 0) else value
    if isinstance(value, np.datetime64):
        return read_ids(np.array([value]), name)[0].item()
    value = value.item() if isinstance(value, np.generic) else value
    try:
        hash(value)
    except TypeError as error:
        kind = type(value).__name__
        raise TypeError(f"{name} is {short(value)}; a {kind} cannot be an id.") from error
    return value


def _numbers(values: Any, name: str) -> Array:
    array = arrays.as_array(values, name, allow_objects=True)
    if array.dtype.kind == "O":
        objects = (np.nan if arrays.is_missing(v) else v for v in array.ravel().tolist())
        array = np.fromiter(objects, object)
    try:
        if array.dtype.kind in "cmM":
            raise TypeError(f"{array.dtype} is not a type of numbers")
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers; got {short(values)}.") from error
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        place = f"{name}[{int((~np.isfinite(numbers)).argmax())}]" if numbers.ndim == 1 else name
        raise ValueError(f"{place} is not finite; drop such pairs, or give None for likes.")
    return numbers


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
        X, _ = _merged((rows, at), numbers, (len(user_ids), len(item_ids)))
        pairs = Pairs(_in_range(X, "values"), user_ids, item_ids, numbers is None)
    if not pairs.X.nnz:
        raise ValueError("There is no pair of a user and an item; give at least one.")
    pairs.X.sort_indices()
    return pairs


def _merged(places: Any, values: Any, shape: tuple[int, int]) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the means of the values of each pair, or its count; and its count."""
    counts = sp.csr_array(sp.coo_array((np.ones(len(places[0])), places), shape))
    if values is None:
        return counts, counts
    X = sp.csr_array(sp.coo_array((values, places), shape))
    X.data /= counts.data
    return X, counts


def numbered(ids: Array) -> tuple[Array, Array]:
    """Return unique ids, sorted if possible, and the number of each id."""
    if ids.dtype.kind != "O":
        unique, numbers = np.unique(ids, return_inverse=True)
    else:  # which Python compares without rounding
        place: dict[Any, int] = {}
        numbers = np.array([place.setdefault(value, len(place)) for value in ids], dtype=np.int64)
        unique = np.fromiter(place, object)
        with suppress(TypeError):  # such as text and numbers
            order = sorted(range(len(unique)), key=unique.__getitem__)
            unique, numbers = unique[order], np.argsort(order)[numbers]
    forms = [*map(nfc, unique.tolist())]
    if len(first := {form: k for k, form in reversed([*enumerate(forms)])}) < len(forms):
        places, of = np.unique([first[form] for form in forms], return_inverse=True)
        unique, numbers = unique[places], of[numbers]
    return unique, numbers


def places_of(values: Any, ids: Array, name: str = "ids") -> Array:
    """Return the numbers of ids, -1 for unknown ids."""
    place = {nfc(value): number for number, value in enumerate(ids.tolist())}
    values = read_ids(values, name).tolist()
    return np.array([place.get(nfc(value), -1) for value in values], dtype=np.int64)


def places_in(fit: Pairs, test: Pairs) -> Array:
    """Return the items of test pairs in a fit; raise ValueError if no user or no item is there."""
    for what in ("user", "item"):
        ids, fitted = (getattr(pairs, f"{what}_ids") for pairs in (test, fit))
        places = places_of(ids, fitted)
        if (places < 0).all():
            here, there = (short(side.tolist()[0]) for side in (ids, fitted))
            raise ValueError(
                f"No {what} of these pairs is in the fit: ids here are such as {here}, those of "
                f"the fit such as {there}."
            )
    return places


def kind_of(values: Array, counted: bool = False) -> str:
    """Return the kind of values: ratings on a scale ("graded"), "counts", or equal ("ones")."""
    low, high, middle = float(values.min()), float(values.max()), float(np.median(values))
    if low == high:
        return "ones"
    few_large = low >= 0 and high > _LARGEST_RATING and middle < low + _TYPICAL_COUNT * (high - low)
    return "counts" if counted or few_large or middle == low >= 1 else "graded"


def targets(X: sp.csr_array, kind: str, scale: Sequence[float]) -> sp.csr_array:
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
        logs, rows, n = np.log1p(X.data.astype(np.float32)), arrays.entry_rows(X.indptr), X.shape[0]
        sums = np.bincount(rows, np.nan_to_num(logs), n)
        means = sums / np.maximum(np.bincount(rows, ~unknown, n), 1)
        Z.data = (logs / np.where(means > 0, means, 1)[rows]).astype(np.float32)
    else:
        Z.data = np.ones(X.nnz, dtype=np.float32)
    Z.data[unknown] = 1
    return Z


def read_histories(
    histories: Any, item_ids: Array, kind: str, what: str = "histories"
) -> tuple[list[Any], sp.csr_array]:
    """Return names of new users and their values of known items, from {name: items}.

    Repeated items are merged as in a fit; listed items are liked, if values are graded (NaN).
    """
    X, m = matrix_of(histories, what), len(item_ids)
    if X is not None:
        if X.shape[1] != m:
            raise ValueError(f"{what} has {X.shape[1]} columns; expected {m}, one for each item.")
        return list(range(X.shape[0])), X
    if not isinstance(histories, Mapping):
        raise TypeError(
            f"{what} must be a mapping of names to lists of items, or to mappings of items to "
            f"values, or a sparse matrix; got {short(histories)}."
        )
    rows, at, values, liked = list[int](), list[Any](), list[Any](), list[bool]()
    for row, (name, own) in enumerate(histories.items()):
        if isinstance(own, (str, bytes)) or not isinstance(own, Iterable):
            raise TypeError(f"{what}[{short(name)}] must be a list of items; got {short(own)}.")
        at += own.tolist() if isinstance(own, np.ndarray) and own.dtype.kind in "iuU" else own
        rows += [row] * (len(at) - len(rows))
        liked.append(not isinstance(own, Mapping))
        values += own.values() if isinstance(own, Mapping) else [1.0] * (len(at) - len(values))
    try:
        columns, numbers = places_of(at, item_ids, what), _numbers(values, what)
    except (TypeError, ValueError):
        for name, own in histories.items():  # say whose
            place = f"{what}[{short(name)}]"
            read_ids([*own], place)
            _numbers([*own.values()] if isinstance(own, Mapping) else [], place)
        raise
    mask = columns >= 0
    places = np.array(rows, dtype=np.int64)[mask], columns[mask]
    X, counts = _merged(places, numbers[mask], (len(histories), m))
    X.sort_indices()
    alone = np.repeat(np.array(liked, dtype=bool), np.diff(X.indptr))
    X.data[alone] = np.nan if kind == "graded" else counts.data[alone]
    return list(histories), X
