"""No estimator makes arrays of samples x features, samples x samples, or many of labels."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import ssnmf_fast as sf

QUICK = {"random_state": 0, "n_threads": 1, "max_iter": 2, "tol": 0}
METHODS = ("transform", "predict", "predict_proba", "decision_function", "explain", "suggest")


def data(n, m, density, n_classes):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, m), density=density, rng=rng, format="csr")
    X.data = np.ceil(5 * X.data)
    y = np.full(n, -1)
    y[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes  # too few for a validation
    return X, y


def peaks(model, X, y, n_suggested=10, **weights):
    """Return the largest memory of the fit and of each method, in bytes."""
    fit, found = model.fit, {}
    calls = {"fit": lambda: fit(X, **weights) if y is None else fit(X, y, **weights)}
    for name in filter(lambda name: hasattr(type(model), name), METHODS):
        given = (X, n_suggested) if name == "suggest" else (X,)
        calls[name] = lambda name=name, given=given: getattr(model, name)(*given, **weights)
    for name, call in calls.items():
        tracemalloc.start()
        try:
            call()
            found[name] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return found


WIDE = (1000, 10_000, 1e-3, 3)
PLAIN = [
    (sf.NMF(3, **QUICK), None),
    (sf.SSNMFClassifier(3, **QUICK), "y"),
    (sf.SSNMFRegressor(3, **QUICK), "y"),
    (sf.TopicSupervisedNMF(**QUICK), "y"),
    (sf.FewLabelsClassifier(self_training=1, **QUICK), "y"),
    (sf.SeededTopics({"a": [0, 1], "b": [2, 3]}, **QUICK), None),
    (sf.BayesianNMF(3, **QUICK), None),
    (sf.papers.ConstrainedNMF(3, **QUICK), "y"),
    (sf.papers.MarginNMF(3, **QUICK), "y"),
]


@pytest.mark.parametrize(("model", "target"), PLAIN, ids=lambda one: type(one).__name__)
@pytest.mark.filterwarnings("ignore:.*active|.*cross-validated")
def test_not_samples_times_features(model, target):
    X, y = data(*WIDE)
    for name, peak in peaks(model, X, y if target else None).items():
        assert peak < X.shape[0] * X.shape[1] * 4, name


@pytest.mark.parametrize(
    "model", [PLAIN[0][0], PLAIN[1][0], PLAIN[4][0]], ids=lambda one: type(one).__name__
)
def test_not_samples_times_features_where_entries_are_missing(model):
    X, y = data(*WIDE)
    holes = data(*WIDE[:2], 1e-3, 3)[0][::-1] > 0
    for name, peak in peaks(model, X, y, X_weights=sf.weights.missing(holes)).items():
        assert peak < X.shape[0] * X.shape[1] * 4, name


def test_not_samples_times_samples():
    X, y = data(2400, 60, 0.05, 3)
    for model, count in ((PLAIN[1][0], 2400), (PLAIN[4][0], 10)):
        for name, peak in peaks(model, X, y, count).items():
            assert peak < len(y) ** 2 * 8, name


def test_labels_are_small():
    """Only the Y of the solver takes samples x classes doubles."""
    X, y = data(8000, 30, 0.05, 200)
    model = sf.SSNMFClassifier(3, readout="refit", **QUICK)
    assert peaks(model, X, y)["fit"] < 1.6 * len(y) * 200 * 8
