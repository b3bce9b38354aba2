"""Several labels for each sample, as lists; also as one label each, or as a matrix of 0 and 1."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import unmasked_labels
from ._absent import is_missing
from ._classes import ClassLabels
from ._indicators import Indicators, names_array

_LISTS = (list, tuple, set, frozenset, np.ndarray)


class LabelLists:
    """Topics that documents may have.

    `names` holds the named topics, `members` the pairs (document, topic) as a boolean sparse
    matrix, and `labeled` marks the documents of which anything is said.  `several` says whether
    they were given as lists or as a matrix, so that a document may have several.
    """

    def __init__(self, y: Any, names: Any = None, marker: Any = "auto") -> None:
        self.names: Array
        y = unmasked_labels(y) if hasattr(y, "__iter__") else np.asarray(y)
        self.several = True  # may a document have several topics?
        self._given = None if names is None else _checked_names(list(names))
        if sp.issparse(y) or _is_matrix(y):
            self._read_matrix(y)
        elif getattr(y, "ndim", 1) == 1 and any(isinstance(entry, _LISTS) for entry in y):
            self._read_lists(list(y))
        else:
            self._read_single(y, marker)
        self.labeled = self.members.sum(axis=1) > 0
        if not self.labeled.any():
            raise ValueError(
                "y names no topic for any document. Name the topics of some, or use NMF to fit "
                "without them."
            )

    def _read_matrix(self, y: Any) -> None:
        indicators = Indicators(y)
        k = len(indicators.classes)
        if self._given is not None and len(self._given) != k:
            raise ValueError(
                f"topic_names holds {len(self._given)} names; expected one for each of the {k} "
                "columns of y."
            )
        given = self._given
        self.names = _checked_names(indicators.classes.tolist()) if given is None else given
        matrix = indicators.matrix(np.float64)
        if not sp.issparse(matrix):
            row, column = np.argwhere(np.isnan(matrix))[0]
            raise ValueError(
                f"y[{row}, {column}] is NaN beside other entries of its row; expected 0 or 1 for "
                "every topic, or a whole row of NaN for an unlabeled document."
            )
        self.members = sp.csr_array(matrix != 0)

    def _read_single(self, y: Any, marker: Any) -> None:
        self.several = False
        labels = ClassLabels(y, marker)
        found = labels.known.tolist()
        self._name([[name] for name in found], np.flatnonzero(labels.labeled), len(labels.labeled))

    def _read_lists(self, y: list[Any]) -> None:
        rows, lists = [], []
        for i, entry in enumerate(y):
            if not isinstance(entry, _LISTS):
                if is_missing(entry):
                    continue
                raise ValueError(
                    f"y[{i}] is {entry!r} beside lists of topics; expected a list of topics, or "
                    "an empty one or None for an unlabeled document."
                )
            rows.append(i)
            lists.append([v.item() if isinstance(v, np.generic) else v for v in entry])
        self._name(lists, np.array(rows, dtype=np.int64), len(y))

    def _name(self, lists: Sequence[Sequence[Any]], rows: Array, n_documents: int) -> None:
        """Give every topic its column."""
        found = {name for names in lists for name in names}
        given = self._given
        self.names = _checked_names(_in_order(found)) if given is None else given
        place = {name: k for k, name in enumerate(self.names.tolist())}
        unknown = [name for name in found if name not in place]
        if unknown:
            raise ValueError(
                f"y names the topic {unknown[0]!r}, which is none of topic_names "
                f"{self.names.tolist()}."
            )
        self.members = indicator_matrix(lists, place, rows, n_documents) != 0

    def part(self, rows: Any) -> LabelLists:
        """Return the topics of some documents."""
        part = copy.copy(self)
        part.members, part.labeled = self.members[rows], self.labeled[rows]
        return part

    def targets(self) -> ClassLabels | Indicators:
        """Return the topics as classes or, where a document may have several, as indicators."""
        if not self.several:
            codes = np.asarray(self.members.argmax(axis=1)).ravel()
            return ClassLabels(
                np.where(self.labeled, codes, -1), -1, known_classes=np.arange(len(self.names))
            )
        matrix = self.members.toarray().astype(np.float64)
        matrix[~self.labeled] = np.nan
        return Indicators(matrix)

    def support(self, rank: int, free_in_labeled: bool) -> Array:
        """Return T, (n, rank): whether a document may have a topic.

        Topics beyond the named ones are free: unlabeled documents may have them, and labeled
        ones if asked for.
        """
        n, k = self.members.shape
        T = np.ones((n, rank), dtype=bool)
        T[self.labeled, :k] = self.members[self.labeled].toarray()
        if not free_in_labeled:
            T[self.labeled, k:] = 0
        return T


def indicator_matrix(
    lists: Sequence[Sequence[Any]], position: Mapping[Any, int], rows: Array, n: int
) -> sp.csr_array:
    """Return how often each label is in the list of a sample, (n, k).

    `position` numbers the labels, and `rows` are the samples of the lists; others have no label.
    """
    columns = [position[name] for names in lists for name in names]
    pairs = (np.repeat(rows, [len(names) for names in lists]), np.array(columns, dtype=np.int64))
    return sp.csr_array((np.ones(len(columns)), pairs), shape=(n, len(position)))


def _is_matrix(y: Any) -> bool:
    """Whether y is an array or data frame with two dimensions, more than one column wide."""
    shape = getattr(y, "shape", None)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def _in_order(names: set[Any]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError as error:
        raise ValueError(
            "y names topics by text and by numbers, which have no order; use one kind, or give "
            "topic_names."
        ) from error


def _checked_names(names: list[Any]) -> Array:
    """Return the names as an array of text, of numbers, or of objects."""
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"topic_names holds {repeated!r} twice.")
    return names_array(names)
