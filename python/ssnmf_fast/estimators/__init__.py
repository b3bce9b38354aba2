"""Estimators that follow the conventions of scikit-learn (version 1.6 or newer)."""

from __future__ import annotations

from .._recommend.lists import Reasons, Recommendations
from .._recommend.validation import Trial
from ._bayesian import BayesianNMF, SupervisedBayesianNMF
from ._cp import NonnegativeCP
from ._dynamic import DynamicTopics
from ._explanation import Explanation, SampleContributions
from ._few_labels import FewLabelsClassifier
from ._hierarchical import HierarchicalClassifier
from ._imputer import LowRankImputer
from ._nmf import NMF
from ._over_time import Peak, PeakInterval, SlicePrevalence, TopicsOverTime, topics_over_time
from ._papers import ConstrainedNMF, MarginNMF, TopicSupervisedNMF
from ._recommender import Recommender
from ._seeded import SeededTopics
from ._ssnmf import SSNMFClassifier, SSNMFRegressor
from ._trees import TopicNode, TopicTree, merge_topics, split_topic, topic_tree

__all__ = [
    "NMF",
    "BayesianNMF",
    "ConstrainedNMF",
    "DynamicTopics",
    "Explanation",
    "FewLabelsClassifier",
    "HierarchicalClassifier",
    "LowRankImputer",
    "MarginNMF",
    "NonnegativeCP",
    "Peak",
    "PeakInterval",
    "Reasons",
    "Recommendations",
    "Recommender",
    "SSNMFClassifier",
    "SSNMFRegressor",
    "SampleContributions",
    "SeededTopics",
    "SlicePrevalence",
    "SupervisedBayesianNMF",
    "TopicNode",
    "TopicSupervisedNMF",
    "TopicTree",
    "TopicsOverTime",
    "Trial",
    "merge_topics",
    "split_topic",
    "topic_tree",
    "topics_over_time",
]
