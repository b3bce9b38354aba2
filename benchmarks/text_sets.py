"""Collections of texts, as counts or TF-IDF, with one class a text where there are classes.

The files come from $SSNMF_FAST_DATA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array, load_subset, read_lines

Texts = tuple[list[str], list[str] | None]
FORMS = ("tfidf", "counts")
HEADLINES = 20_000


def _newsgroups() -> Texts:
    texts, classes = load_subset()
    return texts, classes.tolist()


def _bbc() -> Texts:
    articles = read_lines("bbc_news.jsonl.gz")
    return [f"{a['title']} {a['body']}" for a in articles], [a["label"] for a in articles]


def _reuters() -> Texts:
    stories = [story for story in read_lines("reuters21578.jsonl.gz") if len(story["topics"]) == 1]
    return [f"{s['title']} {s['body']}" for s in stories], [s["topics"][0] for s in stories]


def _pubmed() -> Texts:
    return [
        f"{a['title']} {a['abstract']}" for a in read_lines("pubmed_mesh_sample.jsonl.gz")
    ], None


def _headlines() -> Texts:
    lines = read_lines("abc_headlines.jsonl.gz")[:HEADLINES]
    return [line["headline_text"] for line in lines], None


TEXTS: dict[str, Callable[[], Texts]] = {
    "20 Newsgroups": _newsgroups,
    "BBC": _bbc,
    "Reuters": _reuters,
    "PubMed": _pubmed,
    "headlines": _headlines,
}


@cache
def documents(name: str, form: str) -> tuple[Any, Array | None]:
    """Return counts or TF-IDF of at most 5000 terms (csr), and the class of each text."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    texts, classes = TEXTS[name]()
    kind = CountVectorizer if form == "counts" else TfidfVectorizer
    vectorizer = kind(
        token_pattern="[a-zA-Z]{2,}", min_df=5, max_df=0.7, max_features=5000, stop_words="english"
    )
    X = sp.csr_array(vectorizer.fit_transform(texts).astype(np.float64))
    kept = np.diff(X.indptr) > 0
    return X[kept], None if classes is None else np.array(classes)[kept]
