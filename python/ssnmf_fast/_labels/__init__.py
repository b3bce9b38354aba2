"""Labels of samples: the one place where estimators, metrics, pictures and the command read them.

- :class:`ClassLabels`: one label for each sample;
- :class:`Indicators`: several labels for each sample, as a matrix of 0 and 1;
- :class:`LabelLists`: several labels for each sample, as lists;
- :class:`RealTargets`: nonnegative numbers.

`labeled` marks the samples that have a label (or target), and ``matrix(dtype)`` is Y, (n, k).
Nothing here needs scikit-learn.
"""

from __future__ import annotations

from ._absent import is_missing, missing, missing_words, unlabeled_samples
from ._classes import ClassLabels, is_text, label_vector, plain_labels
from ._indicators import Indicators, is_indicator, labels_of
from ._lists import LabelLists, indicator_matrix
from ._reals import RealTargets

Targets = ClassLabels | Indicators | RealTargets

__all__ = [
    "ClassLabels",
    "Indicators",
    "LabelLists",
    "RealTargets",
    "Targets",
    "indicator_matrix",
    "is_indicator",
    "is_missing",
    "is_text",
    "label_vector",
    "labels_of",
    "missing",
    "missing_words",
    "plain_labels",
    "unlabeled_samples",
]
