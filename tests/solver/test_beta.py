"""Itakura-Saito and the other beta-divergences."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.levels import kernels_in_use
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import FORMS, data, filled, iterates, weighted

import ssnmf_fast as sf

pytestmark = pytest.mark.skipif(
    not hasattr(kernels_in_use, "dense_beta_loss"), reason="needs its kernels"
)
BETAS = (0.0, 0.3, 0.5, 0.7, 1.0, 1.2, 1.5, 1.9, 2.0)
NAMES = {0.0: "itakura-saito", 1.0: "kullback-leibler", 2.0: "frobenius"}


def divergence(x, z, beta):
    """The definition, in extended precision; the squares have no factor 1/2 here."""
    x, z = np.asarray(x, np.longdouble), np.asarray(z, np.longdouble)
    if beta == 0:
        return x / z - np.log(x / z) - 1
    if beta == 1:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / z), 0) - x + z
    if beta == 2:
        return (x - z) ** 2
    return (x**beta + (beta - 1) * z**beta - beta * x * z ** (beta - 1)) / (beta * (beta - 1))


def objective(X, W, S, A, beta):
    """Sum of the losses of entries whose weight is above 0."""
    z = S.astype(np.longdouble) @ A.astype(np.longdouble)
    least = np.finfo(A.dtype).tiny / np.finfo(A.dtype).eps
    return float(np.sum(W[W > 0] * divergence(X[W > 0], np.maximum(z[W > 0], least), beta)))


def problem(rng, beta, form, storage, shape, dtype=np.float64):
    """X, its weights, and both in full; positive for Itakura-Saito."""
    X = data(rng, shape, dtype, storage)
    if beta == 0:
        X = X.toarray() + dtype(0.1) if storage == "sparse" else X + dtype(0.1)
        X = sp.csr_array(X) if storage == "sparse" and form == "observed" else X
    return weighted(rng, X, form), X


@pytest.mark.slow
@each("storage", ["sparse", "dense"])
@each("form", FORMS)
@each("beta", BETAS)
def test_objective_is_the_formula(beta, form, storage):
    rng = np.random.default_rng(0)
    (X, W, dense_W), whole = problem(rng, beta, form, storage, (30, 20))
    S, A = rng.random((30, 3)) + 0.1, rng.random((3, 20)) + 0.1
    expected = objective(filled(whole), dense_W, S, A, beta)
    loss = {"loss": beta, "X_weights": W}
    assert sf.extend.objective(X, S, A, **loss) == pytest.approx(expected, rel=1e-9)
    fit = sf.factorize(X, n_components=3, init=(S, A), max_iter=15, tol=0, **loss)
    expected = objective(filled(whole), dense_W, fit.S, fit.A, beta)
    assert fit.objective[-1][1] == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
@settings(max_examples=examples(150, in_numpy=60))
@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    beta=st.one_of(st.sampled_from(BETAS), st.floats(0, 2).filter(lambda b: b == 0 or b > 1e-3)),
    other=st.sampled_from([None, 0.5, 1.0, 1.5, 2.0]),
    form=st.sampled_from(FORMS),
    storage=st.sampled_from(["sparse", "dense"]),
    solver=st.sampled_from(["auto", "mm", "mu", "hals"]),
    seed=st.integers(0, 10_000),
)
def test_no_step_raises_the_objective(dtype, beta, other, form, storage, solver, seed):
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 20)), int(rng.integers(1, 15))
    (X, W, dense_W), whole = problem(rng, beta, form, storage, shape, dtype)
    if other is not None and solver == "mu":
        solver = "mm"  # the papers' rule is for one kind of loss
    Y = None if other is None else data(rng, (shape[0], 3), dtype, "dense")
    rank, weight = int(1 + seed % 5), float(rng.choice([0.1, 1.0, 30.0]))
    options = {"loss": beta, "X_weights": W, "solver": solver, "random_state": seed}
    if Y is not None:
        options |= {"supervision_loss": other, "supervision_weight": weight}
    options |= {"n_components": rank, "init": "random", "max_iter": 7, "tol": 0, "n_threads": 1}
    values = []
    for S, A, B in iterates(functools.partial(sf.factorize, X, Y, **options)):
        value = objective(filled(whole), dense_W, S, A, beta)
        if Y is not None:
            value += weight * objective(Y, np.ones_like(Y), S, B, other)
        assert np.isfinite(S).all()
        assert np.isfinite(A).all()
        values.append(value)
    assert len(values) == 8
    slack = 200 * np.finfo(dtype).eps * (abs(values[0]) + np.sum(filled(whole)) + 1)
    assert max(np.diff(values)) <= slack


@pytest.mark.slow
@pytest.mark.compiled("thousands of iterations take too long in NumPy")
@pytest.mark.parametrize("beta", [0, 0.5, 1.5])
def test_objective_at_convergence_is_that_of_scikit_learn(beta):
    from sklearn.decomposition import non_negative_factorization

    rng = np.random.default_rng(4)
    X = (rng.random((40, 2)) @ rng.random((2, 25))) * rng.gamma(50, 0.02, (40, 25)) + 1e-3
    S, A = rng.random((40, 2)) + 0.1, rng.random((2, 25)) + 0.1
    W, H, _ = non_negative_factorization(
        X, S.copy(), A.copy(), init="custom", solver="mu", beta_loss=beta, tol=0, max_iter=1500
    )
    loss = "itakura-saito" if beta == 0 else beta
    fit = sf.factorize(X, n_components=2, loss=loss, init=(S, A), solver="mm", tol=0, max_iter=1500)
    ones = np.ones_like(X)
    theirs = objective(X, ones, W, H, beta)
    assert fit.objective[-1][1] == pytest.approx(theirs, rel=1e-4)
    fast = sf.factorize(X, n_components=2, loss=loss, init=(S, A), tol=0, max_iter=1500)
    assert fast.objective[-1][1] == pytest.approx(theirs, rel=1e-4)


@pytest.mark.filterwarnings("ignore:The total space")
@each("beta", BETAS)
def test_names_and_numbers_agree_and_scale_does_not_matter(beta):
    rng = np.random.default_rng(5)
    X = rng.random((20, 10)) + 0.1
    options = {"n_components": 2, "random_state": 0, "max_iter": 30, "init": "random"}
    fit = sf.factorize(X, loss=beta, **options)
    if beta in NAMES:
        named = sf.factorize(X, loss=NAMES[beta], **options)
        np.testing.assert_array_equal(named.S, fit.S)
    large = sf.factorize(X * 2.0**40, loss=beta, **options)
    np.testing.assert_allclose(large.S @ large.A, fit.S @ fit.A * 2.0**40, rtol=1e-6)
    expected = fit.objective[-1][1] * 2.0 ** (40 * beta)
    assert large.objective[-1][1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("zeros", ["dense", "sparse", "weights", "labels"])
def test_zeros_are_refused_where_the_loss_is_infinite(zeros):
    X = np.random.default_rng(6).random((6, 5)) + 0.1
    X[2, 3] = 0
    arguments = {"X": X, "n_components": 2, "loss": "itakura-saito"}
    name = "X"
    if zeros == "sparse":
        arguments["X"] = sp.csr_array(X)
    elif zeros == "weights":
        arguments["X_weights"] = sf.weights.outer(np.ones(6))
    elif zeros == "labels":
        arguments |= {"X": X + 1, "y": np.eye(6)[:, :2], "supervision_loss": 0}
        name = "y"
    refused(f"{name} has zeros, for which the loss 'itakura-saito'", sf.factorize, **arguments)
    X[2, 3] = np.nan
    assert np.isfinite(sf.factorize(X, n_components=2, loss=0).objective[-1][1])
    pattern = sp.csr_array(np.nan_to_num(X) > 0)
    options = {"n_components": 2, "loss": 0, "X_weights": sf.weights.observed(pattern)}
    known = sf.factorize(sp.csr_array(np.nan_to_num(X)), **options)
    assert np.isfinite(known.objective[-1][1])


@pytest.mark.parametrize("loss", [-0.1, 2.5, True, np.nan, "beta", None])
def test_other_losses_are_refused(loss):
    with pytest.raises(ValueError, match=r"'itakura-saito'.*or a number from 0 to 2; got"):
        sf.factorize(np.ones((3, 3)), n_components=1, loss=loss)


@pytest.mark.parametrize("beta", [0, 0.5, 1.5])
def test_represent_and_estimators(beta):
    rng = np.random.default_rng(7)
    A = rng.random((3, 30)) + 0.01
    S = rng.random((12, 3)) + 0.05
    found = sf.represent(S @ A, A, loss=beta)
    np.testing.assert_allclose(found @ A, S @ A, rtol=0.05)
    y = np.arange(12) % 3
    model = sf.SSNMFClassifier(n_components=3, loss=beta, random_state=0).fit(S @ A, y)
    assert model.transform(S @ A).shape == (12, 3)
    online = sf.NMF(n_components=3, loss=beta, random_state=0)
    for _ in range(30):
        online.partial_fit(S @ A)
    assert online.objective_[-1][1] < online.objective_[0][1]
    constrained = sf.papers.ConstrainedNMF(n_components=3, loss=beta, random_state=0)
    constrained.fit(S @ A, y)
    values = [value for _, value in constrained.objective_]
    assert max(np.diff(values)) <= 1e-9 * values[0]


@pytest.mark.parametrize("beta", [0.5, 1.5])
def test_fits_from_disk_are_those_in_memory(tmp_path, beta):
    X = data(np.random.default_rng(8), (80, 20), np.float64)
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=1000)
    options = {"n_components": 3, "loss": beta, "random_state": 0, "init": "random"}
    here, there = (sf.factorize(Z, max_iter=15, tol=0, **options) for Z in (X, file))
    np.testing.assert_allclose(there.A, here.A, rtol=1e-8)
    assert there.objective[-1][1] == pytest.approx(here.objective[-1][1], rel=1e-9)


ROWS, COLUMNS = np.ones((6, 2)), np.ones((2, 5))
COLUMNS[:, 1] = 0
ALL = np.random.default_rng(9).random((6, 5)) + 0.1
TENSOR = np.random.default_rng(9).random((4, 3, 5)) + 0.1
START = {"init": (ROWS, COLUMNS)}
# Fits with a model of 0 where the data are positive; B and the labels likewise.
UNREACHED = {
    "init": lambda b: sf.factorize(ALL, n_components=2, loss=b, **START),
    "float32": lambda b: sf.factorize(ALL.astype("f"), n_components=2, loss=b, **START),
    "support": lambda b: sf.factorize(ALL, n_components=2, loss=b, A_support=COLUMNS, n_starts=2),
    "weights": lambda b: sf.factorize(
        ALL, n_components=2, loss=b, X_weights=np.ones_like(ALL), **START
    ),
    "labels": lambda b: sf.factorize(
        ALL, ALL, n_components=2, supervision_loss=b, init=(ROWS, COLUMNS + 1, COLUMNS)
    ),
    "NMF": lambda b: sf.NMF(2, loss=b, A_support=COLUMNS).fit(ALL),
    "tensor": lambda b: sf.factorize_tensor(
        TENSOR, n_components=2, loss=b, init=[ROWS[:4], np.ones((3, 2)), COLUMNS.T]
    ),
    "extend": lambda b: sf.extend.fit(
        [sf.extend.relation("S", "A", ALL, loss=b)], n_components=2, init={"A": COLUMNS.T}
    ),
}


@each("name", [*UNREACHED])
@each("beta", [0, 0.5])
def test_fits_whose_loss_stays_infinite_are_refused(name, beta):
    with pytest.raises(ValueError, match="the loss is infinite: the model"):
        UNREACHED[name](beta)


@each("beta", [0.2, 0.5, 0.9])
@each("dtype", [np.float32, np.float64])
def test_infinite_losses_are_infinite(beta, dtype):
    A = COLUMNS.astype(dtype)
    for form in (np.asarray, sp.csr_array):
        assert sf.extend.objective(form(ALL.astype(dtype)), ROWS, A, loss=beta) == np.inf
    values = [sf.extend.objective(ALL.astype(dtype), ROWS, A + s, loss=beta) for s in (1e-20, 1e-9)]
    assert np.inf > values[0] > values[1]
    assert np.isfinite(sf.extend.objective(ALL * (COLUMNS[0] > 0), ROWS, A, loss=beta))
    weights = np.where(COLUMNS[:1] > 0, np.ones_like(ALL), 0)
    assert np.isfinite(sf.extend.objective(ALL, ROWS, A, loss=beta, X_weights=weights))
    model = sf.NMF(2, loss=beta, random_state=0, dtype=dtype).fit(ALL * (COLUMNS[0] > 0))
    assert model.score(ALL) == -np.inf
    assert model.score(ALL * (COLUMNS[0] > 0)) > 0.5
    model.partial_fit(ALL).partial_fit(ALL)
    assert model.objective_[-1][1] == np.inf


@each("dtype", [np.float32, np.float64])
@each("beta", [0, 0.1, 0.5, 0.9])
def test_no_start_of_ordinary_data_is_infinite(beta, dtype):
    rng = np.random.default_rng(4)
    for X in (rng.poisson(0.4, (20, 12)), rng.random((20, 12)) * 10.0 ** rng.integers(-9, 3, 12)):
        X = X + (1e-3 if beta == 0 else 0)
        for init in ("auto", "random", "least-squares", "nndsvda", "random-acol"):
            options = {"init": init, "loss": beta, "random_state": 0, "max_iter": 10}
            fit = sf.factorize(X.astype(dtype), n_components=3, **options)
            assert fit.objective[0][1] < 1e6 * X.sum()
