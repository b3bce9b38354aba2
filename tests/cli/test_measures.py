"""What the measures of ``ssnmf-fast fit`` read: labels, counts and representations."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from topic_tables import make_topics

import ssnmf_fast as sf
from ssnmf_fast.cli import _findings, _models
from ssnmf_fast.cli import _labels as _sample_labels


class TestLabels:
    def test_reading(self) -> None:
        values = ["a; b;a", "", None, float("nan"), ["b", None, " c "], [], 3]
        labels = _sample_labels.parse_labels(values, ";")
        assert labels.each == (("a", "b"), (), (), (), ("b", "c"), (), ("3",))
        assert labels.several
        assert labels.names == ["3", "a", "b", "c"]
        assert not _sample_labels.parse_labels(["a; b"], None).several

    def test_what_is_missing(self) -> None:
        pandas = pytest.importorskip("pandas")
        values = [None, float("nan"), pandas.NA, " ", " a ", -1]
        assert _sample_labels.parse_labels(values, None).each == ((), (), (), (), ("a",), ("-1",))

    def test_every_label_stays_seen(self) -> None:
        rng = np.random.default_rng(0)
        lists = [list(rng.choice(list("abcdef"), 2, replace=False)) for _ in range(40)]
        labels = _sample_labels.parse_labels([*lists, ["rare", "a"], []], None)
        for share in (0.2, 1.0):
            hidden = labels.hold_out(share, seed=3)
            assert labels.without(hidden).names == labels.names
            assert not hidden[-2:].any()
        assert labels.hold_out(0.2, 3).sum() == round(0.2 * 41)


def fitted_like(S: Any, labels: Any, held_out: Any, **attributes: Any) -> _models.Fitted:
    """Return what the measures read of a fit whose transform is S."""
    model = SimpleNamespace(transform=lambda X: X, representation_=S, **attributes)
    known = _sample_labels.parse_labels(labels, None)
    return _models.Fitted(model=model, X=S, labels=known, held_out=held_out)


class TestMeasures:
    def test_bound_and_sparsities(self) -> None:
        S = np.array([[1.0, 0], [2, 0], [0, 1], [0, 3]])
        hidden = np.array([False, False, False, True])
        attributes = {"lower_bound_": -12.5, "components_": np.eye(2)}
        fitted = fitted_like(S, ["a", "a", "b", "b"], hidden, **attributes)
        between, bound = _models.measure(fitted)
        _, sparsity = _models.measure(replace(fitted, guided=False))
        assert (bound.value, bound.text) == (-12.5, "-12.5")
        assert sparsity.value == sf.metrics.hoyer_sparsity(S)
        wanted = sf.metrics.inter_label_sparsity(S[:3], ["a", "a", "b"]).score
        assert between.value == wanted

    def test_terms_of_topics_that_have_some(self) -> None:
        X = np.array([[1.0, 2, 0], [3, 1, 0], [0, 0, 1], [0, 1, 1]])
        A = np.array([[5.0, 4, 0], [0, 0, 2], [0, 0, 0], [0, 1, 3]])
        model = SimpleNamespace(components_=A)
        fitted = _models.Fitted(model=model, X=X, texts=[""] * 4)
        used = A[[0, 3]]
        metrics = sf.metrics
        scores = [
            metrics.topic_coherence(X, used).score,
            metrics.topic_diversity(used).score,
            metrics.topic_exclusivity(used).score,
        ]
        found = _models.measure(fitted)
        assert [one.key for one in found] == ["coherence", "diversity", "exclusivity"]
        assert [one.value for one in found] == scores
        model.active_components_ = np.array([True, True, True, False])
        (coherence,) = _models.measure(fitted)  # one topic is left
        assert coherence.value == metrics.topic_coherence(X, A[:1]).score
        model.components_ = A[1:3]
        model.active_components_ = np.full(2, True)
        assert _models.measure(fitted) == []


def described_like(S: Any, labels: Any, held_out: Any, **more: Any) -> _models.Fitted:
    """Return a fit whose transform is S, and whose B says that every topic has one class."""
    A = np.eye(S.shape[1]) * np.arange(1, S.shape[1] + 1)  # scales that must not matter
    model = SimpleNamespace(
        transform=lambda X: X,
        representation_=np.full(S.shape, np.nan),  # it saw the labels
        components_=A,
        topics=lambda terms, n_terms: make_topics(
            A, terms, n_terms, np.array(["a", "b"]), np.eye(S.shape[1], 2)
        ),
    )
    known = _sample_labels.parse_labels(labels, None)
    return _models.Fitted(model=model, X=S, labels=known, held_out=held_out, **more)


class TestSharesOfData:
    S = np.array([[3.0, 1 / 2], [1, 3 / 2]])  # amounts: 3 and 1, 1 and 3

    def test_held_out_samples_and_not_the_matrix_of_the_model(self) -> None:
        held_out = np.arange(80) >= 40
        S = np.vstack([np.tile(np.eye(2), (20, 1)), np.tile(self.S, (20, 1))])
        topics, note, counts = _findings.describe_topics(
            described_like(S, ["a", "b"] * 40, held_out), 2
        )
        shares = [[share for _, share in topic.shares] for topic in topics]
        np.testing.assert_allclose(shares, [[0.75, 0.25], [0.25, 0.75]])
        assert counts == [20, 20]
        assert "the 40 samples whose labels were hidden from the fit" in note
        assert sum(topic.size or 0 for topic in topics) == pytest.approx(1)

    def test_all_labeled_samples_where_few_are_held_out(self) -> None:
        held_out = np.arange(40) >= 30
        S = np.vstack([np.tile(np.eye(2), (15, 1)), np.tile(self.S, (5, 1))])
        _, note, counts = _findings.describe_topics(described_like(S, ["a", "b"] * 20, held_out), 2)
        assert counts == [20, 20]
        assert "all 40 samples with labels, hidden ones and others" in note

    def test_large_classes_do_not_dominate(self) -> None:
        labels = ["a"] * 90 + ["b"] * 10
        topics, _, counts = _findings.describe_topics(
            described_like(np.ones((100, 2)), labels, np.ones(100, dtype=bool)), 2
        )
        for topic in topics:
            np.testing.assert_allclose([share for _, share in topic.shares], 0.5)
            assert topic.leading == ()
        assert counts == [90, 10]

    def test_classes_in_natural_order(self) -> None:
        labels = ["10", "9", "2"] * 10
        topics, _, _counts = _findings.describe_topics(
            described_like(np.ones((30, 2)), labels, np.zeros(30, bool)), 2
        )
        assert [label for label, _ in topics[0].shares] == ["2", "9", "10"]

    def test_several_labels(self) -> None:
        labels = [["a"], ["a", "b"], []]
        S = np.array([[1.0, 0], [0, 1 / 2], [5, 5]])
        topics, note, _ = _findings.describe_topics(described_like(S, labels, np.zeros(3, bool)), 2)
        shares = [[share for _, share in topic.shares] for topic in topics]
        np.testing.assert_allclose(shares, [[1, 0], [0.25, 0.75]])
        assert note.endswith("A sample of several labels counts for each in equal parts.")

    def test_fit_that_saw_no_label(self) -> None:
        fitted = described_like(
            np.ones((4, 2)), ["a", "b", "a", ""], np.zeros(4, bool), guided=False
        )
        fitted.model.representation_ = np.vstack([self.S, self.S])
        topics, note, _ = _findings.describe_topics(fitted, 2)
        assert "the 3 samples that have labels" in note
        shares = [share for _, share in topics[0].shares]
        np.testing.assert_allclose(shares, [0.75, 0.25])


class TestExamples:
    def test_most_alike_first_of_those_of_the_topic(self) -> None:
        S = np.array([[1.0, 0], [2, 0], [3, 1], [0, 1], [0, 0]])
        fitted = described_like(S, ["a", "", "b", "b", "a"], np.zeros(5, bool))
        first, second = _findings.find_examples(fitted)
        assert [one.sample for one in first] == [0, 1, 2]
        assert [one.label for one in first] == ["a", "", "b"]
        assert [round(one.share, 2) for one in first] == [1, 1, 0.6]
        assert [one.sample for one in second] == [3]  # sample 2 is more of the first topic
        assert first[0].text == ""

    def test_pure_but_short_samples_are_not_typical(self) -> None:
        topic = np.array([[4.0, 3, 2, 1, 0], [0, 0, 0, 0, 1]])
        X = np.array([[0.0, 0, 0, 1, 0], [4, 3, 2, 0.9, 0.1], [0, 0, 0, 0, 1]])
        S = np.array([[1.0, 0], [0.97, 0.03], [0, 1]])
        fitted = described_like(S, ["a", "b", "b"], np.zeros(3, bool), ids=("id", "pqr"))
        fitted.model.components_, fitted.model.transform = topic, lambda X: S
        for data in (X, sp.csr_array(X)):
            first, _ = _findings.find_examples(replace(fitted, X=data))
            assert [one.id for one in first] == ["q", "p"]

    def test_texts_that_begin_alike_are_shown_once(self) -> None:
        words = ["word " * 60 + end for end in ("x", "y")]
        S = np.array([[9.0, 0], [8, 0], [7, 0]])
        fitted = described_like(S, ["a", "b", "a"], np.zeros(3, bool), texts=[*words, "other"])
        first, second = _findings.find_examples(fitted)
        assert [one.sample for one in first] == [0, 2]
        assert len(first[0].text) <= 200
        assert first[0].text.endswith("word…")
        assert second == []

    def test_images(self) -> None:
        fitted = described_like(np.eye(2), ["a", "b"], np.zeros(2, bool), image_shape=(1, 2))
        first, second = _findings.find_examples(fitted)
        np.testing.assert_array_equal(first[0].image, [[1, 0]])
        np.testing.assert_array_equal(second[0].image, [[0, 1]])

    def test_excerpt(self) -> None:
        assert _findings.shorten(" a\n b\t c ") == "a b c"
        assert _findings.shorten("a" * 300) == "a" * 199 + "…"
        assert _findings.shorten("one two three", 9) == "one two…"
