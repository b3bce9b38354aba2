"""What people take from topics: names, tables, and the arrays that pyLDAvis draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import small_digits
from helpers.guided_models import QUICK, guided_models
from helpers.refused import refused
from helpers.topic_tables import Topics, make_topics
from hypothesis import given
from hypothesis import strategies as st

import ssnmf_fast as sf

WORDS = st.lists(st.sampled_from(["a", "b", "a_1", "a_b", ""]), min_size=4, max_size=4)


class TestNames:
    @pytest.fixture
    def topics(self) -> Topics:
        A = [[3.0, 2, 1, 0, 0], [3, 2, 1, 0.5, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]
        return make_topics(np.array(A), ["orbit", "nasa", "moon", "ball", "goal"])

    def test_are_the_first_terms_and_differ(self, topics: Topics) -> None:
        names = ["orbit_nasa_moon", "orbit_nasa_moon_1", "topic2", "ball_goal"]
        assert topics.names == names
        assert topics[2:].names == names[2:]
        assert topics.to_rows()[0]["name"] == names[0]

    def test_are_those_of_the_model_where_it_has_some(self, topics: Topics) -> None:
        assert topics.named(["u", "u", "", "w"]).names == ["u", "u_1", "topic2", "w"]

    @given(names=WORDS)
    def test_always_differ(self, names: list[str]) -> None:
        topics = make_topics(np.eye(4), ["a", "b", "a_1", "a"]).named(names)
        found = topics.names
        assert len(set(found)) == 4
        assert all(name.startswith(given) for name, given in zip(found, names, strict=True))

    def test_are_those_of_the_transformed_features(self) -> None:
        X, y = small_digits()
        model = sf.TopicSupervisedNMF(n_free_topics=1, **QUICK).fit(X, y)
        assert model.topics().names == model.get_feature_names_out().tolist()

    def test_wide_tables(self, topics: Topics) -> None:
        pytest.importorskip("pandas")
        wide = topics.to_frame().pivot(index="rank", columns="name", values="term")
        assert set(wide.columns) == set(topics.names)
        assert wide["orbit_nasa_moon"].tolist()[:3] == ["orbit", "nasa", "moon"]

    def test_a_vocabulary_is_no_list_of_names(self) -> None:
        model = sf.NMF(1, random_state=0).fit(np.eye(2))
        with pytest.raises(TypeError, match=r"feature_names must be .*get_feature_names_out"):
            model.topics({"b": 1, "a": 0})


def check_arrays(found: dict, X: np.ndarray, shares: np.ndarray) -> None:
    kept = X.any(axis=1) & shares.any(axis=1)
    assert found["doc_topic_dists"].shape == (kept.sum(), shares.shape[1])
    assert found["topic_term_dists"].shape == (shares.shape[1], X.shape[1])
    for name in ("topic_term_dists", "doc_topic_dists"):
        np.testing.assert_allclose(found[name].sum(axis=1), 1, rtol=1e-12)
        assert found[name].min() > 0
    np.testing.assert_allclose(found["doc_topic_dists"], shares[kept], atol=1e-9)
    np.testing.assert_allclose(found["doc_lengths"], X[kept].sum(axis=1))
    np.testing.assert_allclose(found["term_frequency"], X[kept].sum(axis=0))
    assert found["doc_lengths"].min() > 0
    assert len(found["vocab"]) == X.shape[1]


class TestToPyldavis:
    X, y = small_digits()
    X[3] = 0
    NAMES = ("chosen", "several", "regressor", "topics", "constrained", "margin", "bayesian")

    @pytest.mark.parametrize("kind", [sf.NMF, sf.BayesianNMF])
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32])
    def test_rows_sum_to_one(self, kind, form) -> None:
        model = kind(4, **QUICK).fit(form(self.X))
        found = model.to_pyldavis(form(self.X))
        check_arrays(found, self.X, model.topic_proportions(form(self.X)))
        assert found["vocab"][:2] == ["x0", "x1"]
        assert all(found[name].dtype == np.float64 for name in found if name != "vocab")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", NAMES)
    def test_of_guided_models(self, name: str) -> None:
        model, targets = guided_models(self.X, self.y)[name]
        model.fit(self.X, targets)
        check_arrays(model.to_pyldavis(self.X), self.X, model.topic_proportions(self.X))

    def test_of_topics_over_time(self) -> None:
        times = np.datetime64("2020-01-01") + np.arange(120)
        model = sf.DynamicTopics(3, random_state=0, freq="month", method="nmf").fit(self.X, times)
        check_arrays(model.to_pyldavis(self.X), self.X, model.topic_proportions(self.X))

    def test_empty_topics_and_documents_without_topics(self) -> None:
        X = np.kron(np.eye(3), np.ones((4, 2)))
        model = sf.NMF(3, random_state=0).fit(X)
        model.components_ = np.eye(3, 6)  # which have no word of the last documents
        model.components_[2] = 0
        found = model.to_pyldavis(X, list("abcdef"))
        check_arrays(found, X, model.topic_proportions(X))
        assert len(found["doc_lengths"]) < 12
        np.testing.assert_allclose(found["topic_term_dists"][2], 1 / 6)
        assert found["vocab"] == list("abcdef")

    def test_data_on_disk_and_missing_entries(self, tmp_path) -> None:
        model = sf.NMF(4, **QUICK).fit(self.X)
        sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(self.X), compressed=False)
        found = model.to_pyldavis(sf.io.open_csr(tmp_path / "X.npz", memory=1 << 14))
        expected = model.to_pyldavis(sp.csr_array(self.X))
        holes = self.X.copy()
        holes[5, 2] = np.nan
        missing = model.to_pyldavis(holes)
        for name in expected:
            if name != "vocab":
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-12)
                assert np.isfinite(missing[name]).all()

    def test_errors(self) -> None:
        model = sf.NMF(2, **QUICK).fit(self.X)
        refused("No topic explains any document of X", model.to_pyldavis, np.zeros((2, 16)))
        refused("feature_names holds 1 names", model.to_pyldavis, self.X, ["a"])
        refused("features", model.to_pyldavis, self.X[:, :3])
