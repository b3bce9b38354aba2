"""Weights with a common part: as if they were written out in a dense array."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import data, iterates

import ssnmf_fast as sf

SOLVERS = ("mm", "mu", "hals")
BETAS = (0.0, 0.5, 1.0, 1.5, 2.0)


def problem(seed, beta, storage, shape=(30, 20)):
    """Return X, its weights, the same in an array, and a start."""
    rng = np.random.default_rng(seed)
    X = data(rng, shape, np.float64, "dense" if storage == "nan" else storage)
    if beta == 0:
        X = (X.toarray() if sp.issparse(X) else X) + 0.1
    if storage == "nan":
        X[rng.random(shape) < 0.2] = np.nan
    extra = np.round(rng.random(shape) * (rng.random(shape) < 0.3) * 3, 2)
    w0 = float(rng.choice([0.01, 0.3, 2.0]))
    start = rng.random((shape[0], 4)), rng.random((4, shape[1]))
    return X, sf.weights.base(w0, sp.csr_array(extra)), w0 + extra, start


def assert_same(X, weights, array, start, tolerance, **given):
    """Compare all iterates and the objectives from a start."""
    fits, seen = [], []
    for W in (weights, array):
        options = {"n_components": 4, "init": start, "X_weights": W, "tol": 0, **given}

        def run(options=options, **watched):
            fits.append(sf.factorize(X, **options, **watched))

        seen.append(iterates(run))
    for ours, theirs in zip(*seen, strict=True):
        for F, G in zip(ours[:2], theirs[:2], strict=True):
            np.testing.assert_allclose(F, G, rtol=0, atol=tolerance * np.abs(G).max())
    values = [np.array([value for _, value in fit.objective]) for fit in fits]
    np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance * values[1].max())


@each("storage", ["sparse", "dense", "nan"])
@each("solver", SOLVERS)
@pytest.mark.parametrize("beta", BETAS)
def test_iterates_are_those_of_an_array(beta, solver, storage):
    if beta == 0 and storage == "sparse":
        pytest.skip("zeros of sparse data, which Itakura-Saito does not take")
    assert_same(*problem(0, beta, storage), 1e-12, loss=beta, solver=solver, max_iter=10)


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(
    beta=st.sampled_from(BETAS[1:]),
    solver=st.sampled_from(SOLVERS),
    storage=st.sampled_from(["sparse", "dense", "nan"]),
    seed=st.integers(0, 10_000),
)
def test_steps_are_those_of_an_array(beta, solver, storage, seed):
    shape = tuple(int(n) for n in np.random.default_rng(seed).integers(8, 25, size=2))
    # In small problems rounding decides which components vanish.
    assert_same(*problem(seed, beta, storage, shape), 1e-9, loss=beta, solver=solver, max_iter=3)


@each("storage", ["sparse", "dense", "nan"])
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", 1.5])
def test_representations_labels_and_scores_are_those_of_an_array(loss, storage):
    X, weights, array, (S, A) = problem(1, 1.0, storage)
    found, wanted = (
        sf.represent(X, A, loss=loss, X_weights=W, tol=1e-10) for W in (weights, array)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    y = np.arange(30) % 3
    rows = np.linspace(0, 2, 30)  # of which one has no weight
    models = [
        sf.SSNMFClassifier(4, loss=loss, init=(S, A, A[:, :3]), max_iter=15, tol=0).fit(
            X, y, X_weights=W, sample_weight=rows
        )
        for W in (weights, array)
    ]
    for name in ("components_", "label_components_"):
        one, other = (getattr(model, name) for model in models)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    new = [m.transform(X, X_weights=W) for m, W in zip(models, (weights, array), strict=True)]
    np.testing.assert_allclose(*new, rtol=1e-4, atol=1e-5)
    values = [
        sf.extend.objective(X, S, A, y=X, B=A, loss=loss, X_weights=W, y_weights=W)
        for W in (weights, array)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.slow
@each("storage", ["sparse", "dense", "nan"])
@each("estimator", [None, sf.NMF(solver="mm", max_iter=15, tol=0, random_state=0)])
def test_ranks_are_scored_as_by_an_array(estimator, storage):
    X, weights, array, _ = problem(2, 2.0, storage, shape=(25, 20))
    settings = {"n_splits": 2, "n_starts": 1, "random_state": 0, "n_threads": 1}
    settings |= {"max_iter": 15, "tol": 0} if estimator is None else {"estimator": estimator}
    found, wanted = (
        sf.choose_rank(X, [1, 2], X_weights=W, **settings).scores for W in (weights, array)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_threads_change_no_bit_and_nothing_is_written_out():
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 2000), density=0.002, format="csr", rng=rng)
    weights = sf.weights.base(0.1, X)
    tracemalloc.start()
    fits = [
        sf.factorize(X, n_components=3, X_weights=weights, random_state=0, max_iter=5, n_threads=n)
        for n in (1, 2)
    ]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 2000  # bytes: an array would be eight times as large
    np.testing.assert_array_equal(fits[0].S, fits[1].S)
    np.testing.assert_array_equal(fits[0].A, fits[1].A)


def test_the_fit_with_momentum_ends_lower():
    X, weights, *_ = problem(3, 2.0, "sparse", shape=(80, 60))
    given = {"X_weights": weights, "random_state": 0, "max_iter": 40, "tol": 0, "n_components": 6}
    ends = [sf.factorize(X, solver=s, **given).objective[-1][1] for s in ("auto", "hals", "mm")]
    assert ends == sorted(ends)


def test_what_is_refused():
    for w0, error in ((0, ValueError), (-1.0, ValueError), (np.nan, ValueError), ("1", TypeError)):
        refused("w0 must be", sf.weights.base, w0, np.ones((5, 4)), error=error)
    with pytest.raises(ValueError, match=r"weights\.base.*list with a vector for each mode"):
        sf.factorize_tensor(
            np.ones((2, 3, 4)), n_components=1, X_weights=sf.weights.base(1, np.ones((2, 3, 4)))
        )
