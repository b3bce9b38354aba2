"""Estimators that follow the conventions of scikit-learn (version 1.6 or newer)."""

from __future__ import annotations

from ._bayesian import BayesianNMF
from ._bayesian_supervised import SupervisedBayesianNMF
from ._classifier import SSNMFClassifier
from ._constrained import ConstrainedNMF
from ._cp import NonnegativeCP
from ._dynamic import DynamicTopics
from ._imputer import LowRankImputer
from ._margin import MarginNMF
from ._nmf import NMF
from ._prevalence import Peak
from ._rank_choice import RankChoice, choose_rank
from ._regressor import SSNMFRegressor
from ._topic_supervised import TopicSupervisedNMF

__all__ = [
    "NMF",
    "BayesianNMF",
    "ConstrainedNMF",
    "DynamicTopics",
    "LowRankImputer",
    "MarginNMF",
    "NonnegativeCP",
    "Peak",
    "RankChoice",
    "SSNMFClassifier",
    "SSNMFRegressor",
    "SupervisedBayesianNMF",
    "TopicSupervisedNMF",
    "choose_rank",
]
