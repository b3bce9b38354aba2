"""Examples for the metrics, and the metrics themselves by loops over single entries."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

N, R, K = 30, 5, 4
SEEDS = st.integers(0, 2**32 - 1)
NORMALIZATIONS = ("rows", "columns", "none")
REAL = st.floats(0, 1e6, allow_subnormal=False)


def representation(seed: int = 0, n: int = N, r: int = R) -> np.ndarray:
    rng = np.random.default_rng(seed)
    S = rng.random((n, r)) * (rng.random((n, r)) < 0.6)
    S[3] = 0
    return S


def class_numbers(seed: int = 0, n: int = N, k: int = K) -> np.ndarray:
    return np.random.default_rng(seed + 1).permutation(np.arange(n) % k)


def topic_matrix(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed + 2)
    return (rng.random((N, K)) < 0.4).astype(float)


def counts(seed: int = 0, n: int = N, m: int = 12) -> np.ndarray:
    X = np.random.default_rng(seed + 3).poisson(0.7, (n, m))
    X[0] = 1  # every term occurs
    return X


def sparse_forms(Z: np.ndarray) -> list:
    """The same matrix as csr, csc, coo, with unsorted rows, and with a duplicate."""
    csr = sp.csr_array(Z)
    unsorted = csr.copy()
    for begin, end in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        unsorted.indices[begin:end] = csr.indices[begin:end][::-1]
        unsorted.data[begin:end] = csr.data[begin:end][::-1]
    unsorted.has_sorted_indices = False
    coo = sp.coo_array(Z)
    halves = (np.tile(coo.row, 2), np.tile(coo.col, 2))
    doubled = sp.coo_array((np.tile(coo.data / 2, 2), halves), shape=Z.shape)
    return [csr, sp.csc_array(Z), coo, sp.csr_matrix(Z), unsorted, doubled]


def brute_clustering(S: np.ndarray, M: np.ndarray, assignment: str) -> np.ndarray:
    n, r = S.shape
    shares = np.zeros((n, r))
    for i in range(n):
        if not S[i].any():
            continue
        if assignment == "hard":
            shares[i, max(range(r), key=lambda j: (S[i, j], -j))] = 1
        else:
            shares[i] = S[i] / sum(S[i])
    return np.array(
        [
            max(
                sum(shares[i, j] * M[i, c] for i in range(n)) / sum(M[:, c])
                for c in range(len(M[0]))
            )
            for j in range(r)
        ]
    )


def scaled(Z: np.ndarray, normalize: str) -> np.ndarray:
    if normalize == "none":
        return Z
    totals = Z.sum(axis=int(normalize == "rows"), keepdims=True)
    return Z / np.where(totals > 0, totals, 1)


def brute_jaccard(S: np.ndarray, T: np.ndarray, normalize: str) -> np.ndarray:
    U, V = scaled(S, normalize), scaled(T, normalize)
    J = np.zeros((U.shape[1], V.shape[1]))
    for j in range(U.shape[1]):
        for c in range(V.shape[1]):
            low = sum(min(a, b) for a, b in zip(U[:, j], V[:, c], strict=True))
            high = sum(max(a, b) for a, b in zip(U[:, j], V[:, c], strict=True))
            J[j, c] = low / high if high else 0
    return J


def brute_coherence(X: np.ndarray, topic: list[int], measure: str) -> float:
    documents = [set(np.flatnonzero(row > 0)) for row in X]

    def number(*terms: int) -> int:
        return sum(document.issuperset(terms) for document in documents)

    values = []
    for above, below in combinations(topic, 2):
        both = number(above, below)
        if measure == "umass":
            values.append(np.log((both + 1) / number(above)))
        elif both == 0:
            values.append(-1.0)
        elif both == len(X):
            values.append(1.0)
        else:
            joint = both / len(X)
            apart = number(above) / len(X) * number(below) / len(X)
            values.append(np.log(joint / apart) / -np.log(joint))
    return float(np.sum(values) if measure == "umass" else np.mean(values))


def brute_windows(texts: list[list[str]], window: int) -> list[list[str]]:
    return [
        text[begin : begin + window]
        for text in texts
        for begin in range(max(1, len(text) - window + 1))
    ]


def brute_c_v(documents: list, topic: list) -> float:
    """C_V of documents, each a collection of its terms."""

    def share(*terms: object) -> float:
        return sum(all(t in document for t in terms) for document in documents) / len(documents)

    def npmi(v: object, w: object) -> float:
        if share(v) * share(w) == 0:
            return 0.0
        if share(v, w) == 1:
            return 1.0
        both = share(v, w) + 1e-12
        return np.log(both / (share(v) * share(w))) / -np.log(both)

    vectors = np.array([[npmi(v, w) for w in topic] for v in topic])
    whole = vectors.sum(axis=0)
    cosines = []
    for vector in vectors:
        length = np.linalg.norm(vector) * np.linalg.norm(whole)
        cosines.append(vector @ whole / length if length else 0.0)
    return float(np.mean(cosines))


def brute_exclusivity(A: np.ndarray, n_terms: int, weight: float) -> np.ndarray:
    """Sums of FREX over the leading terms, as in the R package stm."""
    beta = (A / A.sum(axis=1, keepdims=True)).T
    exclusive = beta / beta.sum(axis=1, keepdims=True)

    def rank(column: np.ndarray) -> np.ndarray:
        return np.array([(column < x).sum() + ((column == x).sum() + 1) / 2 for x in column])

    sums = []
    for own, weights in zip(exclusive.T, beta.T, strict=True):
        frex = 1 / (weight / (rank(own) / len(own)) + (1 - weight) / (rank(weights) / len(weights)))
        sums.append(frex[np.argsort(-weights, kind="stable")[:n_terms]].sum())
    return np.array(sums)
