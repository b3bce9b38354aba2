"""Metrics: brute force, cases by hand, scikit-learn, permutations, sparse as dense, errors."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, permutations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, recall_score

import ssnmf_fast as sf
from ssnmf_fast import metrics
from ssnmf_fast.metrics import _matrices

N, R, K = 30, 5, 4
SEEDS = st.integers(0, 2**32 - 1)
NORMALISATIONS = ("rows", "columns", "none")
REAL = st.floats(0, 1e6, allow_subnormal=False)


def representation(seed: int = 0, n: int = N, r: int = R) -> np.ndarray:
    rng = np.random.default_rng(seed)
    S = rng.random((n, r)) * (rng.random((n, r)) < 0.6)
    S[3] = 0
    return S


def class_numbers(seed: int = 0, n: int = N, k: int = K) -> np.ndarray:
    return np.random.default_rng(seed + 1).permutation(np.arange(n) % k)


def topic_matrix(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed + 2)
    return (rng.random((N, K)) < 0.4).astype(float)


def counts(seed: int = 0, n: int = N, m: int = 12) -> np.ndarray:
    X = np.random.default_rng(seed + 3).poisson(0.7, (n, m))
    X[0] = 1  # every term occurs
    return X


def sparse_forms(Z: np.ndarray) -> list:
    """The same matrix as csr, csc, coo, with unsorted rows, and with a duplicate."""
    csr = sp.csr_array(Z)
    unsorted = csr.copy()
    for begin, end in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        unsorted.indices[begin:end] = csr.indices[begin:end][::-1]
        unsorted.data[begin:end] = csr.data[begin:end][::-1]
    unsorted.has_sorted_indices = False
    coo = sp.coo_array(Z)
    halves = (np.tile(coo.row, 2), np.tile(coo.col, 2))
    doubled = sp.coo_array((np.tile(coo.data / 2, 2), halves), shape=Z.shape)
    return [csr, sp.csc_array(Z), coo, sp.csr_matrix(Z), unsorted, doubled]


def brute_clustering(S: np.ndarray, M: np.ndarray, assignment: str) -> np.ndarray:
    n, r = S.shape
    shares = np.zeros((n, r))
    for i in range(n):
        if not S[i].any():
            continue
        if assignment == "hard":
            shares[i, max(range(r), key=lambda j: (S[i, j], -j))] = 1
        else:
            shares[i] = S[i] / sum(S[i])
    return np.array(
        [
            max(
                sum(shares[i, j] * M[i, c] for i in range(n)) / sum(M[:, c])
                for c in range(len(M[0]))
            )
            for j in range(r)
        ]
    )


def scaled(Z: np.ndarray, normalise: str) -> np.ndarray:
    if normalise == "none":
        return Z
    totals = Z.sum(axis=int(normalise == "rows"), keepdims=True)
    return Z / np.where(totals > 0, totals, 1)


def brute_jaccard(S: np.ndarray, T: np.ndarray, normalise: str) -> np.ndarray:
    U, V = scaled(S, normalise), scaled(T, normalise)
    J = np.zeros((U.shape[1], V.shape[1]))
    for j in range(U.shape[1]):
        for c in range(V.shape[1]):
            low = sum(min(a, b) for a, b in zip(U[:, j], V[:, c], strict=True))
            high = sum(max(a, b) for a, b in zip(U[:, j], V[:, c], strict=True))
            J[j, c] = low / high if high else 0
    return J


def brute_coherence(X: np.ndarray, topic: list[int], measure: str) -> float:
    documents = [set(np.flatnonzero(row > 0)) for row in X]

    def number(*terms: int) -> int:
        return sum(document.issuperset(terms) for document in documents)

    values = []
    for above, below in combinations(topic, 2):
        both = number(above, below)
        if measure == "umass":
            values.append(np.log((both + 1) / number(above)))
        elif both == 0:
            values.append(-1.0)
        elif both == len(X):
            values.append(1.0)
        else:
            joint = both / len(X)
            apart = number(above) / len(X) * number(below) / len(X)
            values.append(np.log(joint / apart) / -np.log(joint))
    return float(np.sum(values) if measure == "umass" else np.mean(values))


def test_import_is_lazy_and_needs_no_scikit_learn() -> None:
    code = (
        "import sys, ssnmf_fast as sf; assert 'ssnmf_fast.metrics' not in sys.modules; "
        "assert 'metrics' in dir(sf); sf.metrics.hoyer_sparsity([1, 2]); "
        "assert 'sklearn' not in sys.modules; assert sf.metrics.__all__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'metric'"):
        _ = sf.metric


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
    def test_sparse_is_dense_in_blocks_too(
        self, assignment: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        S, labels = representation(), class_numbers()
        dense = metrics.clustering_score(S, labels, assignment=assignment)
        monkeypatch.setattr(_matrices, "_BLOCK_ENTRIES", 3 * R)
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

    def test_classes_without_members_and_unlabelled_samples(self) -> None:
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

    @pytest.mark.parametrize("normalise", NORMALISATIONS)
    @pytest.mark.parametrize("seed", range(3))
    def test_brute_force(self, normalise: str, seed: int) -> None:
        S, T, labels = representation(seed), topic_matrix(seed), class_numbers(seed)
        S[:, 1] = T[:, 2] = 0  # two columns of zeros
        weighted = T * np.random.default_rng(seed).random(T.shape)
        for truth, M in ((T, T), (weighted, weighted), (labels, np.eye(K)[labels])):
            expected = brute_jaccard(S, M, normalise)
            found = metrics.jaccard_similarity(S, truth, normalise=normalise)
            np.testing.assert_allclose(found, expected, atol=1e-12)
            matching = metrics.match_topics(S, truth, normalise=normalise)
            best = max(
                sum(expected[topic, k] for k, topic in enumerate(order))
                for order in permutations(range(R), K)
            )
            np.testing.assert_allclose(matching.similarities.sum(), best)
            np.testing.assert_allclose(matching.score, best / K)
            assert matching.n_resolved == (matching.similarities > 0.1).sum()

    @pytest.mark.parametrize("normalise", NORMALISATIONS)
    def test_sparse_is_dense_in_blocks_too(
        self, normalise: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        S, T = representation(), topic_matrix()
        dense = metrics.jaccard_similarity(S, T, normalise=normalise)
        monkeypatch.setattr(_matrices, "_BLOCK_ENTRIES", 3 * R)
        for left, right in zip([S, *sparse_forms(S)], [*sparse_forms(T), T], strict=True):
            found = metrics.jaccard_similarity(left, right, normalise=normalise)
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
        for normalise in NORMALISATIONS:
            matching = metrics.match_topics(T[:, order], T, normalise=normalise)
            assert matching.classes.tolist() == order
            np.testing.assert_allclose(matching.score, 1.0)
            assert (matching.similarities <= 1).all()
            assert matching.n_resolved == K

    def test_unlabelled_are_left_out_and_rows_of_zeros_count(self) -> None:
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
        for normalise in NORMALISATIONS:
            before = metrics.jaccard_similarity(S, T, normalise=normalise)
            after = metrics.jaccard_similarity(
                S[rows][:, topics], T[rows][:, classes], normalise=normalise
            )
            np.testing.assert_allclose(after, before[np.ix_(topics, classes)], atol=1e-12)
        longer = rng.uniform(0.5, 2, (N, 1)) * S
        np.testing.assert_allclose(
            metrics.jaccard_similarity(longer, T), metrics.jaccard_similarity(S, T), atol=1e-12
        )
        wider = S * rng.uniform(0.5, 2, R)
        np.testing.assert_allclose(
            metrics.jaccard_similarity(wider, T, normalise="columns"),
            metrics.jaccard_similarity(S, T, normalise="columns"),
            atol=1e-12,
        )


class TestSparsity:
    @pytest.mark.parametrize(
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
            metrics.inter_label_sparsity(S, labels, unlabelled=-1)
        kept = metrics.inter_label_sparsity(S, class_numbers() - 1, unlabelled=None)
        assert kept.classes.tolist() == [-1, 0, 1, 2]


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

    def test_components(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X, A = counts(), np.random.default_rng(0).random((3, 12))
        A[1] = 0
        A[1, [7, 2, 4]] = [1, 3, 3]
        tops = [np.argsort(-row, kind="stable")[:5] for row in A]
        tops[1] = np.array([2, 4, 7])
        monkeypatch.setattr(_matrices, "_BLOCK_ENTRIES", 12)
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


GOOD = np.arange(8.0).reshape(4, 2)
LABELS = [0, 1, 0, 1]


def changed(value: float) -> np.ndarray:
    S = GOOD.copy()
    S[2, 1] = value
    return S


@pytest.mark.parametrize(
    "call",
    [
        metrics.clustering_score,
        metrics.jaccard_similarity,
        metrics.match_topics,
        metrics.inter_label_sparsity,
    ],
)
@pytest.mark.parametrize(
    ("S", "labels", "error", "message"),
    [
        (changed(-1), LABELS, ValueError, r"S\[2, 1\] = -1"),
        (changed(np.nan), LABELS, ValueError, "S contains NaN; .* Fill the missing"),
        (sp.csr_array(changed(np.nan)), LABELS, ValueError, "S contains NaN; .* Fill the missing"),
        (changed(np.inf), LABELS, ValueError, r"S contains infinity at \[2, 1\]"),
        ([[1.0], [1.0, 2.0]], LABELS, TypeError, "S has dtype object"),
        (GOOD[0], LABELS, ValueError, "S must have two dimensions"),
        (GOOD[:, :0], LABELS, ValueError, "S has shape .* at least one row"),
        (GOOD.astype(str), LABELS, TypeError, "S has dtype <U"),
        (GOOD, LABELS[:3], ValueError, "holds 3 labels; needed is one for each of the 4"),
        (GOOD, [None] * 4, ValueError, "has no labelled sample"),
        (GOOD, [0.5, 1, 0, 1], ValueError, "holds 0.5; labels must be text or whole numbers"),
        (GOOD, [0, np.inf, 0, 1], ValueError, "holds inf"),
        (GOOD, ["a", 1, "a", 1], TypeError, "labels of one kind"),
        (GOOD, np.array(LABELS, dtype=complex), TypeError, "labels must be text or integers"),
    ],
)
def test_errors_of_representations(call, S, labels, error, message) -> None:
    with pytest.raises(error, match=message):
        call(S, labels)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda m: m.clustering_score(GOOD, LABELS, assignment="best"),
            ValueError,
            "assignment must be one of 'hard', 'soft'; got 'best'",
        ),
        (
            lambda m: m.clustering_score(GOOD, np.ones((3, 2))),
            ValueError,
            r"truth has shape \(3, 2\); needed is \(4, 2\)",
        ),
        (lambda m: m.clustering_score(GOOD, np.ones((4, 1))), ValueError, r"truth\.ravel\(\)"),
        (lambda m: m.match_topics(GOOD, np.zeros((4, 2))), ValueError, "truth has no member"),
        (lambda m: m.match_topics(GOOD, -GOOD), ValueError, r"truth\[0, 1\] = -1"),
        (lambda m: m.match_topics(GOOD, np.ones((2, 2, 2))), ValueError, "truth must have one"),
        (lambda m: m.match_topics(GOOD, [[1], [1, 0], [1], [0]]), TypeError, "truth must hold"),
        (
            lambda m: m.match_topics(GOOD, LABELS, normalise="row"),
            ValueError,
            "normalise must be one of 'rows', 'columns', 'none'; got 'row'",
        ),
        (lambda m: m.match_topics(GOOD, LABELS, threshold=2), ValueError, "threshold must be at"),
        (lambda m: m.match_topics(GOOD, LABELS, threshold="x"), TypeError, "threshold must be a"),
        (lambda m: m.match_topics(GOOD, LABELS, unlabelled=[1]), TypeError, "unlabelled must be"),
        (lambda m: m.hoyer_sparsity([1.0]), ValueError, r"x has shape \(1,\)"),
        (lambda m: m.hoyer_sparsity(np.ones((2, 2, 2))), ValueError, r"x has shape \(2, 2, 2\)"),
        (lambda m: m.hoyer_sparsity([1.0, np.nan]), ValueError, "x contains NaN"),
        (lambda m: m.hoyer_sparsity(["a", "b"]), TypeError, "x has dtype <U1"),
        (lambda m: m.inter_label_sparsity(GOOD, [1] * 4), ValueError, "one class only, 1"),
        (lambda m: m.inter_label_sparsity(GOOD, np.eye(4)), ValueError, "labels must have one"),
        (lambda m: m.inter_label_sparsity(GOOD, sp.eye_array(4)), TypeError, "a sparse matrix"),
        (lambda m: m.micro_accuracy(LABELS, [1]), ValueError, "holds 4 labels and y_pred 1"),
        (lambda m: m.macro_accuracy(LABELS, list("abab")), TypeError, "y_true has labels of"),
        (lambda m: m.micro_accuracy([0, 1], [0, None]), ValueError, r"y_pred\[1\] is missing"),
        (lambda m: m.micro_accuracy([], []), ValueError, "y_true has no labelled sample"),
        (lambda m: m.topic_coherence(GOOD), TypeError, "one of components and terms"),
        (
            lambda m: m.topic_coherence(GOOD, GOOD, terms=[[0, 1]]),
            TypeError,
            "one of components and terms",
        ),
        (
            lambda m: m.topic_coherence(GOOD, np.ones((2, 3))),
            ValueError,
            r"components has shape \(2, 3\); needed is \(2, 2\)",
        ),
        (
            lambda m: m.topic_coherence(GOOD, [[1.0, 1.0], [1.0, 0.0]]),
            ValueError,
            r"components\[1\] has 1 terms",
        ),
        (lambda m: m.topic_coherence(GOOD, GOOD, n_terms=1), ValueError, "n_terms must be at"),
        (lambda m: m.topic_coherence(GOOD, terms=[]), ValueError, "terms holds no topic"),
        (lambda m: m.topic_coherence(GOOD, terms=[0, 1]), TypeError, r"give \[terms\]"),
        (lambda m: m.topic_coherence(GOOD, terms=[[0]]), ValueError, r"terms\[0\] is \[0\]"),
        (lambda m: m.topic_coherence(GOOD, terms=[[1, 1]]), ValueError, "different terms"),
        (lambda m: m.topic_coherence(GOOD, terms=[[0, 2]]), ValueError, "0 to 1"),
        (lambda m: m.topic_coherence(GOOD, terms=[[0, 1], [0.5, 1]]), TypeError, "holds 0.5"),
        (lambda m: m.topic_coherence(GOOD, terms="ab"), TypeError, "got str"),
        (lambda m: m.topic_coherence(-GOOD, terms=[[0, 1]]), ValueError, r"X\[0, 1\] = -1"),
        (
            lambda m: m.topic_coherence(GOOD, terms=[[0, 1]], measure="c_v"),
            ValueError,
            "measure must be one of 'npmi', 'umass'",
        ),
        (
            lambda m: m.topic_coherence([[0, 1], [0, 1]], terms=[[0, 1]], measure="umass"),
            ValueError,
            "term 0 of topic 0 occurs in no document",
        ),
    ],
)
def test_errors(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call(metrics)


def test_inputs_are_not_modified() -> None:
    S, T, X = representation(), topic_matrix(), counts()
    labels = class_numbers().astype(object)
    labels[2] = None
    for left, right, data in zip(
        [S, *sparse_forms(S)], [T, *sparse_forms(T)], [X, *sparse_forms(X)], strict=True
    ):
        kept = [Z.copy() for Z in (left, right, data)]
        for truth in (right, labels):
            metrics.clustering_score(left, truth, assignment="soft")
            metrics.clustering_score(left, truth)
            for normalise in NORMALISATIONS:
                metrics.match_topics(left, truth, normalise=normalise)
        metrics.inter_label_sparsity(left, labels)
        metrics.hoyer_sparsity(left)
        metrics.topic_coherence(data, terms=[[3, 1, 2]])
        for Z, copy in zip((left, right, data), kept, strict=True):
            if not sp.issparse(Z):
                assert np.array_equal(Z, copy)
                continue
            assert np.array_equal(Z.data, copy.data)
            for name in ("indices", "indptr", "row", "col"):
                if hasattr(Z, name):
                    assert np.array_equal(getattr(Z, name), getattr(copy, name))
    assert labels[2] is None
