"""Choosing the number of components, and how far to trust them."""

from __future__ import annotations

from ._rank import choose_rank
from ._rank_choice import RankChoice

__all__ = ["RankChoice", "choose_rank"]
