"""Every loss that matrices take serves tensors: against NumPy, in all forms of data and weights."""

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from helpers.tensors import coordinates, far_side, product, unfolded
from test_contributing import Elastic

import ssnmf_fast as sf
from ssnmf_fast import extend

FORMS = ("none", "observed", "missing", "modes", "dense", "nan")
BETAS = {"itakura-saito": 0, "elastic": None, 0.5: 0.5, 1.5: 1.5}
COMBINATIONS = [
    (loss, form, storage)
    for loss in BETAS
    for form in FORMS
    for storage in ("sparse", "dense")
    if storage == "dense" or (form != "nan" and (loss != "itakura-saito" or form == "observed"))
]
SHAPE = (6, 5, 4)


@pytest.fixture(autouse=True)
def elastic():
    return extend.register_loss(Elastic())


def entries(x, z, loss):
    """Return the loss of every entry, by its definition."""
    if loss == "elastic":
        logs = np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / z), 0)
        return (x - z) ** 2 / 2 + logs - x + z
    beta = BETAS[loss]
    if beta == 0:
        return x / z - np.log(x / z) - 1
    there = np.maximum(z, 1e-100)  # where there are data, the model is above 0
    far = np.where(x > 0, beta * x * there ** (beta - 1), 0)
    return (x**beta + (beta - 1) * z**beta - far) / (beta * (beta - 1))


def tensor(loss, shape=SHAPE):
    """Return counts, with zeros where the loss has a value for them."""
    rng = np.random.default_rng(0)
    truth = product([rng.random((n, 2)) for n in shape])
    return rng.poisson(4 * truth) + (0.5 if loss == "itakura-saito" else 0.0)


def problem(loss, form, storage):
    """Return a tensor and its weights as they are given, and the weights as an array."""
    rng = np.random.default_rng(1)
    X, pattern = tensor(loss), rng.random(SHAPE) < 0.7
    vectors = [rng.random(SHAPE[0]), None, rng.random(SHAPE[2])]
    outer = np.multiply.outer(np.outer(vectors[0], np.ones(SHAPE[1])), vectors[2])
    dense = rng.random(SHAPE)
    given, W = {
        "none": (None, np.ones(SHAPE)),
        "observed": (sf.weights.observed(coordinates(dense * pattern)), dense * pattern),
        "missing": (sf.weights.missing(~pattern), pattern),
        "modes": (vectors, outer),
        "dense": (dense, dense),
        "nan": (None, pattern),
    }[form]
    if form == "nan":
        return np.where(pattern, X, np.nan), given, W, X
    return (coordinates(X) if storage == "sparse" else X), given, W, X


@pytest.mark.slow
@each(("loss", "form", "storage"), COMBINATIONS)
def test_a_fit_has_the_loss_of_the_definition_and_never_rises(loss, form, storage):
    X, given, W, full = problem(loss, form, storage)
    for solver in ("auto", "mm", "hals"):
        options = {"n_components": 3, "random_state": 0, "tol": 0, "max_iter": 60}
        fit = sf.factorize_tensor(X, loss=loss, X_weights=given, solver=solver, **options)
        values = [value for _, value in fit.objective]
        expected = float(np.sum(W * entries(full, fit.to_dense(), loss)))
        assert values[-1] == pytest.approx(expected, rel=1e-9)
        assert max(np.diff(values)) <= 1e-10 * values[0]
        assert values[-1] < 0.8 * values[0]
        for F in fit.factors:
            np.testing.assert_allclose(F.sum(axis=0), 1)


@pytest.mark.parametrize("loss", [1.5, 0.5])
@pytest.mark.parametrize("shape", [(7, 5), (6, 5, 4), (4, 3, 5, 2)])
def test_updates_are_those_of_the_formulas(loss, shape):
    """Modes 1, 2, .. and then 0, each F <- F * (P / N)^g with P and N of explicit products."""
    X = tensor(loss, shape) + 0.1
    rng = np.random.default_rng(1)
    start = [rng.random((n, 3)) + 0.1 for n in shape]
    factors = [F.copy() for F in start]
    power = 1 if loss >= 1 else 1 / (2 - loss)
    for _ in range(5):
        for mode in (*range(1, len(shape)), 0):
            F, G = factors[mode], far_side(factors, mode)
            M = F @ G.T
            P, N = (unfolded(X, mode) * M ** (loss - 2)) @ G, M ** (loss - 1) @ G
            F *= (P / N) ** power
    for data in (X, coordinates(X)):
        fit = sf.factorize_tensor(
            data, n_components=3, loss=loss, solver="mm", init=start, max_iter=5, tol=0
        )
        np.testing.assert_allclose(fit.to_dense(), product(factors), rtol=1e-9)


@pytest.mark.parametrize("loss", BETAS)
def test_sparse_equals_dense_and_threads_change_nothing(loss):
    X = tensor(loss, (9, 40, 7))
    weights = sf.weights.observed(X > 0) if loss == "itakura-saito" else None
    options = {"n_components": 3, "loss": loss, "random_state": 0, "max_iter": 10, "tol": 0}
    fits = [
        sf.factorize_tensor(data, X_weights=weights, n_threads=threads, **options)
        for data in (coordinates(X), X)
        for threads in (1, 3)
    ]
    for one, three in (fits[:2], fits[2:]):
        for ours, theirs in zip(one.factors, three.factors, strict=True):
            assert np.array_equal(ours, theirs)
    np.testing.assert_allclose(fits[0].to_dense(), fits[2].to_dense(), rtol=1e-8)


@pytest.mark.parametrize(("number", "name"), [(0, "itakura-saito"), (1, "kullback-leibler")])
def test_numbers_stand_for_names(number, name):
    X = tensor("itakura-saito")
    one, other = (
        sf.factorize_tensor(X, n_components=2, loss=loss, random_state=0, max_iter=5)
        for loss in (number, name)
    )
    assert one.objective == other.objective


@pytest.mark.slow
@each("loss", BETAS)
@each("supervision_loss", [0.5, 1.5, "elastic"])
def test_labels_take_every_loss(loss, supervision_loss):
    X, Y = tensor(loss), np.eye(2)[np.arange(6) % 2]
    options = {"n_components": 3, "supervision_weight": 3, "random_state": 0, "tol": 0}
    fit = sf.factorize_tensor(X, loss=loss, y={0: Y}, supervision_loss=supervision_loss, **options)
    values = [value for _, value in fit.objective]
    assert max(np.diff(values)) <= 1e-10 * values[0]
    found = np.maximum(fit.factors[0] @ fit.label_components[0], 1e-100)
    expected = np.sum(entries(X, fit.to_dense(), loss)), np.sum(entries(Y, found, supervision_loss))
    assert values[-1] == pytest.approx(expected[0] + 3 * expected[1], rel=1e-9)
    assert expected[1] < 0.7 * np.sum(entries(Y, np.full_like(Y, 0.5), supervision_loss))


@pytest.mark.slow
@each("loss", BETAS)
@each("form", FORMS)
def test_rows_of_any_mode_are_those_of_the_unfolded_matrix(loss, form):
    X, given, W, full = problem(loss, form, "dense")
    fitted = sf.NonnegativeCP(3, loss=loss, random_state=0).fit(full)
    for mode in range(3):
        G = far_side(fitted.factors_, mode)
        problem_of_rows = {"loss": loss, "X_weights": unfolded(W, mode).astype(float)}
        expected = sf.represent(unfolded(full, mode), G.T, **problem_of_rows)
        found = fitted.transform(X, mode=mode, X_weights=given)
        values = [
            sf.extend.objective(unfolded(full, mode), S, G.T, **problem_of_rows)
            for S in (found, expected)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-3 if loss == "elastic" else 1e-6)


@pytest.mark.parametrize("loss", BETAS)
def test_slices_come_near_to_a_fit(loss):
    X = tensor(loss, (20, 15, 24))
    stream = sf.NonnegativeCP(2, loss=loss, random_state=0).partial_fit(X[..., :12])
    for t in range(12, 24, 3):
        stream.partial_fit(X[..., t : t + 3])
    whole = sf.NonnegativeCP(2, loss=loss, random_state=0).fit(X)
    resumed = sf.NonnegativeCP(2, loss=loss, random_state=0).fit(X[..., :12])
    resumed.partial_fit(X[..., 12:])
    found = []
    for fitted in (whole, stream, resumed):
        factors = [*fitted.factors_[:-1], fitted.transform(X, mode=-1)]
        found.append(float(np.sum(entries(X, np.maximum(product(factors), 1e-300), loss))))
    assert max(found[1:]) < 1.05 * found[0]


def test_itakura_saito_names_zeros_and_the_way_out():
    X = tensor("itakura-saito")
    X[1, 2, 3] = 0
    options = {"n_components": 2, "loss": "itakura-saito"}
    fitted = sf.NonnegativeCP(**options, max_iter=2, tol=0).fit(X + 1)
    for call in (
        lambda: sf.factorize_tensor(X, **options),
        lambda: sf.factorize_tensor(coordinates(X), **options),
        lambda: fitted.transform(X),
        lambda: fitted.partial_fit(X),
    ):
        refused(r"X has zeros, .* NaN in a dense array", call)
    observed = sf.weights.observed(X > 0)
    assert np.isfinite(sf.factorize_tensor(X, X_weights=observed, **options).objective[-1][1])


@pytest.mark.slow
def test_a_tensor_of_too_many_places_needs_observed_entries():
    shape = (100_000, 90_000, 80_000)
    coords = np.random.default_rng(0).integers(80_000, size=(3, 200))
    X, options = (coords, np.ones(200), shape), {"n_components": 2, "max_iter": 2}
    refused(r"all 7.2e\+14 places of X", sf.factorize_tensor, X, loss=1.5, **options)
    observed = sf.weights.observed(X)
    fit = sf.factorize_tensor(X, loss=1.5, X_weights=observed, **options)
    rows = sf.NonnegativeCP(2, loss=1.5, max_iter=2, tol=0).fit(X, X_weights=observed)
    assert np.isfinite(fit.objective[-1][1])
    assert rows.transform(X, X_weights=observed).shape == (100_000, 2)


@pytest.mark.parametrize("loss", ["elastic", 1.5])
def test_topics_over_time_take_every_loss(loss):
    X = np.kron(np.eye(2), np.ones((6, 3)))
    times = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    found = sf.DynamicTopics(2, freq="quarter", loss=loss, random_state=0).fit(X, times)
    first, second = sorted(str(peak.slice) for peak in found.peaks())  # of two equal slices each
    assert first < "2020-07" <= second
    values = [value for _, value in found.objective_]
    assert max(np.diff(values), default=0) <= 1e-10 * values[0]
    assert found.transform(X).shape == (12, 2)
