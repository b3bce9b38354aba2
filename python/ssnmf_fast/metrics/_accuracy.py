"""Accuracy over samples and over classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._labels import ClassLabels, is_text, label_vector, missing, plain_labels
from ._memberships import read_labels


def micro_accuracy(y_true: Any, y_pred: Any, *, unlabelled: Any = None) -> float:
    """Return the share of samples whose class is predicted: micro-averaged accuracy.

    This is the number of correct predictions divided by the number of samples ([1]_, section 3.3).

    Parameters
    ----------
    y_true, y_pred : array_like, shape (n,)
        True and predicted classes, text or integers.
    unlabelled : "auto", None or a label
        What marks an unlabelled sample in `y_true`, besides None and NaN, which always do.  "auto"
        takes -1, unless the labels are exactly -1 and 1: then both are classes, with a warning.
        Unlabelled samples are left out.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    TypeError
        If labels are of mixed kinds, or text in one of the vectors and numbers in the other.
    ValueError
        If the vectors have different lengths, a prediction is missing, or no sample is labelled.

    See Also
    --------
    macro_accuracy : Every class counts the same.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.metrics.micro_accuracy(["car", "car", "car", "sea"], ["car", "car", "sea", "sea"])
    0.75
    """
    _, correct = _judged(y_true, y_pred, unlabelled)
    return float(correct.mean())


def macro_accuracy(y_true: Any, y_pred: Any, *, unlabelled: Any = None) -> float:
    """Return the mean over the classes of the share predicted: macro-averaged accuracy.

    This is the accuracy within each class, averaged over the classes of `y_true` ([1]_, section
    3.3), so small and large classes have the same weight.

    Parameters
    ----------
    y_true, y_pred, unlabelled
        As in :func:`micro_accuracy`.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    TypeError, ValueError
        As :func:`micro_accuracy`.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.metrics.macro_accuracy(["car", "car", "sea"], ["car", "sea", "sea"])
    0.75
    """
    labels, correct = _judged(y_true, y_pred, unlabelled)
    hits = np.bincount(labels.codes, weights=correct)
    return float((hits / np.bincount(labels.codes)).mean())


def _judged(y_true: Any, y_pred: Any, unlabelled: Any) -> tuple[ClassLabels, Array]:
    """Return the true labels, and which of the labelled samples are predicted."""
    predictions = label_vector(y_pred, "y_pred")
    labels = read_labels(y_true, "y_true", None, unlabelled)
    if len(labels.labelled) != len(predictions):
        raise ValueError(
            f"y_true holds {len(labels.labelled)} labels and y_pred {len(predictions)}; expected "
            "one prediction for each sample."
        )
    absent = missing(predictions) & labels.labelled
    if absent.any():
        raise ValueError(
            f"y_pred[{int(np.flatnonzero(absent)[0])}] is missing (None or NaN); expected a "
            "prediction for every labelled sample."
        )
    predicted = plain_labels(predictions[labels.labelled], "y_pred")
    if is_text(predicted) != is_text(labels.known):
        raise TypeError(
            f"y_true has labels of dtype {labels.known.dtype} and y_pred of dtype "
            f"{predicted.dtype}; expected the same kind. Convert one of them, for example with "
            "astype(str)."
        )
    return labels, np.asarray(predicted == labels.known)
