"""Variational Bayes on a cluster: the same as in memory, lost workers, files, errors."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
sfd = pytest.importorskip("ssnmf_fast.dask")

N, M, RANK = 300, 40, 4
CUTS = (0, 90, 180, 260, 300)


def counts(seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.5, 2, (N, RANK)) @ rng.gamma(0.3, 2, (RANK, M))).astype(float)


def pieces(X):
    """Blocks of rows, made again by Dask where they are lost."""
    return [dask.delayed(X[begin:end]) for begin, end in pairwise(CUTS)]


def array(X):
    """The same as a dask array."""
    parts = [
        da.from_delayed(piece, (end - begin, X.shape[1]), meta=X[:0])
        for piece, (begin, end) in zip(pieces(X), pairwise(CUTS), strict=True)
    ]
    return da.concatenate(parts)


def model(kind=None, **further):
    given = {"n_components": RANK, "random_state": 0, "max_iter": 10, "tol": 0, "init": "random"}
    return (kind or sfd.BayesianNMF)(**given | further)


def check_near(found, wanted, tolerance=1e-10):
    assert np.linalg.norm(np.asarray(found) - wanted) <= tolerance * np.linalg.norm(wanted)


def check_equal(fit, expected, tolerance=1e-10):
    """Two fitted estimators are the same up to rounding."""
    np.testing.assert_allclose(fit.objective_, expected.objective_, rtol=tolerance)
    names = ("components_", "components_rate_", "representation_", "representation_rates_")
    for name in (*names, "A_shape_", "A_mean_", "S_shape_", "S_mean_", "count_scale_"):
        check_near(getattr(fit, name), getattr(expected, name), tolerance)
    np.testing.assert_array_equal(fit.representation_groups_, expected.representation_groups_)
    assert fit.n_features_in_ == expected.n_features_in_


LEARNED = {"S_shape": "auto", "S_mean": "auto", "A_shape": "auto", "A_mean": "auto", "burn_in": 3}


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "further",
    [{"init": "auto"}, LEARNED, {"init": "random-acol"}],
    ids=["defaults", "learned", "random-acol"],
)
def test_equals_the_estimator_in_memory(client, container, further):
    X = container(counts())
    fit = model(**further).fit(pieces(X))
    check_equal(fit, model(sf.BayesianNMF, **further).fit(X))
    assert fit.representation_.chunks == ((90, 90, 80, 40), (RANK,))


def test_given_start_single_precision_and_units(client):
    rng = np.random.default_rng(1)
    S, A = rng.random((N, RANK)) + 0.1, rng.random((RANK, M)) + 0.1
    S[::3, 0] = 0  # which may become positive
    X = (4 * counts()).astype(np.float32)
    fit = model(init=(da.from_array(S, chunks=(100, RANK)), A)).fit(array(X))
    assert fit.components_.dtype == fit.representation_.dtype == np.float32
    assert fit.count_scale_ == 0.25
    check_equal(fit, model(sf.BayesianNMF, init=(S, A)).fit(X), 1e-4)


def test_chunks_without_rows_and_of_unknown_length(client):
    X = da.from_array(counts(), chunks=(100, M))
    X = X[da.from_array(np.arange(N) >= 100, chunks=100)]
    assert np.isnan(X.shape[0])
    fit = model().fit(X)
    check_equal(fit, model(sf.BayesianNMF).fit(counts()[100:]))
    assert fit.transform(X).compute().shape == (200, RANK)


@pytest.mark.parametrize(
    ("iteration", "further"), [(0, {}), (30, LEARNED)], ids=["at the start", "learned"]
)
def test_a_worker_that_is_killed(client, kill_at, further, iteration):
    X, further = sp.csr_array(counts()), {"max_iter": 60} | further
    expected = model(sf.BayesianNMF, **further).fit(X)
    killer = kill_at(iteration)
    fit = model(callback=killer, **further).fit(pieces(X))
    assert killer.killed == 1
    # Rows that are lost at the start are drawn anew, from which another optimum is found.
    near = 1e-3 if iteration else 0.05
    assert fit.objective_[-1][1] == pytest.approx(expected.objective_[-1][1], rel=near)
    rises = np.flatnonzero(np.diff([value for _, value in fit.objective_]) > 0)
    assert set(rises) <= {iteration // 10}
    assert np.asarray(fit.representation_).shape == (N, RANK)


def test_new_samples_lazily(client):
    X = counts()
    fit, expected = model().fit(array(X)), model(sf.BayesianNMF).fit(X)
    sparse = sp.csr_array(X)
    S = fit.transform(array(sparse))
    assert isinstance(S, da.Array)
    assert S.chunks == ((90, 90, 80, 40), (RANK,))
    check_near(S, expected.transform(sparse))
    for data in (X, sparse):
        check_near(fit.transform(data), expected.transform(data))
    assert fit.transform(array(X.astype(np.float32))).dtype == np.float32
    check_near(model().fit_transform(array(X)), expected.transform(X))
    refused("X has 39 features, but BayesianNMF is expecting 40", fit.transform, da.ones((10, 39)))
    check_near(fit.transform(pieces(X)), expected.transform(X))


def test_intervals_and_topics(client):
    X = counts()
    fit, expected = model().fit(array(X)), model(sf.BayesianNMF).fit(X)
    for found, wanted in zip(
        fit.interval_representation(0.8), expected.interval_representation(0.8), strict=True
    ):
        assert isinstance(found, da.Array)
        check_near(found, wanted, 1e-8)
    check_near(fit.interval_components()[0], expected.interval_components()[0], 1e-8)
    assert str(fit.topics()) == str(expected.topics())
    refused("level must be above 0 and below 1", fit.interval_representation, 1.0)


def test_files_are_those_of_the_model_in_memory(client, tmp_path):
    X = counts()
    fit = model(callback=lambda state: False).fit(array(X))
    sf.save(fit, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert type(loaded) is sf.BayesianNMF
    assert loaded.get_params() == fit.get_params() | {"callback": None}
    np.testing.assert_array_equal(loaded.components_, fit.components_)
    np.testing.assert_array_equal(loaded.transform(X), fit.transform(X))
    assert loaded.objective_ == fit.objective_
    sf.save(loaded, tmp_path / "again.npz")
    assert not hasattr(sf.load(tmp_path / "again.npz"), "representation_")


SCALES = {
    "counts": counts(),
    "common divisor": 6 * counts(),
    "large": 2.0**40 * counts(),
    "single": (3 * counts()).astype(np.float32),
    "zeros": np.zeros((N, M)),
}


@pytest.mark.parametrize("name", SCALES)
def test_scale_of_counts_is_that_in_memory(client, name):
    X = sp.csr_array(SCALES[name]) if name == "common divisor" else SCALES[name]
    fit, expected = (
        kind(n_components=1, max_iter=1, tol=0, init="random", random_state=0).fit(data)
        for kind, data in ((sfd.BayesianNMF, pieces(X)), (sf.BayesianNMF, X))
    )
    assert fit.count_scale_ == expected.count_scale_


def test_measured_values_need_a_scale(client):
    X = np.random.default_rng(2).exponential(size=(N, M))
    refused(r"count_scale=.auto. needs integers, such as counts", model().fit, pieces(X))
    scale = 2 / np.median(X)
    check_equal(model(count_scale=scale).fit(pieces(X)), model(sf.BayesianNMF).fit(X))


def test_errors_name_the_block_or_the_argument(client, tmp_path):
    X = counts()
    refused("X must be a dask array", model().fit, X, error=TypeError)
    bad = X.copy()
    bad[200, 3] = np.nan
    refused(
        "block 2: X must not contain NaN: BayesianNMF does not support", model().fit, array(bad)
    )
    bad[200, 3] = -1
    refused(r"block 2 \(rows 180 to 259\): Negative values in data", model().fit, array(bad))
    refused("init='nndsvda' is not available", model(init="nndsvda").fit, array(X))
    with pytest.raises(ValueError, match=r"init must be the name of a start, or \(S, A\)"):
        model(init=(np.ones((N, RANK)),)).fit(array(X))
    refused("S_shape must be 'auto' or a number from", model(S_shape=1e-9).fit, array(X))
    sp.save_npz(tmp_path / "block.npz", sp.csr_array(X), compressed=False)
    with pytest.raises(TypeError, match="X is on disk, and BayesianNMF needs it in memory"):
        model().fit([tmp_path / "block.npz"])
    fit = model().fit(array(X))
    before = fit.components_
    refused("Negative", fit.fit, array(bad))
    assert fit.components_ is before


def test_without_a_client_that_is_in_use():
    refused("There is no Dask client", model().fit, array(counts()))
