"""Results of functions and methods, for type hints and ``isinstance``: no user constructs them."""

from __future__ import annotations

from ._models.factorize import Factorization, TensorFactorization
from ._solver.result import FitState, Receipt
from ._topics import Topic, Topics
from .completion._result import Completion, CompletionState
from .estimators import (
    Explanation,
    Peak,
    PeakInterval,
    SampleContributions,
    SlicePrevalence,
    TopicNode,
    TopicsOverTime,
)
from .selection import Consensus, RankChoice, Verification

__all__ = [
    "Completion",
    "CompletionState",
    "Consensus",
    "Explanation",
    "Factorization",
    "FitState",
    "Peak",
    "PeakInterval",
    "RankChoice",
    "Receipt",
    "SampleContributions",
    "SlicePrevalence",
    "TensorFactorization",
    "Topic",
    "TopicNode",
    "Topics",
    "TopicsOverTime",
    "Verification",
]
