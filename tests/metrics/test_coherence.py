"""Coherence: cases by hand, brute force, permutations, sparse as dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import SEEDS, N, brute_c_v, brute_coherence, brute_windows, counts, sparse_forms
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

    def test_components(self) -> None:
        X, A = counts(), np.random.default_rng(0).random((3, 12))
        A[1] = 0
        A[1, [7, 2, 4]] = [1, 3, 3]
        tops = [np.argsort(-row, kind="stable")[:5] for row in A]
        tops[1] = np.array([2, 4, 7])
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
        for measure in ("npmi", "umass", "c_v"):
            before = metrics.topic_coherence(X, terms=[topic], measure=measure).score
            after = metrics.topic_coherence(moved, terms=[renamed], measure=measure).score
            assert after == pytest.approx(before)
        for measure in ("npmi", "c_v"):
            shuffled = metrics.topic_coherence(X, terms=[rng.permutation(topic)], measure=measure)
            assert -1 <= shuffled.score <= 1
            same = metrics.topic_coherence(X, terms=[topic], measure=measure)
            assert shuffled.score == pytest.approx(same.score)


WORDS = [f"w{k}" for k in range(12)]


def token_lists(seed: int) -> list[list[str]]:
    """Texts of 0 to 25 tokens, some of which no topic has."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(20))
    words = np.array([*WORDS, *(f"other{k}" for k in range(8))])
    lengths = [0, *rng.integers(1, 26, 19)]
    return [rng.choice(words, length, p=weights).tolist() for length in lengths]


class TestTexts:
    @pytest.mark.parametrize("window", [1, 4, 110])
    @pytest.mark.parametrize("seed", range(2))
    def test_brute_force(self, window: int, seed: int) -> None:
        texts = token_lists(seed)
        rng = np.random.default_rng(seed)
        topics = [rng.permutation(WORDS)[:size].tolist() for size in (2, 5, 8)]
        topics.append(["w0", "never", "w1"])
        windows = brute_windows(texts, window)
        expected = [brute_c_v(windows, topic) for topic in topics]
        present = np.array([[word in one for word in [*WORDS, "never"]] for one in windows])
        columns = [[[*WORDS, "never"].index(word) for word in topic] for topic in topics]
        found = metrics.topic_coherence(
            texts=iter(texts), terms=topics, measure="c_v", window=window
        )
        np.testing.assert_allclose(found.per_topic, expected, atol=1e-12)
        assert found.score == pytest.approx(np.mean(expected))
        npmi = metrics.topic_coherence(texts=texts, terms=topics, window=window)
        by_matrix = metrics.topic_coherence(present, terms=columns)
        assert np.array_equal(npmi.per_topic, by_matrix.per_topic)

    @settings(max_examples=20)
    @given(seed=SEEDS)
    def test_range_and_permutations(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        texts, A = token_lists(seed), rng.random((4, 12))
        given = {"feature_names": WORDS, "window": 6, "measure": "c_v", "n_terms": 5}
        found = metrics.topic_coherence(texts=texts, components=A, **given).per_topic
        assert (np.abs(found) <= 1).all()
        topics, columns = rng.permutation(4), rng.permutation(12)
        given["feature_names"] = np.array(WORDS)[columns]
        again = metrics.topic_coherence(
            texts=[texts[k] for k in rng.permutation(len(texts))],
            components=A[topics][:, columns],
            **given,
        ).per_topic
        np.testing.assert_allclose(again, found[topics], atol=1e-12)

    def test_whole_texts_are_rows_of_a_matrix(self) -> None:
        texts = [*token_lists(0), WORDS]  # UMass needs every word
        X = np.array([[text.count(word) for word in WORDS] for text in texts])
        A = np.random.default_rng(0).random((3, 12))
        for measure in ("npmi", "umass", "c_v"):
            found = [
                metrics.topic_coherence(
                    texts=texts, components=A, feature_names=WORDS, window=width, measure=measure
                ).per_topic
                for width in (None, 25)
            ]
            expected = metrics.topic_coherence(X, A, measure=measure).per_topic
            np.testing.assert_allclose(found[0], expected, atol=1e-12)
            assert np.array_equal(found[0], found[1])

    def test_values_of_gensim(self) -> None:
        """Of CoherenceModel(coherence="c_v"), gensim 4.4, for the same topics and texts."""
        texts = [list("abcd"), list("abe"), list("cdf"), list("abcf"), list("def"), list("be")]
        topics = [list("abc"), list("def"), list("abcdef")]
        found = metrics.topic_coherence(texts=texts, terms=topics, measure="c_v").per_topic
        np.testing.assert_allclose(
            found, [0.802856277447, 0.492620734151, 0.269609268954], atol=1e-11
        )
