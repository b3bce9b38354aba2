"""Measures of recommendations: against loops, scikit-learn's scores, and what they refuse."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from sklearn.metrics import average_precision_score, ndcg_score

from ssnmf_fast.metrics import ranking

N_USERS, N_ITEMS = 40, 23


@pytest.fixture(scope="module")
def relevant() -> np.ndarray:
    """Numbers of any sign; the first user has nothing above 0, the last more than 10."""
    rng = np.random.default_rng(0)
    table = rng.integers(-2, 6, (N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.4)
    table[0] = -1
    table[-1, :15] = 3
    return table


@pytest.fixture(scope="module")
def lists() -> np.ndarray:
    """All items in random order, with gaps."""
    rng = np.random.default_rng(1)
    table = rng.permuted(np.tile(np.arange(N_ITEMS), (N_USERS, 1)), axis=1)
    table[::3, 2] = -1
    table[::7, 4:] = -1
    return table


def by_hand(measure: str, items: list[int], wanted: set[int], k: int, cap: bool) -> float:
    places = [place for place, item in enumerate(items[:k], 1) if item in wanted]
    most = min(k, len(wanted)) if cap else len(wanted)
    if measure == "ndcg":
        best = sum(1 / log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
        return sum(1 / log2(place + 1) for place in places) / best
    if measure == "precision":
        return len(places) / k
    if measure == "recall":
        return len(places) / most
    return sum(rank / place for rank, place in enumerate(places, 1)) / most


@each("k", [1, 3, 10, N_ITEMS])
@each("cap", [False, True])
@each("measure", ["ndcg", "precision", "recall", "mean_average_precision"])
def test_measures_are_those_of_loops(lists, relevant, measure, k, cap) -> None:
    options = {"cap": cap} if measure in ("recall", "mean_average_precision") else {}
    wanted = [set(np.flatnonzero(row > 0)) for row in relevant]
    pairs = zip(lists.tolist(), wanted, strict=True)
    expected = [by_hand(measure, row, of, k, cap) if of else np.nan for row, of in pairs]
    of_users = getattr(ranking, measure)(lists, relevant, k, per_user=True, **options)
    np.testing.assert_allclose(of_users, expected, rtol=0, atol=1e-14)
    mean = getattr(ranking, measure)(lists, sp.coo_array(relevant), k, **options)
    assert type(mean) is float
    assert mean == pytest.approx(np.nanmean(expected), abs=1e-14)


@each("k", [1, 5, 10])
def test_ndcg_is_that_of_scikit_learn(relevant, k) -> None:
    """Which takes scores of all items."""
    full = np.argsort(np.random.default_rng(2).random(relevant.shape))
    scores = np.empty(relevant.shape)
    np.put_along_axis(scores, full, np.arange(N_ITEMS, 0, -1.0)[np.newaxis], axis=1)
    expected = ndcg_score(relevant[1:] > 0, scores[1:], k=k)
    assert ranking.ndcg(full, relevant, k) == pytest.approx(expected, rel=0, abs=1e-12)


def test_mean_average_precision_of_all_items_is_that_of_scikit_learn(relevant) -> None:
    lists = np.tile(np.arange(N_ITEMS), (N_USERS, 1))
    found = ranking.mean_average_precision(lists, relevant, N_ITEMS, per_user=True)
    for row, value in zip(relevant[1:] > 0, found[1:], strict=True):
        expected = average_precision_score(row, -np.arange(N_ITEMS))
        assert value == pytest.approx(expected, rel=0, abs=1e-12)


def test_perfect_lists_have_1(relevant) -> None:
    best = np.argsort(-relevant, axis=1, kind="stable")
    for measure in (ranking.ndcg, ranking.mean_average_precision, ranking.recall):
        options = {} if measure is ranking.ndcg else {"cap": True}
        found = measure(best, relevant, **options, per_user=True)
        np.testing.assert_allclose(found[1:], 1)


@each("form", [sp.csr_matrix, sp.csc_array, sp.lil_array, np.asfortranarray, np.ndarray.tolist])
def test_forms_of_relevant_items(lists, relevant, form) -> None:
    assert ranking.ndcg(lists, form(relevant)) == ranking.ndcg(lists, relevant)


def test_entries_given_twice_count_once() -> None:
    places = np.array([0, 0, 0]), np.array([1, 1, 2])
    twice = sp.coo_array((np.array([1.0, 2.0, 1.0]), places), shape=(1, 4))
    assert ranking.recall([[1, 0]], twice, k=2) == 0.5


def test_coverage_and_popular_share_are_those_of_loops(lists) -> None:
    shown = [item for row in lists[:5, :3].tolist() for item in row if item >= 0]
    assert ranking.coverage(lists[:5], N_ITEMS, 3) == len(set(shown)) / N_ITEMS
    counts = np.random.default_rng(3).integers(0, 3, N_ITEMS)  # equal ones: the first
    for top, number in [(0.0, 1), (0.01, 1), (0.3, 7), (1.0, N_ITEMS)]:
        popular = sorted(range(N_ITEMS), key=lambda item: -counts[item])[:number]
        expected = np.mean([item in popular for item in shown])
        assert ranking.popular_share(lists[:5], counts, 3, top=top) == expected


def test_no_matrix_of_all_users_and_items() -> None:
    n = 200_000
    relevant = sp.coo_array(([1.0], ([n - 1], [n - 1])), shape=(n, n))
    lists = np.full((n, 1), -1, dtype=np.int32)
    lists[-1] = n - 1
    assert ranking.ndcg(lists, relevant, k=1) == 1
    lists[:-1] = 0
    lists[-1] = -1  # the item before the first of a user is no item of the user before
    assert ranking.ndcg(lists, relevant, k=1) == 0


@each(
    ("call", "error", "message"),
    [
        (lambda L, R: ranking.ndcg(L, R, 0), ValueError, "k must be at least 1"),
        (lambda L, R: ranking.ndcg(L, R, 1.0), TypeError, "k must be an integer"),
        (lambda L, R: ranking.ndcg(L[:, :4], R), ValueError, r"shape \(40, 4\); .* k=10 columns"),
        (lambda L, R: ranking.ndcg(L[0], R), ValueError, "expected a row for each user"),
        (lambda L, R: ranking.ndcg(L / 1, R), TypeError, "recommended has dtype float64"),
        (lambda L, R: ranking.ndcg(L.astype(str), R), TypeError, "recommended has dtype <U"),
        (lambda L, R: ranking.ndcg(L + 1, R), ValueError, "recommended holds 23; .* less than 23"),
        (lambda L, R: ranking.ndcg(L - 1, R), ValueError, "recommended holds -2"),
        (lambda L, R: ranking.ndcg(L[1:], R), ValueError, "39 rows, relevant 40"),
        (lambda L, R: ranking.ndcg(L, np.minimum(R, 0)), ValueError, "no positive entry"),
        (lambda L, R: ranking.ndcg(L, R * np.nan), ValueError, "relevant contains NaN"),
        (
            lambda L, R: ranking.recall([[3, -1, -1, 2, 3]], R[1:2], 5),
            ValueError,
            r"recommended\[0\] has item 3 twice",
        ),
        (lambda L, R: ranking.coverage(L, 22), ValueError, "recommended holds 22"),
        (lambda L, R: ranking.coverage(L, 0), ValueError, "n_items must be at least 1"),
        (lambda L, R: ranking.popular_share(L, [1, 2]), ValueError, "less than 2"),
        (lambda L, R: ranking.popular_share(L, -np.ones(23)), ValueError, "counts"),
        (lambda L, R: ranking.popular_share(L, np.ones(23), top=2), ValueError, "top must be at"),
        (lambda L, R: ranking.popular_share(L * 0 - 1, [1]), ValueError, "-1 everywhere"),
    ],
)
def test_errors(lists, relevant, call, error, message) -> None:
    refused(message, call, lists, relevant, error=error)


def test_inputs_stay_as_they_are(lists, relevant) -> None:
    matrix = sp.csr_array(relevant)
    parts = [lists, matrix.data, matrix.indices, matrix.indptr]
    before = [part.copy() for part in parts]
    ranking.ndcg(lists, matrix)
    assert all(map(np.array_equal, parts, before))
