"""What is known of factors: given and forbidden parts, labels of features."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import ssnmf_fast as sf
from ssnmf_fast import extend, penalties

N, M, R = 15, 12, 4
OPTIONS = {"n_components": R, "random_state": 0}


def data(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.poisson(3 * rng.random((N, R)) @ rng.random((R, M))).astype(dtype)


def seeds(groups=2):
    """Labels of a few features; the others have none."""
    Z = np.full((M, groups), np.nan)
    for group in range(groups):
        Z[2 * group : 2 * group + 2] = np.eye(groups)[group]
    return Z


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(["frobenius", "kullback-leibler", 1.5]),
    supervision_loss=st.sampled_from(["frobenius", "kullback-leibler"]),
    solver=st.sampled_from(["auto", "mm", "hals"]),
    init=st.sampled_from(["random", "auto", "random-acol", "nndsvda", "given"]),
    n_fixed=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    labels=st.tuples(st.booleans(), st.booleans()),
    storage=st.sampled_from(["dense", "sparse"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=examples(150, in_numpy=60))
@pytest.mark.slow
def test_one_fit_takes_it_all(
    seed, loss, supervision_loss, solver, init, n_fixed, labels, storage, dtype
):
    """Nothing that is given moves, nothing forbidden appears, and the objective never rises."""
    rng = np.random.default_rng(seed)
    X = data(seed, dtype)
    fixed_components = rng.random((n_fixed[0], M)) * (rng.random((n_fixed[0], M)) < 0.7)
    covariates = 100 * rng.random((N, n_fixed[1]))
    A_support = rng.random((R, M)) < 0.8
    S_support = rng.random((N, R)) < 0.8
    known = {"A_support": A_support, "S_support": S_support}
    known |= {"fixed_components": fixed_components} if n_fixed[0] else {}
    known |= {"covariates": covariates} if n_fixed[1] else {}
    if labels[1]:
        known["feature_labels"] = seeds()
    Y = (rng.random((N, 2)) < 0.5) * 1.0 if labels[0] else None
    if init == "given":
        init = rng.random((N, R)), rng.random((R, M))
    fit = sf.factorize(
        sp.csr_array(X) if storage == "sparse" else X, Y, loss=loss, solver=solver, init=init,
        supervision_loss=supervision_loss, max_iter=8, tol=0, **OPTIONS, **known, check_every=1,
    )  # fmt: skip
    values = [value for _, value in fit.objective]
    np.testing.assert_array_equal(fit.A[: n_fixed[0]], fixed_components.astype(dtype))
    np.testing.assert_array_equal(fit.S[:, R - n_fixed[1] :], covariates.astype(dtype))
    assert not fit.A[n_fixed[0] :][~A_support[n_fixed[0] :]].any()
    assert not fit.S[:, : R - n_fixed[1]][~S_support[:, : R - n_fixed[1]]].any()
    rounding = 1e-4 if dtype == np.float32 else 1e-9
    assert np.all(np.diff(values) <= rounding * values[0])


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_a_given_dictionary_leaves_the_representation(loss):
    X, A = data(), np.random.default_rng(1).random((R, M))
    options = {"loss": loss, "tol": 0, "max_iter": 2000, **OPTIONS}
    S = sf.factorize(X, fixed_components=A, **options).S
    np.testing.assert_allclose(S, sf.represent(X, A, loss=loss, tol=1e-10), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_covariates_of_new_samples_are_left_out_of_the_problem(loss):
    X, A, ones = data(), np.random.default_rng(1).random((R, M)), np.ones((N, 1))
    S = sf.represent(X, A, loss=loss, covariates=ones, tol=1e-10 if loss == "frobenius" else 1e-6)
    np.testing.assert_array_equal(S[:, -1:], ones)
    best = sf.extend.objective(X, S, A, loss=loss)
    for seed in range(20):
        other = S[:, :-1] * np.random.default_rng(seed).uniform(0.8, 1.25, (N, R - 1))
        other = np.hstack([other, ones])
        assert sf.extend.objective(X, other, A, loss=loss) >= best - 1e-6 * best
    many = sf.represent(sp.csr_array(X), A, loss=loss, covariates=ones, n_threads=2)
    np.testing.assert_allclose(sf.extend.objective(X, many, A, loss=loss), best, rtol=1e-4)


def test_labels_of_features_are_one_more_relation():
    X, Z = data(), np.eye(M)[:, :2]
    rng = np.random.default_rng(2)
    start = rng.random((N, R)), rng.random((R, M)), None, rng.random((R, 2))
    options = {"solver": "mm", "tol": 0, "max_iter": 30}
    fit = sf.factorize(
        X, n_components=R, init=start, feature_labels=Z, feature_weight=3.0, **options
    )
    model = [extend.relation("S", "A", X), extend.relation("A", "C", Z, coefficient=3.0)]
    begin = {"S": start[0], "A": start[1].T, "C": start[3].T}
    same = extend.fit(model, n_components=R, init=begin, **options)
    np.testing.assert_allclose(fit.S, same.factors["S"], rtol=1e-9)
    np.testing.assert_allclose(fit.C.T, same.factors["C"], rtol=1e-9)
    assert fit.feature_weight == 3.0
    value = sf.extend.objective(X, fit.S, fit.A, feature_labels=Z, C=fit.C, feature_weight=3.0)
    np.testing.assert_allclose(value, fit.objective[-1][1], rtol=1e-10)


def test_features_without_a_label_have_no_say():
    X, Z = data(), seeds()
    rng = np.random.default_rng(3)
    S, A, C = rng.random((N, R)), rng.random((R, M)), rng.random((R, 2))
    labeled = ~np.isnan(Z[:, 0])
    wanted = sf.extend.objective(X, S, A) + np.sum((Z[labeled] - A.T[labeled] @ C) ** 2)
    found = sf.extend.objective(X, S, A, feature_labels=Z, C=C)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    some = Z.copy()
    some[0, 1] = np.nan  # one label of a feature
    wanted -= (Z[0, 1] - A.T[0] @ C[:, 1]) ** 2
    np.testing.assert_allclose(
        sf.extend.objective(X, S, A, feature_labels=some, C=C), wanted, rtol=1e-12
    )


def test_features_without_labels_suit_any_loss():
    """Also Itakura-Saito, which takes no zeros."""
    Z = np.where(np.isnan(seeds()), np.nan, seeds() + 0.1)
    for loss in ("frobenius", "kullback-leibler", 0.5, "itakura-saito"):
        given = {"feature_labels": Z, "supervision_loss": loss, "feature_weight": 2.0}
        fit = sf.factorize(data(), **given, **OPTIONS)
        labeled = ~np.isnan(Z).any(axis=1)
        value = sf.extend.objective(data(), fit.S, fit.A)
        value += 2 * sf.extend.objective(Z[labeled], fit.A.T[labeled], fit.C, loss=loss)
        np.testing.assert_allclose(fit.objective[-1][1], value, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:n_components")
def test_components_of_labels_that_die_out_of_the_data_stay_in_the_range():
    """They have no part in X, and no scale: what labels have of them must not grow in return."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        single = np.zeros((2, 6), dtype=np.float32)
        single[0, rng.integers(6)], single[1, rng.integers(6)] = 100, 1000
        Z = np.where(rng.random((6, 1)) < 0.3, np.eye(2)[rng.integers(2, size=6)], np.nan)
        Z[0] = 1
        known = {
            "feature_labels": Z,
            "feature_weight": 30.0,
            "A_support": rng.random((12, 6)) < 0.4,
        }
        given = {"init": "random", "random_state": seed, "max_iter": 20, "tol": 0}
        fit = sf.factorize(single, n_components=12, loss=0.3, **known, **given)
        assert max(F.max() for F in (fit.S, fit.A, fit.C)) < 1e6
        T = (rng.random((1, 6, 1)) * (rng.random((1, 6, 1)) < 0.5)).astype(np.float32)
        labels = {1: (rng.random((6, 2)) < 0.5) * 1000.0}
        sf.factorize_tensor(
            T, n_components=4, loss="kullback-leibler", y=labels, supervision_weight=1e3, **given
        )


@pytest.mark.parametrize("solver", ["auto", "mm"])
def test_labels_bring_their_features_together(solver):
    rng = np.random.default_rng(4)
    X = rng.poisson(1.0, (200, M)).astype(float)
    fit = sf.factorize(
        X, feature_labels=seeds(), feature_weight=1e4, solver=solver, max_iter=500, **OPTIONS
    )
    np.testing.assert_allclose((fit.A.T @ fit.C)[:4], seeds()[:4], atol=0.1)


def test_balanced_labels_weigh_as_much_as_the_data_at_the_start():
    X, Z = data(), np.eye(M)[:, :2]
    rng = np.random.default_rng(5)
    start = rng.random((N, R)), rng.random((R, M)), None, rng.random((R, 2))
    fit = sf.factorize(
        X, n_components=R, init=start, max_iter=0, feature_labels=Z, feature_weight="balanced"
    )
    of_X, of_Z = sf.extend.objective(X, *start[:2]), np.sum((Z - start[1].T @ start[3]) ** 2)
    np.testing.assert_allclose(fit.feature_weight, of_X / of_Z, rtol=1e-10)
    np.testing.assert_allclose(fit.objective[0][1], 2 * of_X, rtol=1e-10)


@pytest.mark.slow
def test_a_file_of_the_data_gives_the_same(tmp_path):
    X = np.vstack([data(seed) for seed in range(20)])
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=4096)
    known = {
        "fixed_components": np.ones((1, M)),
        "covariates": np.ones((len(X), 1)),
        "init": "random",
    }
    for supervision_loss in ("frobenius", "kullback-leibler"):
        options = {"feature_labels": seeds(), "supervision_loss": supervision_loss, **OPTIONS}
        fit = sf.factorize(X, **known, **options)
        stored = sf.factorize(file, **known, **options)
        np.testing.assert_allclose(stored.A, fit.A, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(stored.C, fit.C, rtol=1e-6, atol=1e-8)


def test_the_result_is_saved_with_its_labels_of_features(tmp_path):
    fit = sf.factorize(data(), feature_labels=seeds(), **OPTIONS)
    sf.save(fit, tmp_path / "fit.npz")
    loaded = sf.load(tmp_path / "fit.npz")
    np.testing.assert_array_equal(loaded.C, fit.C)
    assert loaded.feature_weight == fit.feature_weight
    assert "C: (4, 2)" in repr(fit)


def test_an_estimator_knows_what_the_function_knows(tmp_path):
    X, ones, A = data(), np.ones((N, 1)), np.random.default_rng(6).random((1, M))
    given = [penalties.L1(0.01), penalties.L2(0.01)]
    model = sf.NMF(R, fixed_components=A, penalties=given, random_state=0)
    S = model.fit_transform(X, covariates=ones)
    np.testing.assert_array_equal(S, model.fit(X, covariates=ones).transform(X, covariates=ones))
    np.testing.assert_array_equal(model.components_[:1], A)
    np.testing.assert_allclose(model.topic_proportions(X, covariates=ones).sum(axis=1), 1)
    np.testing.assert_allclose(
        S, sf.represent(X, model.components_, covariates=ones, penalties=given)
    )
    refused("covariates has 0 columns, and the fit had 1", model.transform, X)
    sf.save(model, tmp_path / "model.npz")  # without arrays and objects among its parameters
    np.testing.assert_array_equal(sf.load(tmp_path / "model.npz").transform(X, covariates=ones), S)
    batches = sf.NMF(R, fixed_components=A, A_support=np.eye(R, M) + 1 > 1.5, random_state=0)
    refused("penalties are not supported for batches", sf.NMF(R, penalties=given).partial_fit, X)
    batches.partial_fit(X).partial_fit(X)
    np.testing.assert_array_equal(batches.components_[:1], A)
    assert not batches.components_[1:][np.eye(R, M)[1:] == 0].any()


def test_covariates_of_new_samples_are_matched_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, table = np.random.default_rng(0).random((30, 8)), np.eye(2)[np.arange(30) % 2]
    C = pandas.DataFrame(table, columns=["a", "b"])
    model = sf.NMF(4, random_state=0).fit(X, covariates=C)
    sf.save(model, tmp_path / "model.npz")
    turned, other = C[["b", "a"]], C.rename(columns={"b": "c"})
    for one in (model, sf.load(tmp_path / "model.npz")):
        for method in (one.transform, one.score, one.topic_proportions):
            expected = method(X, covariates=C)
            for same in (turned, table, pandas.DataFrame(table)):
                assert np.array_equal(method(X, covariates=same), expected)
            refused("columns 'a', 'c'; the fit had 'a', 'b'", method, X, covariates=other)
    assert sf.verify(model, X, covariates=turned).ok
    with pytest.raises(ValueError, match=r"labels of the rows of X in another order"):
        model.transform(pandas.DataFrame(X), covariates=C[::-1])
    numbered = sf.NMF(4, random_state=0).fit(X, covariates=pandas.DataFrame(table))
    expected = numbered.transform(X, covariates=table)
    turned = pandas.DataFrame(table)[[1, 0]]
    assert np.array_equal(numbered.transform(X, covariates=turned), expected)
    assert not hasattr(numbered.fit(X, covariates=table), "covariate_names_")


def test_a_regressor_takes_them_too():
    X = data()
    y = X[:, 0] + X[:, 1]
    A = np.eye(1, M)
    model = sf.SSNMFRegressor(R, fixed_components=A, penalties=penalties.L2(1e-3), random_state=0)
    model.fit(X, y)
    np.testing.assert_array_equal(model.components_[:1], A)
    assert model.predict(X).shape == (N,)


@each(
    ("given", "message"),
    [
        (
            {"fixed_components": np.ones((1, M + 1))},
            r"fixed_components has shape \(1, 13\); expected \(1, 12\)",
        ),
        ({"covariates": np.ones(N)}, r"covariates has shape \(15,\); expected two dimensions"),
        ({"fixed_components": np.ones((3, M)), "covariates": np.ones((N, 2))}, "n_components is 4"),
        ({"fixed_components": -np.ones((1, M))}, "fixed_components"),
        ({"A_support": np.full((R, M), 2)}, "A_support holds 2; expected 0 or 1"),
        ({"feature_labels": np.ones((M + 1, 2))}, "one row for each feature"),
        ({"feature_labels": np.full((M, 2), np.nan)}, "NaN everywhere"),
        ({"feature_labels": seeds(), "feature_weight": "even"}, "feature_weight"),
        ({"init": (np.ones((N, R)), np.ones((R, M)), None, np.ones((R, 2)))}, "init has a C"),
    ],
)
def test_bad_knowledge_is_refused(given, message):
    refused(message, sf.factorize, data(), n_components=R, **given)


def test_a_huge_weight_of_labels_leaves_the_other_weights_as_they_are():
    X, Y = data(), np.eye(N)[:, :2]
    given = {"feature_labels": seeds(), "feature_weight": 2.0, "penalties": penalties.L2(0.1)}
    fit = sf.factorize(X, Y, supervision_weight=1e12, **given, **OPTIONS)
    assert fit.feature_weight == 2.0
    options = {"y": Y, "B": fit.B, "C": fit.C, "supervision_weight": 1e12}
    whole = sf.extend.objective(X, fit.S, fit.A, **options, **given)
    # The weight magnifies rounding of the labels' loss, whose terms add up to the norm of Y.
    close = {"rtol": 1e-9, "atol": 1e12 * np.finfo(float).eps * np.sum(Y**2)}
    np.testing.assert_allclose(whole, fit.objective[-1][1], **close)
    zero = {**options, "supervision_weight": 0.0}
    parts = sf.extend.objective(X, fit.S, fit.A, **zero, **given)
    labels = sf.extend.objective(Y, fit.S, fit.B)
    np.testing.assert_allclose(whole, parts + 1e12 * labels, **close)


def test_data_of_an_extreme_size_are_refused():
    with pytest.raises(ValueError, match="multiply X by 1e199"):
        sf.factorize(data() * 1e-200, n_components=R, penalties=penalties.L2(1.0))
