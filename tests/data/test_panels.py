"""Long sparse matrices, whose transposes are cut into panels, are fitted as others are."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.random_examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import ssnmf_fast as sf

LOSSES = ("frobenius", "kullback-leibler", 1.5)


N, M = 33_000, 9  # three panels of 2^14 rows


def problem(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random_array((N, M), density=0.05, format="csr", rng=rng, dtype=dtype)
    return X, np.eye(3)[rng.integers(3, size=N)]


def fit(X, Y, loss, n_threads=1, **options):
    options |= {"n_components": 3, "supervision_loss": "kullback-leibler", "init": "random"}
    options |= {"random_state": 0, "max_iter": 6, "tol": 0}
    return sf.factorize(X, Y, loss=loss, n_threads=n_threads, **options)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weights", ["none", "outer", "observed", "missing", "base"])
def test_panels_change_rounding_only(loss, weights):
    X, Y = problem(0)
    rng = np.random.default_rng(1)
    X_weights = {
        "none": None,
        "outer": sf.weights.outer(rows=rng.random(N) + 0.1),
        "observed": sf.weights.observed(X + sp.random_array((N, M), density=0.02, rng=rng)),
        "base": sf.weights.base(0.1, sp.random_array((N, M), density=0.02, rng=rng)),
        "missing": sf.weights.missing(sp.random_array((N, M), density=0.02, rng=rng)),
    }[weights]
    whole = fit(X.toarray(), Y, loss, X_weights=X_weights)  # dense arrays have no panels
    cut = fit(X, Y, loss, X_weights=X_weights)
    for name in ("S", "A", "B"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@given(seed=st.integers(0, 1000), loss=st.sampled_from(LOSSES), single=st.booleans())
@settings(max_examples=examples(40))
def test_the_objective_falls_and_threads_change_no_bit(seed, loss, single):
    X, Y = problem(seed, np.float32 if single else np.float64)
    fits = [fit(X, Y, loss, n_threads) for n_threads in (1, 2, 5)]
    assert len({(f.S.tobytes(), f.A.tobytes(), f.B.tobytes()) for f in fits}) == 1
    values = np.array([value for _, value in fits[0].objective])
    assert np.all(np.diff(values) <= 1e-5 * values[0])


def test_the_singular_values_of_a_long_matrix():
    X, _ = problem(3)
    singular = sf.linalg.randomized_svd(X, 4, random_state=0)[1]
    np.testing.assert_allclose(
        singular, np.linalg.svd(X.toarray(), compute_uv=False)[:4], rtol=1e-6
    )


def test_coordinate_descent_with_listed_weights():
    X, _ = problem(4)
    options = {"X_weights": sf.weights.observed(X), "solver": "hals"}
    values = [value for _, value in fit(X, None, "frobenius", **options).objective]
    assert values[-1] < values[0]
