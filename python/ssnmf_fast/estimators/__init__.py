"""Estimators that follow the conventions of scikit-learn (version 1.6 or newer)."""

from __future__ import annotations

from ._bayesian import BayesianNMF, SupervisedBayesianNMF
from ._cp import NonnegativeCP
from ._dynamic import DynamicTopics
from ._dynamic_peaks import Peak, PeakInterval
from ._dynamic_stream import SlicePrevalence
from ._explanation import Explanation, Reasons
from ._few_labels import FewLabelsClassifier
from ._hierarchical import HierarchicalClassifier
from ._imputer import LowRankImputer
from ._nmf import NMF
from ._papers import ConstrainedNMF, MarginNMF, TopicSupervisedNMF
from ._seeded import SeededTopics
from ._splitting import merge, split
from ._ssnmf import SSNMFClassifier, SSNMFRegressor
from ._topic_tree import TopicNode, TopicTree
from ._tree import tree

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
    "SSNMFClassifier",
    "SSNMFRegressor",
    "SeededTopics",
    "SlicePrevalence",
    "SupervisedBayesianNMF",
    "TopicNode",
    "TopicSupervisedNMF",
    "TopicTree",
    "merge",
    "split",
    "tree",
]
