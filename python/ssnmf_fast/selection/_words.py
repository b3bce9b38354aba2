"""Criterion "words" of :func:`choose_rank`: how well topics predict the hidden words of texts.

A tenth of the different words of every text is hidden, topics are found in the others, and the
score is the mean log-probability of a hidden word, given that it is none of those that are seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._models.factorize import factorize

GRID = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64)
_HIDDEN = 0.1  # share of the words of a text
_LEAST_GAIN = 0.05  # nats a word: shuffled texts gain up to 0.03, real ones at least 0.146
_LEAST_ERRORS = 3.0  # standard errors
_LOW, _MOST, _LOST = 0.6, 0.95, 0.1  # shares of the largest gain
_EXPONENT = 0.17  # a doubling of the rank must add an eighth to the gain
_STEP = 3.0
_ALPHAS, _BETAS = (0.3, 30.0), (100.0, 30_000.0)  # ranges of the smoothing of texts and of topics
_ITERATIONS = 50


class Smoothing(NamedTuple):
    """Counts of words that are added to those of a text (alpha), and of a topic (beta)."""

    alpha: float = 1.0
    beta: float = 1000.0

    def neighbors(self) -> list[Smoothing]:
        found = [self]
        for factor in (_STEP, 1 / _STEP):
            found.append(self._replace(alpha=float(np.clip(self.alpha * factor, *_ALPHAS))))
            found.append(self._replace(beta=float(np.clip(self.beta * factor, *_BETAS))))
        return list(dict.fromkeys(found))


class Fold:
    """Texts of which some words are hidden."""

    def __init__(self, B: sp.csr_array, rng: np.random.Generator, threads: int) -> None:
        hidden = rng.random(B.nnz) < _HIDDEN
        self.B, self.hidden, self.threads = B, hidden, threads
        self.rows = entry_rows(B.indptr)
        kept = sp.csr_array((np.ones(B.nnz - hidden.sum(), B.dtype), B.indices[~hidden], np.concatenate([[0], np.cumsum(~hidden)])[B.indptr]), shape=B.shape)
        self.seen = kept
        u = np.bincount(kept.indices, minlength=B.shape[1]) + 0.5
        self.words = u / u.sum()
        self.smoothing = Smoothing()

    def scores(self, rank: int, seed: int) -> Array:
        """Return the log-probabilities of the hidden words by topics of this rank."""
        fit = factorize(
            self.seen if rank > 1 else self.seen, n_components=rank, loss="kullback-leibler", max_iter=_ITERATIONS, tol=0, random_state=seed, n_threads=self.threads)
        tried = [(self._score(fit.S, fit.A, one), one) for one in self.smoothing.neighbors()]
        best, self.smoothing = max(tried, key=lambda pair: pair[0].mean())
        return best

    def _score(self, S: Array, A: Array, smoothing: Smoothing) -> Array:
        alpha, beta = smoothing
        sums = A.sum(axis=1, dtype=np.float64)
        A, S = A / np.maximum(sums, 1e-300)[:, None], S * sums
        tokens = S.sum(axis=0, dtype=np.float64)
        pi = tokens / tokens.sum()
        a, b = tokens / (tokens + beta), beta / (tokens + beta)
        F, G = padded(S, S.dtype), padded((A * a[:, None]).T, S.dtype)
        out = np.zeros(self.B.nnz, S.dtype)
        kernels.mapped_residuals(self.B.indptr.astype(np.int64), self.B.indices.astype(np.int32), np.zeros(self.B.nnz, S.dtype), F, G, 1.0, 0.0, 1.0, 1.0, False, -np.inf, out, self.threads)
        common = alpha * (pi * a) @ A
        of_row = S @ b + alpha * pi @ b
        length = S.sum(axis=1, dtype=np.float64) + alpha
        p = (-out + common[self.B.indices] + self.words[self.B.indices] * of_row[self.rows]) / length[self.rows]
        seen = np.bincount(self.rows[~self.hidden], weights=p[~self.hidden], minlength=len(S))
        rest = np.maximum(1 - seen, 1e-12)
        return np.log(p[self.hidden]) - np.log(rest[self.rows[self.hidden]])
