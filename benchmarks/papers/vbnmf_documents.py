"""20 Newsgroups as the paper on supervised vbNMF prepares it, and made-up counts for quick runs.

The bydate split, headers stripped, everything else kept.  The paper leaves these choices open:
words are runs of letters without NLTK's stop words, in five training documents or more.  The
largest count of a document is taken over those words, and the 10,000 terms kept are those whose
largest TF-IDF in any training document is highest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array, read_lines, stop_words

TERMS = 10_000
LEAST_DOCUMENTS = 5


@dataclass(frozen=True, eq=False)
class Documents:
    """TF-IDF (csr, documents x terms) and classes of the training and of the test documents."""

    X: Any
    classes: Array
    X_test: Any
    classes_test: Array


@cache
def newsgroup_documents() -> Documents:
    """Return the 11,314 training and the 7,532 test documents."""
    posts = read_lines("20newsgroups.jsonl.gz")
    counts = _counts(post["text"].partition("\n\n")[2] for post in posts)
    groups = np.array([post["label"] for post in posts])
    train = np.array([post["split"] == "train" for post in posts])
    X, X_test = tfidf(counts[train], counts[~train])
    return Documents(X, groups[train], X_test, groups[~train])


@cache
def made_up_documents(per_class: int = 60, classes: int = 5, seed: int = 0) -> Documents:
    """Return Poisson counts; every class has terms of its own, and all share others."""
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(classes), per_class)
    terms = np.arange(40 * (classes + 1)) // 40
    means = np.where(terms == labels[:, None], 0.3, np.where(terms == classes, 0.5, 0.03))
    counts = sp.csr_matrix(rng.poisson(means).astype(float))
    half = len(labels) // 2
    X, X_test = tfidf(counts[:half], counts[half:])
    return Documents(X, labels[:half], X_test, labels[half:])


def tfidf(counts: Any, counts_test: Any) -> tuple[Any, Any]:
    """Return TF-IDF (equations 1 to 3), all choices made on the training documents."""
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    frequent = np.flatnonzero(documents >= LEAST_DOCUMENTS)
    weights = np.log(counts.shape[0] / documents[frequent])
    train, test = (_weighted(part[:, frequent], weights) for part in (counts, counts_test))
    largest = train.max(axis=0).toarray().ravel()
    # Many rare terms tie at tf = 1: the more frequent of them come first.
    chosen = np.sort(np.lexsort((-documents[frequent], -largest))[:TERMS])
    return train[:, chosen], test[:, chosen]


def _weighted(counts: Any, weights: Array) -> Any:
    largest = np.maximum(counts.max(axis=1).toarray().ravel(), 1)
    return sp.csr_matrix(sp.diags(1 / largest) @ counts @ sp.diags(weights))


def _counts(texts: Iterable[str]) -> Any:
    """Return the counts (csr) of all words but the stop words."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern="[a-z]+", stop_words=stop_words(), dtype=np.float64)
    return vectorizer.fit_transform(texts)
