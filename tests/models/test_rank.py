"""Ranks that the memory of the machine or the data have no use for."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

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
        refused(message, call)


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


@pytest.mark.parametrize(
    ("limit", "used", "stat", "cached"),
    [
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        (
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            "memory/memory.stat",
            "total_inactive_file",
        ),
    ],
)
def test_a_cache_of_files_is_available_memory(monkeypatch, limit, used, stat, cached):
    texts = {"/proc/meminfo": "MemTotal: 99 kB\nMemAvailable: 99000000 kB\n"}
    sizes = {limit: f"{80 << 20}\n", used: f"{79 << 20}\n", stat: f"anon 9\n{cached} {60 << 20}\n"}
    texts |= {f"/sys/fs/cgroup/{name}": text for name, text in sizes.items()}

    def read(path, encoding=None):
        if str(path) not in texts:
            raise FileNotFoundError(path)
        return texts[str(path)]

    monkeypatch.setattr("pathlib.Path.read_text", read)
    monkeypatch.setattr("ssnmf_fast._data.border._NEVER_TOO_MUCH", 1 << 20)
    settings = {"n_components": 1000, "max_iter": 0, "n_threads": 1}  # 8 MiB
    assert sf.factorize(np.ones((2, 3)), np.ones((2, 1)), **settings).S.shape == (2, 1000)
    del texts[f"/sys/fs/cgroup/{stat}"]
    refused(r"0\.0 GiB are available", sf.factorize, np.ones((2, 3)), np.ones((2, 1)), **settings)


def test_starts_run_side_by_side_if_there_is_memory_for_them(monkeypatch):
    def no_threads(*_):
        raise AssertionError("two fits at a time")

    monkeypatch.setattr("ssnmf_fast._data.border._NEVER_TOO_MUCH", 1)
    monkeypatch.setattr("threading.Thread.start", no_threads)
    monkeypatch.setattr("ssnmf_fast._data.border.available_memory", lambda: 2000)
    given = {
        "n_components": 2,
        "n_starts": 3,
        "n_threads": 3,
        "random_state": 0,
        "max_iter": 3,
        "tol": 0,
    }
    calls = [lambda: sf.factorize(X, **given), lambda: sf.factorize_tensor(X[..., None], **given)]
    calls.append(lambda: sf.BayesianNMF(**given).fit(X))
    for call in calls:
        call()
    monkeypatch.setattr("ssnmf_fast._data.border.available_memory", lambda: 5_000_000)
    for call in calls:
        refused("two fits", call, error=AssertionError)
