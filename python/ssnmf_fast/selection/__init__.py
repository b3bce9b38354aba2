"""Choice of the number of components, stability, verification, and splits of data for tests."""

from __future__ import annotations

from .._ranks import RankChoice
from .._recommend.validation import split_interactions
from ._consensus import consensus
from ._consensus_result import Consensus
from ._rank import choose_rank
from ._verify import Verification, verify

__all__ = ["Consensus", "RankChoice", "Verification", "choose_rank", "consensus"]
__all__ += ["split_interactions", "verify"]
