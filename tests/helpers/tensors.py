"""Tensors of low rank, their models written out in dense NumPy, and the forms they are given in."""

import numpy as np


def product(factors, weights=None):
    """Return the model as an array."""
    letters = "ijklm"[: len(factors)]
    if weights is not None:
        factors = [factors[0] * weights, *factors[1:]]
    return np.einsum(",".join(f"{k}r" for k in letters) + "->" + letters, *factors)


def low_rank(shape, rank, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.random((n, rank)) for n in shape]
    return product(factors), factors


def sparse_counts(shape, seed=0, dtype=np.float64):
    """Return Poisson counts, most of which are zero."""
    truth, _ = low_rank(shape, 2, seed)
    return np.random.default_rng(seed).poisson(0.5 * truth).astype(dtype)


def coordinates(X):
    """Return a tensor as coordinates, values and shape."""
    places = np.array(np.nonzero(X))
    return places, X[tuple(places)], X.shape


def khatri_rao(factors):
    """Return the products of the rows of all factors, the last factor running fastest."""
    G = factors[0]
    for factor in factors[1:]:
        G = (G[:, None] * factor).reshape(-1, G.shape[1])
    return G


def far_side(factors, mode):
    """Return the products of the rows of all other factors."""
    return khatri_rao([F for k, F in enumerate(factors) if k != mode])


def unfolded(X, mode):
    return np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1)
