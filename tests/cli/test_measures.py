"""What the measures of ``ssnmf-fast fit`` read: labels, counts and representations."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast.cli import _labels, _measures
from ssnmf_fast.cli._fitted import Fitted
from ssnmf_fast.cli._text import fit_vectorizer, load_vectorizer


class TestLabels:
    def test_reading(self) -> None:
        values = ["a; b;a", "", None, float("nan"), ["b", None, " c "], [], 3]
        labels = _labels.read_labels(values, ";")
        assert labels.lists() == [["a", "b"], [], [], [], ["b", "c"], [], ["3"]]
        assert labels.several
        assert labels.names == ["3", "a", "b", "c"]
        assert not _labels.read_labels(["a; b"], None).several

    def test_every_label_stays_seen(self) -> None:
        rng = np.random.default_rng(0)
        lists = [list(rng.choice(list("abcdef"), 2, replace=False)) for _ in range(40)]
        labels = _labels.read_labels([*lists, ["rare", "a"], []], None)
        for share in (0.2, 1.0):
            hidden = labels.hold_out(share, seed=3)
            assert labels.without(hidden).names == labels.names
            assert not hidden[-2:].any()
        assert labels.hold_out(0.2, 3).sum() == round(0.2 * 41)


def fitted_like(S: Any, labels: Any, held_out: Any, **attributes: Any) -> Fitted:
    """Return what the measures read of a fit whose transform is S."""
    model = SimpleNamespace(transform=lambda X: X, representation_=S, **attributes)
    return Fitted(model, S, _labels.read_labels(labels, None), held_out, None, 0.0, [])


class TestMeasures:
    def test_neighbours(self) -> None:
        rng = np.random.default_rng(0)
        S = np.kron(np.eye(2), np.ones((10, 1))) + 0.1 * rng.random((20, 2))
        held_out = np.arange(20) % 5 == 0
        fitted = fitted_like(S, ["a"] * 10 + ["b"] * 10, held_out)
        guess = _measures.neighbours_guess(fitted)
        assert guess.by == "4 nearest neighbours"
        (accuracy,) = _measures.prediction_measures(fitted, guess)
        assert (accuracy.value, accuracy.shown) == (1.0, "100.0%")
        assert "the largest class, a, for all of them would reach 50.0%" in accuracy.meaning

    def test_machine_does_not_depend_on_scale(self) -> None:
        rng = np.random.default_rng(0)
        S, labels = rng.random((40, 3)), ["a", "b"] * 20
        S[::2, 0] += 0.7
        held_out = np.arange(40) >= 30
        guesses = [
            _measures.svc_guess(fitted_like(factor * S, labels, held_out)).predicted
            for factor in (1.0, 1e-6, 1e6)
        ]
        assert (guesses[0] == guesses[1]).all()
        assert (guesses[0] == guesses[2]).all()

    def test_bound_and_sparsities(self) -> None:
        S = np.array([[1.0, 0], [2, 0], [0, 1], [0, 3]])
        hidden = np.array([False, False, False, True])
        fitted = fitted_like(S, ["a", "a", "b", "b"], hidden, lower_bound_=-12.5)
        (bound,) = _measures.bound_measures(fitted)
        (sparsity,) = _measures.sparsity_measures(fitted)
        (between,) = _measures.label_sparsity_measures(fitted)
        assert (bound.value, bound.shown) == (-12.5, "-12.5")
        assert sparsity.value == sf.metrics.hoyer_sparsity(S)
        wanted = sf.metrics.inter_label_sparsity(S[:3], ["a", "a", "b"]).score
        assert between.value == wanted

    def test_coherence_leaves_out_topics_without_terms(self) -> None:
        X = np.array([[1.0, 2, 0], [3, 1, 0], [0, 0, 1], [0, 1, 1]])
        A = np.array([[5.0, 4, 0], [0, 0, 2], [0, 0, 0]])
        model = SimpleNamespace(components_=A)
        fitted = Fitted(model, X, None, np.zeros(4, dtype=bool), None, 0.0, [], is_text=True)
        (coherence,) = _measures.coherence_measures(fitted)
        assert coherence.value == sf.metrics.topic_coherence(X, A[:1]).score
        model.components_ = A[1:]
        assert _measures.coherence_measures(fitted) == []


def test_texts_as_counts(tmp_path: Path) -> None:
    """For models of counts TF-IDF has the sum of the words, also for new texts."""
    texts = ["cat dog pet", "dog cat mat", "stock bank", "bank price stock"]
    options = argparse.Namespace(max_features=50, min_df=1, max_df=1.0, stop_words="none")
    vectorizer, X = fit_vectorizer(texts, "text", options, as_counts=True)
    assert X.sum() == pytest.approx(sum(len(text.split()) for text in texts))
    vectorizer.save(tmp_path / "v.json")
    again = load_vectorizer(tmp_path / "v.json").transform(texts)
    assert abs(again - X).max() < 1e-12
    # A file of an earlier version has no scale.
    content = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    del content["scale"]
    (tmp_path / "v.json").write_text(json.dumps(content), encoding="utf-8")
    assert load_vectorizer(tmp_path / "v.json").scale == 1
