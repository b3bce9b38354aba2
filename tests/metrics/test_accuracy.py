"""Accuracy: cases by hand, and as scikit-learn has it."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import SEEDS
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, recall_score

from ssnmf_fast import metrics


class TestAccuracy:
    def test_by_hand(self) -> None:
        true, predicted = ["a", "a", "a", "b"], ["a", "a", "b", "b"]
        assert metrics.micro_accuracy(true, predicted) == 0.75
        np.testing.assert_allclose(metrics.macro_accuracy(true, predicted), (2 / 3 + 1) / 2)

    @settings(max_examples=50)
    @given(seed=SEEDS, as_text=st.booleans())
    def test_as_scikit_learn(self, seed: int, as_text: bool) -> None:
        rng = np.random.default_rng(seed)
        true, predicted = rng.integers(0, 4, 25), rng.integers(0, 6, 25)
        if as_text:
            true, predicted = true.astype(str), predicted.astype(str)
        micro = metrics.micro_accuracy(true, predicted)
        assert micro == pytest.approx(accuracy_score(true, predicted))
        macro = recall_score(true, predicted, labels=np.unique(true), average="macro")
        assert metrics.macro_accuracy(true, predicted) == pytest.approx(macro)

    def test_unlabelled(self) -> None:
        true, predicted = ["a", None, "b"], ["a", None, "a"]
        assert metrics.micro_accuracy(true, predicted) == 0.5
        assert metrics.micro_accuracy([1, -1, 0, 0], [1, 1, 0, 1]) == 0.5
        assert metrics.micro_accuracy([1, -1, 0, 0], [1, 1, 0, 1], unlabelled=-1) == 2 / 3
