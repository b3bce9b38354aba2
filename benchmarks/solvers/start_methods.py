"""Starts that starts.py compares: those of the library by name, others as factors S and A."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import norm

import ssnmf_fast as sf

Array = np.ndarray[Any, Any]
Factors = tuple[Array, Array]
Method = Callable[[Any, int, int, str, int], Any]


def _named(name: str) -> Method:
    return lambda X, rank, seed, loss, threads: name


def _filled(S: Array, A: Array, X: Any, share: float) -> Factors:
    """Lift zeros to a share of the mean, since they would stay, and bring S A to the mean of X."""
    S = np.maximum(S, share * S.mean())
    A = np.maximum(A, share * A.mean())
    return S * (X.mean() / float(S.mean(axis=0) @ A.mean(axis=1))), A


def _nndsvd(fill: str) -> Method:
    """scikit-learn's variants: zeros, or small random numbers."""

    def method(X: Any, rank: int, seed: int, loss: str, threads: int) -> Factors:
        from sklearn.decomposition._nmf import _initialize_nmf

        S, A = _initialize_nmf(X, rank, init=fill, random_state=seed)
        return (S, A) if fill == "nndsvdar" else _filled(S, A, X, 1e-3)

    return method


def _frobenius(init: Any, iterations: int, share: float = 0.01, form: str = "as it is") -> Method:
    """A few iterations of the Frobenius loss first, on the data, rows of length 1, or the roots."""

    def method(X: Any, rank: int, seed: int, loss: str, threads: int) -> Factors:
        Z, sizes = X, np.ones((X.shape[0], 1))
        if form == "rows":
            sizes = norm(X, axis=1)[:, None]
            Z = sp.csr_array(X / sizes)
        elif form == "roots":
            Z = X.sqrt()
        fit = sf.factorize(
            Z,
            n_components=rank,
            init=init if isinstance(init, str) else init(Z, rank, seed, loss, threads),
            max_iter=iterations,
            tol=0,
            random_state=seed,
            n_threads=threads,
        )
        S, A = (fit.S**2, fit.A**2) if form == "roots" else (fit.S * sizes, fit.A)
        return _filled(S, A, X, share)

    return method


def _clusters(rounds: int, share: float = 0.01, uniform: bool = False) -> Method:
    """Spherical k-means from random rows: A has the centers, S the memberships."""

    def method(X: Any, rank: int, seed: int, loss: str, threads: int) -> Factors:
        rng = np.random.default_rng(seed)
        rows = sp.csr_array(X / norm(X, axis=1)[:, None])
        centers = rows[rng.choice(len(np.diff(X.indptr)), rank, replace=False)].toarray()
        for _ in range(rounds):
            nearest = np.argmax(rows @ centers.T, axis=1)
            member = sp.csr_array(
                (np.ones(len(nearest)), (nearest, np.arange(len(nearest)))),
                shape=(rank, len(nearest)),
            )
            sums = (member @ rows).toarray()
            norms = np.linalg.norm(sums, axis=1, keepdims=True)
            centers = np.where(norms > 0, sums / np.maximum(norms, 1e-300), centers)
        nearest = np.argmax(rows @ centers.T, axis=1)
        S = rng.random((X.shape[0], rank)) if uniform else np.eye(rank)[nearest] + 0.1
        return _filled(S, centers, X, share)

    return method


METHODS: dict[str, Method] = {
    "random": _named("random"),
    "random-acol": _named("random-acol"),
    "nndsvda": _named("nndsvda"),
    "nndsvd, zeros 0.001": _nndsvd("nndsvd"),
    "nndsvdar": _nndsvd("nndsvdar"),
    "least-squares": _named("least-squares"),
    "5 steps": _frobenius("random", 5, form="roots"),
    "20 steps": _frobenius("random", 20, form="roots"),
    "X for its root": _frobenius("random", 10),
    "the same, rows of length 1": _frobenius("random", 10, form="rows"),
    "the same, from nndsvda": _frobenius("nndsvda", 10),
    "k-means": _clusters(10),
    "k-means, random S": _clusters(10, uniform=True),
}
