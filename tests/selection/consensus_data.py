"""Planted components, and how results of :func:`ssnmf_fast.consensus` are compared."""

import numpy as np

import ssnmf_fast as sf


def planted(n=120, m=40, r=4, seed=0, dtype=np.float64):
    """Counts that mix components of disjoint support, and the components."""
    rng = np.random.default_rng(seed)
    components = np.kron(np.eye(r), np.ones(m // r)) * rng.gamma(2, size=m)
    components /= components.sum(axis=1, keepdims=True)
    usage = rng.dirichlet(np.full(r, 0.3), n) * 300
    return rng.poisson(usage @ components).astype(dtype), components


def found(X, n_components=4, **given):
    return sf.consensus(X, n_components, **({"n_starts": 12, "random_state": 0} | given))


def cosines(A, B):
    A, B = (F / np.linalg.norm(F, axis=1, keepdims=True) for F in (A, B))
    return A @ B.T


def same(a, b):
    names = (
        "components",
        "usage",
        "stability",
        "spectra",
        "clusters",
        "neighbor_distances",
        "scores",
    )
    names += ("samples", "assignments", "error", "silhouette", "cophenetic")
    return all(np.array_equal(getattr(a, k), getattr(b, k), equal_nan=True) for k in names)
