"""Results of functions and methods, for type hints and ``isinstance``; not to be constructed."""

from __future__ import annotations

from ._models.factorize import Factorization, TensorFactorization
from ._solver.result import FitState, Receipt
from ._topics import Topic, Topics
from .completion._result import Completion, CompletionState
from .estimators import (
    Explanation,
    Peak,
    PeakInterval,
    Reasons,
    Recommendations,
    SampleContributions,
    SlicePrevalence,
    TopicNode,
    TopicsOverTime,
    Trial,
)
from .selection import Consensus, RankChoice, Verification

__all__ = ["Factorization", "FitState", "Receipt", "TensorFactorization", "Topic", "Topics"]
__all__ += ["Completion", "CompletionState", "Consensus", "RankChoice", "Verification"]
__all__ += ["Explanation", "Peak", "PeakInterval", "Reasons", "Recommendations"]
__all__ += ["SampleContributions", "SlicePrevalence", "TopicNode", "TopicsOverTime", "Trial"]
