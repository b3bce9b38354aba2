"""Weights whose rows splitters of scikit-learn select, and losses given as objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import ssnmf_fast as sf

rng = np.random.default_rng(0)
X = sp.csr_array(rng.poisson(1.0, (60, 20)).astype(float))
PATTERN = sp.random_array((60, 20), density=0.3, rng=rng, format="coo")
NAMES = [f"s{number}" for number in range(60)]
FORMS = {
    "observed": sf.weights.observed(PATTERN),
    "missing": sf.weights.missing(PATTERN.tocsr()),
    "missing in a list": sf.weights.missing((PATTERN.toarray() > 0).tolist()),
    "missing in a table": sf.weights.missing(pd.DataFrame(PATTERN.toarray(), NAMES)),
    "base": sf.weights.base(0.1, PATTERN),
    "rows": sf.weights.outer(rows=rng.random(60)),
    "columns": sf.weights.outer(columns=rng.random(20)),
}
RANKS = {"n_components": [2, 3]}


def minus_loss(model: Any, X: Any, y: Any = None) -> float:
    return -float(model.objective_[-1][1])


@pytest.mark.parametrize("form", FORMS)
def test_splitters_take_the_rows_of_weights(form: str) -> None:
    given, model = FORMS[form], sf.NMF(3, max_iter=10, tol=0, random_state=0)
    splits, found = KFold(3), {"scoring": minus_loss, "error_score": "raise"}
    scores = cross_val_score(model, X, cv=splits, params={"X_weights": given}, **found)
    for (train, _), score in zip(splits.split(X), scores, strict=True):
        part = given if form == "columns" else given[train]
        assert score == minus_loss(model.fit(X[train], X_weights=part), X)
    search = GridSearchCV(model, RANKS, cv=splits, **found).fit(X, X_weights=given)
    assert search.best_params_ == {"n_components": 3}
    assert hasattr(given, "shape") == (form != "columns")


def test_rows_of_named_weights_keep_their_names() -> None:
    weights = pd.Series(rng.random(60), NAMES)
    table, order = pd.DataFrame(X.toarray(), NAMES), rng.permutation(60)[:40]
    model = sf.NMF(3, max_iter=10, tol=0, random_state=0)
    sliced = sf.weights.outer(rows=weights)[order][np.arange(40)[::-1]]
    expected = model.fit(table.iloc[order], X_weights=sf.weights.outer(rows=weights.iloc[order]))
    by_names = expected.components_
    np.testing.assert_array_equal(
        model.fit(table.iloc[order], X_weights=sliced).components_, by_names
    )
