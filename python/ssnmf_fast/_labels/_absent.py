"""Missing labels: one place for what counts as no label.

Always missing are None, NaN and pandas.NA.  So is what the caller names as `unlabeled`.  Where
that is "auto" it is -1, as in scikit-learn's semi-supervised estimators, with one exception: labels
that are exactly -1 and 1 are two classes, as scikit-learn's checks of classifiers have them; since
this may not be meant, a warning says how to settle it.  Another warns of labels such as "NA": they
are classes, but look like the absence of one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.warn import warn_user

_MEAN_MISSING = frozenset(
    {"", "-", "?", "<na>", "#n/a", "n/a", "na", "nan", "nat", "none", "null"}
    | {"missing", "unknown", "unlabeled", "unlabelled"}  # codespell:ignore unlabelled
)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth; arrays are refused later
        return not isinstance(value, np.ndarray)


def missing_words(labels: Iterable[Any]) -> list[Any]:
    """Return the labels that are text and look like the absence of a label, as "NA" or "?"."""
    return [one for one in labels if isinstance(one, str) and one.strip().lower() in _MEAN_MISSING]


def warn_of_missing_words(classes: Array, name: str, unlabeled: Any) -> None:
    """Warn of classes that look like no label, unless the caller settled what is none."""
    if not (isinstance(unlabeled, str) and unlabeled == "auto"):
        return
    found = missing_words(classes.tolist()) if classes.dtype.kind in "UO" else []
    if found:
        warn_user(
            f"{name} has the class {found[0]!r}, which looks like a missing label. If it is one, "
            f"pass unlabeled={found[0]!r}, or None in its place; if it is a class, "
            "unlabeled=None.",
            UserWarning,
        )


def missing(labels: Array) -> Array:
    """Return which labels are missing."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "O":
        return np.fromiter(map(is_missing, labels), dtype=bool, count=len(labels))
    return np.zeros(len(labels), dtype=bool)


def unlabeled_samples(
    labels: Array, name: str, unlabeled: Any, known_classes: Array | None = None
) -> Array:
    """Return which samples have no label, (n,).

    `unlabeled` ("auto", None or a label) marks them, besides what is always missing.  With "auto",
    -1 is a class if it is one of the `known_classes` of a fitted model.  Messages use the `name`.
    """
    absent = missing(labels)
    if unlabeled is None:
        return absent
    if np.ndim(unlabeled) or not isinstance(unlabeled, Hashable):
        raise TypeError(
            'unlabeled must be "auto", None or a label (text or a number); got '
            f"{unlabeled!r} ({type(unlabeled).__name__})."
        )
    automatic = isinstance(unlabeled, str) and unlabeled == "auto"
    marked = _equal(labels, -1 if automatic else unlabeled) & ~absent
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
        "unlabeled samples, pass unlabeled=-1; if it is a class, unlabeled=None.",
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
