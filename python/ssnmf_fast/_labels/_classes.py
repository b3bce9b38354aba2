"""One class label for each sample."""

from __future__ import annotations

import numbers
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.arrays import as_array
from .._data.checks import unmasked_labels
from ._absent import unlabeled_samples, warn_of_missing_words


class ClassLabels:
    """One class label for each sample.

    `labeled` marks the labeled samples, `known` holds their labels and `classes` the different
    ones, sorted, or `known_classes` (of a fitted model) if they are given.  `y` is (n,) or (n, 1);
    `marker` is the `unlabeled` of :func:`unlabeled_samples`.
    """

    def __init__(
        self, y: Any, marker: Any, known_classes: Array | None = None, name: str = "y"
    ) -> None:
        vector = label_vector(y, name, column=True)
        self.labeled = ~unlabeled_samples(vector, name, marker, known_classes)
        self.known = plain_labels(vector[self.labeled], name)
        if self.known.dtype.kind == "S":
            raise TypeError(
                f"{name} holds bytes; expected text or integers. Give {name}.astype(str)."
            )
        self.classes = np.unique(self.known) if known_classes is None else known_classes
        if known_classes is None:
            warn_of_missing_words(self.classes, name, marker)

    def check_fit(self) -> None:
        """Raise ValueError unless there are two classes."""
        if not len(self.known):
            raise no_labels()
        if len(self.classes) < 2:
            raise ValueError(
                f"y has one class only, {self.classes.tolist()[0]!r}; expected labeled samples "
                "of at least two classes. Label some of another class, or use NMF."
            )

    def prior(self) -> Array:
        """Return the share of every class."""
        return np.bincount(self.codes, minlength=len(self.classes)) / len(self.known)

    @cached_property
    def codes(self) -> Array:
        """Position of the label of every labeled sample among the classes."""
        if not len(self.known):
            return np.zeros(0, dtype=np.intp)
        comparable = is_text(self.known) == is_text(self.classes)
        known = np.isin(self.known, self.classes) if comparable else np.zeros(len(self.known), bool)
        if not known.all():
            raise ValueError(
                f"y holds {self.known[~known].tolist()[0]!r}, which is none of the classes "
                f"{self.classes.tolist()} of the first call."
            )
        return np.searchsorted(self.classes, self.known)

    def matrix(self, dtype: Any) -> sp.csr_array:
        """Return the one-hot matrix, with rows of zeros where unlabeled."""
        rows = np.flatnonzero(self.labeled)
        values = np.ones(len(rows), dtype=dtype)
        shape = (len(self.labeled), len(self.classes))
        return sp.csr_array((values, (rows, self.codes)), shape=shape)


def no_labels() -> ValueError:
    """Return the error for targets without a labeled sample."""
    return ValueError(
        "y has no labeled sample: all of it is marked as unlabeled. Label some samples, or use "
        "NMF to fit without targets."
    )


def label_vector(labels: Any, name: str, *, column: bool = False) -> Array:
    """Return labels as a vector, without turning numbers or None among strings into strings.

    `column` accepts a matrix of one column too, with a warning.
    """
    if sp.issparse(labels):
        raise TypeError(f"{name} must be a vector of labels; got a sparse matrix.")
    refuse_lists(labels, name)
    array = as_array(unmasked_labels(labels), name)
    if array.dtype.kind == "U" and isinstance(labels, (list, tuple)):
        objects = np.asarray(labels, dtype=object)
        array = array if is_text(objects.ravel()) else objects
    if column and array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            f"A column-vector {name} was passed when a 1d array was expected. Give it as "
            f"{name}.ravel().",
            DataConversionWarning,
        )
        return array.ravel()
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, a label for each sample; got shape {array.shape}. "
            f"Give a column as {name}.ravel()."
        )
    return array


def refuse_lists(labels: Any, name: str) -> None:
    """Raise ValueError for lists of labels, of which samples have different numbers."""
    if not isinstance(labels, (list, tuple)) and str(getattr(labels, "dtype", "")) != "object":
        return
    lengths = {len(one) if isinstance(one, (list, tuple, set)) else -1 for one in labels}
    if len(lengths) > 1 and max(lengths) >= 0:
        raise ValueError(
            f"{name} holds lists of labels; expected one label for each sample. For several labels "
            "give an indicator matrix of 0 and 1, as scikit-learn's "
            f"MultiLabelBinarizer().fit_transform({name}) returns; TopicSupervisedNMF takes lists."
        )


def plain_labels(known: Array, name: str) -> Array:
    """Return labels as an array of text, whole numbers or bool; raise for all else.

    Text that is held as objects stays so, and so do the classes of a model fitted to it.
    """
    if known.dtype.kind in "OT":
        kinds = {_kind(one) for one in set(map(type, known.tolist()))}
        if len(kinds) > 1 or None in kinds:
            raise TypeError(
                f"{name} must hold labels of one kind, all text or all numbers; convert them, for "
                f"example with [str(label) for label in {name}]."
            )
        if known.dtype.kind == "O" and kinds <= {"text"}:
            return known
        known = np.array(known.tolist())
    if known.dtype.kind not in "biufUS":
        raise TypeError(f"{name} has dtype {known.dtype}; labels must be text or integers.")
    if known.dtype.kind == "f":
        fractions = ~np.isfinite(known) | (np.trunc(known) != known)
        if fractions.any():
            value = known[fractions][0]
            shown = "infinity" if np.isinf(value) else f"{value:g}"
            raise ValueError(
                f"Unknown label type: {name} holds {shown}; labels must be text or whole numbers. "
                "Cut a continuous target into classes first."
            )
    return known


def _kind(of: type) -> str | None:
    if issubclass(of, str):
        return "text"
    if issubclass(of, (bool, np.bool_)):
        return "bool"
    return "number" if issubclass(of, numbers.Real) else None


def is_text(labels: Array) -> bool:
    """Return whether labels are text; beside None for a missing one they are objects."""
    if labels.dtype.kind == "O":
        return all(isinstance(label, str) for label in labels.tolist())
    return labels.dtype.kind in "US"
