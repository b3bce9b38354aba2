"""Function represent: the convex problem, for both losses and every weight form."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from problems import FORMS, LOSSES, STORAGE, data, dense_objective, filled, weighted

import ssnmf_fast as sf


@each("storage", STORAGE)
@each("form", FORMS)
@each("loss", LOSSES)
def test_optimality(loss, form, storage):
    rng = np.random.default_rng(0)
    X, W, dense_W = weighted(rng, data(rng, (25, 30), np.float64, storage), form)
    A = rng.random((6, 30)) + 0.01
    S = sf.represent(X, A, loss=loss, X_weights=W, tol=1e-9)
    x = filled(X)
    Z = np.maximum(S @ A, 1e-300)
    if loss == "frobenius":
        up, down = (dense_W * x) @ A.T, (dense_W * Z) @ A.T
    else:
        up, down = (dense_W * x / Z) @ A.T, dense_W @ A.T
    scale = np.maximum(np.maximum(up, down).max(axis=1, keepdims=True), 1e-12)
    slope = (down - up) / scale
    assert slope.min() > -1e-7
    assert np.abs(slope[S > 0]).max() < 1e-7


@pytest.mark.parametrize("loss", LOSSES)
def test_no_worse_than_the_fit(loss):
    rng = np.random.default_rng(0)
    X = data(rng, (60, 40), np.float64)
    fit = sf.factorize(X, n_components=5, loss=loss, random_state=0)
    S = sf.represent(X, fit.A, loss=loss)
    ones = np.ones(X.shape)
    now = dense_objective(X.toarray(), ones, S, fit.A, loss)
    assert now <= dense_objective(X.toarray(), ones, fit.S, fit.A, loss) * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_threads_dtype_and_single_rows(loss):
    rng = np.random.default_rng(0)
    X, A = data(rng, (300, 40), np.float32), rng.random((6, 40)).astype(np.float32)
    S = sf.represent(X, A, loss=loss, n_threads=1)
    assert S.dtype == np.float32
    assert S.tobytes() == sf.represent(X, A, loss=loss, n_threads=3).tobytes()
    for i in (0, 7):
        np.testing.assert_array_equal(sf.represent(X[[i]], A, loss=loss)[0], S[i])


def test_more_components_than_features_converges_without_a_warning():
    rng = np.random.default_rng(0)
    X, A = rng.random((200, 3)), rng.random((10, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in LOSSES:
            S = sf.represent(X, A, loss=loss)
            assert np.isfinite(S).all()


@pytest.mark.parametrize("form", ["none", "observed"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_changes_the_time_alone(loss, form):
    rng = np.random.default_rng(0)
    X, W, _ = weighted(rng, data(rng, (60, 30), np.float64), form)
    A = rng.random((6, 30)) + 0.01
    options = {"loss": loss, "X_weights": W, "tol": 1e-10}
    S = sf.represent(X, A, **options)
    for init in (S, rng.random(S.shape), np.zeros_like(S)):
        kept = init.copy()
        np.testing.assert_allclose(sf.represent(X, A, init=init, **options), S, atol=1e-6)
        np.testing.assert_array_equal(init, kept)
    refused(r"init has shape \(3, 6\); expected \(60, 6\)", sf.represent, X, A, init=S[:3])
    refused("Negative values in data passed to init", sf.represent, X, A, init=-S)


@pytest.mark.parametrize(("dtype", "orders"), [(np.float64, (-12, 12)), (np.float32, (-12, 8))])
def test_rows_of_the_dictionary_of_any_scale(dtype, orders):
    rng = np.random.default_rng(0)
    A = rng.random((6, 40)) * 10.0 ** rng.uniform(*orders, size=(6, 1))
    X = rng.random((8, 40))
    S = sf.represent(X.astype(dtype), A.astype(dtype), tol=1e-10)
    for x, s in zip(X, S.astype(float), strict=True):
        _, best = scipy.optimize.nnls((A / A.max(axis=1, keepdims=True)).T, x)
        found = np.linalg.norm(s @ A - x)
        assert found == pytest.approx(best, rel=1e-10 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["none", "observed", "missing"])
def test_powers_of_two_change_no_digit(loss, form):
    rng = np.random.default_rng(1)
    X, W, _ = weighted(rng, data(rng, (25, 30), np.float64), form)
    A = rng.random((6, 30)) + 0.01
    powers = rng.integers(-60, 60, size=6)
    options = {"loss": loss, "X_weights": W}
    S = sf.represent(X, A, **options)
    scaled = sf.represent(X, np.ldexp(A, powers[:, None]), **options)
    np.testing.assert_array_equal(np.ldexp(scaled, powers), S)


def beta_loss(x, z, beta):
    if beta == 0:
        return np.sum(x / z - np.log(x / z) - 1)
    powers = x**beta + (beta - 1) * z**beta - beta * x * z ** (beta - 1)
    return np.sum(powers) / (beta * (beta - 1))


def beta_residual(X, W, S, A, beta):
    """The largest residual of the conditions, as the docstring of the solver has them."""
    Z = np.maximum(S @ A, 1e-80)
    N, P = (W * Z ** (beta - 1)) @ A.T, (W * X * Z ** (beta - 2)) @ A.T
    some = X.any(axis=1)
    shares = (S * N)[some] / np.sum(S * N, axis=1)[some, None]
    return np.abs(np.minimum(shares, 1 - P[some] / N[some])).max()


@pytest.mark.slow
@each("tol", [1e-4, 1e-6, 1e-10])
@each("form", FORMS)
@each("beta", [0.0, 0.5, 1.2, 1.5, 1.9])
def test_betas_meet_the_tolerance(beta, form, tol):
    rng = np.random.default_rng(0)
    X, W, dense_W = weighted(rng, rng.random((20, 30)) + 0.01, form)
    A = rng.random((5, 30)) + 0.01
    S = sf.represent(X, A, loss=beta, X_weights=W, tol=tol)
    assert beta_residual(filled(X), dense_W, S, A, beta) <= 1.01 * tol


@pytest.mark.parametrize("beta", [1.1, 1.5, 1.9])
def test_betas_against_scipy(beta):
    """The problem is convex: no other solver finds a lower value."""
    rng = np.random.default_rng(0)
    A = rng.random((4, 15)) * (rng.random((4, 15)) < 0.7)
    X = sp.random_array((10, 15), density=0.4, rng=rng, format="csr")
    S = sf.represent(X, A, loss=beta, tol=1e-10)
    for x, s in zip(X.toarray(), S, strict=True):

        def value(t, x=x):
            return beta_loss(x, np.maximum(t @ A, 1e-80), beta)

        def gradient(t, x=x):
            z = np.maximum(t @ A, 1e-80)
            return A @ (z ** (beta - 1) - x * z ** (beta - 2))

        start = s + 1e-2 * rng.random(4)
        found = scipy.optimize.minimize(
            value,
            start,
            jac=gradient,
            bounds=[(0, None)] * 4,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
        )
        assert value(s) <= found.fun + 1e-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.5])
def test_betas_do_not_depend_on_the_scale_of_components(beta, dtype):
    rng = np.random.default_rng(0)
    A = rng.random((3, 9)) + 0.01
    X = (np.array([[1.0, 2.0, 3.0], [2.0, 0.5, 1.0]]) @ A).astype(dtype)
    scales = np.array([[1.0], [1e8], [1e-3]])
    tol = 1e-10 if dtype == np.float64 else 1e-5
    S = sf.represent(X, A.astype(dtype), loss=beta, tol=tol)
    scaled = sf.represent(X, (A * scales).astype(dtype), loss=beta, tol=tol)
    assert S.dtype == dtype
    np.testing.assert_allclose(S, [[1, 2, 3], [2, 0.5, 1]], rtol=1e4 * tol)
    np.testing.assert_allclose(scaled * scales.T, S, rtol=1e4 * tol)


def test_betas_of_rows_without_data():
    X = np.array([[0.0, 0.0], [np.nan, np.nan], [1.0, 2.0]])
    S = sf.represent(X, np.eye(2), loss=1.5)
    np.testing.assert_allclose(S, [[0, 0], [0, 0], [1, 2]], rtol=1e-5)


def test_a_component_on_missing_entries_takes_the_memory_of_a_portion_of_rows():
    """Rows in which sums would cancel are listed entry by entry."""
    rng = np.random.default_rng(0)
    n, m = 800, 5000
    X = sp.random_array((n, m), density=1e-3, rng=rng, format="csr")
    A = rng.random((2, m))
    A[0, 1:] = A[1, 0] = 0
    first = sp.csr_array((np.ones(n), (np.arange(n), np.zeros(n, dtype=int))), shape=(n, m))
    tracemalloc.start()
    S = sf.represent(X, A, X_weights=sf.weights.missing(first), n_threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * 2**20  # all rows at once take 260 MB
    np.testing.assert_allclose(S[:, 1], (X @ A[1]) / (A[1] @ A[1]), rtol=1e-6)
    assert not S[:, 0].any()
