"""Labels and their weights in the form in which classifiers are trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validation import as_array, unmasked
from ._known_labels import Labels
from ._target_weights import combined_weights
from ._targets import ClassLabels, Indicators, RealTargets

Array = npt.NDArray[Any]


def labels_for_training(
    targets: ClassLabels | Indicators | RealTargets, y_weights: Any, sample_weight: Any = None
) -> Labels:
    """Return labels with the weight of each entry; a label that weighs nothing is unknown.

    Parameters
    ----------
    targets : ClassLabels, Indicators or RealTargets
    y_weights : None, array_like or from :mod:`ssnmf_fast.weights`
        As in ``fit``.
    sample_weight : array_like, shape (n,), optional
        Multiplied with them.
    """
    Y: Any = targets.matrix(np.float64)
    members = Y.toarray() if sp.issparse(Y) else np.array(Y, dtype=np.float64)
    combined = combined_weights(y_weights, targets.labelled, members.shape)
    given = np.ones(members.shape) if combined is None else combined.dense(members.shape)
    if sample_weight is not None:
        given_rows = unmasked(sample_weight, "sample_weight", allow_nan=False)
        rows = as_array(given_rows, "sample_weight").astype(np.float64)
        if rows.shape != members.shape[:1]:
            raise ValueError(
                f"sample_weight has shape {rows.shape}; expected is {members.shape[:1]}, one "
                "weight for each sample."
            )
        given = given * rows[:, None]
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("y_weights and sample_weight must be finite and at least 0.")
    unknown = np.isnan(members)
    members[unknown] = 0
    given = np.where(targets.labelled[:, None] & ~unknown, given, 0.0)
    if not given.any():
        raise ValueError(
            "The weights of all labels are zero. Give at least one labelled sample a weight "
            "above 0."
        )
    several = not isinstance(targets, ClassLabels)
    if not several:  # the label of a sample counts or does not, as a whole
        given = np.repeat(_own(given, members), members.shape[1], axis=1)
    return Labels(np.where(given > 0, members, 0), given, several)


def check_classes(labels: Labels) -> None:
    """Raise ValueError unless labels of two classes count."""
    if not labels.several and (labels.counts > 0).sum() < 2:
        raise ValueError(
            "The labels of one class only have a weight above 0; needed are two classes. Give "
            "labelled samples of another class a weight above 0."
        )


def _own(given: Array, members: Array) -> Array:
    return np.asarray((given * members).sum(axis=1, keepdims=True))
