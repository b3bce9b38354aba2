"""Targets as the user gives them become a matrix Y, its labelled rows and its weights."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._missing import unlabelled_samples
from .._sound import sound_csr
from .._validation import as_array, unmasked_labels

Array = npt.NDArray[Any]


class Targets(Protocol):
    """What is common to all kinds: `labelled` marks the samples that have any target."""

    labelled: Array

    def matrix(self, dtype: Any) -> Any:
        """Return the matrix Y, (n, k)."""


def require(estimator: Any, X: Any, y: Any) -> None:
    """Raise ValueError unless there is a `y` with one row for each sample of X."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Use NMF to fit without targets."
        )
    check_consistent_length(X, y)


def is_indicator(y: Any) -> bool:
    """Return whether `y` is a matrix of labels rather than one column of class labels."""
    if sp.issparse(y):
        return True
    shape = np.shape(as_array(y, "y"))
    return len(shape) == 2 and shape[1] > 1


def _no_labels() -> ValueError:
    return ValueError(
        "y has no labelled sample: all of it is marked as unlabelled. Label some samples, or use "
        "NMF to fit without targets."
    )


def _without_object(y: Array) -> Array:
    """Numbers held as objects become an array of numbers."""
    if y.dtype.kind != "O":
        return y
    if all(isinstance(v, (bool, np.bool_)) for v in y):
        return y.astype(bool)
    if any(isinstance(v, (str, bytes, bool, np.bool_)) for v in y):
        return y
    numbers = np.array(y.tolist())
    return numbers if numbers.ndim == 1 and numbers.dtype.kind in "iuf" else y


def _is_text(labels: Array) -> bool:
    """Whether labels are text; beside None for a missing one they are objects."""
    if labels.dtype.kind == "O":
        return all(isinstance(label, str) for label in labels.tolist())
    return labels.dtype.kind in "US"


class ClassLabels:
    """One class label per sample.

    `labelled` marks the labelled samples, `known` holds their labels.
    """

    def __init__(self, y: Any, marker: Any, known_classes: Array | None = None) -> None:
        y = column_or_1d(_as_labels(y), warn=True)
        self.labelled = ~unlabelled_samples(y, "y", marker, known_classes)
        self.known = _without_object(y[self.labelled])
        if known_classes is None and len(self.known):
            if self.known.dtype.kind == "f" and np.isinf(self.known).any():
                raise ValueError("y contains infinity; give finite labels, or NaN for unlabelled.")
            check_classification_targets(self.known)
        self.classes = np.unique(self.known) if known_classes is None else known_classes

    def check_fit(self) -> None:
        """Raise ValueError unless there are two classes."""
        if not len(self.known):
            raise _no_labels()
        if len(self.classes) < 2:
            raise ValueError(
                f"y has one class only, {self.classes.tolist()[0]!r}; needed are labelled samples "
                "of at least two classes. Label some of another class, or use NMF."
            )

    def prior(self) -> Array:
        """Return the share of every class."""
        return np.bincount(self.codes, minlength=len(self.classes)) / len(self.known)

    @cached_property
    def codes(self) -> Array:
        """Place of the label of every labelled sample among the classes."""
        if not len(self.known):
            return np.zeros(0, dtype=np.intp)
        comparable = _is_text(self.known) == _is_text(self.classes)
        known = np.isin(self.known, self.classes) if comparable else np.zeros(len(self.known), bool)
        if not known.all():
            raise ValueError(
                f"y holds {self.known[~known].tolist()[0]!r}, which is none of the classes "
                f"{self.classes.tolist()} of the first call."
            )
        return np.searchsorted(self.classes, self.known)

    def matrix(self, dtype: Any) -> Any:
        """Return the one-hot matrix, with rows of zeros where unlabelled."""
        rows = np.flatnonzero(self.labelled)
        values = np.ones(len(rows), dtype=dtype)
        shape = (len(self.labelled), len(self.classes))
        return sp.csr_array((values, (rows, self.codes)), shape=shape)


def _as_labels(y: Any) -> Array:
    """Return labels as an array, without turning numbers or None among strings into strings."""
    array = as_array(unmasked_labels(y), "y")
    if array.dtype.kind == "U" and isinstance(y, (list, tuple)):
        as_objects = np.asarray(y, dtype=object)
        if not all(isinstance(v, str) for v in as_objects.ravel()):
            return as_objects
    return array


class Indicators:
    """Several labels per sample, as a matrix of 0 and 1.

    `labelled` marks rows with any label, `complete` rows without a missing entry, and `known`
    holds the latter.
    """

    def __init__(self, y: Any, n_labels: int | None = None) -> None:
        matrix = sound_csr(y, "y").astype(np.float64) if sp.issparse(y) else _as_numbers(y, "y")
        if matrix.ndim != 2 or (n_labels is not None and matrix.shape[1] != n_labels):
            wanted = "(samples, labels)" if n_labels is None else f"(samples, {n_labels})"
            raise ValueError(f"y has shape {matrix.shape}; needed is {wanted}.")
        read = self._read_sparse if sp.issparse(matrix) else self._read_dense
        read(matrix)
        names = getattr(y, "columns", None)  # of a data frame
        self.classes = np.arange(matrix.shape[1]) if names is None else _names(names)

    def _read_sparse(self, matrix: Any) -> None:
        matrix.sum_duplicates()
        _check_indicator(matrix.data, allow_nan=False)
        negative = matrix.copy()
        negative.data = (matrix.data == -1).astype(np.float64)
        marked = np.asarray(negative.sum(axis=1)).ravel()
        self.labelled = ~_whole_rows(marked, matrix.shape[1])
        self.complete = self.labelled
        matrix.data[matrix.data == -1] = 0
        matrix.eliminate_zeros()
        self._matrix = matrix

    def _read_dense(self, matrix: Array) -> None:
        _check_indicator(matrix, allow_nan=True)
        unlabelled = _whole_rows((matrix == -1).sum(axis=1), matrix.shape[1])
        unlabelled |= np.isnan(matrix).all(axis=1)
        self.labelled = ~unlabelled
        cleared = np.where(unlabelled[:, None], 0, matrix)
        self.complete = self.labelled & ~np.isnan(cleared).any(axis=1)
        self._matrix = cleared if np.isnan(cleared).any() else sp.csr_array(cleared)

    @property
    def known(self) -> Array:
        """The labels of the complete rows, int64."""
        rows = self._matrix[self.complete]
        known: Array = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        return known.astype(np.int64)

    def check_fit(self) -> None:
        """Raise ValueError unless there is a labelled row."""
        if not self.labelled.any():
            raise _no_labels()

    def prior(self) -> Array:
        """Return the share of the labelled samples that have each label."""
        rows = self._matrix[self.labelled]
        if sp.issparse(rows):
            return np.asarray(np.asarray(rows.sum(axis=0)).ravel() / rows.shape[0])
        seen = (~np.isnan(rows)).sum(axis=0)
        return np.asarray(np.nansum(rows, axis=0) / np.maximum(seen, 1))

    def matrix(self, dtype: Any) -> Any:
        """Return Y, sparse unless entries are missing; unlabelled rows are zeros."""
        Y: Any = self._matrix.astype(dtype)
        return Y


def _names(columns: Any) -> Array:
    """Return the names of columns as an array of text or numbers, or of objects."""
    names = list(columns)
    array = np.asarray(names)
    if array.ndim == 1 and array.tolist() == names:
        return array
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


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
            "holds 0 and 1, and a row of NaN (dense) or of -1 for an unlabelled sample. Continuous "
            "targets are for SSNMFRegressor."
        )


def _whole_rows(n_marked: Array, n_columns: int) -> Array:
    if np.any((n_marked > 0) & (n_marked < n_columns)):
        row = int(np.flatnonzero((n_marked > 0) & (n_marked < n_columns))[0])
        raise ValueError(
            f"y[{row}] holds -1 in some columns only; needed is a whole row of -1 for an "
            "unlabelled sample. Mark single missing entries of a dense y by NaN."
        )
    return np.asarray(n_marked == n_columns)


def _as_numbers(y: Any, name: str) -> Array:
    if np.ma.is_masked(y):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    array = as_array(y, name)
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers; got dtype {array.dtype}.") from error
    return array.astype(np.float64)


class RealTargets:
    """Nonnegative real targets; `complete` marks rows without NaN and `known` holds them."""

    def __init__(self, y: Any, n_targets: int | None = None) -> None:
        values = _as_numbers(sound_csr(y, "y").toarray() if sp.issparse(y) else y, "y")
        if values.ndim not in (1, 2) or values.size == 0:
            raise ValueError(f"y has shape {values.shape}; needed is (samples,) or (samples, k).")
        self.n_targets = 0 if values.ndim == 1 else values.shape[1]
        if n_targets is not None and max(n_targets, 1) != max(self.n_targets, 1):
            raise ValueError(f"y has shape {values.shape}; needed are {max(n_targets, 1)} targets.")
        if np.isinf(values).any():
            raise ValueError("y contains infinity; give finite targets, or NaN for unlabelled.")
        self._values = values.reshape(len(values), -1)
        absent = np.isnan(self._values)
        self.labelled: Array = np.asarray(~absent.all(axis=1))
        self.complete: Array = np.asarray(~absent.any(axis=1))
        self.known = values[self.complete]

    def check_fit(self) -> None:
        """Raise ValueError unless some target is given."""
        if not self.labelled.any():
            raise _no_labels()

    def check_sign(self) -> None:
        """Raise ValueError if a target is negative."""
        lowest = np.fmin.reduce(self._values, axis=None)
        if lowest < 0:
            row, column = np.argwhere(self._values == lowest)[0]
            raise ValueError(
                f"Negative values in y: the lowest is y[{row}, {column}] = {lowest:g}. The model "
                "needs targets >= 0; subtract the minimum, and add it to the predictions."
            )

    def matrix(self, dtype: Any) -> Array:
        """Return Y, with zeros in unlabelled rows and NaN where single entries are missing."""
        return np.where(self.labelled[:, None], self._values, 0).astype(dtype)
