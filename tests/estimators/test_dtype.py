"""The dtype of an estimator: of all that it computes, in each of its methods and in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import ssnmf_fast as sf

N, M = 48, 20
RNG = np.random.default_rng(0)
KINDS = np.arange(N) % 3
X = RNG.poisson(40 * RNG.dirichlet(np.full(M, 0.2), size=3)[KINDS] + 0.3)
NAMES = np.array(["a", "b", "c"], dtype=object)[KINDS]
NAMES[::4] = None
TIMES = np.arange("2020-01-01", "2020-02-18", dtype="datetime64[D]")
SHORT: dict[str, Any] = {"max_iter": 10, "tol": 0, "random_state": 0}
FITTED: dict[str, Any] = {"n_components": 3, **SHORT}
MODELS: dict[str, tuple[Any, Any]] = {
    "NMF": (sf.NMF(**FITTED), None),
    "regressor": (sf.SSNMFRegressor(**FITTED), KINDS + 0.5),
    "classifier": (sf.SSNMFClassifier(**FITTED, supervision_weight=1.0), NAMES),
    "topic-supervised": (sf.TopicSupervisedNMF(**SHORT), NAMES),
    "constrained": (sf.papers.ConstrainedNMF(**FITTED), NAMES),
    "margin": (sf.papers.MarginNMF(**FITTED), NAMES),
    "seeded": (sf.SeededTopics({"a": [0], "b": [1], "c": [2]}, **SHORT), NAMES),
    "Bayesian": (sf.BayesianNMF(**FITTED), None),
    "supervised Bayesian": (sf.papers.SupervisedBayesianNMF(**FITTED), NAMES),
    "dynamic": (sf.DynamicTopics(3, freq=4, method="nmf", **SHORT), TIMES),
}


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_all_results_have_the_dtype(name: str, sparse: bool, tmp_path: Any) -> None:
    base, y = MODELS[name]
    model = clone(base).set_params(dtype=np.float32)
    assert clone(model).dtype is np.float32
    Z = sp.csr_array(X) if sparse else X.astype(np.float64)
    model.fit(Z, y)
    narrow = Z.astype(np.float32)
    wanted = clone(base).fit(narrow, y)
    np.testing.assert_array_equal(model.components_, wanted.components_)
    assert model.components_.dtype == np.float32
    assert model.transform(X.tolist()).dtype == np.float32
    for same in (Z, narrow):
        S = model.transform(same)
        assert S.dtype == np.float32
        np.testing.assert_array_equal(S, wanted.transform(narrow))
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(Z), wanted.predict(narrow))
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert loaded.dtype == "float32"
    assert loaded.transform(Z).dtype == np.float32


@pytest.mark.parametrize("name", ["NMF", "regressor", "constrained", "margin", "topic-supervised"])
def test_receipts(name: str) -> None:
    base, y = MODELS[name]
    model = clone(base).set_params(dtype="float32").fit(X / 3, y)
    assert model.receipt_.dtype == "float32"
    assert sf.verify(model, X / 3, y)


def test_wider_than_the_data() -> None:
    model = sf.NMF(**FITTED, dtype="float64").fit(X.astype(np.float32))
    assert model.transform(X.astype(np.float32)).dtype == np.float64


def test_batches() -> None:
    model = sf.NMF(**FITTED, dtype="float32")
    for _ in range(2):
        model.partial_fit(X.astype(np.float64))
    assert model.components_.dtype == np.float32
