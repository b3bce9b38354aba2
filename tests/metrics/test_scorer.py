"""Scorers that leave out unlabeled samples."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import ssnmf_fast as sf

X, TRUTH = load_digits(n_class=4, return_X_y=True)
X, TRUTH = X[:240] / 16, TRUTH[:240]
SHOWN = np.arange(240) % 4 == 0
MODEL = sf.SSNMFClassifier(
    n_components=8, supervision_weight="balanced", max_iter=20, tol=0, random_state=0
)


@pytest.mark.parametrize("form", ["numbers", "text", "objects", "series", "indicators"])
def test_only_labeled_samples_count(form):
    several = form == "indicators"
    y = {
        "numbers": np.where(SHOWN, TRUTH, -1),
        "text": [f"digit {t}" if s else None for t, s in zip(TRUTH, SHOWN, strict=True)],
        "objects": np.where(SHOWN, TRUTH.astype(object), None),
        "series": pd.Series(np.where(SHOWN, TRUTH, -1)),
        "indicators": np.where(SHOWN[:, None], np.eye(4, dtype=int)[TRUTH], -1),
    }[form]
    model = MODEL.fit(X, y)
    truth = {"text": np.array([f"digit {t}" for t in TRUTH]), "indicators": np.eye(4)[TRUTH]}
    expected = f1_score(
        truth.get(form, TRUTH)[SHOWN], model.predict(X)[SHOWN], average="macro", zero_division=0
    )
    for data in (X, sp.csr_array(X)):
        found = sf.metrics.labeled_scorer("f1_macro")(model, data, y)
        assert found == pytest.approx(expected, abs=0.02)
    accuracy = sf.metrics.labeled_scorer()(model, X, y)
    assert accuracy == pytest.approx(model.score(X, y))
    assert several or accuracy > 0.9


def test_in_tools_of_scikit_learn():
    y = np.where(SHOWN, TRUTH, -1)
    scorer = pickle.loads(pickle.dumps(sf.metrics.labeled_scorer("f1_macro")))
    plain = cross_val_score(MODEL, X, y, cv=3, scoring="f1_macro")
    scores = cross_val_score(MODEL, X, y, cv=3, scoring=scorer)
    assert plain.max() < 0.5 < 0.7 < scores.min()  # of 20 samples
    assert scores.mean() > 0.8
    search = GridSearchCV(MODEL, {"n_components": [4, 8]}, cv=2, scoring={"f": scorer}, refit="f")
    assert search.fit(X, y).best_score_ > 0.8
    piped = make_pipeline(MaxAbsScaler(), MODEL)
    assert cross_val_score(piped, X, y, cv=2, scoring=scorer).min() > 0.7
    own = make_scorer(f1_score, average="micro")
    assert sf.metrics.labeled_scorer(own)(MODEL.fit(X, y), X, y) > 0.9


def test_markers_and_errors():
    y = np.where(SHOWN, TRUTH, 9)
    model = sf.SSNMFClassifier(**MODEL.get_params() | {"unlabeled": 9}).fit(X, y)
    assert sf.metrics.labeled_scorer(unlabeled=9)(model, X, y) == model.score(X, y)
    with pytest.raises(ValueError, match="no labeled sample to score"):
        sf.metrics.labeled_scorer()(model, X, np.full(240, -1))
    refused("scoring", sf.metrics.labeled_scorer, "no such score")
