"""Data of tests in several files: images of digits, counts of drawn words, labels of a few."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits


def digits(n: int | None = None, **options: Any) -> tuple[Any, Any]:
    """Return the first n images (from 0 to 1) and their labels, read-only."""
    X, y = load_digits(return_X_y=True, **options)
    X, y = X[:n] / 16, y[:n]
    X.flags.writeable = y.flags.writeable = False
    return X, y


def small_digits(n: int = 120, every: int = 3) -> tuple[Any, Any]:
    """Return images of 4 x 4 pixels, and labels of every third."""
    X, y = digits(n)
    X = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    return X, np.where(np.arange(n) % every == 0, y, -1)


def hide(y: Any, per_class: int, seed: int) -> Any:
    """Return labels of which a few of each class are left, the others being -1."""
    order = np.random.default_rng(seed).permutation(len(y))
    shown = np.concatenate([order[y[order] == c][:per_class] for c in np.unique(y)])
    hidden = np.full(len(y), -1)
    hidden[shown] = y[shown]
    return hidden


def parted_texts(seed: int = 0, n: int = 90) -> tuple[sp.csr_array, Any]:
    """Return counts of 24 words of three kinds of samples, each of which has two parts."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(n) % 6
    rates = np.full((6, 24), 0.05)
    for kind in range(6):
        rates[kind, 8 * (kind // 2) : 8 * (kind // 2) + 4] = 1.0
        rates[kind, 8 * (kind // 2) + 4 + 2 * (kind % 2) :][:2] = 2.0
    return sp.csr_array(rng.poisson(rates[kinds]).astype(float)), kinds


def zipf_documents(
    seed: int, n: int = 300, m: int = 250, k: int = 4, length: int = 40
) -> tuple[Any, Any]:
    """Return word counts of mixtures of k topics, each a Zipf law over its own order of words."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, m + 1)
    zipf /= zipf.sum()
    topics = np.array([0.6 * zipf[rng.permutation(m)] + 0.4 * zipf for _ in range(k)])
    y = np.arange(n) % k
    mixture = 0.4 * rng.dirichlet(np.full(k, 0.3), n) + 0.6 * np.eye(k)[y]
    return np.array([rng.multinomial(length, p) for p in mixture @ topics]), y


def tfidf(counts: Any) -> sp.csr_array:
    """Return the counts with rare words raised, in rows of length 1, sparse."""
    weighted = counts * (1 + np.log((1 + len(counts)) / (1 + (counts > 0).sum(axis=0))))
    return sp.csr_array(weighted / np.linalg.norm(weighted, axis=1, keepdims=True))
