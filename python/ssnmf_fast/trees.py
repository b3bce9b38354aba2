"""Topics with subtopics: trees of topics, and changes of the topics of a fitted model."""

from __future__ import annotations

from .estimators import TopicTree, merge, split, tree

__all__ = ["TopicTree", "merge", "split", "tree"]
