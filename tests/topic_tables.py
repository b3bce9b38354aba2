"""Tables of topics from given matrices, as the estimators return them of fitted ones."""

from __future__ import annotations

from ssnmf_fast._topics import Topics, amounts, class_means, make_topics, topic_shares

__all__ = ["Topics", "amounts", "class_means", "make_topics", "topic_shares"]
