"""Penalties: bounds, monotone updates, the updates written out, scikit-learn's objective."""

import itertools
import pickle

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from penalized import KINDS, graph, made, sparse_problem, written_out

import ssnmf_fast as sf
from ssnmf_fast import extend, penalties

N, M, R = 14, 11, 3


def parts_at(bound, F):
    """What a bound adds and what it takes away at a factor, but for its constant."""
    F = F.astype(np.longdouble)
    added, taken = bound.linear * F.sum(), np.longdouble(0)
    if bound.gram is not None:
        rows = np.ones(len(F)) if bound.rows is None else bound.rows
        added += np.sum(rows[:, None] * (F @ bound.gram) * F)
    return added, taken if bound.up is None else 2 * np.sum(bound.up * F)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=examples(60))
def test_values_are_exact_and_bounds_touch_them_and_lie_above(kind, seed, dtype):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    scales = 10.0 ** rng.uniform(-9, 9, (2, n, R))
    here, there = (rng.random((2, n, R)) * scales ** rng.choice([0, 1])).astype(dtype)
    there *= rng.random((n, R)) < 0.7
    penalty = made(kind, 10.0 ** rng.uniform(-9, 9), rng, n)
    for F in (here, there):
        np.testing.assert_allclose(
            penalty.value(F), float(written_out(kind, penalty, F)), rtol=1e-12
        )
    bound = penalty.bound(here)
    here, there = here.astype(np.longdouble), there.astype(np.longdouble)

    def value(F):
        return written_out(kind, penalty, F)

    def at(F):
        added, taken = parts_at(bound, F)
        return added - taken

    rounding = 1e-13 * sum(parts_at(bound, here + there))
    assert value(there) - value(here) <= at(there) - at(here) + rounding
    if kind == "Orthogonal":  # which is its own bound
        assert abs((value(there) - value(here)) - (at(there) - at(here))) <= rounding
    step = there - here
    slopes = [f(here + step) - f(here - step) for f in (value, at)]  # of quadratic functions
    assert abs(slopes[0] - slopes[1]) <= 10 * rounding


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
    fit = sf.factorize(
        X, Y, n_components=R, max_iter=12, tol=0, random_state=0, check_every=1, **options
    )
    values = [value for _, value in fit.objective]
    rises = np.diff(values)
    assert np.all(rises <= 1e-9 * np.abs(values[0]))
    del options["solver"]
    found = sf.extend.objective(X, fit.S, fit.A, y=Y, B=fit.B, **options)
    np.testing.assert_allclose(found, values[-1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", problems.LOSSES)
def test_updates_are_the_formulas(loss):
    """One iteration of "mm", A and then S, written out in dense NumPy."""
    rng = np.random.default_rng(0)
    X, S, A = rng.random((N, M)), rng.random((N, R)) + 0.1, rng.random((R, M)) + 0.1
    W = graph(rng, N)
    D = W.sum(axis=1)[:, None]
    l1, l2, o, g = 0.02, 0.03, 0.01, 0.05
    of_S = [penalties.L1(l1), penalties.L2(l2), penalties.Orthogonal(o), penalties.Graph(g, W)]
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
    theirs = sf.extend.objective(X, W, H, loss=loss, penalties=given)
    near = W + 1e-3 * W.mean(), H + 1e-3 * H.mean()
    options = {"init": near, "tol": 1e-10, "max_iter": 20000, "penalties": given}
    fit = sf.factorize(X, n_components=R, loss=loss, **options)
    np.testing.assert_allclose(fit.objective[-1][1], theirs, rtol=2e-4)
    loss_alone = sf.extend.objective(X, W, H, loss=loss)
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
        small = penalties.L2(1e-3)
        given = {"S": [small, penalties.Temporal(coefficient)], "A": small}
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
        file = sf.io.open_csr(tmp_path / "X.npz", memory=8192)
        stored = sf.factorize(file, loss=loss, solver=solver, **options)
        np.testing.assert_allclose(stored.S, fit.S, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("form", problems.FORMS)
def test_products_of_components_do_not_make_steps_that_are_too_long(form):
    """Data may have next to no curvature, and Orthogonal has none: rounding must not be divided."""
    for dtype, solver, seed in itertools.product(
        (np.float32, np.float64), ("hals", "auto"), range(6)
    ):
        X, X_weights, W = sparse_problem(seed, dtype, form)
        rng = np.random.default_rng(seed)
        A = rng.random((12, 15)) * (rng.random((12, 15)) < 0.3)
        A = (A * 10.0 ** rng.uniform(-12, 0, (12, 1))).astype(dtype)
        given = {"fixed_components": A, "penalties": {"S": penalties.Orthogonal(100.0)}, "tol": 0}
        given |= {"X_weights": X_weights, "solver": solver, "max_iter": 12, "random_state": 0}
        fit = sf.factorize(X, n_components=12, check_every=1, **given)
        values = [value for _, value in fit.objective]
        precision = 1e-9 if dtype is np.float64 else 1e-4
        assert np.all(np.diff(values) <= precision * values[0])
        filled = problems.filled(X)
        value = problems.dense_objective(filled, W, fit.S, A, "frobenius")
        value += 15 * written_out("Orthogonal", penalties.Orthogonal(100.0), fit.S)
        np.testing.assert_allclose(values[-1], float(value), atol=precision * values[0])


@each("form", problems.FORMS)
@each("solver", ["auto", "hals"])
def test_entries_without_data_vanish_by_a_sum_of_entries(form, solver):
    X, X_weights, _ = sparse_problem(0, np.float64, form)
    if form == "nan":
        X[0] = np.nan
    elif form == "outer":
        X_weights = sf.weights.outer(np.arange(20.0), None)
    elif form == "dense":
        X_weights[0] = 0
    elif form in ("observed", "missing"):
        pattern = np.full(X.shape, 1.0 * (form == "observed"))
        pattern[0] = 1 - pattern[0]
        X_weights = getattr(sf.weights, form)(sp.csr_array(pattern))
    else:
        X[0] = 0
    given = {"S": penalties.L1(1e-3), "A": penalties.L2(1e-3)}
    fit = sf.factorize(
        X, n_components=5, X_weights=X_weights, penalties=given, solver=solver, random_state=0
    )
    np.testing.assert_array_equal(fit.S[0], 0)


FREE = [penalties.Orthogonal(1.0), penalties.Temporal(1.0), penalties.Graph(1.0, np.eye(4)[::-1])]
SMALL = penalties.L2(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("free", [None, *FREE], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_penalty_of_one_side_has_no_minimum(free, dtype):
    """A factor may shrink while another one grows, unless all of them are bound."""
    X, Y, Z = np.ones((4, 4), dtype), np.ones((4, 4)), np.ones((4, 4))
    labeled = {"y": Y, "feature_labels": Z}
    bound = dict.fromkeys("SABC", SMALL)
    models = [("SA", {}), ("SAB", {"y": Y}), ("SAC", {"feature_labels": Z}), ("SABC", labeled)]
    for (names, more), solver in itertools.product(models, ("auto", "hals", "mm", "mu")):
        options = {"n_components": 2, "max_iter": 2, "solver": solver, "random_state": 0, **more}
        for name in names:
            given = {other: bound[other] for other in names if other != name}
            given |= {} if free is None else {name: [free]}
            message = rf"can shrink while {name} grows.*penalties=\{{'{name}'"
            refused(message, sf.factorize, X, penalties=given, **options)
            with pytest.raises(ValueError, match=message):
                sf.NMF(2, penalties=given).fit(X) if not more else sf.factorize(
                    X, **options, penalties=given, n_starts=2
                )
            given[name] = [penalties.L1(0.1), *([] if free is None else given[name])]
            sf.factorize(X, **options, penalties=given)
    T = np.ones((4, 4, 4), dtype)
    for key in (0, 1, 2, "B0"):
        given = {other: SMALL for other in (0, 1, 2, "B0") if other != key}
        given |= {} if free is None else {key: free}
        name = key if key == "B0" else f"mode {key}"
        with pytest.raises(ValueError, match=rf"can shrink while {name} grows"):
            sf.factorize_tensor(T, n_components=2, y={0: Y}, penalties=given)
    model = [extend.relation("rows", "columns", X), extend.relation("others", "more", X)]
    given = {"rows": SMALL} | ({} if free is None else {"columns": free})
    with pytest.raises(ValueError, match="rows can shrink while columns grows"):
        extend.fit(model, n_components=2, penalties=given)
    extend.fit(model, n_components=2, penalties={"rows": SMALL, "columns": SMALL}, max_iter=1)


def test_a_component_that_is_given_has_a_scale():
    X, ones = np.ones((4, 3)), np.ones((2, 3))
    for S_penalty in (penalties.L1(0.1), penalties.Orthogonal(0.1), penalties.Temporal(0.1)):
        sides = {"n_components": 2, "penalties": {"S": S_penalty}}
        for fixed in (
            {"fixed_components": ones}, {"covariates": ones.T[:1].repeat(4, 0)},
            {"fixed_components": ones[:1], "covariates": np.ones((4, 1))},
        ):  # fmt: skip
            assert np.isfinite(sf.factorize(X, **sides, **fixed).S).all()
        refused("have no minimum", sf.factorize, X, fixed_components=ones[:1], **sides)
    nothing = {"S": penalties.Orthogonal(0.0), "A": penalties.L2(0.0)}
    assert np.isfinite(sf.factorize(X, n_components=2, penalties=nothing).S).all()
    labels = {"y": np.ones((4, 2)), "supervision_weight": 0.0}  # whose factor is of no effect
    sf.factorize(X, n_components=2, penalties={"S": SMALL, "A": SMALL}, **labels)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"C": penalties.L1(1.0)}, "penalties has 'C'; expected 'S' or 'A'"),
        ({"S": 0.1}, "penalties must be a penalty such as"),
        (0.1, "penalties must be a penalty such as"),
        ({"S": penalties.Graph(1.0, np.eye(3)), "A": penalties.L2(1.0)}, "a graph with 3 nodes"),
    ],
)
def test_bad_penalties_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sf.factorize(np.ones((4, 5)), n_components=1, penalties=given)


def test_bad_graphs_and_coefficients_are_refused():
    refused("not symmetric", penalties.Graph, 1.0, np.eye(3, k=1))
    refused("a row and a column for each", penalties.Graph, 1.0, np.ones((2, 3)))
    refused("at least 0", penalties.L1, -1.0)


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
    with pytest.raises(ValueError, match=r"mode 0 can shrink while mode 1 grows.*penalties=\{1: "):
        sf.factorize_tensor(X, n_components=2, penalties={0: small, 2: small})


def test_other_models_take_penalties_by_the_names_of_factors():
    X = np.random.default_rng(7).random((8, 5))
    model = [extend.relation("rows", "columns", X)]
    given = {"rows": penalties.L1(0.5), "columns": penalties.L2(0.5)}

    fit = extend.fit(model, n_components=2, random_state=0, penalties=given, max_iter=500)
    scaled = {"S": penalties.L1(0.5 / 5), "A": penalties.L2(0.5 / 8)}
    S, A = fit.factors["rows"], fit.factors["columns"].T
    np.testing.assert_allclose(
        fit.objective[-1][1], sf.extend.objective(X, S, A, penalties=scaled), rtol=1e-10
    )
    with pytest.raises(ValueError, match="expected names of factors"):
        extend.fit(model, n_components=2, penalties={"samples": penalties.L1(1.0)})


def test_the_objective_takes_components_that_are_far_apart_in_scale():
    rng = np.random.default_rng(8)
    S, A = rng.random((6, 3)), rng.random((3, 5))
    X, sizes = S @ A, 2.0 ** np.array([40, 0, -40])
    given = {"S": penalties.L2(1e-12)}
    found = sf.extend.objective(X, S * sizes, A / sizes[:, None], penalties=given)
    np.testing.assert_allclose(found, 5e-12 * np.sum((S * sizes) ** 2), rtol=1e-9)


class Near(penalties.Penalty):
    """``sum (f - to)^2``, with a constructor of its own.

    Parameters
    ----------
    to : float
        Where entries should be.
    """

    bounds_scale = True

    def __init__(self, coefficient, to=0.1, **wrong):
        super().__init__(coefficient)
        vars(self).update(to=to, wrong=wrong)

    def value(self, F):
        return self.coefficient * float(((F - self.to) ** 2).sum())

    def bound(self, F):
        up = np.full(F.shape, self.coefficient * self.to)
        return penalties.Bound(
            **{"gram": self.coefficient * np.eye(F.shape[1]), "up": up} | self.wrong
        )


@each("loss", ["frobenius", "kullback-leibler", 1.5])
@each("dtype", [np.float32, np.float64])
def test_a_penalty_from_outside_acts_everywhere(loss, dtype, tmp_path):
    X = np.random.default_rng(0).random((20, 8)).astype(dtype) + dtype(0.1)
    own, given = Near(0.05), {"loss": loss, "random_state": 0, "n_threads": 1}
    model = sf.NMF(3, penalties=own, **given, max_iter=2000, tol=1e-7).fit(X)
    assert max(np.diff([value for _, value in model.objective_])) <= 1e-6 * model.objective_[0][1]
    assert sf.verify(model, X).ok
    S = pickle.loads(pickle.dumps(model)).transform(X)
    np.testing.assert_allclose(S, model.representation_, atol=0.05)
    np.testing.assert_array_equal(S, sf.represent(X, model.components_, loss=loss, penalties=own))
    with pytest.raises(TypeError, match=r"test_penalties\.Near cannot be saved"):
        sf.save(model, tmp_path / "model.npz")
    fixed = sf.factorize(X, n_components=2, fixed_components=X[:1], penalties=own, **given)
    tensor = sf.factorize_tensor(X.reshape(4, 5, 8), n_components=2, penalties=own, **given)
    for fit in (fixed, tensor):
        assert fit.objective[-1][1] < fit.objective[0][1]
    refused("penalties are not supported for batches", sf.NMF(3, penalties=own).partial_fit, X)
    few = {"n_splits": 1, "n_starts": 1}
    chosen = sf.choose_rank(X, [1, 2], estimator=sf.NMF(penalties=own, **given), **few)
    assert chosen.rank in (1, 2)
    for wrong in ({"up": np.ones(3)}, {"gram": -np.eye(3)}, {"linear": -1.0}, {"rows": [np.nan]}):
        with pytest.raises(ValueError, match=f"bound of Near has {next(iter(wrong))} "):
            sf.NMF(3, penalties=Near(0.05, **wrong), **given).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dead_component_of_the_start_does_not_scale_the_others(dtype):
    X = np.zeros((5, 2), dtype)
    X[1] = 0.0486, 0.27004  # rounding of float32 leaves 0 in one factor, and 1e9 in the other
    given = {0: [penalties.Temporal(0.01), penalties.L2(1e-8)], 1: penalties.L1(0.001)}
    options = {"loss": "kullback-leibler", "init": "least-squares", "penalties": given}
    fit = sf.factorize_tensor(X, n_components=5, random_state=5, max_iter=0, **options)
    assert fit.objective[0][1] < 1e3
