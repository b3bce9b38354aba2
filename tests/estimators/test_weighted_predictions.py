"""Predictions with X_weights: weights of the entries of new samples, and missing ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import small_digits
from helpers.each import each
from helpers.guided_models import QUICK, guided_models
from helpers.refused import refused
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score

import ssnmf_fast as sf

X, Y = small_digits()
NAMES = [name for name in guided_models(X, Y) if name != "bayesian"]
METHODS = (
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "predict",
    "topic_proportions",
)
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}  # representations are solved to 1e-6
HOLES = np.random.default_rng(0).random(X.shape) < 0.3
SPOILED = np.where(HOLES, 0.9, X)  # what has no weight has no say


@pytest.fixture(scope="module")
def models():
    return {name: model.fit(X, y) for name, (model, y) in guided_models(X, Y).items()}


def forms(holes):
    """Return the ways to say which entries are missing."""
    return {
        "missing": (SPOILED, sf.weights.missing(sp.csr_array(holes))),
        "missing, sparse": (sp.csr_array(SPOILED), sf.weights.missing(sp.csr_array(holes))),
        "observed": (SPOILED, sf.weights.observed(sp.csr_array(~holes))),
        "observed, sparse": (sp.csr_array(SPOILED), sf.weights.observed(~holes)),
        "array": (SPOILED, (~holes).astype(float)),
        "array, sparse": (sp.csr_matrix(SPOILED), (~holes).astype(float)),
    }


@pytest.mark.slow
@each("name", NAMES)
@each("form", forms(HOLES))
def test_an_entry_without_weight_is_missing(name, form, models):
    model, (given, weights) = models[name], forms(HOLES)[form]
    expected_of = np.where(HOLES, np.nan, X)
    if name == "margin":  # takes no NaN
        expected_of, other = forms(HOLES)["array"]
    for method in METHODS:
        if not hasattr(model, method):
            continue
        found = getattr(model, method)(given, X_weights=weights)
        more = {"X_weights": other} if name == "margin" else {}
        expected = getattr(model, method)(expected_of, **more)
        np.testing.assert_allclose(found, expected, **TOLERANCE, err_msg=method)
    y = guided_models(X, Y)[name][1]
    assert model.score(given, y, X_weights=weights) == pytest.approx(
        model.score(expected_of, y, **more), rel=1e-6
    )


@each("name", NAMES)
def test_weights_count(name, models):
    """Weights of ones change nothing; others do, and blocks of rows are those of all rows."""
    model, rng = models[name], np.random.default_rng(0)
    method = "predict" if name == "regressor" else "decision_function"
    scores = getattr(model, method)
    ones = sf.weights.outer(rows=np.full(len(X), 2.0), columns=np.ones(X.shape[1]))
    np.testing.assert_allclose(scores(X, X_weights=ones), scores(X), **TOLERANCE)
    W = rng.random(X.shape)
    weighted = scores(X, X_weights=W)
    assert np.abs(weighted - scores(X)).max() > 1e-3
    np.testing.assert_allclose(scores(X[5:9], X_weights=W[5:9]), weighted[5:9], **TOLERANCE)
    columns = (np.arange(X.shape[1]) % 3 > 0).astype(float)
    outer = scores(X, X_weights=sf.weights.outer(columns=columns))
    entries = scores(X, X_weights=np.tile(columns, (len(X), 1)))
    np.testing.assert_allclose(outer, entries, **TOLERANCE)


@pytest.mark.slow
def test_blocks_of_rows_do_not_matter(models):
    given, weights = forms(HOLES)["observed, sparse"]
    whole = models["chosen"].predict_proba(given, X_weights=weights)
    rows = np.tile(np.arange(len(X)), -(-(1 << 22) // X.size))  # more entries than a block has
    many = sp.csr_array(given)[rows]
    W = sf.weights.observed(~HOLES[rows])
    cut = models["chosen"].predict_proba(many, X_weights=W)
    np.testing.assert_allclose(cut, whole[rows], **TOLERANCE)


def test_a_sample_without_any_entry_gets_the_class_frequencies(models):
    weights = np.ones_like(X)
    weights[3] = 0
    chance = models["chosen"].predict_proba(X, X_weights=weights)
    np.testing.assert_allclose(chance[3], models["chosen"].class_prior_, **TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("readout", ["logistic", "refit"])
def test_most_entries_missing(readout):
    """Sparse data say what is missing by weights: with zeros in its place predictions are worse."""
    images, y = load_digits(return_X_y=True)
    images, y = images[:900] / 16, y[:900]
    holes = np.random.default_rng(0).random(images.shape) < 0.7
    given = {"n_components": 20, "max_iter": 60, "tol": 0, "random_state": 0, "readout": readout}
    model = sf.SSNMFClassifier(supervision_weight="balanced", **given).fit(images[:600], y[:600])
    zeros, weights = sp.csr_array(np.where(holes, 0, images)), sf.weights.missing(holes[600:])
    by_nan = model.predict_proba(np.where(holes, np.nan, images)[600:])
    found = model.predict_proba(zeros[600:], X_weights=weights)
    np.testing.assert_allclose(found, by_nan, **TOLERANCE)
    right = model.score(zeros[600:], y[600:], X_weights=weights)
    assert right > model.score(zeros[600:], y[600:]) + 0.05

    # Fitted with weights, the model predicts with weights.
    both = {
        "sparse": (zeros, sf.weights.missing(holes)),
        "dense": (images, sf.weights.observed(sp.csr_array(~holes))),
    }
    scores = {}
    for form, (data, seen) in both.items():
        model = clone(model).fit(data[:600], y[:600], X_weights=_rows(seen, slice(0, 600)))
        of_new = _rows(seen, slice(600, 900))
        scores[form] = model.score(data[600:], y[600:], X_weights=of_new)
        assert scores[form] > model.score(zeros[600:], y[600:]) + 0.05
    assert scores["sparse"] == pytest.approx(scores["dense"], abs=0.02)


def _rows(seen, rows):
    return type(seen)(sp.csr_array(seen.pattern)[rows])


def test_partial_fit_with_weights_predicts_with_weights():
    model = sf.SSNMFClassifier(n_components=10, random_state=0)
    classes, W = np.unique(Y[Y >= 0]), 1.0 - HOLES
    for rows in (slice(0, 60), slice(60, 120)):
        model.partial_fit(X[rows], Y[rows], classes=classes, X_weights=W[rows])
    found = model.predict_proba(SPOILED, X_weights=W)
    np.testing.assert_allclose(found, model.predict_proba(np.where(HOLES, np.nan, X)), **TOLERANCE)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (sf.BayesianNMF(n_components=3, **QUICK), "topic_proportions"),
        (sf.papers.SupervisedBayesianNMF(n_components=3, **QUICK), "predict"),
    ],
)
def test_bayesian_models_take_none(model, method):
    model.fit(X, Y)
    with pytest.raises(TypeError, match="takes no X_weights"):
        getattr(model, method)(X, X_weights=np.ones_like(X))


def test_bad_weights(models):
    model = models["chosen"]
    for weights, message in (
        (np.ones((3, 3)), r"X_weights.*shape"),
        (-np.ones_like(X), "negative"),
        (np.full_like(X, np.nan), "NaN"),
        (sf.weights.missing(np.ones((2, 2), bool)), "shape"),
        (sf.weights.outer(rows=np.ones(3)), r"X_weights\.rows"),
    ):
        refused(message, model.predict, X, X_weights=weights)
    with pytest.raises(TypeError, match=r"weights\.observed"):
        model.predict(X, X_weights=sp.csr_array(np.ones_like(X)))


def test_tools_of_scikit_learn():
    y = load_digits().target[:120]
    model = sf.SSNMFClassifier(n_components=10, supervision_weight="balanced", **QUICK)
    assert len(cross_val_score(model, X, y, cv=2)) == 2
    search = GridSearchCV(model, {"n_components": [10, 12]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.3
    W = (1.0 - HOLES).astype(float)
    with config_context(enable_metadata_routing=True):
        routed = clone(model).set_fit_request(X_weights=True).set_score_request(X_weights=True)
        scores = cross_val_score(routed, SPOILED, y, cv=2, params={"X_weights": W})
    halves = [np.arange(120) < 60, np.arange(120) >= 60]
    assert len(scores) == len(halves)
    assert (scores > cross_val_score(model, SPOILED, y, cv=2)).all()
