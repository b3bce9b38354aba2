"""Ranks that the memory of the machine or the data have no use for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from each import each

import ssnmf_fast as sf

X = np.random.default_rng(0).random((30, 12))
Y = np.arange(30) % 2
QUICK = {"max_iter": 2, "tol": 0, "random_state": 0}
MANY = 10_000_000


@each(
    "call",
    [
        lambda: sf.factorize(X, n_components=MANY),
        lambda: sf.factorize(sp.csr_array(X), n_components=MANY, loss="kullback-leibler"),
        lambda: sf.factorize(X, np.eye(2)[Y], n_components=MANY),
        lambda: sf.factorize_tensor(X[..., None], n_components=MANY),
        lambda: sf.NMF(n_components=MANY).fit(X),
        lambda: sf.NMF(n_components=MANY).partial_fit(X),
        lambda: sf.SSNMFClassifier(n_components=MANY).fit(X, Y),
        lambda: sf.SSNMFRegressor(n_components=MANY).fit(X, Y),
        lambda: sf.papers.MarginNMF(n_components=MANY).fit(X, Y),
        lambda: sf.papers.ConstrainedNMF(n_components=MANY).fit(X, Y),
        lambda: sf.BayesianNMF(n_components=MANY).fit(X),
        lambda: sf.NonnegativeCP(MANY).fit(X),
    ],
)
def test_what_no_memory_holds_is_refused(call):
    message = rf"n_components={MANY} needs at least [\d.]+ GiB of memory for X of shape \(\d+, \d+"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_components=.* is more than")
        with pytest.raises(ValueError, match=message):
            call()


def test_available_memory(monkeypatch):
    monkeypatch.setattr("ssnmf_fast._data.border.available_memory", lambda: 1 << 30)
    with pytest.raises(ValueError, match=r"at least 2\.0 GiB .* and 1\.0 GiB are available"):
        sf.factorize(np.ones((100, 200)), np.ones((100, 1)), n_components=16_000)
    monkeypatch.setattr("ssnmf_fast._data.border._NEVER_TOO_MUCH", 1 << 20)
    asked = []  # it is not known
    monkeypatch.setattr("ssnmf_fast._data.border.available_memory", lambda: asked.append(1))
    fit = sf.factorize(np.ones((2, 3)), np.ones((2, 1)), n_components=400, max_iter=0)
    assert fit.S.shape == (2, 400)
    assert asked


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (sf.NMF(n_components=13, **QUICK), r"min\(n, m\) = 12"),
        (sf.papers.MarginNMF(n_components=13, **QUICK), r"min\(n, m\) = 12"),
    ],
)
def test_more_components_than_describe_any_data(model, most):
    with pytest.warns(UserWarning, match=rf"n_components=13 is more than {most} of X: "):
        model.fit(X, Y)
    model.set_params(n_components=12).fit(X, Y)
    sf.NMF(n_components=10, **QUICK).fit(X[:, :3])  # the default is no nuisance


def test_batches_may_have_fewer_samples_than_there_are_components():
    model = sf.NMF(n_components=11, random_state=0).partial_fit(X[:5])
    assert model.components_.shape == (11, 12)
    with pytest.warns(UserWarning, match="more than the number of features = 12"):
        sf.NMF(n_components=13, random_state=0).partial_fit(X)
