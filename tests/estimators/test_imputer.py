"""LowRankImputer: scikit-learn's conventions, accuracy, errors."""

import numpy as np
import pytest
from helpers.levels import IS_REFERENCE
from helpers.refused import refused
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import ssnmf_fast as sf


@pytest.mark.filterwarnings("ignore:.*columns of X have no entry")
@parametrize_with_checks([sf.LowRankImputer()])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def make_table():
    X = load_diabetes().data[: 150 if IS_REFERENCE else 400]
    holes = np.random.default_rng(0).random(X.shape) < 0.2
    return X, np.where(holes, np.nan, X), holes


TABLE = X, given, holes = make_table()


@pytest.mark.slow
def test_beats_the_mean():

    def rmse(imputer):
        filled = imputer.fit_transform(given)
        assert np.array_equal(filled[~holes], X[~holes])
        return np.sqrt(np.mean((filled - X)[holes] ** 2))

    assert rmse(sf.LowRankImputer(random_state=0)) < 0.8 * rmse(SimpleImputer())
    for options in ({"standardize": False}, {"clip": False}, {"gamma_min": 0.1, "n_components": 3}):
        assert rmse(sf.LowRankImputer(random_state=0, **options)) < rmse(SimpleImputer())


def test_new_rows():
    cut = len(X) // 2
    imputer = sf.LowRankImputer(random_state=0).fit(given[:cut])
    filled = imputer.transform(given[cut:])
    assert np.isfinite(filled).all()
    mean = np.nanmean(given[:cut], axis=0)
    missing = holes[cut:]
    error = (filled - X[cut:])[missing]
    assert np.mean(error**2) < 0.8 * np.mean(((mean - X[cut:])[missing]) ** 2)
    one = imputer.transform(given[cut : cut + 1])
    np.testing.assert_allclose(one[0], filled[0], atol=1e-12)
    nothing = imputer.transform(np.full((1, X.shape[1]), np.nan))
    np.testing.assert_allclose(nothing[0], imputer.means_)


def test_exact_low_rank():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 12)) + 100 * rng.standard_normal(12)
    given = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    imputer = sf.LowRankImputer(2, gamma_min=1e-9, random_state=0)
    np.testing.assert_allclose(imputer.set_params(clip=False).fit_transform(given), X, atol=1e-3)


@pytest.mark.parametrize(("load", "bound"), [(load_wine, 0.76), (load_iris, 0.50)])
def test_error_of_known_tables(load, bound):
    X = load().data
    holes = np.random.default_rng(0).random(X.shape) < 0.2
    filled = sf.LowRankImputer(random_state=0).fit_transform(np.where(holes, np.nan, X))
    assert np.sqrt(np.mean(((filled - X) / X.std(axis=0))[holes] ** 2)) < bound


@pytest.mark.parametrize("shape", [(30, 4), (40, 2), (60, 8), (35, 50)])
@pytest.mark.parametrize("draw", ["normal", "lognormal", "binary"])
def test_noise_is_filled_by_means(shape, draw):
    rng = np.random.default_rng(shape[1])
    X = rng.standard_normal(shape)
    X = {"normal": X, "lognormal": np.exp(X), "binary": (X > 0.5).astype(float)}[draw]
    given = np.where(rng.random(shape) < 0.2, np.nan, X)
    filled, means = (
        np.square((imputer.fit_transform(given) - X)[np.isnan(given)]).mean() ** 0.5
        for imputer in (sf.LowRankImputer(random_state=0), SimpleImputer())
    )
    assert filled < 1.02 * means


def small_table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5))
    X += 0.3 * rng.standard_normal(X.shape)
    given = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    given[3] = np.nan
    return given


@pytest.mark.slow
@pytest.mark.parametrize(
    ("offset", "scale"), [(1e6, 1), (-273.15, 1), (0, 1e6), (0, 1e-6), (-1e-3, 1e-9), (1990, -1)]
)
def test_fills_move_with_zero_and_unit_of_a_column(offset, scale):
    given = small_table()
    imputer = sf.LowRankImputer(random_state=0, clip=offset != 0)
    fill, new = imputer.fit_transform(given), imputer.transform(given[::-1] + 0.1)
    for columns in ([2], [0, 1, 2, 3, 4]):
        offsets, scales = np.zeros(5), np.ones(5)
        offsets[columns], scales[columns] = offset, scale
        moved = clone(imputer).fit(given * scales + offsets)
        for rows, expected in ((given, fill), (given[::-1] + 0.1, new)):
            found = (moved.transform(rows * scales + offsets) - offsets) / scales
            np.testing.assert_allclose(found, expected, atol=1e-8 + 1e-12 * abs(offset / scale))


def test_float32_far_from_zero():
    given = (small_table() + 300).astype(np.float32)
    imputer = sf.LowRankImputer(random_state=0).fit(given)
    found = imputer.transform(given)
    assert found.dtype == np.float32
    expected = sf.LowRankImputer(random_state=0).fit_transform(given.astype(float))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_gaps_that_depend_on_another_column():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1)) + 0.4 * rng.standard_normal((200, 4))
    given = X.copy()
    given[(X[:, 0] > 0) & (rng.random(200) < 0.9), 1] = np.nan
    imputer = sf.LowRankImputer(random_state=0).fit(given)
    assert abs(imputer.means_[1] - X[:, 1].mean()) < 0.15 < abs(np.nanmean(given[:, 1])) / 2


def test_clip():
    X = np.outer(np.arange(1.0, 31), [1.0, 2, 3, 4])
    given = X.copy()
    given[-1, 0] = given[0, 1] = np.nan
    options = {"random_state": 0, "gamma_min": 1e-6}
    free = sf.LowRankImputer(**options, clip=False).fit_transform(given)
    np.testing.assert_allclose(free, X, rtol=1e-2)
    filled = sf.LowRankImputer(**options).fit_transform(given)
    assert (filled[-1, 0], filled[0, 1]) == (29, 4)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("indicate", [False, True])
def test_columns_without_entries(keep, indicate):
    pandas = pytest.importorskip("pandas")
    given = small_table()
    given[:, 1] = np.nan
    given[:, 4] = np.nan_to_num(given[:, 4])
    options = {"keep_empty_features": keep, "add_indicator": indicate}
    imputer = sf.LowRankImputer(random_state=0, **options).set_output(transform="pandas")
    frame = pandas.DataFrame(given, columns=list("abcde"))
    fate = "which transform fills with 0" if keep else "which transform drops; keep_empty_features"
    with pytest.warns(UserWarning, match=f"X has no entry in 1 column, {fate}"):
        filled = imputer.fit_transform(frame)
    if keep:
        peer = SimpleImputer(strategy="constant", fill_value=0, **options).fit(frame)
        assert list(filled.columns) == list(peer.get_feature_names_out())
        assert (filled["b"] == 0).all()
    else:
        peer = KNNImputer(**options).fit(frame)
        assert list(filled.columns) == list(peer.get_feature_names_out())
    assert list(filled.columns) == list(imputer.get_feature_names_out())
    assert np.isfinite(filled.to_numpy()).all()
    new = pandas.DataFrame(np.arange(10.0).reshape(2, 5), columns=list("abcde"))
    assert imputer.transform(new).shape == peer.transform(new).shape
    if indicate:
        marks = [name for name in filled.columns if name.startswith("missingindicator")]
        expected = frame[["a", "b", "c", "d"]].isna().to_numpy()
        np.testing.assert_array_equal(filled[marks], expected)
        assert not imputer.transform(new)[marks].to_numpy().any()


@pytest.mark.slow
def test_missing_values():
    given = np.round(10 * small_table() + 50)
    expected = sf.LowRankImputer(random_state=0).fit_transform(given)
    missing = np.isnan(given)

    def filled(X, marker):
        return sf.LowRankImputer(random_state=0, missing_values=marker).fit_transform(X)

    for marker, dtype in ((-1, int), (999, np.float32)):
        marked = np.where(missing, marker, np.nan_to_num(given)).astype(dtype)
        before = marked.copy()
        np.testing.assert_allclose(filled(marked, marker), expected, atol=1e-3)
        np.testing.assert_array_equal(marked, before)
    for marker in (np.nan, None):
        for X in (given, np.where(missing, None, given), np.ma.masked_invalid(given)):
            np.testing.assert_array_equal(filled(X, marker), expected)
    refused("contains NaN", filled, given, -1)
    refused(r"missing_values must be a number, NaN or None; got '\?'", filled, given, "?")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(given).astype("Int64")
    for marker in (np.nan, pandas.NA):
        np.testing.assert_allclose(filled(frame, marker), expected)


@pytest.mark.slow
def test_pipeline_and_names():
    pandas = pytest.importorskip("pandas")
    y = load_diabetes().target[: len(given)]
    model = make_pipeline(sf.LowRankImputer(3, random_state=0), Ridge())
    assert cross_val_score(model, given, y, cv=3).mean() > 0
    frame = pandas.DataFrame(given, columns=load_diabetes().feature_names)
    imputer = clone(sf.LowRankImputer(random_state=0)).set_output(transform="pandas").fit(frame)
    assert list(imputer.transform(frame).columns) == list(frame.columns)
    assert list(imputer.get_feature_names_out()) == list(frame.columns)


@pytest.mark.slow
def test_saved(tmp_path):
    imputer = sf.LowRankImputer(random_state=0).fit(given)
    sf.save(imputer, tmp_path / "imputer.npz")
    loaded = sf.load(tmp_path / "imputer.npz")
    np.testing.assert_array_equal(loaded.transform(given), imputer.transform(given))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 11}, "n_components must be at most"),
        ({"gamma_min": None}, "gamma_min must be a number or 'validate'; got None"),
        ({"gamma_min": 0}, "gamma_min must be above 0"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_bad_options(options, message):
    refused(message, sf.LowRankImputer(**options).fit, TABLE[1])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e80, 1e200, 1e300])
def test_any_scale(scale):
    """Columns of any size become columns of size 1."""
    rng = np.random.default_rng(0)
    X = rng.random((20, 2)) @ rng.random((2, 6)) + 0.1
    given = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    options = {"n_components": 1, "random_state": 0}
    expected = sf.LowRankImputer(**options).fit_transform(given)
    found = sf.LowRankImputer(**options).fit_transform(given * scale)
    np.testing.assert_allclose(found, expected * scale, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.0, -1e200])
def test_constant_tables(value):
    given = np.full((6, 4), value)
    given[2, 1] = given[5] = np.nan
    filled = sf.LowRankImputer(random_state=0).fit_transform(given)
    np.testing.assert_allclose(filled, value, rtol=1e-6)


def test_rows_far_from_those_of_the_fit():
    X = np.random.default_rng(0).random((10, 4))
    far = np.array([[1e200, np.nan, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r"standardized X contains .* too large"):
        sf.LowRankImputer(n_components=1, random_state=0).fit(X).transform(far)
    with pytest.raises(ValueError, match=r"^X contains .* too large"):
        sf.LowRankImputer(n_components=1, standardize=False).fit(X * 1e200)


def test_nothing_but_nan():
    refused("All entries of X are missing", sf.LowRankImputer().fit, np.full((3, 2), np.nan))
