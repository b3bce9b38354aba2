"""Topics with subtopics: trees of topics, and changes of the topics of a fitted model."""

from __future__ import annotations

from .estimators import TopicTree, merge_topics, split_topic, topic_tree

__all__ = ["TopicTree", "merge_topics", "split_topic", "topic_tree"]
