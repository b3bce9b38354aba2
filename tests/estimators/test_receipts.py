"""Receipts of estimators, and `verify` of them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf

N, M = 60, 20
RNG = np.random.default_rng(0)
KINDS = np.arange(N) % 3
X = RNG.poisson(40 * RNG.dirichlet(np.full(M, 0.2), size=3)[KINDS] + 0.3).astype(float)
NAMES = np.array(["a", "b", "c"], dtype=object)[KINDS]
NAMES[::2] = None
SEVERAL = np.column_stack([KINDS == 0, KINDS > 0]).astype(float)
SEVERAL[::2] = np.nan
WEIGHTS = RNG.random(N)
TENSOR = X.reshape(N, 5, 4)
FITTED = {"n_components": 3, "max_iter": 20, "tol": 0, "random_state": 0}
KL = {**FITTED, "loss": "kullback-leibler"}

MODELS = {
    "NMF": (sf.NMF(**FITTED), None, {}),
    "weights": (sf.NMF(**KL), None, {"X_weights": sf.weights.outer(rows=WEIGHTS)}),
    "fixed": (
        sf.NMF(**FITTED, fixed_components=X[:1], penalties=[sf.penalties.L1(1e-3)]),
        None,
        {"covariates": np.ones((N, 1))},
    ),
    "regressor": (
        sf.SSNMFRegressor(**FITTED),
        KINDS + 0.5,
        {"sample_weight": WEIGHTS, "label_weight": WEIGHTS[::-1]},
    ),
    "few labels": (
        sf.FewLabelsClassifier(random_state=0, max_iter=20, tol=0),
        NAMES,
        {"sample_weight": WEIGHTS},
    ),
    "topic-supervised": (sf.TopicSupervisedNMF(n_free_topics=1, random_state=0), NAMES, {}),
    "constrained": (sf.papers.ConstrainedNMF(**FITTED), NAMES, {}),
    "constrained, weights": (
        sf.papers.ConstrainedNMF(**KL),
        NAMES,
        {"X_weights": sf.weights.outer(rows=WEIGHTS)},
    ),
    "margin": (sf.papers.MarginNMF(**FITTED), NAMES, {}),
    "classifier": (
        sf.SSNMFClassifier(**FITTED, supervision_weight=np.inf, readout="refit"),
        NAMES,
        {},
    ),
    "classifier, weight": (
        sf.SSNMFClassifier(**KL, supervision_weight=1.0, readout="refit"),
        NAMES,
        {"sample_weight": WEIGHTS, "label_weight": WEIGHTS[::-1]},
    ),
    "classifier, several": (
        sf.SSNMFClassifier(**FITTED, supervision_weight="balanced", readout="refit"),
        SEVERAL,
        {},
    ),
    "seeded": (sf.SeededTopics(random_state=0, max_iter=20, tol=0), NAMES, {}),
    "seeded, mixed": (
        sf.SeededTopics({"a": [0], "b": [1]}, membership="mixed", random_state=0, max_iter=20),
        None,
        {},
    ),
}
LOST = ("fixed_components", "penalties", "A_support")  # which files do not keep


def fitted(name):
    model, y, given = MODELS[name]
    return copy.deepcopy(model).fit(X, y, **given), y, given


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_models_are_verified_and_others_are_refused(name, tmp_path):
    model, y, given = fitted(name)
    found = sf.verify(model, X, y, **given)
    assert found.ok, found
    assert sf.verify(model, sp.csr_array(X), y, **given)

    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    lost = {one: getattr(model, one) for one in LOST if getattr(model, one, None) is not None}
    again = sf.verify(loaded, X, y, **given, **lost)
    assert again.ok, again
    if lost:
        assert not sf.verify(loaded, X, y, **given)

    other = X.copy()
    other[2, 3] += 1
    assert "X is not the one of the fit." in sf.verify(model, other, y, **given).differences
    loaded.components_ = loaded.components_ * 1.01
    differences = sf.verify(loaded, X, y, **given, **lost).differences
    assert "A is not the one of the fit." in differences
    if y is not None:
        order = np.roll(np.arange(N), 1)
        assert not sf.verify(model, X, y[order], **given)


def test_an_estimator_keeps_its_factorization():
    model = sf.NMF(**FITTED)
    assert not hasattr(model, "factorization_")
    result = model.fit(X).factorization_
    assert result.A is model.components_
    assert result.S is model.representation_
    assert result.receipt is model.receipt_
    assert sf.verify(result, X)
    assert sf.verify(pickle.loads(pickle.dumps(model)), X)
    function = sf.factorize(X, **FITTED)
    assert function.receipt == result.receipt
    assert (function.S == result.S).all()
    guided, *_ = fitted("classifier, weight")
    assert guided.factorization_.B is guided.label_components_
    assert sf.NonnegativeCP(**KL).fit(TENSOR).factorization_.receipt.residual > 0


def test_tensors(tmp_path):
    labels = {0: np.eye(3)[KINDS]}
    model = sf.NonnegativeCP(**KL).fit(TENSOR, labels)
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert sf.verify(loaded, TENSOR, labels)
    assert sf.verify(loaded, TENSOR, y=labels)
    assert not sf.verify(loaded, TENSOR)
    assert not sf.verify(loaded, TENSOR + 1, labels)


def test_batches_have_no_receipt():
    model = sf.NMF(**FITTED).fit(X)
    assert model.receipt_.residual > 0
    model.partial_fit(X)
    assert not hasattr(model, "receipt_")
    assert not hasattr(model, "factorization_")
    assert "has no receipt" in repr(sf.verify(model, X))
    tensor = sf.NonnegativeCP(**FITTED).fit(TENSOR).partial_fit(TENSOR[..., :1])
    assert not sf.verify(tensor, TENSOR)


def test_a_failed_fit_leaves_the_receipt():
    model = sf.NMF(**FITTED).fit(X)
    before = model.receipt_
    refused("Negative", model.fit, -X)
    assert model.receipt_ is before
    assert sf.verify(model, X)


def test_what_cannot_be_verified_says_why():
    with pytest.raises(TypeError, match="verify is not available for BayesianNMF"):
        sf.verify(sf.BayesianNMF(n_components=2, max_iter=5, tol=0).fit(X), X)
    with pytest.raises(TypeError, match=r"NMF\.fit has no argument 'y_weights'"):
        sf.verify(sf.NMF(**FITTED).fit(X), X, y_weights=1)
