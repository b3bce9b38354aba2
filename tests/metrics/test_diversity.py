"""Diversity and exclusivity: cases by hand, brute force, bounds, permutations, sparse as dense."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import SEEDS, brute_exclusivity, sparse_forms
from helpers.each import each
from helpers.refused import refused
from hypothesis import given, settings

from ssnmf_fast import metrics


def dictionary(seed: int, r: int = 4, m: int = 15) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, size=(r, m)) * (rng.random((r, m)) < 0.7)
    A[:, 0] += rng.uniform(1e-3, 1e-2, r)  # every topic has a term
    A[0] += rng.uniform(1e-3, 1e-2, m)  # and every term a topic
    return A


class TestDiversity:
    def test_by_hand(self) -> None:
        A = [[3.0, 2, 1, 0], [0, 2, 3, 1], [0, 0, 0, 5]]
        result = metrics.topic_diversity(A, n_terms=2)
        np.testing.assert_allclose(result.per_topic, [0.75, 0.75, 1.0])
        assert result.score == 4 / 5
        assert metrics.topic_diversity(np.eye(3)).score == 1.0

    @settings(max_examples=30)
    @given(seed=SEEDS)
    def test_bounds_and_permutations(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        A = dictionary(seed)
        result = metrics.topic_diversity(A, n_terms=5)
        assert 1 / 4 <= result.score <= 1
        assert ((result.per_topic >= 1 / 4) & (result.per_topic <= 1)).all()
        topics, columns = rng.permutation(4), rng.permutation(15)
        again = metrics.topic_diversity(A[topics][:, columns] * rng.uniform(1, 9), n_terms=5)
        assert again.score == result.score
        np.testing.assert_allclose(again.per_topic, result.per_topic[topics])
        A += 1e-6  # all have as many terms
        full = metrics.topic_diversity(A, n_terms=5)
        assert full.score == pytest.approx(full.per_topic.mean())
        assert metrics.topic_diversity(np.vstack([A, A])).score <= 1 / 2

    def test_sparse_is_dense(self) -> None:
        A = dictionary(0)
        expected = metrics.topic_diversity(A, n_terms=6)
        for form in [A, *sparse_forms(A)]:
            found = metrics.topic_diversity(form, n_terms=6)
            assert np.array_equal(found.per_topic, expected.per_topic)
            assert found.score == expected.score


class TestExclusivity:
    @each("weight", [0.0, 0.5, 0.7, 1.0])
    @each("seed", range(3))
    def test_is_that_of_stm(self, weight: float, seed: int) -> None:
        A = np.random.default_rng(seed).gamma(0.5, size=(4, 15))
        A[1, [2, 5]] = A[1, 7]  # equal values share a rank
        expected = brute_exclusivity(A, 6, weight) / 6
        for form in [A, *sparse_forms(A)]:
            found = metrics.topic_exclusivity(form, n_terms=6, weight=weight)
            np.testing.assert_allclose(found.per_topic, expected)
            assert found.score == pytest.approx(expected.mean())

    @settings(max_examples=30)
    @given(seed=SEEDS)
    def test_bounds_scales_and_permutations(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        A = dictionary(seed)
        found = metrics.topic_exclusivity(A).per_topic
        assert ((found > 0) & (found <= 1)).all()
        topics, columns = rng.permutation(4), rng.permutation(15)
        scaled = A[topics][:, columns] * 2.0 ** rng.integers(-9, 9, (4, 1))
        again = metrics.topic_exclusivity(scaled, n_terms=10).per_topic
        np.testing.assert_allclose(again, found[topics], rtol=1e-9)

    def test_own_terms_are_exclusive(self) -> None:
        A = np.array([[9.0, 8, 5, 5, 0, 0], [0, 0, 5, 5, 9, 8]])
        own = metrics.topic_exclusivity(A, n_terms=2).score
        common = metrics.topic_exclusivity(A[:, [2, 3, 0, 1, 4, 5]], n_terms=4).score
        assert own > common
        A[:, 2] = 0  # no topic has the term
        assert np.isfinite(metrics.topic_exclusivity(A, n_terms=2).per_topic).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.topic_diversity([[0.0, 0], [1, 0]]), ValueError, r"components\[0\] has 0"),
        (lambda m: m.topic_diversity(np.eye(2), n_terms=0), ValueError, "n_terms must be at least"),
        (lambda m: m.topic_exclusivity([[1.0, 2]]), ValueError, "components has one topic"),
        (lambda m: m.topic_exclusivity(np.eye(2), weight=1.5), ValueError, "weight must be at"),
        (lambda m: m.topic_exclusivity(-np.eye(2)), ValueError, r"components\[0, 0\] = -1"),
    ],
)
def test_errors(call, error, message) -> None:
    refused(message, call, metrics, error=error)
