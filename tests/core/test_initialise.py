"""The randomized SVD behind the nndsvda start."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ssnmf_fast import LowRankPlusSparse, randomized_svd
from ssnmf_fast._arrays import padded


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    signal = rng.random((300, 5)) @ rng.random((5, 120)) + 0.01 * rng.random((300, 120))
    signal[::4, ::3] = 0
    signal[:, ::7] = 0
    return signal


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array])
def test_leading_triplets(matrix, dtype, storage):
    X = storage(matrix.astype(dtype))
    U, singular, Vt = randomized_svd(X, 5, random_state=0, n_threads=2)
    assert U.shape == (300, 5)
    assert Vt.shape == (5, 120)
    expected = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(singular, expected[:5], rtol=1e-4)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(U.T @ U, np.eye(5), atol=tolerance)
    np.testing.assert_allclose(Vt @ Vt.T, np.eye(5), atol=tolerance)
    error = np.linalg.norm(matrix - (U * singular) @ Vt)
    assert error < 1.01 * np.linalg.norm(expected[5:])


def test_threads_and_missing_entries(matrix):
    holes = np.where(matrix == 0, np.nan, matrix)
    fits = [
        randomized_svd(X, 5, random_state=0, n_threads=n)
        for X in (matrix, holes)
        for n in (1, 2, 3)
    ]
    for name in range(3):
        assert len({fit[name].tobytes() for fit in fits}) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1), (4, 3)])
def test_small_matrices(shape):
    X = np.ones(shape)
    U, singular, Vt = randomized_svd(X, min(shape), random_state=0, n_threads=1)
    np.testing.assert_allclose((U * singular) @ Vt, X, atol=1e-12)
    with pytest.raises(ValueError, match="at most min"):
        randomized_svd(X, min(shape) + 1)


def test_sparse_plus_low_rank(matrix):
    rng = np.random.default_rng(1)
    sparse = sp.random_array((300, 120), density=0.05, rng=rng, format="csr")
    left, right = rng.standard_normal((300, 5)), rng.standard_normal((5, 120))
    X = LowRankPlusSparse(sparse, left, right)
    U, singular, Vt = randomized_svd(X, 20, n_power=6, random_state=0)
    exact = np.linalg.svd(sparse.toarray() + left @ right, compute_uv=False)
    np.testing.assert_allclose(singular[:5], exact[:5], rtol=1e-9)
    np.testing.assert_allclose(
        U.T @ X.times(padded(Vt.T, float))[:, :20], np.diag(singular), atol=1e-9
    )
    np.testing.assert_allclose(
        X.transposed_times(padded(U, float))[:, :20].T[:5], singular[:5, None] * Vt[:5], atol=1e-4
    )
