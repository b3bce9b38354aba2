"""The problems of the comparison: data, some with weights, a start, a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import DATA_SETS, Array, Factors, newsgroups, our_runner, start, zipf_text
from text_sets import documents

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"


@dataclass
class Problem:
    """Plain NMF: data (samples x features) and the weights of their entries, a start, a loss."""

    X: Any
    X_weights: Any
    S: Array
    A: Array
    loss: str
    threads: int

    @property
    def rank(self) -> int:
        return self.A.shape[0]

    def objective(self, factors: Factors) -> float:
        """Return the loss of factors, infinite for NaN; some are transposed, or just below 0."""
        if not all(np.isfinite(factor).all() for factor in factors):
            return np.inf
        S, A = (np.ascontiguousarray(np.maximum(factor, 0)) for factor in factors)
        options = {"loss": self.loss, "X_weights": self.X_weights, "n_threads": self.threads}
        return float(sf.extend.objective(self.X, S, A, **options))

    def ours(self, solver: str, seed: int = 0) -> Callable[[int], Factors]:
        """Return a function that fits k iterations of our solver; seed 0 is everybody's start."""
        init = start(self.X, 1, self.rank, seed)[:2]
        return our_runner(self.X, init, self.loss, solver, self.threads, self.X_weights)


def made(make: Callable[[], Any], rank: int, loss: str, threads: int) -> Problem:
    """Return a problem; `make` returns the data, or data and weights."""
    found = make()
    X, X_weights = found if isinstance(found, tuple) else (found, None)
    S, A, _ = start(X, 1, rank)
    return Problem(X, X_weights, S, A, loss, threads)


@cache
def signatures(n: int = 96, samples: int = 2000, rank: int = 8) -> Array:
    """Return counts as of mutational signatures, types x samples, about 500 a sample."""
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(n, 0.2), size=rank)
    exposures = rng.gamma(0.3, 500 / (0.3 * rank), size=(samples, rank))
    return rng.poisson(exposures @ profiles).T.astype(float)


@cache
def observed(n: int = 4000, m: int = 2000, share: float = 0.3) -> tuple[Any, Any]:
    """Return a matrix of rank 20 with noise, known in a share of its entries, and its weights."""
    rng = np.random.default_rng(0)
    S, A = rng.random((n, 20)), rng.random((20, m))
    pattern = sp.csr_matrix(rng.random((n, m), dtype=np.float32) < share)
    X = sp.csr_matrix(pattern.multiply(S @ A))
    X.data += rng.random(X.nnz)
    return X, sf.weights.observed(pattern)


def tenth_missing() -> tuple[Any, Any]:
    """Return 20 Newsgroups, of which every tenth entry is missing."""
    X = newsgroups()[0]
    rng = np.random.default_rng(0)
    missing = sp.csr_matrix(rng.random(X.shape, dtype=np.float32) < 0.1)
    return sp.csr_matrix(X - X.multiply(missing)), sf.weights.missing(missing)


SETS: dict[str, Callable[[], Any]] = {
    **DATA_SETS,
    "20 Newsgroups counts": lambda: sp.csr_matrix(documents("20 Newsgroups", "counts")[0]),
    "signatures": signatures,
    "30 % observed": observed,
    "10 % missing": tenth_missing,
}
QUICK_SETS: dict[str, Callable[[], Any]] = {
    "text": lambda: zipf_text(300, 200, 20),
    "dense": lambda: DATA_SETS["dense"]()[:300, :200],
    "signatures": lambda: signatures(30, 80),
    "30 % observed": lambda: observed(200, 100),
}
