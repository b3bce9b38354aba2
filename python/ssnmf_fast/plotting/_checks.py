"""Checks of what is to be drawn, and what several pictures derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import short
from .._data.arrays import as_array, require_real
from .._data.border import check_entries
from .._labels import labels_of
from .._topics import Topics, divide_by_sums

_TERMS_IN_A_NAME = 5


def check_table(values: Any, name: str, wanted: str) -> Array:
    """Return a matrix of finite numbers >= 0, float64, that is not empty."""
    if sp.issparse(values):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix. Use {name}.toarray().")
    table = check_finite(values, name, allow_negative=False)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} has shape {table.shape}; expected {wanted}, not empty.")
    return table


def check_row(values: Any, name: str, length: int, wanted: str) -> Array:
    """Return a vector of finite numbers >= 0, float64, of the given length."""
    row = check_finite(values, name, allow_negative=False)
    if row.shape != (length,):
        raise ValueError(f"{name} has shape {row.shape}; expected ({length},), {wanted}.")
    return row


def check_finite(values: Any, name: str, *, allow_negative: bool = True) -> Array:
    """Return finite numbers, float64, of any sign unless it is not allowed."""
    array = as_array(values, name)
    require_real(array.dtype, name)
    with np.errstate(over="ignore"):  # infinity is refused
        numbers = array.astype(np.float64)
    check_entries(numbers, name, allow_negative=allow_negative, limited=False)
    return numbers


def check_names(names: Any, name: str, count: int, of: str) -> list[str]:
    """Return one name for each of `count` things, as strings."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{name} must be a sequence of names; got {short(names)}.")
    listed = [str(one) for one in names]
    if len(listed) != count:
        raise ValueError(f"{name} holds {len(listed)} names; expected one for each {of}: {count}.")
    return listed


def read_named(given: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what `read` makes of each value of a dict, by name, or of the one thing given."""
    named = given if isinstance(given, Mapping) else {"": given}
    return {str(name): read(one) for name, one in named.items()}


def topic_names(topics: Any, count: int) -> list[str]:
    """Return names of topics: their numbers, their largest terms, or those given."""
    if topics is None:
        return [f"topic {number}" for number in range(count)]
    if not isinstance(topics, Topics):
        return check_names(topics, "topics", count, "topic")
    if len(topics) != count:
        raise ValueError(f"topics holds {len(topics)} topics; expected one for each of {count}.")
    names = []
    for topic in topics:
        pairs = zip(topic.terms[:_TERMS_IN_A_NAME], topic.weights, strict=False)
        terms = ", ".join(str(term) for term, weight in pairs if weight > 0)
        names.append(f"{topic.name or topic.topic}: {terms or '(no terms)'}")
    return names


def neighbors_by_class(table: Array) -> Array:
    """Return an order of rows in which those of the same largest column are neighbors.

    Within a column those of the largest share come first; rows of zeros come last.
    """
    part = divide_by_sums(table)
    column = np.where(part.any(axis=1), part.argmax(axis=1), table.shape[1])
    return np.lexsort((-part.max(axis=1), column))


def check_samples(S: Any, y: Any) -> Array:
    """Return the representation, (n, r), its largest entry at most 1; `y` must fit it."""
    table = check_table(S, "S", "(samples, topics)")
    count = y.shape[0] if sp.issparse(y) else len(y) if isinstance(y, Sized) else None
    if count is None:
        raise TypeError(f"y must hold a label for each sample; got {short(y)}.")
    if count != len(table):
        raise ValueError(f"y has {count} rows and S has {len(table)}; expected one per sample.")
    return np.asarray(table / max(float(table.max()), 1.0))  # sums over samples cannot overflow


def check_labels(y: Any, unlabeled: Any) -> tuple[sp.csr_array, list[str]]:
    """Return which samples have which label, (n, k) of 0 and 1, and the names of the labels."""
    labels = labels_of(y, unlabeled)
    if not labels.labeled.any():
        raise ValueError("y has no labeled sample; give labels of some samples.")
    matrix = labels.matrix(np.float64)
    indicators = sp.csr_array(matrix if sp.issparse(matrix) else np.nan_to_num(matrix))
    return indicators, [str(label) for label in labels.classes.tolist()]
