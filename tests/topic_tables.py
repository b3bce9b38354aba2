"""Tables of topics from given matrices, as the estimators return them of fitted ones."""

from __future__ import annotations

from ssnmf_fast import _topics

Topics, make_topics = _topics.Topics, _topics.make_topics
amounts, class_means, topic_shares = _topics.amounts, _topics.class_means, _topics.topic_shares
