"""Learning that is refused, fails or is interrupted leaves an estimator exactly as it was."""

import copy
import pickle
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import ssnmf_fast as sf

pd = pytest.importorskip("pandas")

QUICK = {"random_state": 0, "max_iter": 5, "tol": 0, "n_threads": 1}
MODELS = {
    "nmf": sf.NMF(n_components=3, **QUICK),
    "classifier": sf.SSNMFClassifier(**QUICK),
    "regressor": sf.SSNMFRegressor(n_components=3, **QUICK),
    "topics": sf.TopicSupervisedNMF(**QUICK),
    "seeds": sf.SeededTopics(**QUICK),
    "margin": sf.papers.MarginNMF(n_components=3, **QUICK),
    "constrained": sf.papers.ConstrainedNMF(n_components=3, **QUICK),
    "bayesian": sf.BayesianNMF(n_components=3, **QUICK),
    "supervised bayesian": sf.papers.SupervisedBayesianNMF(n_components=3, **QUICK),
    "imputer": sf.LowRankImputer(2, random_state=0, max_iter=3, n_threads=1),
}
IN_BATCHES = ("nmf", "classifier", "regressor")
PACKAGE = str(Path(sf.__file__).parent)

pytestmark = pytest.mark.filterwarnings("ignore:Of the", "ignore:By validation")


def table(width, prefix, n=24):
    """Return samples with named features, and their labels."""
    X, y = load_digits(n_class=2, return_X_y=True)
    X = X.reshape(-1, 8, 8).mean(axis=1)[:n, :width] + 1
    return pd.DataFrame(X, columns=[f"{prefix}{j}" for j in range(width)]), y[:n]


def arguments(model, X, y):
    """Return what fits the model."""
    return (X,) if isinstance(model, (sf.NMF, sf.BayesianNMF, sf.LowRankImputer)) else (X, y)


@cache
def _fitted(name, in_batches):
    model = clone(MODELS[name])
    if in_batches and name != "nmf":
        model.set_params(readout="joint")
    return model.fit(*arguments(model, *table(6, "old")))


def fitted(name, method="fit"):
    """Return a model of the caller's own, fitted once, that may go on to learn by a method."""
    return copy.deepcopy(_fitted(name, method == "partial_fit"))


class State:
    """The attributes of an estimator: which objects, and what these hold."""

    def __init__(self, model):
        self.objects = dict(vars(model))
        self.bytes = {key: self.contents(key) for key in self.objects}

    def contents(self, key):
        return None if key == "callback" else pickle.dumps(self.objects[key])

    def check(self, model):
        assert list(vars(model)) == list(self.objects)
        for key, value in vars(model).items():
            assert value is self.objects[key], key
            assert self.contents(key) == self.bytes[key], key


def learn(model, method, X, y):
    first = {}
    if method == "partial_fit" and isinstance(model, sf.SSNMFClassifier):
        first["classes"] = [0, 1]
    return getattr(model, method)(*arguments(model, X, y), **first)


METHODS = [(name, method) for name in MODELS for method in ("fit", "fit_transform")] + [
    (name, "partial_fit") for name in IN_BATCHES
]
every_method = each(("name", "method"), METHODS)


@every_method
def test_refused_data(name, method):
    X, y = table(7, "new")
    bad = X.copy()
    bad.iloc[3, 2] = np.inf
    for before in (fitted(name, method), clone(MODELS[name])):
        state = State(before)
        refused(r"infinity|feature names", learn, before, method, bad, y)
        state.check(before)


@every_method
def test_refused_settings(name, method):
    model = fitted(name, method)
    model.set_params(random_state="no seed")
    if method == "partial_fit":
        model.set_params(loss="none")
    state = State(model)
    with pytest.raises((ValueError, TypeError)):
        learn(model, method, *table(6 if method == "partial_fit" else 7, "old"))
    state.check(model)


@each("error", [KeyboardInterrupt, RuntimeError])
@each("name", [name for name in MODELS if name != "imputer"])
def test_a_callback_that_raises(name, error):
    def stop(state):
        raise error

    model = fitted(name).set_params(callback=stop)
    state = State(model)
    for method in ("fit", "fit_transform"):
        with pytest.raises(error):
            learn(model, method, *table(7, "new"))
        state.check(model)


def interrupted_at(place, call):
    """Make a call with Ctrl-C at some line of the package; return how many lines were run.

    `place` counts the lines that were run before it; None is a call without Ctrl-C.
    """
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            lines += 1
            if lines == place:
                raise KeyboardInterrupt
        return trace

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(earlier)
    return lines


@pytest.mark.slow
@every_method
def test_interrupt_at_any_line(name, method):
    """Also between one attribute and the next, and while new samples are represented."""
    X, y = table(6 if method == "partial_fit" else 7, "old")
    model = fitted(name, method)
    if method == "partial_fit":
        learn(model, method, X, y)
    for _ in range(2):  # the first call in a process runs more lines: imports and caches
        same = copy.deepcopy(model)
        total = interrupted_at(None, lambda same=same: learn(same, method, X, y))
    near_the_end = total - np.array([2, 5, 9, 15, 30])
    before = np.linspace(10, total - 50, 4 if method == "fit" else 2).astype(int)
    for place in (*before, *near_the_end):
        state = State(model)
        with pytest.raises(KeyboardInterrupt):
            interrupted_at(place, lambda: learn(model, method, X, y))
        state.check(model)


def test_warnings_that_are_errors_undo_a_fit_too():
    model = fitted("nmf").set_params(tol=1e-12, max_iter=1)
    state = State(model)
    with pytest.raises(ConvergenceWarning):
        model.fit(table(7, "new")[0])
    state.check(model)


def test_subclasses_are_all_or_nothing():
    class Careless(sf.NMF):
        def fit(self, X, y=None):
            self.own_ = 1
            super().fit(X)
            raise RuntimeError("after the fit")

    model = Careless(n_components=2)
    state = State(model)
    refused("after the fit", model.fit, np.eye(4), error=RuntimeError)
    state.check(model)


@each("method", ["fit", "fit_transform"])
@each("name", ["nmf", "regressor", "margin", "bayesian", "classifier"])
def test_warnings_point_to_the_line_of_the_user(name, method):
    model = clone(MODELS[name]).set_params(tol=1e-12, max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learn(model, method, *table(7, "new"))
    assert {warning.filename for warning in caught} == {__file__}


def test_a_copy_of_a_model_keeps_its_history():
    model = sf.NMF(n_components=2, random_state=0).partial_fit(table(6, "x")[0])
    other = copy.copy(model)
    state = State(other)
    model.partial_fit(table(6, "x")[0])
    state.check(other)
    assert len(model.objective_) == 2


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_forgets_earlier_fits(name):
    model = fitted(name)
    for key in type(model)._saved:
        vars(model).setdefault(key, "of an earlier fit")
    again = model.fit(*arguments(model, *table(6, "new")))
    once = clone(MODELS[name]).fit(*arguments(model, *table(6, "new")))
    assert vars(again).keys() == vars(once).keys()
    if not isinstance(model, sf.LowRankImputer):
        assert np.array_equal(again.components_, once.components_)


@pytest.mark.parametrize("in_batches", [False, True])
def test_the_loss_is_that_of_the_fit(in_batches):
    X, _ = table(6, "x")
    model = clone(MODELS["nmf"]).set_params(loss="kullback-leibler")
    model = model.partial_fit(X) if in_batches else model.fit(X)
    S, score = model.transform(X), model.score(X)
    model.set_params(loss="frobenius")
    assert model.loss_ == "kullback-leibler"
    assert np.array_equal(model.transform(X), S)
    assert model.score(X) == score
    assert not hasattr(sf.NMF(), "loss_")
