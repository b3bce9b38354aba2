"""LowRankImputer: scikit-learn's conventions, accuracy, errors."""

from __future__ import annotations

import numpy as np
import pytest
from levels import IS_REFERENCE
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import ssnmf_fast as sf


@pytest.mark.filterwarnings("ignore:.*columns of X have no entry")
@parametrize_with_checks([sf.LowRankImputer()])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    X = load_diabetes().data[: 150 if IS_REFERENCE else 400]
    holes = np.random.default_rng(0).random(X.shape) < 0.2
    return X, np.where(holes, np.nan, X), holes


@pytest.mark.slow
def test_beats_the_mean(table):
    X, given, holes = table

    def rmse(imputer):
        filled = imputer.fit_transform(given)
        assert np.array_equal(filled[~holes], X[~holes])
        return np.sqrt(np.mean((filled - X)[holes] ** 2))

    assert rmse(sf.LowRankImputer(random_state=0)) < 0.8 * rmse(SimpleImputer())
    for options in ({"standardize": False}, {"biases": False}, {"method": "sirls", "rank": 3}):
        assert rmse(sf.LowRankImputer(random_state=0, **options)) < rmse(SimpleImputer())


def test_new_rows(table):
    X, given, holes = table
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
    np.testing.assert_allclose(nothing[0], imputer.centers_ * imputer.scales_)


@pytest.mark.parametrize("method", ["auto", "structured-sirls", "irls", "nnm"])
def test_exact_low_rank(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 12))
    given = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    imputer = sf.LowRankImputer(
        None if method == "nnm" else 2,
        method=method,
        gamma_min=None,
        biases=False,
        random_state=0,
        tol=1e-8,
    )
    tolerance = 0.1 if method == "nnm" else 1e-3
    np.testing.assert_allclose(imputer.fit_transform(given), X, atol=tolerance)


def test_columns_without_entries(table):
    _, given, _ = table
    empty = given.copy()
    empty[:, 3] = np.nan
    with pytest.warns(UserWarning, match="X has no entry in 1 column; .* the bias of the row"):
        filled = sf.LowRankImputer(random_state=0).fit_transform(empty)
    assert np.isfinite(filled).all()


@pytest.mark.slow
def test_pipeline_and_names(table):
    pandas = pytest.importorskip("pandas")
    _, given, _ = table
    y = load_diabetes().target[: len(given)]
    model = make_pipeline(sf.LowRankImputer(3, random_state=0), Ridge())
    assert cross_val_score(model, given, y, cv=3).mean() > 0
    frame = pandas.DataFrame(given, columns=load_diabetes().feature_names)
    imputer = clone(sf.LowRankImputer(random_state=0)).set_output(transform="pandas").fit(frame)
    assert list(imputer.transform(frame).columns) == list(frame.columns)
    assert list(imputer.get_feature_names_out()) == list(frame.columns)


@pytest.mark.slow
def test_saved(table, tmp_path):
    _, given, _ = table
    imputer = sf.LowRankImputer(random_state=0).fit(given)
    sf.save(imputer, tmp_path / "imputer.npz")
    loaded = sf.load(tmp_path / "imputer.npz")
    np.testing.assert_array_equal(loaded.transform(given), imputer.transform(given))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 11}, "rank must be at most"),
        ({"method": "als"}, "method must be one of"),
        ({"gamma_min": None}, "biases=True needs gamma_min"),
        (
            {"rank": 2, "method": "nnm", "gamma_min": None, "biases": False},
            "NNM determines the rank itself",
        ),
    ],
)
def test_bad_options(table, options, message):
    with pytest.raises(ValueError, match=message):
        sf.LowRankImputer(**options).fit(table[1])


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e80, 1e200, 1e300])
def test_any_scale(scale):
    """Columns of any size become columns of size 1."""
    rng = np.random.default_rng(0)
    X = rng.random((20, 2)) @ rng.random((2, 6)) + 0.1
    given = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    options = {"rank": 1, "random_state": 0}
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
        sf.LowRankImputer(rank=1, random_state=0).fit(X).transform(far)
    with pytest.raises(ValueError, match=r"^X contains .* too large"):
        sf.LowRankImputer(rank=1, standardize=False).fit(X * 1e200)


def test_nothing_but_nan():
    with pytest.raises(ValueError, match="X has no entry but NaN"):
        sf.LowRankImputer().fit(np.full((3, 2), np.nan))
