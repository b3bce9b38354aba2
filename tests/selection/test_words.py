"""The number of topics of texts: by the words that topics predict."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf


def texts(n_topics: int, n: int = 600, words: int = 40, length: int = 30, seed: int = 0):
    """Return counts of texts of one topic each; every topic has words of its own."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(n_topics, size=n)
    rows = np.repeat(np.arange(n), length)
    own = topics[rows] * words + np.minimum(rng.geometric(0.1, len(rows)) - 1, words - 1)
    other = rng.integers(n_topics * words, size=len(rows))
    columns = np.where(rng.random(len(rows)) < 0.7, own, other)
    X = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n_topics * words))
    X.sum_duplicates()
    return X


def shuffled(X, seed=0):
    rng, C = np.random.default_rng(seed), X.tocoo()
    columns = np.repeat(C.col, C.data.astype(int))
    rows = np.repeat(C.row, C.data.astype(int))
    Y = sp.csr_array((np.ones(len(rows)), (rows, rng.permutation(columns))), shape=X.shape)
    Y.sum_duplicates()
    return Y


def choose(X, **more):
    return sf.choose_rank(X, criterion="words", **{"random_state": 0, **more})


@pytest.mark.slow
@each("n_topics", [3, 8])
def test_planted_topics_are_in_the_range(n_topics):
    choice = choose(texts(n_topics))
    assert choice.low <= n_topics <= choice.high
    assert choice.rank == n_topics
    assert repr(choice) == f"{n_topics} topics; {choice.low} to {choice.high} would do"
    assert choice.criterion == "words"
    assert choice.larger_is_better
    np.testing.assert_allclose(choice.measures["perplexity"], np.exp(-choice.scores))


@each("seed", range(3))
def test_words_without_topics(seed):
    choice = choose(shuffled(texts(5), seed), random_state=seed)
    assert (choice.rank, choice.low, choice.high) == (1, 1, 1)
    assert str(choice) == ("no topics found: the words of a text do not predict its other words")


@each(
    ("ranks", "text", "note"),
    [
        ([300], "one topic predicts hidden words as well as", "try some below 300"),
        ([2, 4], "4 or more would do", "The best is the largest rank tried, 4: try larger ones"),
        ([40, 60], "40 or fewer to", "try some below 40"),
    ],
)
def test_no_more_is_said_than_the_ranks_show(ranks, text, note):
    rng = np.random.default_rng(0)
    A, S = rng.dirichlet([0.03] * 400, 12), rng.dirichlet([0.05] * 12, 800)
    choice = choose(sp.csr_array(rng.poisson(60 * S @ A).astype(float)), ranks=ranks, n_jobs=1)
    assert text in str(choice)
    assert any(note in one for one in choice.notes)


def test_data_on_disk_are_refused(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(np.eye(4)), compressed=False)
    X = sf.io.open_csr(tmp_path / "X.npz")
    for call in (lambda: choose(X), lambda: sf.NMF("auto").fit(X)):
        refused("X is on disk, and the choice by words", call, error=TypeError)


def test_counts_presence_and_weights_are_the_same_texts():
    X = texts(4, n=200)
    rng = np.random.default_rng(0)
    expected = choose(X).scores
    for Z in (X > 0, X.tocsc(), X * 0.1, X.astype(np.float32), weighted(X, rng)):
        np.testing.assert_array_equal(choose(Z).scores, expected)


def weighted(X, rng):
    Z = X.copy()
    Z.data = rng.random(X.nnz) + 0.5
    return Z


def test_threads_change_no_bit():
    X = texts(4, n=200)
    expected = choose(X, n_threads=1)
    for more in ({"n_threads": 2}, {"n_threads": 4, "n_jobs": 2}):
        np.testing.assert_array_equal(choose(X, **more).scores, expected.scores)


def test_topics_that_recur():
    choice = choose(texts(3, n=300), stability=True)
    assert choice.recurring == choice.rank == 3
    assert repr(choice).endswith("3 of 3 topics recur in the other half of the texts")


def test_ranks_may_be_given():
    choice = choose(texts(3, n=200), ranks=[3, 2])
    assert choice.ranks == (1, 2, 3)
    assert choice.rank == 3
    assert choice.to_rows()[0]["rank"] == 1


def test_small_texts():
    assert choose(sp.csr_array(np.eye(2))).rank == 1
    assert choose(sp.csr_array(np.ones((1, 5)))).rank == 1
    empty = sp.csr_array(np.diag([1.0, 1, 0, 1]))
    assert choose(empty).rank == 1


@pytest.mark.parametrize(
    ("X", "more", "message"),
    [
        (np.ones((4, 5)), {}, r"in a sparse matrix; got ndarray.*choose_rank\(X, ranks\)"),
        (sp.csr_array((3, 4)), {}, "no entry above 0"),
        (sp.csr_array(-np.eye(3)), {}, "negative"),
        (sp.csr_array(np.eye(3)), {"y": [0, 1, 1]}, "does not take y"),
        (sp.csr_array(np.eye(3)), {"X_weights": np.ones((3, 3))}, "does not take X_weights"),
        (sp.csr_array(np.eye(3)), {"estimator": sf.NMF()}, "does not take estimator"),
        (sp.csr_array(np.eye(3)), {"loss": "frobenius"}, "does not take loss"),
        (sp.csr_array(np.eye(3)), {"n_splits": 0}, "n_splits must be at least 1"),
        (sp.csr_array(np.eye(3)), {"validation_fraction": 1.0}, "validation_fraction"),
    ],
)
def test_what_is_refused(X, more, message):
    refused(message, choose, X, **more)


def test_other_criteria_need_ranks():
    refused(r"'held-out' needs ranks.*criterion='words'", sf.choose_rank, np.ones((4, 5)))
    with pytest.raises(ValueError, match="stability=True needs criterion='words'"):
        sf.choose_rank(np.ones((4, 5)), [2], stability=True)
