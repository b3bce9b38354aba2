"""Coherence: cases by hand, brute force, permutations, sparse as dense."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import SEEDS, N, brute_coherence, counts, sparse_forms
from hypothesis import given, settings

from ssnmf_fast import metrics


class TestCoherence:
    def test_by_hand(self) -> None:
        X = np.array([[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 2, 1], [0, 1, 1, 0]])
        npmi = metrics.topic_coherence(X, terms=[[0, 1], [0, 2], [2, 3]])
        first = np.log(4 / 3) / np.log(2)
        np.testing.assert_allclose(npmi.per_topic, [first, -1.0, 0.0], atol=1e-15)
        np.testing.assert_allclose(npmi.score, (first - 1) / 3)
        umass = metrics.topic_coherence(X, terms=[[0, 1], [1, 0], [0, 2]], measure="umass")
        np.testing.assert_allclose(umass.per_topic, [np.log(3 / 2), 0.0, np.log(1 / 2)], atol=1e-15)

    @pytest.mark.parametrize("measure", ["npmi", "umass"])
    @pytest.mark.parametrize("seed", range(3))
    def test_brute_force(self, measure: str, seed: int) -> None:
        X = counts(seed)
        rng = np.random.default_rng(seed)
        topics = [rng.permutation(12)[:size].tolist() for size in (2, 5, 8)]
        expected = [brute_coherence(X, topic, measure) for topic in topics]
        for form in [X, X > 0, X * 0.1, *sparse_forms(X)]:
            result = metrics.topic_coherence(form, terms=topics, measure=measure)
            np.testing.assert_allclose(result.per_topic, expected, atol=1e-12)
            np.testing.assert_allclose(result.score, np.mean(expected))

    def test_components(self, block_entries: Callable[[int], None]) -> None:
        X, A = counts(), np.random.default_rng(0).random((3, 12))
        A[1] = 0
        A[1, [7, 2, 4]] = [1, 3, 3]
        tops = [np.argsort(-row, kind="stable")[:5] for row in A]
        tops[1] = np.array([2, 4, 7])
        block_entries(12)
        for measure in ("npmi", "umass"):
            by_terms = metrics.topic_coherence(X, terms=tops, measure=measure)
            for form in [A, *sparse_forms(A)]:
                result = metrics.topic_coherence(X, form, n_terms=5, measure=measure)
                assert np.array_equal(result.per_topic, by_terms.per_topic)

    def test_explicit_zeros_do_not_occur(self) -> None:
        X = sp.csr_array(counts())
        X.data[::3] = 0
        dense = metrics.topic_coherence(X.toarray(), terms=[[0, 1, 2]]).score
        assert metrics.topic_coherence(X, terms=[[0, 1, 2]]).score == dense

    def test_always_and_never(self) -> None:
        X = np.array([[1, 1, 0, 0], [1, 1, 1, 0]])
        always = metrics.topic_coherence(X, terms=[[0, 1], [0, 3], [2, 3]])
        assert always.per_topic.tolist() == [1.0, -1.0, -1.0]

    @settings(max_examples=30)
    @given(seed=SEEDS)
    def test_permutations(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X, topic = counts(seed % 1000), rng.permutation(12)[:6]
        rows, columns = rng.permutation(N), rng.permutation(12)
        moved = X[rows][:, columns]
        renamed = np.argsort(columns)[topic]
        for measure in ("npmi", "umass"):
            before = metrics.topic_coherence(X, terms=[topic], measure=measure).score
            after = metrics.topic_coherence(moved, terms=[renamed], measure=measure).score
            assert after == pytest.approx(before)
        shuffled = metrics.topic_coherence(X, terms=[rng.permutation(topic)]).score
        assert -1 <= shuffled <= 1
        assert shuffled == pytest.approx(metrics.topic_coherence(X, terms=[topic]).score)
