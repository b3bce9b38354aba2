"""Reuters-21578 as the TS-NMF paper prepares it, and made-up stories in its place for quick runs.

The 90 topics that occur in both parts of the ModApte split; the stories of both parts with one of
them and with 250 characters or more; TF-IDF of 2000 terms, every story's row of length 1.  The
paper splits words as NLTK's Treebank tokenizer does and lemmatises them; here a term is three or
more letters, as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from common import Array, read_lines, stop_words

SHORTEST = 250
TERMS = 2000
QUICK_TOPICS = 12


@dataclass(frozen=True, eq=False)
class Stories:
    """Documents x terms twice, as TF-IDF and as counts (csr), and their true topics (0 or 1)."""

    X: Any
    counts: Any
    topics: Array
    names: list[str]


@cache
def reuters_stories() -> Stories:
    """Return the stories of the 90 topics, from $SSNMF_FAST_DATA."""
    stories = read_lines("reuters21578.jsonl.gz")
    names = sorted(_topics_of(stories, "train") & _topics_of(stories, "test"))
    texts, topics = [], []
    for story in stories:
        text = story["title"] + "\n" + story["body"]
        own = [name in story["topics"] for name in names]
        if story["modapte"] != "unused" and any(own) and len(text) >= SHORTEST:
            texts.append(text)
            topics.append(own)
    return _stories(texts, np.array(topics, dtype=np.float64), names)


def _topics_of(stories: list[dict[str, Any]], part: str) -> set[str]:
    return {topic for story in stories if story["modapte"] == part for topic in story["topics"]}


def random_stories(per_topic: int = 30, words: int = 40, seed: int = 0) -> Stories:
    """Return stories of made-up words; every fourth has two topics, whose words are mixed."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.eye(QUICK_TOPICS), per_topic, axis=0)
    second = rng.integers(QUICK_TOPICS, size=len(topics))
    topics[np.arange(0, len(topics), 4), second[::4]] = 1
    texts = []
    for row in topics:
        sources = rng.choice([-1, *np.flatnonzero(row)], size=words)
        numbers = rng.integers(30, size=words) + 30 * (sources + 1)
        texts.append(" ".join(_word(number) for number in numbers))
    return _stories(texts, topics, [f"topic {k}" for k in range(QUICK_TOPICS)])


def _word(number: int) -> str:
    """Spell a number by letters, three or more, that are no stop word."""
    return "xq" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _stories(texts: list[str], topics: Array, names: list[str]) -> Stories:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    vectorizer = CountVectorizer(
        token_pattern="[a-zA-Z]{3,}", max_features=TERMS, stop_words=_stop_words()
    )
    counts = vectorizer.fit_transform(texts)
    counts.sort_indices()
    return Stories(TfidfTransformer().fit_transform(counts), counts, topics, names)


def _stop_words() -> list[str] | str:
    """Return the stop words that are long enough to be terms."""
    words = stop_words()
    return words if isinstance(words, str) else [word for word in words if len(word) >= 3]


def labeled_rows(stories: Stories, rate: float, draw: int) -> Array:
    """Return which stories a draw labels: a share `rate` of them."""
    n = len(stories.topics)
    rng = np.random.default_rng([2017, draw, round(1e4 * rate)])
    labeled = np.zeros(n, dtype=bool)
    labeled[rng.choice(n, round(rate * n), replace=False)] = True
    return labeled
