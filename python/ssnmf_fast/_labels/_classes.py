"""One class label for each sample, and missing labels.

None, NaN, NaT, pandas.NA and masked values are missing, and the value `unlabeled` of the caller.
"auto" means -1, as in scikit-learn's semi-supervised estimators, but labels that are exactly -1 and
1 are two classes (as in scikit-learn's checks of classifiers), with a warning.

Labels that are equal in Unicode form NFC are one class, which has the name given first.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import as_first_given, nfc, short
from .._common.warn import warn_user
from .._data.arrays import as_array, is_missing
from ._doubts import warn_of_doubts

_KINDS: Any = (("text", str), ("bool", (bool, np.bool_)), ("number", numbers.Real))


class Targets:
    """Labels or targets of samples."""

    labeled: Array  # whether a sample has any, (n,)
    complete: Array  # whether it has all
    several = True  # whether a sample may have several

    def check_fit(self) -> None:
        if not self.labeled.any():
            raise ValueError("y has no labeled sample. Label some, or use NMF, which needs none.")

    def matrix(self, dtype: npt.DTypeLike) -> Any:
        raise NotImplementedError


class ClassLabels(Targets):
    """One class label for each sample.

    `values` holds the labels of labeled samples, and `classes` the sorted classes, or
    `known_classes` of a fitted model.  `y` is (n,) or (n, 1), `marker` is `unlabeled`.
    """

    several = False

    def __init__(
        self, y: object, marker: object, known_classes: Array | None = None, name: str = "y"
    ) -> None:
        vector = label_vector(y, name, column=True)
        self.complete = self.labeled = ~unlabeled_samples(vector, name, marker, known_classes)
        self.values = plain_labels(vector[self.labeled], name)
        texts = self.values.tolist()
        earlier = [] if known_classes is None else known_classes.tolist()
        if self.values.dtype.kind in "UO" and not all(map(_is_ascii, (*texts, *earlier))):
            spelling = as_first_given(texts, earlier)  # by form NFC
            kind = object if self.values.dtype.kind == "O" else None
            self.values = np.array([spelling[text] for text in texts], dtype=kind)
        if self.values.dtype.kind == "S":
            raise TypeError(
                f"{name} holds bytes; expected text or integers. Give {name}.astype(str)."
            )
        self.classes = np.unique(self.values) if known_classes is None else known_classes
        counts = Counter(self.values.tolist())
        if known_classes is None or not counts.keys() <= set(earlier):
            warn_of_doubts(counts, name, None if earlier else marker, earlier)

    def check_fit(self) -> None:
        super().check_fit()
        if len(self.classes) < 2:
            how = "expected labeled samples of at least two classes. Label others, or use NMF"
            raise ValueError(f"y has one class only, {short(self.classes.tolist()[0])}; {how}.")

    @cached_property
    def codes(self) -> Array:
        if not len(self.values):
            return np.zeros(0, dtype=np.intp)
        comparable = is_text(self.values) == is_text(self.classes)
        valid = (
            np.isin(self.values, self.classes) if comparable else np.zeros(len(self.values), bool)
        )
        if not valid.all():
            label, classes = short(self.values[~valid].tolist()[0]), short(self.classes.tolist())
            raise ValueError(f"y holds {label}, which is not a class of the first call: {classes}.")
        return np.searchsorted(self.classes, self.values)

    def matrix(self, dtype: npt.DTypeLike) -> sp.csr_array:
        rows = np.flatnonzero(self.labeled)
        values = np.ones(len(rows), dtype=dtype)
        shape = (len(self.labeled), len(self.classes))
        return sp.csr_array((values, (rows, self.codes)), shape=shape)


def label_vector(labels: object, name: str, *, column: bool = False) -> Array:
    """Return labels as a vector, without turning numbers among strings into strings."""
    if sp.issparse(labels):
        raise TypeError(f"{name} must be a vector of labels; got a sparse matrix.")
    refuse_lists(labels, name)
    array = as_array(unmask_labels(labels), name, allow_objects=True)
    if array.dtype.kind == "U" and isinstance(labels, (list, tuple)):
        objects = np.asarray(labels, dtype=object)
        array = array if is_text(objects.ravel()) else objects
    if column and array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        what = f"A column-vector {name} was passed when a 1d array was expected"
        warn_user(f"{what}. Give it as {name}.ravel().", DataConversionWarning)
        return array.ravel()
    if array.ndim != 1:
        got = f"got shape {array.shape}. Give a column as {name}.ravel()"
        raise ValueError(f"{name} must have one dimension, a label for each sample; {got}.")
    return array


def refuse_lists(labels: Any, name: str) -> None:
    """Raise ValueError for lists of labels with different lengths."""
    if not isinstance(labels, (list, tuple)) and str(getattr(labels, "dtype", "")) != "object":
        return
    lengths = {len(label) if isinstance(label, (list, tuple, set)) else -1 for label in labels}
    if len(lengths) > 1 and max(lengths) >= 0:
        raise ValueError(
            f"{name} holds lists of labels; expected one label for each sample. For several labels "
            f"give sklearn.preprocessing.MultiLabelBinarizer().fit_transform({name})."
        )


def unmask_labels(labels: object) -> Any:
    """Return a masked array with None for masked values; other labels as they are."""
    if isinstance(labels, (list, tuple)):  # NumPy would warn about masked numbers, or float32
        values = (float(label) if isinstance(label, np.floating) else label for label in labels)
        return [None if value is np.ma.masked else value for value in values]
    if not isinstance(labels, np.ma.MaskedArray):
        return labels
    if not np.ma.is_masked(labels):
        return labels.data
    objects = labels.data.astype(object)
    objects[np.ma.getmaskarray(labels)] = None
    return objects


def plain_labels(labels: Array, name: str) -> Array:
    """Return labels as an array of text, whole numbers or bool; raise TypeError for others."""
    if labels.dtype.kind in "OT":
        types = set(map(type, labels.tolist()))
        kinds = {next((kind for kind, of in _KINDS if issubclass(t, of)), None) for t in types}
        if len(kinds) > 1 or None in kinds:
            how = f"all text or all numbers, for example [str(label) for label in {name}]"
            raise TypeError(f"{name} must hold labels of one kind, {how}.")
        if labels.dtype.kind == "O" and kinds <= {"text"}:
            return labels
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufUS":
        raise TypeError(f"{name} has dtype {labels.dtype}; labels must be text or integers.")
    if labels.dtype.kind == "f":
        fractions = ~np.isfinite(labels) | (np.trunc(labels) != labels)
        if fractions.any():
            value = labels[fractions][0]
            written = "infinity" if np.isinf(value) else f"{value:g}"
            how = "labels must be text or whole numbers. Cut a continuous target into classes"
            raise ValueError(f"Unknown label type: {name} holds {written}; {how}.")
    return labels


def _is_ascii(label: object) -> bool:
    return not isinstance(label, str) or label.isascii()


def is_text(labels: Array) -> bool:
    if labels.dtype.kind == "O":
        return all(isinstance(label, str) for label in labels.tolist())
    return labels.dtype.kind in "US"


def unlabeled_samples(
    labels: Array, name: str, unlabeled: Any, known_classes: Array | None = None
) -> Array:
    """Return which samples have no label, (n,): a missing value, or `unlabeled`."""
    absent = np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        absent = np.isnan(labels)
    elif labels.dtype.kind == "O":
        absent = np.fromiter(map(is_missing, labels), dtype=bool, count=len(labels))
    if np.ndim(unlabeled) or not isinstance(unlabeled, Hashable):
        got = f"{short(unlabeled)} ({type(unlabeled).__name__})"
        raise TypeError(f'unlabeled must be "auto", None or a label (text or a number); got {got}.')
    if is_missing(unlabeled):
        return absent
    automatic = isinstance(unlabeled, str) and unlabeled == "auto"
    marked = _equal(labels, -1 if automatic else unlabeled) & ~absent
    others = labels[~marked & ~absent]
    if automatic and known_classes is not None:
        return absent if _equal(known_classes, -1).any() else absent | marked
    if not automatic or not (marked.any() and len(others)) or not _equal(others, 1).all():
        return absent | marked
    warn_user(
        f"The only labels in {name} are -1 and 1, and both are treated as classes. If -1 marks "
        "unlabeled samples, pass unlabeled=-1; if it is a class, unlabeled=None.",
        UserWarning,
    )
    return absent


def _equal(labels: Array, marker: object) -> Array:
    """Return ``labels == marker``, False if they cannot be compared, and for True and 1."""
    if labels.dtype.kind == "O" or not _is_ascii(marker):
        bools = isinstance(marker, bool)
        same = (
            not is_missing(label)
            and isinstance(label, (bool, np.bool_)) == bools
            and bool(nfc(label) == nfc(marker))
            for label in labels.tolist()
        )
        return np.fromiter(same, dtype=bool, count=len(labels))
    if (labels.dtype.kind in "UST") != isinstance(marker, str) or labels.dtype.kind == "b":
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(labels == marker)
