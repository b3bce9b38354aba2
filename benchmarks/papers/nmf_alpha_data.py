"""Data sets of the NMF-alpha paper, their splits, and made-up ones in their place for quick runs.

MNIST: fours against nines, pixels in [0, 1].  20 Newsgroups: all twenty groups, "bydate", without
headers, footers and quotes, TF-IDF.  Aviation: presence of 500 words in safety reports, 22 labels;
the file names no test part, so that one of the competition's size is drawn once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import NEWSGROUPS, Array, data_file, read_lines, stop_words, strip

VALIDATION = 0.2  # of the documents that are not test
N_TERMS = 6000
AVIATION_TEST = 7077


@dataclass(frozen=True, eq=False)
class Data:
    """A task: rows to train and validate on, and test rows that are the same in every split."""

    name: str
    X: Any
    y: Array  # classes, or the indicator matrix of several labels a row
    X_test: Any
    y_test: Array

    @property
    def multilabel(self) -> bool:
        return self.y.ndim == 2


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the rows of one split; the labeled are the first of `order`."""

    order: Array
    validation: Array

    def labeled(self, rate: float) -> Array:
        """Return the training rows whose labels are known at this rate.

        Those of a smaller rate are among them, so that rates differ by what is added only.
        """
        return self.order[: max(2, round(rate * len(self.order)))]


def split(data: Data, seed: int) -> Split:
    """Draw the validation rows and the order in which training rows get their labels."""
    order = np.random.default_rng([seed, 2011]).permutation(data.X.shape[0])
    held = round(VALIDATION * len(order))
    return Split(order[held:], order[:held])


@cache
def mnist() -> Data:
    """Return fours against nines (11791 + 1991 images, csr of 784 pixels)."""
    parts = []
    for name in ("mnist_train.npz", "mnist_t10k.npz"):
        with np.load(data_file(name)) as file:
            images, labels = file["images"], file["labels"]
        chosen = np.isin(labels, (4, 9))
        flat = images[chosen].reshape(int(chosen.sum()), -1) / 255.0
        parts += [sp.csr_matrix(flat), (labels[chosen] == 9).astype(int)]
    return Data("mnist", *parts)


@cache
def news() -> Data:
    """Return the twenty groups (11314 + 7532 posts, TF-IDF of 6000 terms).

    The terms and their frequencies are those of the 11314 posts, which NMF may see without labels.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    records = read_lines(NEWSGROUPS)
    names = sorted({record["label"] for record in records})
    vectorizer = TfidfVectorizer(
        token_pattern="[a-zA-Z]+", max_df=0.5, max_features=N_TERMS, stop_words=stop_words()
    )
    parts: list[Any] = []
    for part, convert in (("train", vectorizer.fit_transform), ("test", vectorizer.transform)):
        chosen = [record for record in records if record["split"] == part]
        parts.append(sp.csr_matrix(convert([strip(r["text"]) for r in chosen])))
        parts.append(np.array([names.index(record["label"]) for record in chosen]))
    return Data("news", *parts)


@cache
def aviation() -> Data:
    """Return the safety reports (21519 + 7077, presence of 500 words, 22 labels)."""
    with np.load(data_file("aviation_tmc2007_500.npz")) as file:
        words = np.ones(len(file["indices"]))
        shape = tuple(int(size) for size in file["shape"])
        X = sp.csr_matrix((words, file["indices"], file["indptr"]), shape=shape)
        Y = file["labels"].astype(int)
    order = np.random.default_rng(2007).permutation(shape[0])
    test, rest = order[:AVIATION_TEST], order[AVIATION_TEST:]
    return Data("aviation", X[rest], Y[rest], X[test], Y[test])


def made_up(name: str, n: int = 240, side: int = 8, seed: int = 0) -> Data:
    """Return small random data of the same kind: classes, many classes or several labels."""
    rng = np.random.default_rng(seed)
    kinds = {"mnist": 2, "news": 4, "aviation": 3}[name]
    profiles = rng.gamma(0.3, size=(kinds, side * side))
    if name == "aviation":
        y = (rng.random((n, kinds)) < 0.5).astype(int)
        means = y @ profiles
    else:
        y = rng.integers(kinds, size=n)
        means = profiles[y]
    X = sp.csr_matrix(rng.poisson(means + 0.3).astype(float))
    cut = 2 * n // 3
    return Data(name, X[:cut], y[:cut], X[cut:], y[cut:])


DATA: dict[str, Callable[[], Data]] = {"mnist": mnist, "news": news, "aviation": aviation}
# Shares of labeled training rows: the paper's, and the 5 % of the others for MNIST too.
RATES = {
    "mnist": (0.02, 0.05, 0.1, 1.0),
    "news": (0.05, 0.1, 1.0),
    "aviation": (0.05, 0.1, 1.0),
}
