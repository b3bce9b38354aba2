"""Labels of samples: the one place where estimators, metrics, pictures and the command read them.

- :class:`ClassLabels`: one label for each sample;
- :class:`Indicators`: several labels for each sample, as a matrix of 0 and 1;
- :class:`LabelLists`: several labels for each sample, as lists;
- :class:`RealTargets`: nonnegative numbers.

`labeled` marks the samples that have a label (or target), and ``matrix(dtype)`` is Y, (n, k).
A plain import of these needs no scikit-learn.
"""

from __future__ import annotations

from ._classes import (
    ClassLabels,
    Targets,
    is_missing,
    label_vector,
    missing_words,
    plain_labels,
    unlabeled_samples,
    unmasked_labels,
)
from ._several import (
    Indicators,
    LabelLists,
    RealTargets,
    indicator_matrix,
    is_indicator,
    labels_of,
)

__all__ = [
    "ClassLabels",
    "Indicators",
    "LabelLists",
    "RealTargets",
    "Targets",
    "indicator_matrix",
    "is_indicator",
    "is_missing",
    "label_vector",
    "labels_of",
    "missing_words",
    "plain_labels",
    "unlabeled_samples",
    "unmasked_labels",
]
