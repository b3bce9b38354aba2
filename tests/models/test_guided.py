"""NMF-alpha, CNMF and TS-NMF: the papers' updates, monotone objectives, the same in any storage."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from guided_updates import constrained, nmf_alpha, nmf_alpha_objective, topic_supervised
from helpers.each import each
from helpers.random_examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import LOSSES, data, dense_objective, filled, iterates, weighted

import ssnmf_fast as sf

UPDATES = {"solver": "mu", "tol": 0}


def _problem(seed=0, n=40, m=25, r=4):
    rng = np.random.default_rng(seed)
    X = rng.random((n, m)) * (rng.random((n, m)) < 0.5)
    alpha = rng.random((n, 6)) * (rng.random((n, 6)) < 0.3)
    alpha[n // 2 :] = 0
    return X, alpha, rng.random((n, r)) + 0.1, rng.random((r, m)) + 0.1


def _preserving(X, alpha, S, A, weight=0.7, X_weights=None, **more):
    options = {"solver": "mu", "max_iter": 20, "tol": 0, "n_threads": 1} | more
    model = sf.papers.MarginNMF(S.shape[1], init=(S, A), supervision_weight=weight, **options)
    model.fit(X, alpha=alpha, X_weights=X_weights)
    return SimpleNamespace(S=model.representation_, A=model.components_, objective=model.objective_)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_nmf_alpha_has_the_updates_of_the_paper(kind):
    X, alpha, S, A = _problem()
    fit = _preserving(kind(X), kind(alpha), S, A)
    expected = nmf_alpha(X, alpha, S, A, 0.7, 20)
    np.testing.assert_allclose(fit.S, expected[0], rtol=1e-8)
    np.testing.assert_allclose(fit.A, expected[1], rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("loss", LOSSES)
def test_nmf_alpha_reports_the_objective(loss):
    X, alpha, S, A = _problem(1)
    fit = _preserving(sp.csr_array(X), alpha, S, A, loss=loss)
    expected = nmf_alpha_objective(X, alpha, fit.S, fit.A, 0.7, loss)
    assert fit.objective[-1][1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    loss=st.sampled_from(LOSSES),
    solver=st.sampled_from(["mu", "mm", "auto", "hals"]),
    sparse=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_nmf_alpha_never_raises_the_objective(dtype, loss, solver, sparse, seed):
    rng = np.random.default_rng(seed)
    n, m, q = (int(rng.integers(1, high)) for high in (25, 20, 6))
    X = data(rng, (n, m), dtype, "sparse" if sparse else "dense")
    alpha = (rng.random((n, q)) * (rng.random((n, q)) < 0.4)).astype(dtype)
    weight = float(rng.choice([0.1, 1.0, 30.0]))
    rank = int(1 + seed % 7)
    S, A = rng.random((n, rank)).astype(dtype), rng.random((rank, m)).astype(dtype)
    dense = filled(X)
    values = []
    for _ in range(12):
        values.append(nmf_alpha_objective(dense, alpha.astype(float), S, A, weight, loss))
        options = {"loss": loss, "solver": solver, "max_iter": 1}
        fit = _preserving(X, alpha, S, A, weight, **options)
        S, A = fit.S, fit.A
    scale = np.sum(dense**2) + weight * np.sum((alpha.T.astype(float) @ dense) ** 2)
    assert np.isfinite(values).all()
    assert max(np.diff(values)) <= 100 * np.finfo(dtype).eps * (scale + values[0])


def test_nmf_alpha_without_weight_is_nmf():
    X, alpha, S, A = _problem(2)
    plain = sf.factorize(
        X, n_components=4, loss="kullback-leibler", init=(S, A), max_iter=20, **UPDATES
    )
    fit = _preserving(X, alpha, S, A, weight=0.0)
    np.testing.assert_allclose(fit.A, plain.A, rtol=1e-12)
    fit = _preserving(X, np.zeros((40, 2)), S, A, weight="balanced")
    np.testing.assert_allclose(fit.A, plain.A, rtol=1e-12)


@pytest.mark.compiled("plain NumPy has no threads")
def test_nmf_alpha_is_the_same_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 400), density=0.05, rng=rng, format="csr")
    alpha = sp.random_array((3000, 8), density=0.1, rng=rng, format="csr")
    S, A = rng.random((3000, 20)), rng.random((20, 400))
    fits = [_preserving(X, alpha, S, A, n_threads=n, max_iter=5) for n in (1, 2, 3, 8)]
    assert all(np.array_equal(fit.S, fits[0].S) for fit in fits)
    assert all(np.array_equal(fit.A, fits[0].A) for fit in fits)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_cnmf_has_the_updates_of_the_paper(loss, kind):
    X, _, S, A = _problem(3)
    y = np.where(np.arange(40) < 25, np.arange(40) % 3, -1)
    groups = np.where(y >= 0, y, 3 + np.cumsum(y < 0) - 1)
    G = np.eye(groups.max() + 1)[groups]
    P = (G.T @ S) / G.sum(axis=0)[:, None]
    model = sf.papers.ConstrainedNMF(
        n_components=4, loss=loss, init=(S, A), max_iter=20, unlabeled=-1, **UPDATES
    ).fit(kind(X), y)
    expected = constrained(X, G, P, A, loss, 20)
    np.testing.assert_allclose(model.representation_, expected[0], rtol=1e-8)
    np.testing.assert_allclose(model.components_, expected[1], rtol=1e-8, atol=1e-300)
    value = dense_objective(X, np.ones_like(X), model.representation_, model.components_, loss)
    assert model.objective_[-1][1] == pytest.approx(value, rel=1e-9)


@each("form", ["none", "outer", "observed", "dense", "nan"])
@each("storage", ["sparse", "dense"])
@each("loss", LOSSES)
def test_collapsed_loss_is_that_of_the_samples(loss, form, storage):
    rng = np.random.default_rng(4)
    X, W, dense_W = weighted(rng, data(rng, (30, 12), np.float64, storage), form)
    groups = np.concatenate([np.arange(8), rng.integers(8, size=22)])
    options = {"max_iter": 3, "tol": 0, "random_state": 0, "predicts": False}
    model = sf.papers.ConstrainedNMF(n_components=3, loss=loss, **options).fit(
        X, groups, X_weights=W
    )
    fitted = model.representation_, model.components_
    expected = dense_objective(filled(X), dense_W, *fitted, loss)
    assert model.objective_[-1][1] == pytest.approx(expected, rel=1e-9)


def test_samples_that_share_a_row_cannot_miss_a_pattern():
    missing = sf.weights.missing(np.eye(3, 2))
    with pytest.raises(ValueError, match="NaN in a dense X"):
        sf.papers.ConstrainedNMF(n_components=1).fit(np.ones((3, 2)), [0, 0, 1], X_weights=missing)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_ts_nmf_has_the_updates_of_the_paper(kind):
    X, _, S, A = _problem(5)
    T = (np.random.default_rng(0).random(S.shape) < 0.5) * 1.0
    T[np.arange(40), np.arange(40) % 4] = 1
    E = np.where(np.arange(40) < 10, 4.0, 1.0)
    options = {"n_components": 4, "init": (S, A), "X_weights": sf.weights.outer(rows=E)}
    fit = sf.factorize(kind(X), S_support=T, max_iter=20, **options, **UPDATES)
    expected = topic_supervised(X, T, E, S, A, 20)
    np.testing.assert_allclose(fit.S, expected[0], rtol=1e-8)
    np.testing.assert_allclose(fit.A, expected[1], rtol=1e-8, atol=1e-300)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    loss=st.sampled_from(LOSSES),
    solver=st.sampled_from(["mu", "mm", "auto", "hals"]),
    init=st.sampled_from(["random", "random-acol", "nndsvda"]),
    form=st.sampled_from(["none", "outer", "nan", "observed"]),
    seed=st.integers(0, 10_000),
)
def test_support_holds_and_the_objective_never_rises(dtype, loss, solver, init, form, seed):
    rng = np.random.default_rng(seed)
    n, m = (int(rng.integers(1, high)) for high in (25, 20))
    X, W, dense_W = weighted(rng, data(rng, (n, m), dtype), form)
    support = rng.random((n, int(1 + seed % 7))) < 0.6
    arguments = {
        "n_components": support.shape[1],
        "loss": loss,
        "solver": solver,
        "init": init,
        "X_weights": W,
        "S_support": support,
        "random_state": seed,
        "max_iter": 11,
        "tol": 0,
        "n_threads": 1,
    }
    values = []
    for S, A, _ in iterates(functools.partial(sf.factorize, X, **arguments)):
        assert not S[~support].any()
        values.append(dense_objective(filled(X), dense_W, S, A, loss))
    assert len(values) == 12
    scale = float(np.sum(dense_W * filled(X) ** 2))
    assert np.isfinite(values).all()
    assert max(np.diff(values)) <= 100 * np.finfo(dtype).eps * (scale + abs(values[0]))


def test_bad_support_is_refused():
    X = np.ones((5, 4))
    with pytest.raises(ValueError, match=r"S_support has shape \(5, 3\); expected \(5, 2\)"):
        sf.factorize(X, n_components=2, S_support=np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"S_support holds 0\.5; expected 0 or 1"):
        sf.factorize(X, n_components=2, S_support=np.full((5, 2), 0.5))
    fit = sf.factorize(X, n_components=2, S_support=np.zeros((5, 2)), max_iter=3)
    assert not fit.S.any()
    assert np.isfinite(fit.A).all()
