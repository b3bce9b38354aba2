"""Long sparse matrices, whose transposes are cut into panels, are fitted as others are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from random_examples import examples

import ssnmf_fast as sf
from ssnmf_fast._data import entries

LOSSES = ("frobenius", "kullback-leibler", 1.5)


@pytest.fixture
def short_panels(monkeypatch):
    """Panels of a few rows, so that small matrices have many."""
    monkeypatch.setattr(entries, "_PANEL_ROWS", 8)
    monkeypatch.setattr(entries, "_PANEL_RANGES", 3)


def problem(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random_array((61, 9), density=0.6, format="csr", rng=rng, dtype=dtype)
    return X, np.eye(3)[rng.integers(3, size=61)]


def fit(X, Y, loss, n_threads=1, **options):
    return sf.factorize(
        X,
        Y,
        n_components=3,
        loss=loss,
        supervision_loss="kullback-leibler",
        init="random",
        random_state=0,
        max_iter=12,
        tol=0,
        n_threads=n_threads,
        **options,
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weights", ["none", "outer", "observed", "missing"])
def test_panels_change_rounding_only(request, loss, weights):
    X, Y = problem(0)
    rng = np.random.default_rng(1)
    X_weights = {
        "none": None,
        "outer": sf.weights.outer(rows=rng.random(61) + 0.1),
        "observed": sf.weights.observed(X + sp.random_array((61, 9), density=0.1, rng=rng)),
        "missing": sf.weights.missing(sp.random_array((61, 9), density=0.1, rng=rng)),
    }[weights]
    whole = fit(X, Y, loss, X_weights=X_weights)
    request.getfixturevalue("short_panels")
    assert entries.panels_pay(X.shape, X.nnz)
    cut = fit(X, Y, loss, X_weights=X_weights)
    for name in ("S", "A", "B"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@given(seed=st.integers(0, 1000), loss=st.sampled_from(LOSSES), single=st.booleans())
@settings(max_examples=examples(40))
def test_the_objective_falls_and_threads_change_no_bit(seed, loss, single):
    rows, ranges = entries._PANEL_ROWS, entries._PANEL_RANGES
    entries._PANEL_ROWS, entries._PANEL_RANGES = 8, 3
    try:
        X, Y = problem(seed, np.float32 if single else np.float64)
        fits = [fit(X, Y, loss, n_threads) for n_threads in (1, 2, 5)]
    finally:
        entries._PANEL_ROWS, entries._PANEL_RANGES = rows, ranges
    assert len({(f.S.tobytes(), f.A.tobytes(), f.B.tobytes()) for f in fits}) == 1
    values = np.array([value for _, value in fits[0].objective])
    assert np.all(np.diff(values) <= 1e-5 * values[0])


def test_panels_are_for_long_matrices_with_entries_enough():
    assert entries.panels_pay((100_000, 20_000), 10_000_000)
    assert not entries.panels_pay((9_000, 5_000), 436_803)
    assert not entries.panels_pay((100_000, 20_000), 100_000)


def test_the_singular_values_of_a_long_matrix(short_panels):
    X, _ = problem(3)
    singular = sf.linalg.randomized_svd(X, 4, random_state=0)[1]
    np.testing.assert_allclose(singular, np.linalg.svd(X.toarray())[1][:4], rtol=1e-6)


def test_coordinate_descent_with_listed_weights(short_panels):
    X, _ = problem(4)
    options = {"X_weights": sf.weights.observed(X), "solver": "hals"}
    values = [value for _, value in fit(X, None, "frobenius", **options).objective]
    assert values[-1] < values[0]
