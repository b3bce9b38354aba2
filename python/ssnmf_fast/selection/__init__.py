"""Choosing the number of components, and how far to trust them."""

from __future__ import annotations

from .._ranks.choice import RankChoice
from ._consensus import consensus
from ._consensus_result import Consensus
from ._rank import choose_rank
from ._verify import Verification, verify

__all__ = ["Consensus", "RankChoice", "Verification", "choose_rank", "consensus", "verify"]
