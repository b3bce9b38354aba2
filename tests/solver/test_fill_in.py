"""Missing entries and weights, squared errors: the model fills in what weights leave out."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.random_examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import ssnmf_fast as sf
from ssnmf_fast import extend, weights

FORMS = ("nan", "most nan", "rows nan", "dense", "uneven rows", "sparse", "sparse, dense weights")


def problem(form, rng, n=13, m=9, dtype=np.float64):
    """Return X and its weights in a form, and both as arrays."""
    X = (rng.random((n, m)) * (rng.random((n, m)) < 0.7)).astype(dtype)
    W = (rng.random((n, m)) < (0.2 if form == "most nan" else 0.7)).astype(dtype)
    W[0] = 1
    if form == "rows nan":
        W[3:6] = 0
    if "nan" in form:
        return np.where(W > 0, X, np.nan), None, X, W
    if form == "sparse":
        return sp.csr_array(X), weights.missing(sp.csr_array(1 - W)), X, W
    W *= rng.random((n, m)).astype(dtype)
    if form == "uneven rows":
        W *= np.exp(3 * rng.standard_normal((n, 1))).astype(dtype)
    return (sp.csr_array(X) if form.startswith("sparse") else X), W, X, W


@pytest.mark.parametrize("form", FORMS)
def test_a_term_is_that_of_filled_in_data(form):
    """P and the curvature, for rows and columns: those of C .* Z with Z between X and the model."""
    given_X, given_W, X, W = problem(form, np.random.default_rng(0))
    F, G = (np.random.default_rng(1).random((n, 8)) for n in X.shape)
    term = extend.relation("S", "A", given_X, weights=given_W).term
    assert term.fills
    for position, (own, far, x, w) in enumerate([(F, G, X, W), (G, F, X.T, W.T)]):
        view, P = term.view(position), np.empty_like(own)
        curvature = view.fill(own, far, extend.Target(P))
        C = view.form.cover.dense(slice(0, len(own)), far)
        assert (w * (1 - 1e-12) <= C).all()
        np.testing.assert_allclose(P, (w * x + (C - w) * (own @ far.T)) @ far, rtol=1e-12)
        rows = np.ones(len(own)) if curvature.rows is None else curvature.rows
        for i, row in enumerate(C):
            expected = far.T @ (row[:, None] * far)
            np.testing.assert_allclose(rows[i] * curvature.gram, expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=examples(25), deadline=None)
@given(
    form=st.sampled_from(FORMS),
    n=st.integers(1, 20),
    m=st.integers(1, 20),
    rank=st.integers(1, 6),
    dtype=st.sampled_from([np.float32, np.float64]),
    labels=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_the_objective_never_rises_and_is_that_of_the_factors(
    form, n, m, rank, dtype, labels, seed
):
    """With labels, of which some are hidden; the same bits for any number of threads."""
    rng = np.random.default_rng(seed)
    given_X, given_W, X, W = problem(form, rng, n, m, dtype)
    Y = L = None
    if labels:
        Y, L = np.eye(3)[rng.integers(3, size=n)], np.repeat(rng.random((n, 1)) < 0.6, 3, axis=1)
        L[0] = True
    options = {"n_components": rank, "X_weights": given_W, "random_state": seed, "tol": 0}
    values, found = [], set()
    callback = lambda state: values.append(state.objective)  # noqa: E731
    for n_threads in (1, 3):
        fit = sf.factorize(
            given_X,
            None if Y is None else np.where(L, Y, np.nan),
            **options,
            max_iter=30,
            callback=callback,
            n_threads=n_threads,
        )
        found.add(fit.S.tobytes() + fit.A.tobytes())
    assert len(found) == 1
    assert "filling in" in fit.receipt.settings["plan"] or (W > 0).all()
    eps = float(np.finfo(dtype).eps)
    size = float((W * X**2).sum()) + n
    assert max(np.diff(values[: len(values) // 2])) <= 100 * eps * size
    S, A = fit.S.astype(np.float64), fit.A.astype(np.float64)
    expected = (W * (X - S @ A) ** 2).sum()
    if Y is not None:
        expected += (L * (Y - S @ fit.B.astype(np.float64)) ** 2).sum()
    assert fit.objective[-1][1] == pytest.approx(expected, rel=2e3 * eps, abs=100 * eps * size)


@pytest.mark.parametrize(
    ("rank", "missing", "most"), [(20, 0.3, 60), (20, 0.5, 80), (10, 0.8, 120)]
)
def test_planted_factors_are_found(rank, missing, most):
    """Within 1 % of the loss of what made the data; multiplicative steps stay far above it."""
    rng = np.random.default_rng(1)
    Z = rng.random((400, rank)) ** 2 @ rng.random((rank, 300)) ** 2
    X = np.maximum(Z + 0.1 * Z.mean() * rng.standard_normal(Z.shape), 0)
    X[rng.random(X.shape) < missing] = np.nan
    options = {"n_components": rank, "random_state": 0, "tol": 0}
    planted = np.nansum((X - Z) ** 2)
    ends = {
        solver: sf.factorize(X, **options, solver=solver, max_iter=most).objective[-1][1]
        for solver in ("auto", "mm")
    }
    assert ends["auto"] < 1.01 * planted
    assert ends["mm"] > 1.1 * planted


def test_a_dense_pattern_of_observed_entries_is_that_of_nan():
    X, _, full, W = problem("nan", np.random.default_rng(2), 30, 20)
    options = {"n_components": 4, "random_state": 0, "max_iter": 20}
    fits = [
        sf.factorize(X, **options),
        sf.factorize(full, X_weights=W, **options),
        sf.factorize(full, X_weights=weights.observed(sp.csr_array(W)), **options),
        sf.factorize(full, X_weights=weights.missing(sp.csr_array(1 - W)), **options),
    ]
    assert len({fit.S.tobytes() + fit.A.tobytes() for fit in fits}) == 1
    sparse = sf.factorize(
        sp.csr_array(full), X_weights=weights.missing(sp.csr_array(1 - W)), **options
    )
    np.testing.assert_allclose(sparse.S @ sparse.A, fits[0].S @ fits[0].A, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("missing", [0.2, 0.8])
@pytest.mark.parametrize("form", ["nan", "weights"])
def test_tensors(form, missing):
    rng = np.random.default_rng(0)
    factors = [rng.random((n, 3)) for n in (9, 8, 7)]
    X = np.einsum("ik,jk,lk->ijl", *factors)
    W = (rng.random(X.shape) >= missing).astype(float)
    W[0, 0] = 1
    if form == "weights":
        W *= rng.random(W.shape)
    given_W = W if form == "weights" else None
    given_X = X if form == "weights" else np.where(W > 0, X, np.nan)
    fit = sf.factorize_tensor(
        given_X, n_components=3, X_weights=given_W, random_state=0, max_iter=200, tol=0
    )
    values = [value for _, value in fit.objective]
    assert max(np.diff(values)) <= 1e-12 * values[0]
    assert values[-1] < 1e-3 * (W * X**2).sum()
