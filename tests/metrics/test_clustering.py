"""Clustering score: cases by hand, brute force, permutations, sparse as dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import (
    SEEDS,
    K,
    N,
    R,
    brute_clustering,
    class_numbers,
    representation,
    sparse_forms,
    topic_matrix,
)
from hypothesis import given, settings

from ssnmf_fast import metrics


class TestClusteringScore:
    def test_by_hand(self) -> None:
        S = [[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 3.0]]
        hard = metrics.clustering_score(S, ["a", "a", "b", "b"])
        assert hard.per_topic.tolist() == [1.0, 0.0, 0.5]
        assert hard.classes.tolist() == ["a", "a", "b"]
        assert hard.score == 0.5
        soft = metrics.clustering_score(S, ["a", "a", "b", "b"], assignment="soft")
        np.testing.assert_allclose(soft.per_topic, [7 / 12, 5 / 12, 3 / 8])
        np.testing.assert_allclose(soft.score, soft.per_topic.mean())
        assert soft.per_topic.dtype == np.float64

    @pytest.mark.parametrize("assignment", ["hard", "soft"])
    @pytest.mark.parametrize("seed", range(3))
    def test_brute_force(self, assignment: str, seed: int) -> None:
        S, labels, T = representation(seed), class_numbers(seed), topic_matrix(seed)
        for truth, M in ((labels, np.eye(K)[labels]), (T, T), (sp.csr_array(T), T)):
            result = metrics.clustering_score(S, truth, assignment=assignment)
            np.testing.assert_allclose(
                result.per_topic, brute_clustering(S, M, assignment), atol=1e-12
            )

    @pytest.mark.parametrize("assignment", ["hard", "soft"])
    def test_sparse_is_dense(self, assignment: str) -> None:
        S, labels = representation(), class_numbers()
        dense = metrics.clustering_score(S, labels, assignment=assignment)
        for form in [S, *sparse_forms(S)]:
            result = metrics.clustering_score(form, labels, assignment=assignment)
            np.testing.assert_allclose(result.per_topic, dense.per_topic, atol=1e-14)
            assert np.array_equal(result.classes, dense.classes)

    @settings(max_examples=30)
    @given(seed=SEEDS)
    def test_permutations(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        S, labels = representation(seed % 1000), class_numbers(seed % 1000)
        rows, topics, renamed = rng.permutation(N), rng.permutation(R), rng.permutation(K)
        for assignment in ("hard", "soft"):
            before = metrics.clustering_score(S, labels, assignment=assignment)
            after = metrics.clustering_score(
                S[rows][:, topics], renamed[labels[rows]], assignment=assignment
            )
            np.testing.assert_allclose(after.per_topic, before.per_topic[topics], atol=1e-12)
            assert 0 <= after.score <= 1

    def test_classes_without_members_and_unlabeled_samples(self) -> None:
        S = representation()
        T = np.zeros((N, 3))
        T[:5, 0] = T[5:9, 2] = 1
        labels = np.full(N, -1)
        labels[:5], labels[5:9] = 0, 2
        by_matrix = metrics.clustering_score(S, T)
        by_label = metrics.clustering_score(S, labels)
        assert np.array_equal(by_matrix.per_topic, by_label.per_topic)
        names = np.array(["car", None, "sea"], dtype=object)
        as_text = [None if label < 0 else names[label] for label in labels]
        assert metrics.clustering_score(S, as_text).score == by_label.score
        floats = np.where(labels < 0, np.nan, labels)
        assert metrics.clustering_score(S, floats).score == by_label.score
