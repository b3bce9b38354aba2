"""Fits with the Kullback-Leibler loss by coordinate descent: "hals", and "auto" to small `tol`."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.random_examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import FORMS, data, dense_objective, filled, iterates, weighted

import ssnmf_fast as sf

LOSS = "kullback-leibler"


def fit_of(X, rank, **options):
    return sf.factorize(X, n_components=rank, loss=LOSS, tol=0, **options)


@pytest.mark.slow
@settings(max_examples=examples(150, in_numpy=30))
@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    form=st.sampled_from(FORMS),
    solver=st.sampled_from(["auto", "hals"]),
    density=st.sampled_from([0.05, 0.4, 1.0]),
    seed=st.integers(0, 10_000),
)
def test_no_iteration_raises_the_objective(dtype, form, solver, density, seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 25)), int(rng.integers(1, 20)))
    X, W, dense_W = weighted(rng, data(rng, shape, dtype, density=density), form)

    def run(**more):
        options = {"solver": solver, "init": "random", "random_state": seed, "n_threads": 1}
        return fit_of(X, int(1 + seed % 7), X_weights=W, max_iter=22, **options, **more)

    steps = iterates(run)
    values = [dense_objective(filled(X), dense_W, S, A, LOSS) for S, A, _ in steps]
    scale = float(np.sum(dense_W * filled(X) ** 2))
    assert np.isfinite(values).all()
    assert max(np.diff(values)) <= 50 * np.finfo(dtype).eps * (scale + abs(values[0]))


def text(seed=0, shape=(120, 60), rank=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, size=(shape[0], rank)) @ rng.gamma(0.3, size=(rank, shape[1]))
    return sp.csr_array(rng.poisson(rates).astype(dtype))


def residual(X, S, A):
    """Largest of |min(F, gradient)|, with F in units in which its row or column explains 1."""
    X = X.toarray()
    ratio = np.divide(X, S @ A, out=np.zeros_like(X), where=X > 0)
    worst = 0.0
    for F, G, Z in ((S, A.T, ratio), (A.T, S, ratio.T)):
        n = G.sum(axis=0)
        slope = 1 - (Z @ G) / n
        worst = max(worst, np.abs(np.minimum(F * n / X.sum(), slope)).max())
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "hals"])
def test_the_optimality_conditions_hold_at_convergence(solver):
    X = text()
    fit = fit_of(X, 4, solver=solver, random_state=0, max_iter=3000)
    assert residual(X, fit.S, fit.A) < 1e-6
    values = [value for _, value in fit.objective]
    assert max(np.diff(values)) <= 1e-12 * values[0]
    known = sf.extend.objective(X, fit.S, fit.A, loss=LOSS)
    assert fit.objective[-1][1] == pytest.approx(known, rel=1e-10)


def test_auto_goes_further_than_multiplicative_steps():
    X = text(1)
    start = fit_of(X, 4, random_state=0, max_iter=0)
    ends = {}
    for solver, most in {"auto": 150, "mm": 600}.items():
        ends[solver] = fit_of(X, 4, solver=solver, init=(start.S, start.A), max_iter=most)
    assert ends["auto"].objective[-1][1] < ends["mm"].objective[-1][1]
    assert residual(X, ends["auto"].S, ends["auto"].A) < residual(X, ends["mm"].S, ends["mm"].A)


def test_auto_goes_over_after_the_first_check_in_fits_to_a_small_tol():
    X = text(2)

    def fit(tol, n_iter):
        options = {"n_components": 4, "loss": LOSS, "random_state": 0, "max_iter": n_iter}
        return sf.factorize(X, tol=tol, **options)

    np.testing.assert_array_equal(fit(1e-5, 10).S, fit(1e-4, 10).S)
    assert fit(1e-5, 20).objective[-1] < fit(1e-4, 20).objective[-1]


@pytest.mark.parametrize("solver", ["auto", "hals"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(solver, dtype):
    X = text(3, (900, 300), dtype=dtype)
    one, two = (
        fit_of(X, 6, solver=solver, random_state=0, max_iter=25, n_threads=n) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.S, two.S)
    np.testing.assert_array_equal(one.A, two.A)
    assert one.objective == two.objective


@pytest.mark.parametrize("solver", ["auto", "hals"])
def test_zeros_of_a_start_and_of_a_support_stay(solver):
    X = text(4)
    rng = np.random.default_rng(0)
    S, A = rng.random((120, 4)) + 0.1, rng.random((4, 60)) + 0.1
    A[2, :20] = 0
    support = rng.random((120, 4)) < 0.7
    support[:, 0] = True
    fit = fit_of(X, 4, solver=solver, init=(S, A), S_support=support, max_iter=30)
    np.testing.assert_array_equal(fit.S[~support], 0)
    np.testing.assert_array_equal(fit.A[2, :20], 0)
    assert (fit.S[support] > 0).any()


@pytest.mark.parametrize("solver", ["auto", "hals"])
def test_rows_without_entries_and_components_without_anything(solver):
    X = text(5).tolil()
    X[7], X[:, 11] = 0, 0
    X = sp.csr_array(X.tocsr())
    rng = np.random.default_rng(0)
    S, A = rng.random((120, 4)) + 0.1, rng.random((4, 60)) + 0.1
    S[:, 3] = 0
    fit = fit_of(X, 4, solver=solver, init=(S, A), max_iter=40)
    np.testing.assert_array_equal(fit.S[7], 0)
    np.testing.assert_array_equal(fit.A[:3, 11], 0)
    np.testing.assert_array_equal(fit.S[:, 3], 0)
    assert np.isfinite(fit.objective[-1][1])
