"""The estimators on a cluster: the same as in memory, and lazy predictions."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import ssnmf_fast as sf

pytest.importorskip("distributed")

import dask
import dask.array as da
from dask.distributed import Client, LocalCluster
from helpers.refused import refused

import ssnmf_fast.dask as sfd

LOOP = {"random_state": 0, "max_iter": 10, "tol": 0}
N, M, CLASSES, BLOCK = 300, 40, 3, 110


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def drawn():
    """Counts of six topics, of which the first three are classes, and a third of the labels."""
    rng = np.random.default_rng(0)
    S, A = rng.gamma(0.3, size=(N, 6)), rng.gamma(0.3, size=(6, M))
    X = sp.csr_array(rng.poisson(2 * S @ A).astype(float))
    classes = S[:, :CLASSES].argmax(axis=1)
    return X, np.where(rng.random(N) < 0.3, classes, -1), classes


X, Y, TRUTH = drawn()


def cut(Z, size=BLOCK):
    """Return a matrix as a dask array cut by rows."""
    parts = [Z[i : i + size] for i in range(0, Z.shape[0], size)]
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(part), part.shape, dtype=Z.dtype, meta=Z[:0])
            for part in parts
        ]
    )


def assert_same(found, wanted, tol=1e-10):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tol * np.abs(wanted).max()


def assert_same_fit(model, other):
    assert_same(model.components_, other.components_)
    assert isinstance(model.representation_, da.Array)
    assert_same(model.representation_, other.representation_)
    assert_same(model.objective_, other.objective_)
    assert model.n_iter_ == other.n_iter_
    assert model.n_features_in_ == other.n_features_in_


def assert_lazy(model, Z, *names):
    """The methods give dask arrays for dask arrays, with what they give in memory."""
    D = cut(Z)
    for name in names:
        lazy, wanted = getattr(model, name)(D), getattr(model, name)(Z)
        assert isinstance(lazy, da.Array)
        assert not isinstance(wanted, da.Array)
        assert lazy.shape == wanted.shape
        assert lazy.dtype == wanted.dtype
        assert lazy.chunks[0] == D.chunks[0]
        np.testing.assert_allclose(lazy.compute(), wanted, rtol=1e-9, atol=1e-12)


PREDICTIONS = (
    "transform",
    "topic_proportions",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
)


class TestNMF:
    @pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
    def test_is_that_in_memory(self, client, loss):
        given = {"n_components": 4, "loss": loss, **LOOP}
        model = sfd.NMF(**given).fit(cut(X))
        assert_same_fit(model, sf.NMF(**given).fit(X))
        assert_lazy(model, X, "transform", "topic_proportions")
        S = model.transform(cut(X))
        assert_same(model.inverse_transform(S), S.compute() @ model.components_)

    @pytest.mark.parametrize("form", ["entries", "outer"])
    def test_weights_and_missing_entries(self, client, form):
        rng = np.random.default_rng(1)
        Z = X.toarray()
        Z[rng.random(Z.shape) < 0.1] = np.nan
        W = rng.random(Z.shape)
        in_memory, on_cluster = W, cut(W, 100)
        if form == "outer":
            in_memory = on_cluster = sf.weights.outer(rows=W[:, 0], columns=W[0])
        given = {"n_components": 4, **LOOP}
        model = sfd.NMF(**given).fit(cut(Z), X_weights=on_cluster)
        assert_same_fit(model, sf.NMF(**given).fit(Z, X_weights=in_memory))
        lazy = model.transform(cut(Z), X_weights=on_cluster)
        assert_same(lazy, model.transform(Z, X_weights=in_memory))
        lazy = model.topic_proportions(cut(Z), X_weights=on_cluster)
        assert_same(lazy, model.topic_proportions(Z, X_weights=in_memory))

    def test_blocks_as_a_list(self, client):
        blocks = client.scatter([X[:100], X[100:]])
        given = {"n_components": 3, **LOOP}
        S = sfd.NMF(**given).fit_transform(blocks)
        assert isinstance(S, da.Array)
        assert_same(S, sf.NMF(**given).fit_transform(X))

    def test_float32_stays(self, client):
        Z = X.astype(np.float32)
        model = sfd.NMF(n_components=3, **LOOP).fit(cut(Z))
        assert model.components_.dtype == np.float32
        assert_lazy(model, Z, "transform")

    def test_a_user_may_compute_the_same_array(self, client, caplog):
        """The scheduler never sees two tasks of one key, on which it may wait for ever."""
        D, W = cut(X), cut(np.ones((N, M)))
        scheduler = logging.getLogger("distributed.scheduler")
        scheduler.addHandler(caplog.handler)
        try:
            model = sfd.NMF(n_components=3, **LOOP).fit(D)
            assert model.transform(D).compute().shape == (N, 3)
            model.fit(D, X_weights=W)
            assert model.transform(D, X_weights=W).compute().shape == (N, 3)
            assert W.sum().compute() == N * M
            assert len(D.compute_chunk_sizes().chunks[0]) == D.numblocks[0]
        finally:
            scheduler.removeHandler(caplog.handler)
        assert "run_spec" not in caplog.text

    def test_partial_fit_takes_batches_in_memory(self, client):
        model = sfd.NMF(n_components=3, **LOOP).fit(cut(X))
        model.partial_fit(X[:100])
        with pytest.raises(TypeError, match="X must be in memory for explain, partial_fit, score"):
            model.partial_fit(cut(X))

    def test_a_failing_fit_leaves_the_model_as_it_was(self, client):
        model = sfd.NMF(n_components=3, **LOOP).fit(cut(X))
        before = dict(vars(model))
        with pytest.raises(ValueError, match="block 0"):
            model.fit(cut(np.where(np.arange(N)[:, None] == 100, -1.0, X.toarray())))
        assert vars(model) == before


class TestTopicSupervisedNMF:
    @pytest.mark.parametrize("weight", ["inverse-rate", 1.0])
    def test_is_that_in_memory(self, client, weight):
        given = {"n_free_topics": 1, "labeled_weight": weight, "predicts": False, **LOOP}
        model = sfd.TopicSupervisedNMF(**given).fit(cut(X), da.from_array(Y, chunks=70))
        wanted = sf.TopicSupervisedNMF(**given).fit(X, Y)
        assert_same_fit(model, wanted)
        np.testing.assert_array_equal(model.classes_, wanted.classes_)
        np.testing.assert_array_equal(model.topic_names_, wanted.topic_names_)
        assert model.n_labeled_ == wanted.n_labeled_

    def test_lists_of_topics_and_weights(self, client):
        lists = [[] if y < 0 else [f"topic {y}", f"topic {(y + 1) % 3}"][: 1 + y % 2] for y in Y]
        W = np.random.default_rng(2).random((N, M))
        given = {"predicts": False, **LOOP}
        model = sfd.TopicSupervisedNMF(**given).fit(cut(X), lists, X_weights=cut(W, 90))
        assert_same_fit(model, sf.TopicSupervisedNMF(**given).fit(X, lists, X_weights=W))

    @pytest.mark.parametrize("several", [False, True])
    def test_the_readout_sees_topics_only(self, client, several):
        y = [[] if y < 0 else [int(y)] for y in Y] if several else Y
        model = sfd.TopicSupervisedNMF(**LOOP).fit(cut(X), y)
        assert_lazy(model, X, *PREDICTIONS)
        # In memory it does so for data with weights.
        weights = sf.weights.outer(rows=np.ones(N))
        wanted = sf.TopicSupervisedNMF(**LOOP).fit(X, y, X_weights=weights)
        np.testing.assert_allclose(model.predict_proba(X), wanted.predict_proba(X), rtol=1e-6)
        np.testing.assert_allclose(model.class_shares_, wanted.class_shares_, rtol=1e-6)
        known = [[int(c)] for c in TRUTH] if several else TRUTH
        assert model.score(cut(X), known) == wanted.score(X, known)

    @pytest.mark.slow
    def test_samples_in_memory_are_explained(self, client):
        model = sfd.TopicSupervisedNMF(**LOOP).fit(cut(X), Y, client=client)
        found, wanted = model.explain(X[:20]), model.in_memory().decision_function(X[:20])
        assert_same(found.totals, wanted - wanted.mean(axis=1, keepdims=True))
        with pytest.raises(TypeError, match=r"X must be in memory for explain.*compute\(\)"):
            model.explain(cut(X))

    def test_weights_by_blocks_need_weight_one(self, client):
        pattern = sf.weights.observed([sp.csr_array((N, M))])
        with pytest.raises(ValueError, match="labeled_weight 1"):
            sfd.TopicSupervisedNMF(**LOOP).fit(cut(X), Y, X_weights=pattern)
        with pytest.raises(ValueError, match=r"weights\.base.*labeled_weight 1"):
            sfd.TopicSupervisedNMF(**LOOP).fit(cut(X), Y, X_weights=sf.weights.base(1, X > 2))


class TestSSNMFClassifier:
    @pytest.mark.parametrize(
        ("weight", "init"), [(np.inf, "labels"), (2.0, "labels"), ("balanced", "random")]
    )
    def test_is_that_in_memory(self, client, weight, init):
        given = {"n_components": 4, "supervision_weight": weight, "init": init, **LOOP}
        given |= {"readout": "refit"}
        model = sfd.SSNMFClassifier(**given).fit(cut(X), Y)
        wanted = sf.SSNMFClassifier(**given).fit(X, Y)
        assert_same_fit(model, wanted)
        assert_same(model.label_components_, wanted.label_components_)
        assert_same(model.refitted_label_components_, wanted.refitted_label_components_)
        assert model.supervision_weight_ == pytest.approx(wanted.supervision_weight_, rel=1e-10)
        assert_same(model.class_shares_, wanted.class_shares_, tol=2e-3)  # solved to finer tol
        np.testing.assert_array_equal(model.predict(cut(X)).compute(), wanted.predict(X))
        assert model.score(cut(X), da.from_array(TRUTH)) == wanted.score(X, TRUTH)

    def test_defaults_are_those_in_memory(self, client):
        assert sfd.SSNMFClassifier().get_params() == sf.SSNMFClassifier().get_params()
        model = sfd.SSNMFClassifier(**LOOP).fit(cut(X), Y)
        wanted = sf.SSNMFClassifier(**LOOP).fit(X, Y)
        assert_same_fit(model, wanted)
        assert model.readout_.directions is None  # topics alone
        assert model.score(cut(X), TRUTH) > 0.6
        assert_lazy(model, X, *PREDICTIONS)

    @pytest.mark.parametrize("given", [None, "outer"])
    def test_weights_of_samples_and_of_labels(self, client, given):
        rng = np.random.default_rng(1)
        weights = {"sample_weight": rng.integers(0, 4, N), "label_weight": rng.random(N)}
        if given is not None:
            weights["X_weights"] = sf.weights.outer(rows=rng.random(N))
        for weight in (np.inf, "balanced"):
            settings = {"supervision_weight": weight, "init": "labels", "readout": "refit"}
            settings |= {"n_components": 3, **LOOP}
            wanted = sf.SSNMFClassifier(**settings).fit(X, Y, **weights)
            spread = weights | {"sample_weight": da.from_array(weights["sample_weight"])}
            model = sfd.SSNMFClassifier(**settings).fit(cut(X), Y, **spread)
            assert_same_fit(model, wanted)
            assert_same(model.label_components_, wanted.label_components_)
            assert_same(model.refitted_label_components_, wanted.refitted_label_components_)
            assert_same(model.class_prior_, wanted.class_prior_)

    @pytest.mark.parametrize("weight", [np.inf, 2.0])
    def test_files_empty_blocks_and_unknown_rows(self, client, weight, tmp_path):
        paths = [tmp_path / "0.npz", tmp_path / "1.npz"]
        for path, part in zip(paths, (X[:150], X[150:]), strict=True):
            sp.save_npz(path, sp.csr_matrix(part), compressed=False)
        halves = [
            da.from_delayed(dask.delayed(part), (np.nan, M), dtype=float, meta=X[:0])
            for part in (X[:150], X[150:])
        ]
        given = {"n_components": 4, "supervision_weight": weight, "readout": "refit", **LOOP}
        wanted = sf.SSNMFClassifier(**given).fit(X, Y)
        for blocks in (
            paths,
            client.scatter([X[:100], X[100:100], X[100:]], hash=False),
            da.concatenate(halves),
        ):
            model = sfd.SSNMFClassifier(**given).fit(blocks, Y)
            assert_same_fit(model, wanted)
            np.testing.assert_array_equal(model.predict(blocks).compute(), wanted.predict(X))

    @pytest.mark.parametrize("supervision_loss", ["frobenius", "kullback-leibler"])
    def test_the_papers_rule_and_frobenius_losses(self, client, supervision_loss):
        given = {"n_components": 3, "supervision_weight": 1.0, "readout": "joint", **LOOP}
        given |= {"loss": "frobenius", "supervision_loss": supervision_loss}
        labels = np.array(["a", "b", "c", None], dtype=object)[Y]
        model = sfd.SSNMFClassifier(**given).fit(cut(X), labels)
        wanted = sf.SSNMFClassifier(**given).fit(X, labels)
        assert_same_fit(model, wanted)
        assert_same(model.label_components_, wanted.label_components_)
        assert_lazy(model, X, "transform", "predict_proba", "decision_function")
        assert list(model.predict(cut(X)).compute()) == list(wanted.predict(X))

    @pytest.mark.parametrize("missing", [False, True])
    def test_several_labels_and_weights(self, client, missing):
        rng = np.random.default_rng(3)
        several = np.maximum(np.eye(CLASSES)[TRUTH], rng.random((N, CLASSES)) < 0.3)
        several[rng.random(N) < 0.4] = np.nan
        known = several.copy()
        if missing:
            several[5] = [1, 0, np.nan]
        weights = rng.random(N)
        given = {"n_components": 4, "supervision_weight": 2.0, "threshold": 0.4, **LOOP}
        given |= {"readout": "refit"}
        extra = {"X_weights": sf.weights.outer(rows=weights), "label_weight": weights}
        model = sfd.SSNMFClassifier(**given).fit(cut(X), several, **extra)
        wanted = sf.SSNMFClassifier(**given).fit(X, several, **extra)
        assert_same_fit(model, wanted)
        assert_same(model.refitted_label_components_, wanted.refitted_label_components_)
        assert_lazy(model, X, *PREDICTIONS)
        assert model.score(cut(X), known) == wanted.score(X, known)
        W = np.random.default_rng(0).random(X.shape)
        lazy = model.predict_proba(cut(X), X_weights=cut(W, 100))
        np.testing.assert_allclose(lazy, wanted.predict_proba(X, X_weights=W), rtol=1e-6)
        score = model.score(cut(X), known, X_weights=cut(W, 100))
        assert score == wanted.score(X, known, X_weights=W)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"n_components": 0}, "n_components must be at least 1"),
            ({"supervision_weight": "auto"}, "supervision_weight must be one of 'balanced'"),
            ({"readout": "auto"}, "readout must be one of 'logistic', 'refit'"),
            ({"n_components": 2, "supervision_weight": np.inf}, "n_components=2 is too small"),
        ],
    )
    def test_what_is_not_to_be_had(self, client, changed, message):
        given = {"n_components": 3, "supervision_weight": 1.0, **LOOP} | changed
        refused(message, sfd.SSNMFClassifier(**given).fit, cut(X), Y)

    def test_side_information_is_refused(self, client):
        model = sfd.SSNMFClassifier(n_components=3, supervision_weight=1.0, **LOOP)
        side = {"embedding": np.ones((len(Y), 2))}
        refused("side", model.fit, cut(X), Y, side=side, error=TypeError)
        refused("side must be None", model.fit(cut(X), Y).predict, cut(X), side=side)
        refused("fitted with no side", model.predict, X, side=side)

    def test_labels_of_other_samples(self, client):
        model = sfd.SSNMFClassifier(n_components=3, supervision_weight=1.0, **LOOP)
        refused("inconsistent numbers of samples", model.fit, cut(X), Y[:-1])
        refused("requires y", model.fit, cut(X))


class TestFiles:
    @pytest.mark.parametrize(
        "model",
        [
            sfd.NMF(n_components=3, **LOOP),
            sfd.TopicSupervisedNMF(**LOOP),
            sfd.SSNMFClassifier(n_components=3, supervision_weight=1.0, **LOOP),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_are_those_of_the_estimators_in_memory(self, client, model, tmp_path):
        model.fit(cut(X), None if isinstance(model, sfd.NMF) else Y)
        sf.save(model, tmp_path / "model.npz")
        found = sf.load(tmp_path / "model.npz")
        assert type(found) is getattr(sf, type(model).__name__)
        assert found.get_params() == model.get_params()
        assert not hasattr(found, "representation_")
        np.testing.assert_array_equal(found.transform(X), model.transform(X))
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(found.predict(X), model.predict(X))
        assert type(model.in_memory()) is type(found)

    def test_a_model_that_is_not_fitted(self, tmp_path):
        refused("not fitted", sf.save, sfd.NMF(), tmp_path / "model.npz")

    def test_checkpoint(self, client, tmp_path):
        path = tmp_path / "checkpoint.npz"
        model = sfd.NMF(n_components=3, **LOOP).fit(cut(X), checkpoint=path)
        assert_same(sf.load(path).A, model.components_)


def test_data_in_memory_are_refused(client):
    refused("X must be a dask array", sfd.NMF(n_components=3).fit, X, error=TypeError)


def test_without_a_client(monkeypatch):
    with pytest.raises(TypeError, match="client must be"):
        sfd.NMF(n_components=3).fit(cut(X), client="tcp://host")


def test_the_client_of_the_fit_serves_its_model(cluster_of_threads):
    with Client(cluster_of_threads, set_as_default=False) as own:
        model = sfd.NMF(3, **LOOP).fit(cut(X), client=own)
        S = model.transform([dask.delayed(X[:200]), dask.delayed(X[200:])])
        assert_same(own.compute(S).result(), own.compute(model.transform(cut(X))).result())
        for copy in (pickle.loads(pickle.dumps(model)), model.in_memory()):
            assert_same(copy.components_, model.components_)
            assert getattr(copy, "_client", None) is None


def test_dtype(client):
    Z = X / 3
    model = sfd.NMF(4, dtype="float32", **LOOP).fit(cut(Z))
    assert model.components_.dtype == model.representation_.dtype == np.float32
    for given in (cut(Z), [dask.delayed(Z[:200]), dask.delayed(Z[200:])]):
        S = model.transform(given)
        assert S.dtype == S.compute().dtype == np.float32
    assert model.in_memory().transform(Z).dtype == np.float32


def test_the_number_of_topics_is_given() -> None:
    with pytest.raises(ValueError, match="n_components must be a number for data on a cluster"):
        sfd.NMF("auto").fit(da.ones((10, 5), chunks=5))
