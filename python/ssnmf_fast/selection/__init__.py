"""Choosing the number of components, and how far to trust them."""

from __future__ import annotations

from ._consensus import consensus
from ._consensus_result import Consensus

__all__ = ["Consensus", "consensus"]
