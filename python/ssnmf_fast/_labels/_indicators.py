"""Several labels for each sample, as a matrix of 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import as_array, read_csr
from .._data.checks import unmasked_labels
from ._classes import ClassLabels, no_labels, refuse_lists
from ._reals import target_numbers


class Indicators:
    """Several labels for each sample, as a matrix of 0 and 1.

    `labeled` marks rows with any label, `complete` rows without a missing entry, and `known`
    holds the latter.
    """

    def __init__(self, y: Any, n_labels: int | None = None) -> None:
        matrix = read_csr(y, "y").astype(np.float64) if sp.issparse(y) else target_numbers(y, "y")
        if matrix.ndim != 2 or (n_labels is not None and matrix.shape[1] != n_labels):
            wanted = "(samples, labels)" if n_labels is None else f"(samples, {n_labels})"
            raise ValueError(f"y has shape {matrix.shape}; expected {wanted}.")
        read = self._read_sparse if sp.issparse(matrix) else self._read_dense
        read(matrix)
        names = getattr(y, "columns", None)  # of a data frame
        self.classes = np.arange(matrix.shape[1]) if names is None else names_array(names)

    def _read_sparse(self, matrix: Any) -> None:
        matrix.sum_duplicates()
        _check_indicator(matrix.data, allow_nan=False)
        negative = matrix.copy()
        negative.data = (matrix.data == -1).astype(np.float64)
        marked = np.asarray(negative.sum(axis=1)).ravel()
        self.labeled = ~_whole_rows(marked, matrix.shape[1])
        self.complete = self.labeled
        matrix.data[matrix.data == -1] = 0
        matrix.eliminate_zeros()
        self._matrix = matrix

    def _read_dense(self, matrix: Array) -> None:
        _check_indicator(matrix, allow_nan=True)
        unlabeled = _whole_rows((matrix == -1).sum(axis=1), matrix.shape[1])
        unlabeled |= np.isnan(matrix).all(axis=1)
        self.labeled = ~unlabeled
        cleared = np.where(unlabeled[:, None], 0, matrix)
        self.complete = self.labeled & ~np.isnan(cleared).any(axis=1)
        self._matrix = cleared if np.isnan(cleared).any() else sp.csr_array(cleared)

    @property
    def known(self) -> Array:
        """The labels of the complete rows, int64."""
        rows = self._matrix[self.complete]
        known: Array = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        return known.astype(np.int64)

    def check_fit(self) -> None:
        """Raise ValueError unless there is a labeled row."""
        if not self.labeled.any():
            raise no_labels()

    def prior(self) -> Array:
        """Return the share of the labeled samples that have each label."""
        rows = self._matrix[self.labeled]
        if sp.issparse(rows):
            return np.asarray(np.asarray(rows.sum(axis=0)).ravel() / rows.shape[0])
        seen = (~np.isnan(rows)).sum(axis=0)
        return np.asarray(np.nansum(rows, axis=0) / np.maximum(seen, 1))

    def matrix(self, dtype: Any) -> Any:
        """Return Y, sparse unless entries are missing; unlabeled rows are zeros."""
        Y: Any = self._matrix.astype(dtype)
        return Y


def names_array(names: Any) -> Array:
    """Return names as an array of text or numbers, or of objects."""
    names = list(names)
    array = np.array(names)
    if array.ndim == 1 and array.tolist() == names:
        return array
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def is_indicator(y: Any) -> bool:
    """Return whether `y` is a matrix of labels rather than one column of class labels."""
    if sp.issparse(y):
        return True
    refuse_lists(y, "y")
    shape = as_array(unmasked_labels(y), "y").shape
    return len(shape) == 2 and shape[1] > 1


def labels_of(y: Any, marker: Any) -> ClassLabels | Indicators:
    """Return classes or several labels, whichever `y` holds."""
    return Indicators(y) if is_indicator(y) else ClassLabels(y, marker)


def _check_indicator(values: Array, *, allow_nan: bool) -> None:
    good = (values == 0) | (values == 1) | (values == -1)
    if allow_nan:
        good |= np.isnan(values)
    if not good.all():
        raise ValueError(
            f"y has several columns, and holds {values[~good].flat[0]:g}; an indicator matrix "
            "holds 0 and 1, and a row of NaN (dense) or of -1 for an unlabeled sample. Continuous "
            "targets are for SSNMFRegressor."
        )


def _whole_rows(n_marked: Array, n_columns: int) -> Array:
    if np.any((n_marked > 0) & (n_marked < n_columns)):
        row = int(np.flatnonzero((n_marked > 0) & (n_marked < n_columns))[0])
        raise ValueError(
            f"y[{row}] holds -1 in some columns only; expected a whole row of -1 for an "
            "unlabeled sample. Mark single missing entries of a dense y by NaN."
        )
    return np.asarray(n_marked == n_columns)
