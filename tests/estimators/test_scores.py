"""Scores of models without predictions: the share of the deviance that they explain."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import ssnmf_fast as sf

RNG = np.random.default_rng(0)
X = RNG.random((60, 3)) @ RNG.random((3, 20)) + 0.1 * RNG.random((60, 20))
DAYS = np.arange("2000-01-01", "2000-03-01", dtype="datetime64[D]")
LOSSES = {"frobenius": r2_score, "kullback-leibler": lambda a, b: d2_tweedie_score(a, b, power=1)}
MODELS = {
    "NMF": (sf.NMF(2, random_state=0), ()),
    "BayesianNMF": (sf.BayesianNMF(2, tol=0, max_iter=30, random_state=0), ()),
    "DynamicTopics": (sf.DynamicTopics(2, tol=0, max_iter=30, random_state=0), (DAYS,)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_that_of_scikit_learn(loss):
    model = sf.NMF(2, loss=loss, random_state=0).fit(X)
    fitted = model.inverse_transform(model.transform(X))
    expected = LOSSES[loss](X.ravel(), fitted.ravel())
    assert model.score(X) == pytest.approx(expected, rel=1e-9)
    assert model.score(sp.csr_array(X)) == pytest.approx(expected, rel=1e-9)
    assert sf.NonnegativeCP(2, loss=loss, init=(model.representation_, model.components_.T)).fit(
        X
    ).score(X) == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_one(name):
    model, more = MODELS[name]
    assert 0.5 < model.fit(X, *more).score(X) < 1


def test_missing_entries_weights_and_covariates():
    model = sf.NMF(2, random_state=0).fit(X)
    seen = RNG.random(X.shape) < 0.8
    with_holes = model.score(np.where(seen, X, np.nan))
    assert model.score(X, X_weights=seen * 1.0) == pytest.approx(with_holes, rel=1e-9)
    ones = np.ones((60, 1))
    model = sf.NMF(3, random_state=0).fit(X, covariates=ones)
    assert model.score(X, covariates=ones) > 0.9
    refused("covariates has 0 columns", model.score, X)


def test_a_constant_matrix_and_a_file(tmp_path):
    assert sf.NMF(1, random_state=0).fit(np.ones((5, 4))).score(np.ones((5, 4))) == 0
    sparse = sp.csr_array(np.where(X < 0.5, 0, X))
    sp.save_npz(tmp_path / "X.npz", sparse.tocsr(), compressed=False)
    model = sf.NMF(2, random_state=0).fit(sparse)
    on_disk = model.score(sf.io.open_csr(tmp_path / "X.npz"))
    assert on_disk == pytest.approx(model.score(sparse), rel=1e-9)


def test_tools_of_scikit_learn_take_it():
    scores = cross_val_score(sf.NMF(3, random_state=0), X)
    assert scores.shape == (5,)
    assert scores.min() > 0.8
    search = GridSearchCV(sf.NMF(random_state=0), {"n_components": [1, 3]}).fit(X)
    assert search.best_params_ == {"n_components": 3}
