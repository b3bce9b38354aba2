"""Starts, and the randomized SVD behind one of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast.linalg import LowRankPlusSparse, randomized_svd


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
    refused("at most min", randomized_svd, X, min(shape) + 1)


def test_sparse_plus_low_rank(matrix):
    rng = np.random.default_rng(1)
    sparse = sp.random_array((300, 120), density=0.05, rng=rng, format="csr")
    left, right = rng.standard_normal((300, 5)), rng.standard_normal((5, 120))
    X = LowRankPlusSparse(sparse, left, right)
    U, singular, Vt = randomized_svd(X, 20, n_power=6, random_state=0)
    exact = np.linalg.svd(sparse.toarray() + left @ right, compute_uv=False)
    np.testing.assert_allclose(singular[:5], exact[:5], rtol=1e-9)
    np.testing.assert_allclose(
        U.T @ X.times(np.ascontiguousarray(Vt.T))[:, :20], np.diag(singular), atol=1e-9
    )
    np.testing.assert_allclose(
        X.transposed_times(U)[:, :20].T[:5], singular[:5, None] * Vt[:5], atol=1e-4
    )


KL = {"n_components": 5, "loss": "kullback-leibler", "random_state": 0, "tol": 0}


def the_start(X, **arguments):
    return sf.factorize(X, **KL | {"init": "least-squares", "max_iter": 0} | arguments)


def counts_of_topics(seed):
    """Counts of documents that have one or two of eight topics with words of their own each."""
    rng = np.random.default_rng(seed)
    A = rng.dirichlet(np.full(200, 0.05), 8)
    S = rng.gamma(0.1, 100, (300, 8))
    return rng.poisson(S @ A).astype(float)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_auto_depends_on_the_loss(matrix, loss):
    name = "random" if loss == "frobenius" else "least-squares"
    fits = [
        sf.factorize(matrix, **KL | {"loss": loss, "max_iter": 3}, **init)
        for init in ({}, {"init": "auto"}, {"init": name})
    ]
    assert len({fit.S.tobytes() + fit.A.tobytes() for fit in fits}) == 1


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_least_squares_is_ahead_of_random(storage):
    for seed in range(3):
        X = storage(counts_of_topics(seed))
        ahead, behind = (
            sf.factorize(X, **KL | {"n_components": 8, "init": init, "max_iter": 20})
            for init in ("least-squares", "random")
        )
        assert ahead.objective[-1][1] < behind.objective[-1][1]


@each("dtype", [np.float32, np.float64])
@each("form", ["dense", "sparse", "nan", "weights", "observed", "support"])
def test_least_squares_start(matrix, dtype, form):
    """Positive, on the scale of the data, the same with any number of threads and in any units."""
    X = matrix.astype(dtype)
    rng = np.random.default_rng(0)
    more = {}
    if form == "sparse":
        X = sp.csr_array(X)
    elif form == "nan":
        X[::3, ::2] = np.nan
    elif form == "weights":
        more["X_weights"] = rng.random(X.shape)
    elif form == "observed":
        more["X_weights"] = sf.weights.observed(sp.csr_array(rng.random(X.shape) < 0.4))
    elif form == "support":
        more["S_support"] = rng.random((300, 5)) < 0.5
    Y = np.eye(3)[np.arange(300) % 3]
    fits = [the_start(X, y=Y, n_threads=n, **more) for n in (1, 2, 3)]
    fit = fits[0]
    assert len({f.S.tobytes() + f.A.tobytes() + f.B.tobytes() for f in fits}) == 1
    assert fit.S.dtype == fit.A.dtype == fit.B.dtype == dtype
    support = more.get("S_support", np.full(fit.S.shape, True))
    assert np.array_equal(fit.S > 0, support)
    assert fit.A.min() > 0
    assert fit.B.min() > 0
    if form in ("dense", "sparse", "support"):
        assert (fit.S @ fit.A).mean() == pytest.approx(X.mean(), rel=1e-4)
    large = the_start(64 * X, y=Y, **more)  # a power of four: roots are exact
    np.testing.assert_allclose(large.S @ large.A, 64 * (fit.S @ fit.A), rtol=1e-3)


def test_least_squares_takes_weights_into_account(matrix):
    """Columns of weight 0 may hold anything."""
    weights = np.ones(matrix.shape)
    weights[:, ::2] = 0
    other = np.where(weights > 0, matrix, 7 * np.random.default_rng(0).random(matrix.shape))
    first, second = (the_start(X, X_weights=weights) for X in (matrix, other))
    np.testing.assert_allclose(first.S, second.S, rtol=1e-9)


@each("shape", [(1, 1), (1, 9), (7, 1), (3, 4)])
@each("fill", [0.0, 1.0])
def test_least_squares_of_small_and_empty_data(shape, fill):
    fit = the_start(np.full(shape, fill), n_components=6)
    assert fit.S.min() > 0
    assert np.isfinite(fit.S).all()
    assert np.isfinite(fit.A).all()
    fit = the_start(np.full(shape, fill), S_support=np.zeros((shape[0], 5)))
    assert not fit.S.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_a_start_for_data_of_zeros_is_finite(loss, dtype):
    X, Y = np.zeros((1, 15), dtype), np.array([[1, 0, 0]], dtype)
    options = {"loss": loss, "init": "least-squares", "solver": "mm", "random_state": 761}
    fit = sf.factorize(X, Y, n_components=4, max_iter=10, supervision_weight=30, tol=0, **options)
    values = np.array([value for _, value in fit.objective])
    assert np.isfinite(values).all()
    assert values[-1] <= values[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_errors_of_zeros_are_filled_in(dtype):
    """Rows and columns without a part in the leading singular vectors."""
    X = np.zeros((20, 3), dtype)
    X[6:16, :2] = np.random.default_rng(0).random((10, 2))
    X[19, 2] = 0.02
    fit = the_start(X, n_components=2, init="nndsvda")
    assert min(fit.S.min(), fit.A.min()) > 1e-3
