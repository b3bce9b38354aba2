"""KeyNMF of turftopic with the solvers of ssnmf_fast.

    python examples/recipes/key_topics.py

The encoder in this example needs no download: it adds fixed random vectors of the words. Use a
sentence encoder instead. The example needs the package turftopic.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer
from turftopic import KeyNMF
from turftopic.models._keynmf import KeywordNMF

import ssnmf_fast as sf

Array = npt.NDArray[Any]


class FastKeywordNMF(KeywordNMF):
    """The factorization of documents x keywords with ssnmf_fast."""

    def fit_transform(self, keywords: list[dict[str, float]]) -> Array:
        """Learn topics, and return those of the documents."""
        if self.n_components == "auto":
            raise ValueError("n_components must be a number.")
        X = self.vectorize(keywords, fitting=True)
        fit = sf.NMF(self.n_components, random_state=self.seed).fit(X)
        self.components, self.n_iter = fit.components_, fit.n_iter_
        return np.asarray(fit.representation_)

    def transform(self, keywords: list[dict[str, float]]) -> Array:
        """Return the topics of documents for the learned components."""
        if self.components is None:
            # raises the error for unfitted models
            return super().transform(keywords)
        return sf.represent(self.vectorize(keywords), self.components)


def fast_key_nmf(n_components: int, **parameters: Any) -> KeyNMF:
    """Return a KeyNMF that factorizes with ssnmf_fast."""
    model = KeyNMF(n_components, **parameters)
    model.model = FastKeywordNMF(
        n_components, seed=model.random_state, top_n=model.top_n
    )
    return model


class RandomEncoder:
    """Sum of fixed random vectors of the words: texts that share words are close to each other."""

    prompts = None

    def __init__(self, size: int = 256) -> None:
        self.size = size
        self._known: dict[str, Array] = {}

    def _vector(self, word: str) -> Array:
        if word not in self._known:
            rng = np.random.default_rng(zlib.crc32(word.encode()))
            self._known[word] = rng.standard_normal(self.size)
        return self._known[word]

    def encode(self, sentences: Sequence[str], **_: Any) -> Array:
        """Return one row per text."""
        words = [re.findall(r"\w+", text.lower()) for text in sentences]
        return np.array(
            [
                sum(map(self._vector, some), np.zeros(self.size))
                for some in words
            ]
        )


def draw_texts(
    count: int, topics: int = 4, seed: int = 0
) -> tuple[list[str], Array]:
    """Return texts of words such as `topic2word7`, and their topics."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(topics, size=count)
    texts = []
    for label in labels:
        own = [f"topic{label}word{i}" for i in rng.integers(12, size=15)]
        common = [f"common{i}" for i in rng.integers(40, size=5)]
        texts.append(" ".join([*own, *common]))
    return texts, labels


def purity(topics: Array, labels: Array) -> float:
    """Return the share of texts whose label is the most common one of their largest topic."""
    found = topics.argmax(axis=1)
    return float(
        sum(np.bincount(labels[found == k]).max() for k in np.unique(found))
        / len(labels)
    )


def main() -> None:
    """Compare KeyNMF with the version above, best of three factorizations."""
    for count, n_components in ((3000, 10), (10000, 50)):
        texts, labels = draw_texts(count, topics=n_components)
        options = {
            "encoder": RandomEncoder(),
            "vectorizer": CountVectorizer(),
            "random_state": 0,
        }
        keywords = KeyNMF(n_components, **options).extract_keywords(texts)
        for make in (KeyNMF, fast_key_nmf):
            times = []
            for _ in range(3):
                factorization = make(n_components, **options).model
                start = time.perf_counter()
                topics = factorization.fit_transform(keywords)
                times.append(time.perf_counter() - start)
            print(
                f"{count} texts, {n_components} topics, {make.__name__:12} "
                f"{1000 * min(times):7.1f} ms, purity {purity(topics, labels):.3f}"
            )


if __name__ == "__main__":
    main()
