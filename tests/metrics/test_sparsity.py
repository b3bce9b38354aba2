"""Sparsity: cases by hand, permutations and scales, sparse as dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import REAL, SEEDS, K, N, R, class_numbers, representation, sparse_forms
from helpers.each import each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ssnmf_fast import metrics


class TestSparsity:
    @each(
        ("x", "expected"),
        [
            ([0, 0, 7, 0], 1.0),
            ([2, -2, 2, 2], 0.0),
            ([0.0, 0.0], 0.0),
            ([3, 4, 0, 0], 2 - 7 / 5),
            ([[3, 4], [0, 0]], 2 - 7 / 5),
            ([1e80, 0, 0], 1.0),
            ([1e-300, 0, 1e-300, 0], 2 - np.sqrt(2)),
            ([5e-324, 5e-324], 0.0),
        ],
    )
    def test_by_hand(self, x: list, expected: float) -> None:
        found = metrics.hoyer_sparsity(x)
        assert isinstance(found, float)
        np.testing.assert_allclose(found, expected, atol=1e-12)

    @given(x=arrays(np.float64, st.integers(2, 20), elements=REAL), seed=SEEDS)
    def test_range_permutation_and_scale(self, x: np.ndarray, seed: int) -> None:
        value = metrics.hoyer_sparsity(x)
        assert 0 <= value <= 1
        shuffled = np.random.default_rng(seed).permutation(-3 * x)
        np.testing.assert_allclose(metrics.hoyer_sparsity(shuffled), value, atol=1e-7)

    def test_sparse_is_dense(self) -> None:
        S = representation()
        for form in sparse_forms(S):
            np.testing.assert_allclose(metrics.hoyer_sparsity(form), metrics.hoyer_sparsity(S))
        assert metrics.hoyer_sparsity(sp.csr_array((4, 3))) == 0.0

    def test_inter_label(self) -> None:
        S, labels = representation(), class_numbers()
        names = np.array(["d", "b", "c", "a"])[labels].astype(object)
        names[5] = np.nan
        sums = np.zeros((R, K))
        for i in range(N):
            if i != 5:
                sums[:, "abcd".index(names[i])] += S[i]
        for form in [S, *sparse_forms(S)]:
            result = metrics.inter_label_sparsity(form, names)
            assert result.classes.tolist() == ["a", "b", "c", "d"]
            np.testing.assert_allclose(result.class_sums, sums)
            np.testing.assert_allclose(result.score, metrics.hoyer_sparsity(sums))
            by_topic = [metrics.hoyer_sparsity(row) for row in sums]
            np.testing.assert_allclose(result.per_topic, by_topic)

    def test_topics_of_one_class_each_and_of_none(self) -> None:
        labels = class_numbers()
        S = np.hstack([np.eye(K)[labels], np.zeros((N, 1))])
        result = metrics.inter_label_sparsity(S, labels)
        assert result.per_topic.tolist() == [1.0] * K + [0.0]

    def test_minus_one_is_a_class_only_beside_one_alone(self) -> None:
        S, labels = representation(), np.where(class_numbers() < 2, -1, 1)
        with pytest.warns(UserWarning, match="only labels in labels are -1 and 1"):
            assert metrics.inter_label_sparsity(S, labels).classes.tolist() == [-1, 1]
        with pytest.raises(ValueError, match="labels has one class only, 3"):
            metrics.inter_label_sparsity(S, np.where(labels == 1, 3, -1))
        with pytest.raises(ValueError, match="labels has one class only, 1"):
            metrics.inter_label_sparsity(S, labels, unlabeled=-1)
        kept = metrics.inter_label_sparsity(S, class_numbers() - 1, unlabeled=None)
        assert kept.classes.tolist() == [-1, 0, 1, 2]
