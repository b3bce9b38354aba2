"""Missing labels: one place for what counts as no label.

Always missing are None, NaN and pandas.NA.  So is what the caller names as `unlabelled`.  Where
that is "auto" it is -1, as in scikit-learn's semi-supervised estimators, with one exception: labels
that are exactly -1 and 1 are two classes, as scikit-learn's checks of classifiers have them; since
this may not be meant, a warning says how to settle it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.warn import warn_user


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth; arrays are refused later
        return not isinstance(value, np.ndarray)


def missing(labels: Array) -> Array:
    """Return which labels are missing."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "O":
        return np.fromiter(map(is_missing, labels), dtype=bool, count=len(labels))
    return np.zeros(len(labels), dtype=bool)


def unlabelled_samples(
    labels: Array, name: str, unlabelled: Any, known_classes: Array | None = None
) -> Array:
    """Return which samples have no label, (n,).

    `unlabelled` ("auto", None or a label) marks them, besides what is always missing.  With "auto",
    -1 is a class if it is one of the `known_classes` of a fitted model.  Messages use the `name`.
    """
    absent = missing(labels)
    if unlabelled is None:
        return absent
    if np.ndim(unlabelled) or not isinstance(unlabelled, Hashable):
        raise TypeError(
            'unlabelled must be "auto", None or a label (text or a number); got '
            f"{unlabelled!r} ({type(unlabelled).__name__})."
        )
    automatic = isinstance(unlabelled, str) and unlabelled == "auto"
    marked = _equal(labels, -1 if automatic else unlabelled) & ~absent
    if automatic and marked.any() and _is_class(labels[~marked & ~absent], name, known_classes):
        return absent
    return absent | marked


def _is_class(rest: Array, name: str, known_classes: Array | None) -> bool:
    """Whether -1 is a class, where `rest` are the other labels."""
    if known_classes is not None:
        return bool(_equal(known_classes, -1).any())
    if not len(rest) or not _equal(rest, 1).all():
        return False
    warn_user(
        f"The only labels in {name} are -1 and 1, and both are taken as classes. If -1 marks "
        "unlabelled samples, pass unlabelled=-1; if it is a class, unlabelled=None.",
        UserWarning,
    )
    return True


def _equal(labels: Array, marker: Any) -> Array:
    """Entrywise ``labels == marker``; what cannot be compared differs, and so do True and 1."""
    if labels.dtype.kind == "O":
        same = (_same(label, marker) for label in labels)
        return np.fromiter(same, dtype=bool, count=len(labels))
    is_text = labels.dtype.kind in "UST"
    if is_text != isinstance(marker, str) or labels.dtype.kind == "b":
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(labels == marker)


def _same(label: Any, marker: Any) -> bool:
    if is_missing(label) or isinstance(label, (bool, np.bool_)) != isinstance(marker, bool):
        return False
    return bool(label == marker)
