"""Collections of texts, as counts or TF-IDF, with one class a text where there are classes.

The files come from $SSNMF_FAST_DATA.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array, load_subset, read_lines
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

FORMS = ("tfidf", "counts")
HEADLINES = 20_000
# Name -> file, and the forms of a text and of its class in a record.
TEXTS: dict[str, tuple[str, str, str | None]] = {
    "20 Newsgroups": ("", "", None),
    "BBC": ("bbc_news.jsonl.gz", "{title} {body}", "{label}"),
    "Reuters": ("reuters21578.jsonl.gz", "{title} {body}", "{topics[0]}"),
    "PubMed": ("pubmed_mesh_sample.jsonl.gz", "{title} {abstract}", None),
    "headlines": ("abc_headlines.jsonl.gz", "{headline_text}", None),
}


def read_texts(name: str) -> tuple[list[str], Any]:
    """Return texts and their classes, of stories those with one topic."""
    if name == "20 Newsgroups":
        return load_subset()
    file, text, label = TEXTS[name]
    records = read_lines(file)[: HEADLINES if name == "headlines" else None]
    if name == "Reuters":
        records = [record for record in records if len(record["topics"]) == 1]
    texts = [text.format(**record) for record in records]
    return texts, None if label is None else [label.format(**record) for record in records]


@cache
def documents(name: str, form: str) -> tuple[Any, Array | None]:
    """Return counts or TF-IDF of at most 5000 terms (csr), and the class of each text."""
    texts, classes = read_texts(name)
    kind = CountVectorizer if form == "counts" else TfidfVectorizer
    vectorizer = kind(
        token_pattern="[a-zA-Z]{2,}", min_df=5, max_df=0.7, max_features=5000, stop_words="english"
    )
    X = sp.csr_array(vectorizer.fit_transform(texts).astype(np.float64))
    kept = np.diff(X.indptr) > 0
    return X[kept], None if classes is None else np.array(classes)[kept]
