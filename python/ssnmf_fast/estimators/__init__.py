"""Estimators that follow the conventions of scikit-learn (version 1.6 or newer)."""

from __future__ import annotations

from ._classifier import SSNMFClassifier
from ._constrained import ConstrainedNMF
from ._imputer import LowRankImputer
from ._margin import MarginNMF
from ._nmf import NMF
from ._regressor import SSNMFRegressor
from ._topic_supervised import TopicSupervisedNMF

__all__ = [
    "NMF",
    "ConstrainedNMF",
    "LowRankImputer",
    "MarginNMF",
    "SSNMFClassifier",
    "SSNMFRegressor",
    "TopicSupervisedNMF",
]
