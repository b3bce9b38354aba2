"""Several labels or targets for each sample: indicators, lists of labels, real numbers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._common.text import as_first_given, listed, nfc, short
from .._data.arrays import as_array, is_missing, read_csr
from ._classes import ClassLabels, Targets, refuse_lists, unmask_labels
from ._doubts import warn_of_doubts

_LISTS = (list, tuple, set, frozenset, np.ndarray)


class Indicators(Targets):
    """Several labels for each sample, as a matrix of 0 and 1."""

    def __init__(self, y: object, n_labels: int | None = None) -> None:
        matrix: Any = read_csr(y, "y").astype(np.float64) if sp.issparse(y) else _numbers(y)
        if matrix.ndim != 2 or (n_labels is not None and matrix.shape[1] != n_labels):
            expected = "(samples, labels)" if n_labels is None else f"(samples, {n_labels})"
            raise ValueError(f"y has shape {matrix.shape}; expected {expected}.")
        if sp.issparse(matrix):
            matrix.sum_duplicates()
        values = matrix.data if sp.issparse(matrix) else matrix[~np.isnan(matrix)]
        if not (valid := np.isin(values, (0, 1, -1))).all():
            raise ValueError(
                f"y has several columns, and holds {values[~valid][0]:g}; an indicator matrix has "
                "0 and 1, or -1 in unlabeled rows. Continuous targets are for SSNMFRegressor."
            )
        counts = np.asarray((matrix == -1).sum(axis=1)).ravel()
        if (partly := (counts > 0) & (counts < matrix.shape[1])).any():
            raise ValueError(
                f"y[{int(partly.argmax())}] holds -1 in some columns only; expected a row of -1 "
                "for an unlabeled sample. Mark single missing entries of a dense y by NaN."
            )
        self.labeled = np.asarray(counts != matrix.shape[1])
        if sp.issparse(matrix):
            matrix.data[matrix.data == -1] = 0
            matrix.eliminate_zeros()
            self.complete = self.labeled
        else:
            self.labeled &= ~np.isnan(matrix).all(axis=1)
            matrix = np.where(self.labeled[:, None], matrix, 0)
            self.complete = self.labeled & ~np.isnan(matrix).any(axis=1)
            matrix = matrix if np.isnan(matrix).any() else sp.csr_array(matrix)
        self._matrix = matrix
        names = getattr(y, "columns", None)  # of a data frame
        self.classes = np.arange(matrix.shape[1]) if names is None else names_array(names)
        if names is not None and n_labels is None:
            sums = np.asarray((self._matrix == 1).sum(axis=0)).ravel().tolist()
            warn_of_doubts(dict(zip(names, sums, strict=True)), "y", None, several=True)

    @property
    def values(self) -> Array:
        rows = self._matrix[self.complete]
        values: Array = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        return values.astype(np.int64)

    def matrix(self, dtype: npt.DTypeLike) -> Any:
        """Return Y, sparse unless entries are missing; unlabeled rows are zeros."""
        return self._matrix.astype(dtype)


class RealTargets(Targets):
    """Real targets; `complete` marks rows without NaN and `values` holds them."""

    def __init__(self, y: object, n_targets: int | None = None) -> None:
        values = _numbers(read_csr(y, "y").toarray() if sp.issparse(y) else y)
        if values.ndim not in (1, 2) or values.size == 0:
            raise ValueError(f"y has shape {values.shape}; expected (samples,) or (samples, k).")
        self.n_targets = 0 if values.ndim == 1 else values.shape[1]
        if n_targets is not None and max(n_targets, 1) != max(self.n_targets, 1):
            raise ValueError(f"y has shape {values.shape}; expected {max(n_targets, 1)} targets.")
        if np.isinf(values).any():
            raise ValueError("y contains infinity; give finite targets, or NaN for unlabeled.")
        self._values = values.reshape(len(values), -1)
        absent = np.isnan(self._values)
        self.labeled = np.asarray(~absent.all(axis=1))
        self.complete: Array = np.asarray(~absent.any(axis=1))
        self.values = values[self.complete]

    def measure(self, weights: Array, before: Any = np.nan) -> Array:
        """Set the offset, the smallest weighted or given target (NaN if there is no target)."""
        self.labeled = self.labeled & (weights > 0)
        self.offset = np.fmin(np.fmin.reduce(self._values[self.labeled], initial=np.nan), before)
        return np.where(np.isnan(self._values), 0.0, weights[:, None])

    def matrix(self, dtype: npt.DTypeLike) -> Array:
        """Return Y - offset, 0 in unlabeled rows and NaN for single missing entries."""
        above = np.maximum(self._values - self.offset, 0)
        return np.where(self.labeled[:, None], above, 0).astype(dtype)


class LabelLists(Targets):
    """Topics that documents may have, from labels, lists of labels, or indicators.

    `names` holds the named topics, `members` is a boolean sparse matrix (documents x topics),
    `labeled` marks documents with any topic, and `several` tells if several are possible.  `order`
    (k,) sorts the names as classes; the columns of a matrix stay as they are.
    """

    def __init__(self, y: object, names: Any = None, marker: object = "auto") -> None:
        y = unmask_labels(y) if hasattr(y, "__iter__") else np.asarray(y)
        topics = None if names is None else _check_names(list(names))
        shape: tuple[int, ...] = getattr(y, "shape", ())
        if sp.issparse(y) or (len(shape) == 2 and shape[1] > 1):
            self._read_matrix(y, topics)
            self.order: Array = np.arange(len(self.names))
        elif getattr(y, "ndim", 1) == 1 and any(map(_is_list, y)):
            self._name([_read_list(i, entry) for i, entry in enumerate(y)], topics)
            counts = dict(zip(self.names.tolist(), self.members.sum(axis=0).tolist(), strict=True))
            if topics is None:
                warn_of_doubts(counts, "y", marker, several=True)
        else:
            self.several = False
            labels = ClassLabels(y, marker, topics)
            values = iter(labels.values.tolist())
            self._name([[next(values)] if has else [] for has in labels.labeled], topics)
        self.labeled = self.members.sum(axis=1) > 0
        if not self.labeled.any():
            raise ValueError("y names no topic for any document. Name some, or use NMF.")

    def _read_matrix(self, y: object, topics: Array | None) -> None:
        indicators = Indicators(y)
        k = len(indicators.classes)
        if topics is not None and len(topics) != k:
            expected = f"one for each of the {k} columns of y"
            raise ValueError(f"topic_names holds {len(topics)} names; expected {expected}.")
        self.names = _check_names(indicators.classes.tolist()) if topics is None else topics
        matrix = indicators.matrix(np.float64)
        if not sp.issparse(matrix):
            row, column = np.argwhere(np.isnan(matrix))[0]
            raise ValueError(
                f"y[{row}, {column}] is NaN, but other entries of its row are not; expected 0 or 1 "
                "for every topic, or a row of NaN for an unlabeled document."
            )
        self.members = sp.csr_array(matrix != 0)

    def _name(self, lists: Sequence[Sequence[Any]], topics: Array | None) -> None:
        earlier = () if topics is None else topics.tolist()
        spelling = as_first_given((name for names in lists for name in names), earlier)
        names = set(spelling.values())
        try:
            self.names = _check_names(sorted(names)) if topics is None else topics
        except TypeError as error:
            why = "y names topics by text and by numbers, which cannot be sorted"
            raise ValueError(f"{why}; use one kind, or give topic_names.") from error
        place = {name: k for k, name in enumerate(self.names.tolist())}
        self.order = sorting(self.names)
        unknown = [name for name in names if name not in place]
        if unknown:
            why = f"not one of topic_names: {listed(self.names.tolist())}"
            raise ValueError(f"y names the topic {short(unknown[0])}, which is {why}.")
        lists = [[spelling[name] for name in names] for names in lists]
        self.members = indicator_matrix(lists, place, np.arange(len(lists)), len(lists)) != 0

    def part(self, rows: Matrix) -> LabelLists:
        part = copy.copy(self)
        part.members, part.labeled = self.members[rows], self.labeled[rows]
        return part

    def matrix(self, dtype: npt.DTypeLike) -> sp.csr_array:
        """Return Y, with classes in their order."""
        return sp.csr_array(self.members[:, self.order].astype(dtype))

    def support(self, rank: int) -> Array:
        """Return T, (n, rank): whether a document may have a topic."""
        return allowed(len(self.labeled), self.labeled, self.members[self.labeled], rank)


def allowed(
    n: int, rows: Array | slice, members: Any, owner: Array | int, *, free: bool = False
) -> Array:
    """Return T of TS-NMF, (n, r): which components each of n samples may use.

    `members` (l, k) are the classes of samples `rows`, which use the components of these classes;
    samples without a class use all (MacMillan and Wilson 2017, L of eq. 2).  `owner` (r,) are the
    classes of the components.  Components from class k on have none; `free` tells whether samples
    with a class use these, too.
    """
    uses = np.asarray((members.toarray() if sp.issparse(members) else members) > 0)
    k, owner = uses.shape[1], np.arange(owner) if isinstance(owner, int) else owner
    padded = np.pad(uses, ((0, 0), (0, 1)), constant_values=free)
    T = np.ones((n, len(owner)), dtype=bool)
    T[rows] = padded[:, np.minimum(owner, k)] | ~uses.any(axis=1, keepdims=True)
    return T


def _is_list(entry: object) -> bool:
    return isinstance(entry, _LISTS) and entry is not np.ma.masked


def _read_list(i: int, entry: Any) -> list[Any]:
    """Return the topics of document i without missing values."""
    if _is_list(entry):
        labels = (v for v in entry if not is_missing(v))
        return [v.item() if isinstance(v, np.generic) else v for v in labels]
    if not is_missing(entry):
        hint = "expected a list (empty for an unlabeled document) or None."
        raise ValueError(f"y[{i}] is {short(entry)}, but other entries are lists of topics; {hint}")
    return []


def indicator_matrix(
    lists: Sequence[Sequence[Any]], position: Mapping[Any, int], rows: Array, n: int
) -> sp.csr_array:
    """Return the counts of labels in the list of each sample, (n, k)."""
    columns = [position[name] for names in lists for name in names]
    pairs = (np.repeat(rows, [len(names) for names in lists]), np.array(columns, dtype=np.int64))
    return sp.csr_array((np.ones(len(columns)), pairs), shape=(n, len(position)))


def is_indicator(y: object) -> bool:
    """Return whether `y` is a matrix of labels, not a vector or column of class labels."""
    if sp.issparse(y):
        return True
    refuse_lists(y, "y")
    shape = as_array(unmask_labels(y), "y", allow_objects=True).shape
    return len(shape) == 2 and shape[1] > 1


def labels_of(
    y: object, marker: object, known_classes: Array | None = None
) -> ClassLabels | Indicators:
    return Indicators(y) if is_indicator(y) else ClassLabels(y, marker, known_classes)


def _numbers(y: Any) -> Array:
    array = as_array(y, "y", allow_nan=True)
    try:
        if array.dtype.kind in "cmM":
            raise TypeError(array.dtype)
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers; got dtype {array.dtype}.") from error


def names_array(names: Any) -> Array:
    names = list(names)
    array = np.array(names)
    if array.ndim == 1 and array.tolist() == names:
        return array
    return np.fromiter(names, object, len(names))


def sorting(names: Array) -> Array:
    """Return the order of sorted names; names of several kinds are sorted as text."""
    return np.argsort(names.astype(str) if names.dtype == object else names, kind="stable")


def _check_names(names: list[Any]) -> Array:
    forms = [nfc(name) for name in names]
    if len(set(forms)) < len(forms):
        repeated = next(name for name in forms if forms.count(name) > 1)
        raise ValueError(f"topic_names holds {short(repeated)} twice.")
    return names_array(names)
