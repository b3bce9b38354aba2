"""Completion of structured low-rank matrices."""

from ._complete import complete
from ._result import Completion, CompletionState

__all__ = ["Completion", "CompletionState", "complete"]
