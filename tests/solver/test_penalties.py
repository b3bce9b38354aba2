"""Penalties: bounds, monotone updates, the updates written out, scikit-learn's objective."""

from __future__ import annotations

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from random_examples import examples

import ssnmf_fast as sf
from ssnmf_fast import extend, penalties

N, M, R = 14, 11, 3
KINDS = ("L1", "L2", "Orthogonal", "Graph", "Temporal")


def graph(rng, n):
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    W = W + W.T
    np.fill_diagonal(W, 0)
    return W


def made(kind, coefficient, rng, n):
    more = (graph(rng, n),) if kind == "Graph" else ()
    return getattr(penalties, kind)(coefficient, *more)


def written_out(kind, penalty, F):
    """The value, from the formula of the docstring."""
    pairs = F.T @ F
    W = {"Graph": lambda: penalty.weights.toarray(), "Temporal": lambda: np.eye(len(F), k=1)}
    edges = W[kind]() if kind in W else None
    total = {
        "L1": lambda: F.sum(),
        "L2": lambda: (F**2).sum(),
        "Orthogonal": lambda: pairs.sum() - np.trace(pairs),
        "Graph": lambda: sum(
            edges[i, j] * ((F[i] - F[j]) ** 2).sum() for i in range(len(F)) for j in range(i)
        ),
        "Temporal": lambda: sum(((F[i] - F[i + 1]) ** 2).sum() for i in range(len(F) - 1)),
    }[kind]()
    return penalty.coefficient * total


def at(bound, F):
    """The bound at a factor, but for its constant."""
    value = bound.linear * F.sum()
    if bound.gram is not None:
        rows = np.ones(len(F)) if bound.rows is None else bound.rows
        value += np.sum(rows[:, None] * (F @ bound.gram) * F)
    return value - (0 if bound.up is None else 2 * np.sum(bound.up * F))


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60))
def test_bounds_touch_their_penalty_and_lie_above_it(kind, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    here, there = rng.random((n, R)), rng.random((n, R)) * (rng.random((n, R)) < 0.7)
    penalty = made(kind, rng.random(), rng, n)
    np.testing.assert_allclose(
        penalty.value(here), written_out(kind, penalty, here), rtol=1e-10, atol=1e-12
    )
    bound = penalty.bound(here)
    rise = at(bound, there) - at(bound, here)
    if kind != "Orthogonal":  # which is its own bound
        assert penalty.value(there) - penalty.value(here) <= rise + 1e-10
    else:
        np.testing.assert_allclose(penalty.value(there) - penalty.value(here), rise, atol=1e-10)
    step = 1e-6 * (there - here)
    slope = (penalty.value(here + step) - penalty.value(here - step)) / 2e-6
    of_bound = (at(bound, here + step) - at(bound, here - step)) / 2e-6
    np.testing.assert_allclose(slope, of_bound, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(["frobenius", "kullback-leibler", 0.5, 1.5]),
    solver=st.sampled_from(["auto", "mm", "hals"]),
    form=st.sampled_from(["none", "outer", "observed", "missing", "nan"]),
    storage=st.sampled_from(problems.STORAGE),
    labels=st.booleans(),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=examples(150, in_numpy=60))
def test_no_update_raises_the_penalized_objective(seed, loss, solver, form, storage, labels, kinds):
    rng = np.random.default_rng(seed)
    if storage == "sparse" and form == "nan":
        form = "none"
    X = problems.data(rng, (N, M), np.float64, storage)
    X, X_weights, _ = problems.weighted(rng, X, form)
    Y = (rng.random((N, 2)) < 0.5) * 1.0 if labels else None
    size = 10.0 ** rng.uniform(-4, 0)
    penalized = {"A": [penalties.L2(size)]}
    penalized["S"] = [penalties.L1(size / 10), *(made(k, size, rng, N) for k in kinds)]
    if labels:
        penalized["B"] = penalties.L2(size)
    options = {"loss": loss, "solver": solver, "X_weights": X_weights, "penalties": penalized}
    values = []
    with problems.mock.patch.object(problems.loop, "CHECK_EVERY", 1):
        fit = sf.factorize(
            X, Y, n_components=R, max_iter=12, tol=0, random_state=0, **options,
            callback=lambda state: values.append(state.objective),
        )  # fmt: skip
    rises = np.diff(values)
    assert np.all(rises <= 1e-9 * np.abs(values[0]))
    del options["solver"]
    found = sf.objective(X, fit.S, fit.A, Y=Y, B=fit.B, **options)
    np.testing.assert_allclose(found, values[-1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", problems.LOSSES)
def test_updates_are_the_formulas(loss):
    """One iteration of "mm", A and then S, written out in dense NumPy."""
    rng = np.random.default_rng(0)
    X, S, A = rng.random((N, M)), rng.random((N, R)) + 0.1, rng.random((R, M)) + 0.1
    W = graph(rng, N)
    D = W.sum(axis=1)[:, None]
    l1, l2, o, g = 0.02, 0.03, 0.01, 0.05
    of_S = [
        penalties.L1(l1),
        penalties.L2(l2),
        penalties.Orthogonal(o),
        penalties.Graph(g, W),
    ]
    given = {"S": of_S, "A": [penalties.L1(l1), penalties.L2(l2)]}
    fit = sf.factorize(
        X, n_components=R, loss=loss, solver="mm", init=(S, A), max_iter=1, tol=0, penalties=given
    )

    def updated(F, Z, G, meets, graph_of_rows):
        """F, by rows, of Z ~ F G^T."""
        others = np.full((R, R), o * graph_of_rows) - o * graph_of_rows * np.eye(R)
        up = meets * g * graph_of_rows * (W @ F + D * F) if graph_of_rows else 0
        squares = meets * (l2 * F + F @ others)
        squares = squares + (2 * meets * g * D * F if graph_of_rows else 0)
        if loss == "frobenius":
            P, C = Z @ G + up, F @ G.T @ G + squares + meets * l1 / 2
            return F * P / C
        P1, N1 = (Z / (F @ G.T)) @ G, np.ones_like(Z) @ G + meets * l1
        a, b, c = 2 * squares, N1 - 2 * up, -P1  # a t^2 + b t + c = 0
        return F * (-b + np.sqrt(b**2 - 4 * a * c)) / (2 * a)

    A_new = updated(A.T, X.T, S, N, 0).T
    S_new = updated(S, X, A_new.T, M, 1)
    np.testing.assert_allclose(fit.A, A_new, rtol=1e-8)
    np.testing.assert_allclose(fit.S, S_new, rtol=1e-8)


@pytest.mark.parametrize("loss", problems.LOSSES)
@pytest.mark.slow
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_the_objective_is_that_of_scikit_learn(loss, l1_ratio):
    from sklearn.decomposition import non_negative_factorization

    rng = np.random.default_rng(1)
    X = rng.random((15, R)) @ rng.random((R, 10)) + 0.1 * rng.random((15, 10))
    S, A = rng.random((15, R)), rng.random((R, 10))
    alpha = 2e-3
    squares = loss == "frobenius"
    # Its rule for stopping leaves the penalties out, so that updates of the divergence end early.
    W, H, _ = non_negative_factorization(
        X, W=S.copy(), H=A.copy(), n_components=R, init="custom", alpha_W=alpha, l1_ratio=l1_ratio,
        solver="cd" if squares else "mu", beta_loss=loss, tol=1e-9 * squares, max_iter=20000,
    )  # fmt: skip
    scale = 2 if squares else 1  # squares have a factor 1/2 there
    given = [
        penalties.L1(scale * alpha * l1_ratio),
        penalties.L2(scale * alpha * (1 - l1_ratio) / 2),
    ]
    # The order of updates differs, and minima are local: one of theirs is one of ours.
    theirs = sf.objective(X, W, H, loss=loss, penalties=given)
    near = W + 1e-3 * W.mean(), H + 1e-3 * H.mean()
    options = {"init": near, "tol": 1e-10, "max_iter": 20000, "penalties": given}
    fit = sf.factorize(X, n_components=R, loss=loss, **options)
    np.testing.assert_allclose(fit.objective[-1][1], theirs, rtol=2e-4)
    loss_alone = sf.objective(X, W, H, loss=loss)
    elastic = l1_ratio * (10 * W.sum() + 15 * H.sum())
    elastic += (1 - l1_ratio) / 2 * (10 * (W**2).sum() + 15 * (H**2).sum())
    np.testing.assert_allclose(theirs, loss_alone + scale * alpha * elastic, rtol=1e-10)


@pytest.mark.parametrize("loss", problems.LOSSES)
@pytest.mark.parametrize("storage", problems.STORAGE)
def test_more_of_l1_leaves_fewer_entries(loss, storage):
    X = problems.data(np.random.default_rng(2), (40, 30), np.float64, storage)
    shares = []
    for coefficient in (0, 0.1, 0.3, 1.0):
        given = [penalties.L1(coefficient)]
        fit = sf.factorize(
            X, n_components=5, loss=loss, penalties=given, tol=1e-6, max_iter=500, random_state=0
        )
        shares.append(np.mean(1e-6 * max(fit.S.max(), 1e-300) < fit.S))
    assert max(np.diff(shares)) < 0.01  # fits end in local minima: an entry more is not wrong
    assert shares[-1] < shares[0] - 0.1


def test_orthogonal_components_share_fewer_rows():
    X = problems.data(np.random.default_rng(3), (60, 40), np.float64)

    def overlap(coefficient):
        given = {"S": [penalties.Orthogonal(coefficient), penalties.L2(1e-4)]}
        given["A"] = penalties.L2(0.1)
        S = sf.factorize(X, n_components=4, penalties=given, random_state=0).S
        S = S / np.linalg.norm(S, axis=0)
        return (S.T @ S).sum() - 4

    assert overlap(0.1) < 0.5 * overlap(0.0)


def test_a_smooth_factor_changes_less_from_row_to_row():
    X = problems.data(np.random.default_rng(4), (60, 40), np.float64)

    def changes(coefficient):
        given = {"S": [penalties.Temporal(coefficient)], "A": penalties.L2(1e-3)}
        S = sf.factorize(X, n_components=4, penalties=given, random_state=0, max_iter=500).S
        return np.sum(np.diff(S, axis=0) ** 2) / np.sum(S**2)

    found = [changes(coefficient) for coefficient in (1e-3, 1, 10)]
    assert found[0] > 1.1 * found[1] > 2 * found[2]


@pytest.mark.slow
def test_files_and_threads_do_not_matter(tmp_path):
    X = problems.data(np.random.default_rng(5), (200, 30), np.float64)
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
    chain = np.eye(200, k=1) + np.eye(200, k=-1)
    given = {"S": [penalties.Graph(0.01, chain), penalties.L1(0.01)], "A": penalties.L2(0.01)}
    options = {"n_components": 4, "init": "random", "random_state": 0, "penalties": given}
    for loss in problems.LOSSES:
        fit = sf.factorize(X, loss=loss, n_threads=1, **options)
        two = sf.factorize(X, loss=loss, n_threads=2, **options)
        np.testing.assert_array_equal(fit.S, two.S)
        solver = "auto" if loss == "frobenius" else "mm"  # files have no descent entry by entry
        fit = sf.factorize(X, loss=loss, solver=solver, **options)
        file = sf.open_csr(tmp_path / "X.npz", memory=8192)
        stored = sf.factorize(file, loss=loss, solver=solver, **options)
        np.testing.assert_allclose(stored.S, fit.S, rtol=1e-6, atol=1e-8)


def test_a_penalty_of_one_side_has_no_minimum():
    X = np.ones((4, 3))
    with pytest.raises(ValueError, match=r"S can shrink while A grows"):
        sf.factorize(X, n_components=1, penalties={"S": penalties.L1(1.0)})
    with pytest.raises(ValueError, match=r"A can shrink while S grows"):
        sf.factorize(X, n_components=1, penalties={"A": penalties.L2(1.0)})
    fixed = {"A_fixed": np.ones((1, 3)), "penalties": {"S": penalties.L1(0.1)}}
    assert np.isfinite(sf.factorize(X, n_components=1, **fixed).S).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"C": penalties.L1(1.0)}, "penalties has 'C'; expected 'S' or 'A'"),
        ({"S": 0.1}, "penalties must be a penalty such as"),
        (0.1, "penalties must be a penalty such as"),
        ({"S": penalties.Graph(1.0, np.eye(3)), "A": penalties.L2(1.0)}, "a graph of 3 nodes"),
    ],
)
def test_bad_penalties_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sf.factorize(np.ones((4, 5)), n_components=1, penalties=given)


def test_bad_graphs_and_coefficients_are_refused():
    with pytest.raises(ValueError, match="not symmetric"):
        penalties.Graph(1.0, np.eye(3, k=1))
    with pytest.raises(ValueError, match="a row and a column for each"):
        penalties.Graph(1.0, np.ones((2, 3)))
    with pytest.raises(ValueError, match="at least 0"):
        penalties.L1(-1.0)


def test_a_tensor_takes_penalties_of_its_modes():
    rng = np.random.default_rng(6)
    X = rng.random((6, 5, 12))
    small = penalties.L2(1e-4)
    values = []

    def roughness(coefficient):
        given = {0: small, 1: small, 2: [small, penalties.Temporal(coefficient)]}
        fit = sf.factorize_tensor(
            X, n_components=2, penalties=given, random_state=0, max_iter=300,
            callback=lambda state: values.append(state.objective),
        )  # fmt: skip
        return np.sum(np.diff(fit.factors[2], axis=0) ** 2)

    assert roughness(1.0) < 0.5 * roughness(1e-6)
    with pytest.raises(ValueError, match="penalties has none of mode 1"):
        sf.factorize_tensor(X, n_components=2, penalties={0: small, 2: small})


def test_other_models_take_penalties_by_the_names_of_factors():
    X = np.random.default_rng(7).random((8, 5))
    model = [extend.relation("rows", "columns", X)]
    given = {"rows": penalties.L1(0.5), "columns": penalties.L2(0.5)}

    fit = extend.fit(model, n_components=2, random_state=0, penalties=given, max_iter=500)
    scaled = {"S": penalties.L1(0.5 / 5), "A": penalties.L2(0.5 / 8)}
    S, A = fit.factors["rows"], fit.factors["columns"].T
    np.testing.assert_allclose(
        fit.objective[-1][1], sf.objective(X, S, A, penalties=scaled), rtol=1e-10
    )
    with pytest.raises(ValueError, match="expected names of factors"):
        extend.fit(model, n_components=2, penalties={"samples": penalties.L1(1.0)})
