"""Function factorize: against the formulas, as properties, and on degenerate input."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.random_examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import FORMS, LOSSES, STORAGE, data, dense_objective, filled, iterates, weighted

import ssnmf_fast as sf

MODELS = list(itertools.product(LOSSES, LOSSES))
RANDOM_PROBLEMS = {
    "dtype": st.sampled_from([np.float32, np.float64]),
    "losses": st.sampled_from(MODELS),
    "form": st.sampled_from(FORMS),
    "storage": st.sampled_from(STORAGE),
    "seed": st.integers(0, 10_000),
}


@each("storage", STORAGE)
@each("form", FORMS)
@each("losses", MODELS)
def test_objective_is_the_formula(losses, form, storage):
    rng = np.random.default_rng(0)
    X, W, dense_W = weighted(rng, data(rng, (40, 30), np.float64, storage), form)
    Y, L, dense_L = weighted(rng, data(rng, (40, 4), np.float64, storage), form)
    loss, supervision_loss = losses
    arguments = {"loss": loss, "supervision_loss": supervision_loss, "supervision_weight": 0.7}
    arguments |= {"X_weights": W, "y_weights": L}
    fit = sf.factorize(X, Y, n_components=5, random_state=0, max_iter=20, tol=0, **arguments)
    expected = dense_objective(filled(X), dense_W, fit.S, fit.A, loss)
    expected += 0.7 * dense_objective(filled(Y), dense_L, fit.S, fit.B, supervision_loss)
    assert fit.objective[-1][1] == pytest.approx(expected, rel=1e-9)
    value = sf.extend.objective(X, fit.S, fit.A, y=Y, B=fit.B, **arguments)
    assert value == pytest.approx(expected, rel=1e-9)


def assert_monotone(dtype, losses, form, storage, solver, seed, restarts=False):
    """Follow the objective, written out, through one run or through restarts at every iteration."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 25)), int(rng.integers(1, 20)))
    labels = int(rng.integers(1, 5))
    X, W, dense_W = weighted(rng, data(rng, shape, dtype, storage), form)
    Y, L, dense_L = weighted(rng, data(rng, (shape[0], labels), dtype, storage), form)
    weight = float(rng.choice([0.1, 1.0, 30.0]))
    if not ((dense_W > 0).any() and (dense_L > 0).any()):  # refused
        return

    options = {"n_components": int(1 + seed % 7), "random_state": seed, "tol": 0, "n_threads": 1}
    options |= {"loss": losses[0], "supervision_loss": losses[1], "supervision_weight": weight}
    options |= {"X_weights": W, "y_weights": L, "solver": solver}

    def run(init="random", n=12, **more):
        return sf.factorize(X, Y, init=init, max_iter=n, **options, **more)

    def factors(fit):
        return fit.S, fit.A, fit.B

    if restarts:
        steps = [factors(run(n=0))]
        for _ in range(12):
            steps.append(factors(run(steps[-1], 1)))
    else:
        steps = iterates(run)
    unwatched = factors(run())
    values = [
        dense_objective(filled(X), dense_W, S, A, losses[0])
        + weight * dense_objective(filled(Y), dense_L, S, B, losses[1])
        for S, A, B in (*steps, unwatched)
    ]
    final = values.pop()
    scale = float(np.sum(dense_W * filled(X) ** 2) + weight * np.sum(dense_L * filled(Y) ** 2))
    slack = 50 * np.finfo(dtype).eps * (scale + abs(values[0]))
    assert len(values) == 13
    assert np.isfinite(values).all()
    assert all(np.isfinite(factor).all() for factor in (*steps[-1], *unwatched))
    assert max(np.diff(values)) <= slack
    assert final <= values[0] + slack


@pytest.mark.slow
@settings(max_examples=examples(250, in_numpy=40))
@given(**RANDOM_PROBLEMS)
@example(np.float32, ("kullback-leibler", "frobenius"), "missing", "sparse", 221)
def test_mm_never_raises_the_objective(dtype, losses, form, storage, seed):
    assert_monotone(dtype, losses, form, storage, "mm", seed, restarts=seed % 10 == 1)


@pytest.mark.slow
@settings(max_examples=examples(150, in_numpy=40))
@given(**RANDOM_PROBLEMS)
def test_hals_never_raises_the_objective(dtype, losses, form, storage, seed):
    assert_monotone(dtype, losses, form, storage, "hals", seed, restarts=seed % 10 == 1)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(**RANDOM_PROBLEMS)
def test_auto_never_raises_the_objective(dtype, losses, form, storage, seed):
    assert_monotone(dtype, losses, form, storage, "auto", seed)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(loss=st.sampled_from(LOSSES), form=st.sampled_from(FORMS), seed=st.integers(0, 10_000))
def test_mu_with_equal_losses_never_raises_the_objective(loss, form, seed):
    assert_monotone(np.float64, (loss, loss), form, "sparse", "mu", seed, seed % 10 == 1)


@pytest.mark.slow
@pytest.mark.parametrize("losses", MODELS)
def test_gradient_vanishes_at_convergence(losses):
    rng = np.random.default_rng(3)
    X, Y = rng.random((15, 10)) + 0.1, rng.random((15, 3)) + 0.1
    options = {"loss": losses[0], "supervision_loss": losses[1]}
    start = sf.factorize(X, Y, n_components=2, random_state=0, max_iter=0, **options)
    end = sf.factorize(X, Y, n_components=2, random_state=0, max_iter=3000, tol=0, **options)

    def residual(fit):
        factors = [fit.S, fit.A, fit.B]
        worst = 0.0
        for which, factor in enumerate(factors):
            for i, j in np.ndindex(*factor.shape):
                step = 1e-6

                def value(change, which=which, i=i, j=j):
                    moved = [f.copy() for f in factors]
                    moved[which][i, j] += change
                    S, A, B = moved
                    return sf.extend.objective(X, S, A, y=Y, B=B, **options)

                slope = (value(step) - value(-min(step, factor[i, j]))) / (
                    step + min(step, factor[i, j])
                )
                worst = max(worst, abs(min(slope, factor[i, j])))
        return worst

    assert residual(end) < 1e-4 * residual(start)


def test_sparse_equals_dense():
    rng = np.random.default_rng(0)
    X = data(rng, (50, 40), np.float64)
    for losses in MODELS:
        options = {"loss": losses[0], "supervision_loss": losses[1], "random_state": 1}
        Y = data(rng, (50, 3), np.float64)
        a = sf.factorize(X, Y, n_components=4, max_iter=20, tol=0, **options)
        b = sf.factorize(X.toarray(), Y.toarray(), n_components=4, max_iter=20, tol=0, **options)
        np.testing.assert_allclose(a.S, b.S, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(a.A, b.A, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "hals"])
def test_dense_data_take_few_products(solver):
    """Each is used for steps of conjugate gradients, too, however the data are stored."""
    rng = np.random.default_rng(1)
    X = rng.random((200, 6)) @ rng.random((6, 300)) + 0.1 * rng.random((200, 300))
    given = {"n_components": 6, "solver": solver, "random_state": 0, "tol": 0}
    fits = [sf.factorize(Z, max_iter=10, **given) for Z in (X, sp.csr_array(X))]
    losses = [sf.extend.objective(X, fit.S, fit.A) for fit in fits]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    slow = sf.factorize(X, max_iter=10, **given | {"solver": "mm"})
    assert losses[0] < sf.extend.objective(X, slow.S, slow.A) / 4


@pytest.mark.compiled("plain NumPy has no threads")
def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    X, Y = data(rng, (3000, 400), np.float64, density=0.05), np.eye(3)[rng.integers(0, 3, 3000)]
    for losses in MODELS:
        options = {"n_components": 7, "loss": losses[0], "random_state": 0, "max_iter": 5, "tol": 0}
        fits = [
            sf.factorize(X, Y, supervision_loss=losses[1], n_threads=n_threads, **options)
            for n_threads in (1, 2, 3, 4, 8)
        ]
        assert len({(f.S.tobytes(), f.A.tobytes(), f.B.tobytes()) for f in fits}) == 1


@pytest.mark.parametrize("init", ["random", "nndsvda", "random-acol"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_starts(init, dtype):
    rng = np.random.default_rng(0)
    X = data(rng, (60, 30), dtype)
    fit = sf.factorize(X, n_components=5, init=init, random_state=0, max_iter=100, tol=0)
    assert fit.S.dtype == fit.A.dtype == dtype
    values = [value for _, value in fit.objective]
    assert values[-1] < 0.9 * values[0]
    again = sf.factorize(X, n_components=5, init=init, random_state=0, max_iter=100, tol=0)
    assert fit.S.tobytes() == again.S.tobytes()


def test_input_is_never_modified():
    rng = np.random.default_rng(0)
    X, Y, W = rng.random((20, 10)), rng.random((20, 2)), rng.random((20, 10))
    X[0, 0] = np.nan
    copies = X.copy(), Y.copy(), W.copy()
    for array in (X, Y, W):
        array.flags.writeable = False
    sf.factorize(X, Y, n_components=3, X_weights=W, max_iter=5)
    for array, copy in zip((X, Y, W), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_balanced_weight_equalizes_the_losses_at_the_start():
    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 20)), 100 * rng.random((30, 2))
    fit = sf.factorize(X, Y, n_components=3, supervision_weight="balanced", max_iter=0)
    data_alone = sf.extend.objective(X, fit.S, fit.A)
    assert fit.objective[0][1] == pytest.approx(2 * data_alone)


def test_callback_stops_the_fit():
    seen = []

    def stop(state):
        seen.append(state.iteration)
        assert not state.S.flags.writeable
        assert state.A.shape == (3, 10)
        return state.iteration >= 20

    fit = sf.factorize(np.ones((20, 10)), n_components=3, callback=stop, tol=0)
    assert seen == [0, 10, 20]
    assert fit.n_iter == 20


def test_supervision_weight_zero_fits_the_labels_without_moving_the_topics():
    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 20)), rng.random((30, 2))
    alone = sf.factorize(X, n_components=3, random_state=0, max_iter=20, tol=0)
    both = sf.factorize(
        X, Y, n_components=3, supervision_weight=0, random_state=0, max_iter=20, tol=0
    )
    np.testing.assert_array_equal(alone.S, both.S)
    assert np.isfinite(both.B).all()


DEGENERATE = {
    "all zero": np.zeros((6, 5)),
    "empty row and column": np.pad(np.ones((4, 4)), ((0, 1), (1, 0))),
    "one sample": np.ones((1, 5)),
    "one feature": np.ones((6, 1)),
    "one entry": np.ones((1, 1)),
    "missing row and column": np.where(np.arange(30).reshape(6, 5) % 5 == 2, np.nan, 1.0),
    "integers": np.arange(12).reshape(3, 4),
    "bool": np.eye(4, dtype=bool),
    "explicit zeros": sp.csr_array((np.zeros(3), ([0, 1, 2], [0, 1, 2])), shape=(4, 4)),
    "duplicates": sp.csr_array(
        (np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 3)
    ),
    "coo": sp.coo_array(np.eye(5)),
    "empty sparse": sp.csr_array((4, 3)),
    "fortran": np.asfortranarray(np.random.default_rng(0).random((7, 5))),
    "tiny values": np.full((4, 4), 1e-15),
    "large values": np.full((4, 4), 1e15),
}


@pytest.mark.slow
@each("name", DEGENERATE)
@each("losses", MODELS)
def test_degenerate_input_gives_finite_factors(name, losses):
    X = DEGENERATE[name]
    Y = np.eye(2)[np.arange(X.shape[0]) % 2]
    Y[1:2] = np.nan
    for rank in (1, 3, 20):
        options = {"n_components": rank, "random_state": 0, "max_iter": 15}
        fit = sf.factorize(X, Y, loss=losses[0], supervision_loss=losses[1], **options)
        S = sf.represent(X, fit.A, loss=losses[0])
        for factor in (fit.S, fit.A, fit.B, S):
            assert np.isfinite(factor).all()
            assert (factor >= 0).all()
        assert np.isfinite([value for _, value in fit.objective]).all()


@pytest.mark.slow
def test_fuzz():
    """Random inputs: a clear error or finite factors."""
    rng = np.random.default_rng(0)
    dtypes = [np.float32, np.float64, np.int8, np.int64, np.uint16, bool]
    messages = []
    for _ in range(examples(1500)):
        shape = tuple(rng.integers(1, 6, size=2))
        X = (rng.integers(0, 4, size=shape) * (rng.random(shape) < 0.6)).astype(rng.choice(dtypes))
        if X.dtype.kind == "f":
            X[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf, -1.0, 0.0, 1e-38, 1e8])
        x = sp.coo_array(np.nan_to_num(X)) if rng.random() < 0.4 else X
        Y = rng.integers(0, 2, size=(shape[0], 2)) if rng.random() < 0.5 else None
        W = rng.choice([-1.0, 0.0, 1.0, 2.0], p=[0.01, 0.3, 0.5, 0.19], size=shape)
        weight = [None, W, sf.weights.observed(W), sf.weights.missing(W > 0)][rng.integers(4)]
        try:
            options = {"n_components": int(rng.integers(0, 4)), "loss": str(rng.choice(LOSSES))}
            options |= {"supervision_loss": str(rng.choice(LOSSES)), "X_weights": weight}
            fit = sf.factorize(x, Y, max_iter=3, random_state=0, n_threads=1, **options)
        except ValueError as error:
            messages.append(str(error))
            continue
        for factor in (fit.S, fit.A, fit.B):
            assert factor is None or np.isfinite(factor).all()
    assert messages
    assert all(len(message) > 20 for message in messages)


@each("solver", ["auto", "hals", "mm", "mu"])
@each("form", ["none", "missing"])
def test_zeros_of_a_given_start_stay(solver, form):
    rng = np.random.default_rng(0)
    X, W, _ = weighted(rng, rng.random((30, 12)) + 0.1, form)
    S = rng.random((30, 4)) * (rng.random((30, 4)) < 0.6)
    A = rng.random((4, 12)) * (rng.random((4, 12)) < 0.6)
    kept = S.copy()
    fit = sf.factorize(
        X, n_components=4, init=(S, A), X_weights=W, solver=solver, tol=0, max_iter=30
    )
    assert (fit.S[S == 0] == 0).all()
    assert (fit.A[A == 0] == 0).all()
    np.testing.assert_array_equal(S, kept)
    assert fit.objective[-1][1] < fit.objective[0][1]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("supervised", [False, True])
def test_auto_is_further_down_than_mm_with_two_thirds_more_iterations(loss, supervised):
    """Summed over several problems: which minimum one run ends in is a matter of chance."""
    totals = {("auto", 30): 0.0, ("mm", 50): 0.0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, 60)
        X = rng.poisson(3 * (rng.random((3, 45)) ** 4)[labels]) + rng.random((60, 45)) / 10
        for solver, n in totals:
            Y = np.eye(3)[labels] if supervised else None
            options = {"n_components": 5, "random_state": seed, "max_iter": n, "tol": 0}
            fit = sf.factorize(X, Y, loss=loss, supervision_loss=loss, solver=solver, **options)
            totals[solver, n] += fit.objective[-1][1]
    assert totals["auto", 30] < totals["mm", 50]


def test_auto_descends_where_only_listed_entries_count():
    """Multiplicative updates take far more iterations there."""
    rng = np.random.default_rng(0)
    pattern = sp.random_array((80, 60), density=0.3, format="csr", rng=rng)
    X = (rng.random((80, 4)) @ rng.random((4, 60))) * (pattern.toarray() > 0)
    ends = {}
    options = {"n_components": 4, "X_weights": sf.weights.observed(pattern != 0), "tol": 0}
    for solver, n in {"auto": 60, "hals": 60, "mm": 200}.items():
        fit = sf.factorize(sp.csr_array(X), solver=solver, random_state=0, max_iter=n, **options)
        values = [value for _, value in fit.objective]
        assert max(np.diff(values)) <= 1e-9 * values[0]
        ends[solver] = values[-1]
    assert ends["auto"] < 0.5 * ends["hals"]
    assert ends["auto"] < 0.1 * ends["mm"]


def test_components_that_drift_apart_in_scale_are_brought_together():
    rng = np.random.default_rng(2)
    X = rng.random((20, 10))
    S, A = 1e-12 * rng.random((20, 3)) + 1e-13, 1e12 * rng.random((3, 10)) + 1e11
    fit = sf.factorize(X, n_components=3, init=(S, A), solver="hals", tol=0, max_iter=50)
    other = sf.factorize(
        X, n_components=3, init=(1e12 * S, 1e-12 * A), solver="hals", tol=0, max_iter=50
    )
    assert 1e-6 < fit.S.max() / fit.A.max() < 1e6
    assert fit.objective[-1][1] == pytest.approx(other.objective[-1][1], rel=1e-9)


def test_printed_in_a_line():
    X = np.random.default_rng(0).random((30, 20))
    fit = sf.factorize(X, n_components=3, random_state=0, max_iter=10)
    value = f"{fit.objective[-1][1]:.6g}"
    wanted = f"S: (30, 3), A: (3, 20), objective={value}, n_iter=10, converged={fit.converged}"
    assert repr(fit) == f"Factorization({wanted})"
    guided = sf.factorize(X, np.eye(30)[:, :4], n_components=3, random_state=0, max_iter=1)
    assert "B: (3, 4)" in repr(guided)
    assert repr(sf.results.Factorization(fit.S, fit.A)).endswith(
        "A: (3, 20), n_iter=0, converged=False)"
    )
