"""Topics matched with classes: cases by hand, brute force, permutations, sparse as dense."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from brute_force import (
    NORMALIZATIONS,
    SEEDS,
    K,
    N,
    R,
    brute_jaccard,
    class_numbers,
    representation,
    sparse_forms,
    topic_matrix,
)
from helpers.each import each
from hypothesis import given, settings

from ssnmf_fast import metrics


class TestMatchTopics:
    def test_by_hand(self) -> None:
        S = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 3.0]]
        T = [[0, 1], [0, 1], [1, 0], [1, 1]]
        J = metrics.jaccard_similarity(S, T)
        np.testing.assert_allclose(J, [[0.25 / 3.5, 2.25 / 2.5], [1.5 / 1.75, 0.5 / 3.75]])
        matching = metrics.match_topics(S, T, threshold=0.88)
        assert matching.topics.tolist() == [0, 1]
        assert matching.classes.tolist() == [1, 0]
        np.testing.assert_allclose(matching.similarities, [0.9, 6 / 7])
        np.testing.assert_allclose(matching.score, (0.9 + 6 / 7) / 2)
        assert matching.n_resolved == 1

    @each("normalize", NORMALIZATIONS)
    @each("seed", range(3))
    def test_brute_force(self, normalize: str, seed: int) -> None:
        S, T, labels = representation(seed), topic_matrix(seed), class_numbers(seed)
        S[:, 1] = T[:, 2] = 0  # two columns of zeros
        weighted = T * np.random.default_rng(seed).random(T.shape)
        for truth, M in ((T, T), (weighted, weighted), (labels, np.eye(K)[labels])):
            expected = brute_jaccard(S, M, normalize)
            found = metrics.jaccard_similarity(S, truth, normalize=normalize)
            np.testing.assert_allclose(found, expected, atol=1e-12)
            matching = metrics.match_topics(S, truth, normalize=normalize)
            best = max(
                sum(expected[topic, k] for k, topic in enumerate(order))
                for order in permutations(range(R), K)
            )
            np.testing.assert_allclose(matching.similarities.sum(), best)
            np.testing.assert_allclose(matching.score, best / K)
            assert matching.n_resolved == (matching.similarities > 0.1).sum()

    @pytest.mark.parametrize("normalize", NORMALIZATIONS)
    def test_sparse_is_dense(self, normalize: str) -> None:
        S, T = representation(), topic_matrix()
        dense = metrics.jaccard_similarity(S, T, normalize=normalize)
        for left, right in zip([S, *sparse_forms(S)], [*sparse_forms(T), T], strict=True):
            found = metrics.jaccard_similarity(left, right, normalize=normalize)
            np.testing.assert_allclose(found, dense, atol=1e-14)

    def test_more_or_fewer_topics_than_classes(self) -> None:
        S, T = representation(), topic_matrix()
        assert len(metrics.match_topics(S, T).topics) == K
        fewer = metrics.match_topics(S[:, :2], T)
        assert fewer.topics.tolist() == [0, 1]
        assert len(set(fewer.classes.tolist())) == 2

    def test_truth_itself_is_matched_fully(self) -> None:
        T = topic_matrix()
        order = [2, 0, 3, 1]
        for normalize in NORMALIZATIONS:
            matching = metrics.match_topics(T[:, order], T, normalize=normalize)
            assert matching.classes.tolist() == order
            np.testing.assert_allclose(matching.score, 1.0)
            assert (matching.similarities <= 1).all()
            assert matching.n_resolved == K

    def test_unlabeled_are_left_out_and_rows_of_zeros_count(self) -> None:
        S, labels = representation(), class_numbers().astype(object)
        labels[:4] = None
        known = metrics.jaccard_similarity(S[4:], labels[4:].astype(int))
        assert np.array_equal(metrics.jaccard_similarity(S, labels), known)
        zeros = np.eye(K)[class_numbers()]
        zeros[:4] = 0
        assert metrics.jaccard_similarity(S, zeros).sum() < known.sum()

    @settings(max_examples=30)
    @given(seed=SEEDS)
    def test_permutations_and_scales(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        S, T = representation(seed % 1000), topic_matrix(seed % 1000)
        rows, topics, classes = rng.permutation(N), rng.permutation(R), rng.permutation(K)
        for normalize in NORMALIZATIONS:
            before = metrics.jaccard_similarity(S, T, normalize=normalize)
            after = metrics.jaccard_similarity(
                S[rows][:, topics], T[rows][:, classes], normalize=normalize
            )
            np.testing.assert_allclose(after, before[np.ix_(topics, classes)], atol=1e-12)
        longer = rng.uniform(0.5, 2, (N, 1)) * S
        np.testing.assert_allclose(
            metrics.jaccard_similarity(longer, T), metrics.jaccard_similarity(S, T), atol=1e-12
        )
        wider = S * rng.uniform(0.5, 2, R)
        np.testing.assert_allclose(
            metrics.jaccard_similarity(wider, T, normalize="columns"),
            metrics.jaccard_similarity(S, T, normalize="columns"),
            atol=1e-12,
        )
