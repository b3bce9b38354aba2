"""Sparse nonnegative matrices of low rank, sampled at one rate of zeros and one of nonzeros."""

import numpy as np
import scipy.sparse as sp

from ssnmf_fast.completion import _irls

METHODS = ("auto", "sirls", "structured-sirls", "irls", "structured-irls", "nnm", "structured-nnm")


def sparse_factor(n, rank, density, rng):
    factor = np.zeros(n * rank)
    places = rng.integers(n * rank, size=round(density * n * rank))
    factor[places] = rng.random(len(places))
    return factor.reshape(n, rank)


def structured(n, m, rank, zero_rate, nonzero_rate, seed=0, density=0.6):
    """Return the matrix and the same with NaN in place of what is not observed."""
    rng = np.random.default_rng(seed)
    M = sparse_factor(n, rank, density, rng) @ sparse_factor(m, rank, density, rng).T
    observed = rng.random((n, m)) < np.where(M == 0, zero_rate, nonzero_rate)
    return M, np.where(observed, M, np.nan)


def observations(holes):
    """Return the observed entries as the iterations of the methods take them."""
    places = np.nonzero(~np.isnan(holes))
    entries = sp.csr_array((holes[places], places), shape=holes.shape)
    return _irls.Observations.of(entries, 0.0, 1)


def error(M, completion):
    completed = completion.to_dense(keep_observed=True)
    return np.linalg.norm(completed - M) / np.linalg.norm(M)
