"""Nonnegative CP decomposition: against formulas, between storage forms, and as a descent."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from helpers.tensors import coordinates, far_side, low_rank, product, sparse_counts, unfolded
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import LOSSES, divergence

import ssnmf_fast as sf


def loss_of(X, M, loss, W=1.0):
    """Return the loss by its definition."""
    return float(np.sum(W * divergence(X, M, loss)))


@each("loss", LOSSES)
@each("shape", [(7, 5), (6, 5, 4), (4, 3, 5, 2), (3, 2, 3, 2, 4)])
def test_multiplicative_updates_are_those_of_the_formulas(loss, shape):
    """Modes 1, 2, .. and then 0, each F <- F * P / N with P and N of explicit products."""
    X = sparse_counts(shape) + 0.1
    rng = np.random.default_rng(1)
    start = [rng.random((n, 3)) + 0.1 for n in shape]
    factors = [F.copy() for F in start]
    for _ in range(5):
        for mode in (*range(1, len(shape)), 0):
            F, G = factors[mode], far_side(factors, mode)
            if loss == "frobenius":
                F *= (unfolded(X, mode) @ G) / (F @ (G.T @ G))
            else:
                F *= (unfolded(X, mode) / (F @ G.T)) @ G / G.sum(axis=0)
    for data in (X, coordinates(X)):
        fit = sf.factorize_tensor(
            data, n_components=3, loss=loss, solver="mu", init=start, max_iter=5, tol=0
        )
        np.testing.assert_allclose(fit.to_dense(), product(factors), rtol=1e-9)
        np.testing.assert_allclose(
            fit.objective[-1][1], loss_of(X, product(factors), loss), rtol=1e-9
        )


def test_coordinate_descent_is_that_of_the_formulas():
    """HALS: column by column with the Gram matrix of the products, two sweeps at a time."""
    X, _ = low_rank((4, 4, 4), 4)  # small enough to take no other steps
    rng = np.random.default_rng(1)
    start = [rng.random((n, 3)) + 0.1 for n in X.shape]
    factors = [F.copy() for F in start]
    for _ in range(5):
        for mode in (1, 2, 0):
            F, G = factors[mode], far_side(factors, mode)
            P, K = unfolded(X, mode) @ G, G.T @ G
            for _ in range(2):
                for q in range(3):
                    F[:, q] = np.maximum(0, F[:, q] - (F @ K[:, q] - P[:, q]) / K[q, q])
    fit = sf.factorize_tensor(
        coordinates(X), n_components=3, solver="hals", init=start, max_iter=5, tol=0
    )
    np.testing.assert_allclose(fit.to_dense(), product(factors), rtol=1e-8)


@each("loss", LOSSES)
@each("solver", ["auto", "mm", "mu", "hals"])
def test_two_modes_are_a_matrix(loss, solver):
    X = np.random.default_rng(2).random((20, 15))
    options = {"n_components": 4, "solver": solver, "random_state": 5, "max_iter": 30, "tol": 0}
    matrix = sf.factorize(X, loss=loss, **options)
    tensor = sf.factorize_tensor(X, loss=loss, **options)
    np.testing.assert_allclose(tensor.to_dense(), matrix.S @ matrix.A, rtol=1e-7)
    np.testing.assert_allclose(tensor.objective, matrix.objective, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.compiled("thousands of iterations take minutes in plain NumPy")
@each("loss", LOSSES)
@each("init", ["auto", "random", "svd", "least-squares"])
def test_finds_what_a_tensor_is_made_of(loss, init):
    X, truth = low_rank((12, 10, 8), 3, seed=3)
    fit = sf.factorize_tensor(
        X, n_components=3, loss=loss, init=init, max_iter=1000, tol=0, random_state=0
    )
    np.testing.assert_allclose(fit.to_dense(), X, atol=0.02)
    for F, T in zip(fit.factors, truth, strict=True):
        cosines = (F / np.linalg.norm(F, axis=0)).T @ (T / np.linalg.norm(T, axis=0))
        assert cosines.max(axis=0).min() > 0.99


@pytest.mark.slow
@pytest.mark.compiled("thousands of iterations take minutes in plain NumPy")
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_vanish_at_the_end(loss):
    """The conditions of optimality: no entry can be moved with gain."""
    X = sparse_counts((9, 8, 7)) + 0.2
    fit = sf.factorize_tensor(X, n_components=2, loss=loss, max_iter=2000, tol=0, random_state=0)
    M = fit.to_dense()
    slope = 2 * (M - X) if loss == "frobenius" else 1 - X / M
    factors = [fit.factors[0] * fit.weights, *fit.factors[1:]]
    for mode, F in enumerate(factors):
        gradient = unfolded(slope, mode) @ far_side(factors, mode)
        scale = np.abs(unfolded(M, mode) @ far_side(factors, mode)).max()
        assert np.abs(F * gradient).max() <= 1e-3 * scale * F.max()
        assert gradient.min() >= -1e-3 * scale


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=2, max_size=5)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    X = rng.poisson(0.7, shape).astype(dtype) * rng.random(shape).astype(dtype)
    dense = draw(st.booleans())
    kind = draw(st.sampled_from(["none", "observed", "missing", "modes", "dense", "nan"]))
    pattern = rng.random(shape) < 0.7
    assume((~pattern if kind == "missing" else pattern).any())
    weights = {
        "observed": sf.weights.observed(pattern),
        "missing": sf.weights.missing(coordinates(pattern)),
        "modes": [None, *(rng.random(n) for n in shape[1:])],
        "dense": rng.random(shape),
    }.get(kind)
    if kind == "nan" and dense:
        X = np.where(pattern, X, np.nan)
    options = {
        "n_components": draw(st.integers(1, 5)),
        "loss": draw(st.sampled_from(LOSSES)),
        "solver": draw(st.sampled_from(["auto", "mm", "mu", "hals"])),
        "init": draw(st.sampled_from(["auto", "random", "svd"])),
        "random_state": 0,
    }
    return (X if dense else coordinates(X)), weights, options


@pytest.mark.slow
@settings(max_examples=examples(200, in_numpy=50), deadline=None)
@given(problems())
def test_objectives_never_rise(problem):
    X, weights, options = problem
    fit = sf.factorize_tensor(X, X_weights=weights, max_iter=30, tol=0, **options)
    values = np.array([value for _, value in fit.objective])
    dtype = fit.weights.dtype
    assert np.isfinite(values).all()
    assert all(np.isfinite(F).all() and (F >= 0).all() for F in (*fit.factors, fit.weights))
    # Rounding is relative to the data, where the start is nearly exact.
    entries = X if isinstance(X, np.ndarray) else X[1]
    size = max(values[0], np.nansum(entries.astype(float) ** 2), np.nansum(entries), 1e-30)
    slack = 1e-5 if dtype == np.float32 else 1e-10
    assert (np.diff(values) <= slack * size).all()


@pytest.mark.slow
@each("loss", LOSSES)
@each("dtype", [np.float32, np.float64])
@each("shape", [(9, 8), (9, 40, 7), (5, 3, 4, 6), (2, 3, 2, 3, 50)])
def test_sparse_equals_dense_for_any_threads(loss, dtype, shape):
    X = sparse_counts(shape, dtype=dtype)
    options = {"n_components": 3, "loss": loss, "random_state": 0, "max_iter": 5, "tol": 0}
    options["init"] = "random"  # a fit before the fit would enlarge the rounding of float32
    tolerance = 1e-3 if dtype == np.float32 else 1e-8
    for solver in ("auto", "mm"):
        fits = [
            sf.factorize_tensor(data, solver=solver, n_threads=threads, **options)
            for data in (coordinates(X), X)
            for threads in (1, 3)
        ]
        for one, other in ((0, 1), (2, 3)):
            for F, G in zip(fits[one].factors, fits[other].factors, strict=True):
                assert np.array_equal(F, G)
                assert F.dtype == dtype
        np.testing.assert_allclose(fits[0].to_dense(), fits[2].to_dense(), atol=tolerance)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_every_form_agree(loss):
    """What says the same in another form gives the same fit and the loss of the definition."""
    rng = np.random.default_rng(0)
    X = sparse_counts((8, 7, 6))
    observed = rng.random(X.shape) < 0.8
    vectors = [rng.random(n) for n in X.shape]
    options = {"n_components": 2, "loss": loss, "solver": "mm", "random_state": 0}

    def fit(data, weights, init="random"):
        return sf.factorize_tensor(
            data, X_weights=weights, init=init, max_iter=40, tol=0, **options
        )

    start = [rng.random((n, 2)) for n in X.shape]
    same = {
        "observed": [
            fit(X, sf.weights.observed(observed), start),
            fit(coordinates(X), sf.weights.observed(coordinates(observed)), start),
            fit(coordinates(X), sf.weights.missing(~observed), start),
            fit(X, sf.weights.missing(~observed), start),
            fit(np.where(observed, X, np.nan), None, start),
            fit(X, observed.astype(float), start),
            fit(coordinates(X), observed.astype(float), start),
        ],
        "vectors": [
            fit(X, vectors, start),
            fit(coordinates(X), vectors, start),
            fit(X, product([v[:, None] for v in vectors]), start),
        ],
    }
    of = {"observed": observed, "vectors": product([v[:, None] for v in vectors])}
    for name, fits in same.items():
        for one in fits:
            np.testing.assert_allclose(one.to_dense(), fits[0].to_dense(), rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(
                one.objective[-1][1], loss_of(X, one.to_dense(), loss, of[name]), rtol=1e-8
            )


@pytest.mark.slow
def test_missing_entries_of_a_component_that_has_no_others():
    """What is left of a difference that cancels is summed one by one."""
    X = np.ones((4, 300, 200))
    start = [np.ones((4, 2)), np.full((300, 2), 1e-12), np.full((200, 2), 1e-12)]
    start[1][0] = start[2][0] = 1.0
    missing = np.zeros(X.shape, dtype=bool)
    missing[:, 0, 0] = True
    options = {"n_components": 2, "init": start, "max_iter": 20, "tol": 0}
    options["X_weights"] = sf.weights.missing(coordinates(missing))
    for solver in ("mm", "auto"):
        fit = sf.factorize_tensor(coordinates(X), solver=solver, **options)
        values = [value for _, value in fit.objective]
        assert np.isfinite(values).all()
        assert np.diff(values).max() <= 0


def test_data_of_any_scale():
    X = sparse_counts((6, 5, 4)) + 0.1
    for loss, degree in zip(LOSSES, (2, 1), strict=True):
        options = {"n_components": 2, "loss": loss, "random_state": 0, "max_iter": 50, "tol": 0}
        plain = sf.factorize_tensor(X, **options)
        for scale in (2.0**-40, 2.0**40):
            fit = sf.factorize_tensor(scale * X, **options)
            np.testing.assert_allclose(fit.weights, scale * plain.weights, rtol=1e-6)
            np.testing.assert_allclose(
                fit.objective[-1][1], scale**degree * plain.objective[-1][1], rtol=1e-7
            )


def test_zeros_and_single_entries():
    for X in (np.zeros((3, 4, 2)), np.ones((1, 1, 1)), coordinates(np.zeros((3, 4, 2)))):
        for loss in LOSSES:
            for init in ("random", "svd", "least-squares"):
                fit = sf.factorize_tensor(
                    X, n_components=3, loss=loss, init=init, random_state=0, max_iter=20
                )
                assert all(np.isfinite(F).all() for F in (*fit.factors, fit.weights))


@pytest.mark.slow
@pytest.mark.parametrize("supervision_loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "mm", "hals"])
def test_labels_guide_a_mode(supervision_loss, solver):
    """Labels of half of a mode tell the other half."""
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], 8)
    rows = np.eye(3)[classes] + 0.05 * rng.random((24, 3))
    X = rng.poisson(3 * product([rows, rng.random((15, 3)), rng.random((6, 3))])).astype(float)
    Y = np.eye(3)[classes]
    Y[::2] = np.nan
    options = {"supervision_loss": supervision_loss, "supervision_weight": 10.0}
    options |= {"n_components": 3, "random_state": 0, "tol": 0, "max_iter": 300}
    for mode, data in ((0, X), (1, X.transpose(1, 0, 2)), (2, X.transpose(2, 1, 0))):
        fit = sf.factorize_tensor(data, y={mode: Y}, solver=solver, **options)
        values = [value for _, value in fit.objective]
        assert np.diff(values).max() <= 1e-9 * values[0]
        scores = fit.factors[mode] @ fit.label_components[mode]
        assert (scores.argmax(axis=1) == classes)[::2].mean() > 0.8
        known = ~np.isnan(Y[:, 0])
        parts = loss_of(data, fit.to_dense(), "frobenius")
        parts += 10 * loss_of(Y[known], scores[known], supervision_loss)
        np.testing.assert_allclose(parts, values[-1], rtol=1e-7)


def test_result_is_sorted_and_normalized(capsys):
    X = sparse_counts((6, 5, 4)) + 0.1
    for loss in LOSSES:
        fit = sf.factorize_tensor(X, n_components=3, loss=loss, random_state=0)
        assert np.all(np.diff(fit.weights) <= 0)
        for F in fit.factors:
            sizes = F.sum(axis=0) if loss == "kullback-leibler" else np.linalg.norm(F, axis=0)
            np.testing.assert_allclose(sizes, 1)
        places = np.array(np.nonzero(X))
        np.testing.assert_allclose(fit.predict(places), fit.to_dense()[tuple(places)])
    assert "TensorFactorization(shape=(6, 5, 4), n_components=3" in repr(fit)


def test_callback_stops_a_fit():
    seen = []

    def stop(state):
        seen.append((state.iteration, state.F0.shape))
        assert not state.F2.flags.writeable
        return state.iteration >= 10

    fit = sf.factorize_tensor(np.ones((3, 4, 5)), n_components=2, callback=stop, tol=0)
    assert fit.n_iter == 10
    assert seen == [(0, (3, 2)), (10, (3, 2))]


def model_of(scales, shape=(5, 4, 3), rank=2):
    rng = np.random.default_rng(1)
    return [scale * rng.random((n, rank)) for scale, n in zip(scales, shape, strict=True)]


@pytest.mark.slow
@each("loss", LOSSES)
@each(
    ("dtype", "exponent"), [(np.float32, 0), (np.float32, -26), (np.float64, -46), (np.float64, 44)]
)
def test_a_fit_continues_from_a_result(loss, dtype, exponent):
    """Also from weights and factors; the weights are not left out."""
    X = (sparse_counts((6, 5, 4)) * 2.0**exponent).astype(dtype)
    options = {"n_components": 3, "loss": loss, "random_state": 0}
    fit = sf.factorize_tensor(X, max_iter=50, tol=0, **options)
    pair = fit.weights.tolist(), [F.tolist() for F in fit.factors]
    plain = [fit.factors[0] * fit.weights, *fit.factors[1:]]
    for init in (fit, pair, SimpleNamespace(weights=fit.weights, factors=fit.factors), plain):
        again = sf.factorize_tensor(X, init=init, max_iter=0, **options)
        assert again.objective[0][1] == pytest.approx(fit.objective[-1][1], rel=1e-4)
        on = sf.factorize_tensor(coordinates(X), init=init, max_iter=50, tol=0, **options)
        assert on.objective[-1][1] <= fit.objective[-1][1] * (1 + 1e-5)
    for init in ((None, plain), SimpleNamespace(weights=None, factors=plain)):
        again = sf.factorize_tensor(X, init=init, max_iter=0, **options)
        assert again.objective[0][1] == pytest.approx(fit.objective[-1][1], rel=1e-4)


def test_results_unpack_as_weights_and_factors():
    X = sparse_counts((6, 5, 4))
    fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    weights, factors = fit
    with pytest.warns(UserWarning, match="but no weights of the components"):
        sf.factorize_tensor(X, n_components=2, init=factors, max_iter=0)
    np.testing.assert_allclose(product([factors[0] * weights, *factors[1:]]), fit.to_dense())


@each("loss", LOSSES)
@each("solver", ["auto", "mm", "mu", "hals"])
def test_sizes_of_given_factors_do_not_matter(loss, solver):
    X = sparse_counts((5, 4, 3)) + 0.1
    options = {"n_components": 2, "loss": loss, "solver": solver, "max_iter": 20, "tol": 0}
    expected = sf.factorize_tensor(X, init=model_of([1, 1, 1]), **options)
    for exponents in ([266, -133, -133], [-660, 330, 330]):
        init = model_of([2.0**e for e in exponents])
        fit = sf.factorize_tensor(X, init=init, **options)
        np.testing.assert_allclose(fit.to_dense(), expected.to_dense(), rtol=1e-12)
    for scale, found in ((1e80, "1e240"), (1e-200, "1e-600")):
        with pytest.raises(ValueError, match=f"init is a model with entries of about {found}"):
            sf.factorize_tensor(X, init=model_of([scale] * 3), **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_infinite_divergence_is_refused(dtype):
    X = np.ones((2, 2, 2), dtype=dtype)
    init = [np.eye(2)] * 3
    options = {"n_components": 2, "init": ([1.0, 1.0], init)}
    for data in (X, coordinates(X)):
        with pytest.raises(ValueError, match="divergence is infinite"):
            sf.factorize_tensor(data, loss="kullback-leibler", **options)
        assert sf.factorize_tensor(data, max_iter=0, **options).objective[0][1] == 6
    X *= product(init).astype(dtype)  # zeros that are where those of the data are
    fit = sf.factorize_tensor(X, loss="kullback-leibler", **options)
    assert fit.objective[-1][1] == pytest.approx(0, abs=1e-6)


def test_svd_starts_of_sparse_and_dense_tensors_are_alike():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((20, 30, 25)) < 0.02, rng.random((20, 30, 25)), 0)
    places, values, shape = coordinates(X)
    zero = np.argwhere(X[:1] == 0)[:1].T  # stored
    stored = np.hstack([places, zero]), np.append(values, 0.0), shape
    fits = [
        sf.factorize_tensor(data, init="svd", n_components=3, random_state=0, max_iter=0)
        for data in (X, coordinates(X), stored)
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.to_dense(), fits[0].to_dense(), rtol=1e-8)


def test_modes_of_labels_count_from_the_last_too():
    X, Y = sparse_counts((5, 4, 3)), np.eye(3)
    options = {"n_components": 2, "random_state": 0}
    fit = sf.factorize_tensor(X, y={-1: Y}, **options)
    expected = sf.factorize_tensor(X, y={2: Y}, **options)
    np.testing.assert_array_equal(fit.label_components[2], expected.label_components[2])
    refused("y has mode 2 twice", sf.factorize_tensor, X, y={-1: Y, 2: Y}, **options)
