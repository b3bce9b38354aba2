"""Splits of pairs of users and items: shares, order in time, forms of the data, and refusals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast.selection import split_interactions

RNG = np.random.default_rng(0)
USERS = RNG.integers(0, 30, 400)
USERS[USERS == 7] = 8  # ids need not be successive
NAMES = np.array([f"user {k}" for k in range(30)], dtype=object)[USERS]
MIXED = np.where(USERS > 9, NAMES, USERS)  # text and numbers
TIMES = RNG.integers(0, 50, 400)
TWICE = sp.coo_array(([1.0] * 4, ([0, 1, 0, 0], [2, 0, 1, 2])), shape=(2, 3))


def is_split(train: np.ndarray, test: np.ndarray, count: int) -> bool:
    rising = all((np.diff(side) > 0).all() for side in (train, test))
    return rising and sorted([*train, *test]) == list(range(count))


@each("size", [0.05, 0.2, 0.5, 0.9])
@each("users", [USERS, NAMES, USERS.tolist(), USERS - 0.5, MIXED])
def test_a_share_of_each_user_is_hidden(users, size) -> None:
    train, test = split_interactions(users, test_size=size, random_state=1)
    assert train.dtype == test.dtype == np.int64
    assert is_split(train, test, len(USERS))
    hidden = Counter(USERS[test].tolist())
    for user, count in Counter(USERS.tolist()).items():
        assert abs(hidden[user] - size * count) < 1


@each(("counts", "size"), [([1] * 3000, 0.2), ([7] * 1000, 0.25), ([2, 9] * 500, 0.1)])
def test_shares_are_right_on_average_and_every_pair_is_as_likely(counts, size) -> None:
    users = np.repeat(np.arange(len(counts)), counts)
    _, test = split_interactions(users, test_size=size, random_state=0)
    assert len(test) == pytest.approx(size * len(users), rel=0.07)
    place = np.arange(len(users)) - np.searchsorted(users, users)
    if min(counts) == 7:
        found = np.bincount(place[test], minlength=7) / len(counts)
        np.testing.assert_allclose(found, size, atol=0.05)


@each("times", [TIMES, TIMES / 7, np.datetime64("2020-01-01") + TIMES, TIMES.tolist()])
def test_the_last_pairs_of_each_user_are_hidden(times) -> None:
    train, test = split_interactions(NAMES, by="time", times=times, random_state=0)
    assert is_split(train, test, len(USERS))
    for user in np.unique(USERS):
        kept, hidden = TIMES[train[USERS[train] == user]], TIMES[test[USERS[test] == user]]
        assert len(hidden) == max(1, (len(kept) + len(hidden)) // 5)
        assert kept.max(initial=-1) <= hidden.min()


def test_equal_times_are_in_random_order() -> None:
    users, times = np.repeat(np.arange(2000), 4), np.tile([1, 5, 5, 5], 2000)
    _, test = split_interactions(users, by="time", times=times, test_size=0.25, random_state=0)
    found = np.bincount(test % 4, minlength=4) / 2000
    np.testing.assert_allclose(found, [0, 1 / 3, 1 / 3, 1 / 3], atol=0.04)
    whole = split_interactions([0] * 100, by="time", times=range(100), test_size=0.29)
    assert whole[1].tolist() == [*range(71, 100)]


@each("by", ["user", "time"])
def test_the_seed_decides(by) -> None:
    given = {"by": by, "times": TIMES if by == "time" else None}
    splits = [split_interactions(USERS, **given, random_state=seed)[1] for seed in (3, 3, 4)]
    assert np.array_equal(splits[0], splits[1])
    assert not np.array_equal(splits[0], splits[2])
    generator = np.random.default_rng(3)
    assert np.array_equal(split_interactions(USERS, **given, random_state=generator)[1], splits[0])


@each("seed", range(20))
def test_a_pair_that_occurs_several_times_is_on_one_side(seed) -> None:
    items = np.array(["a", "b", "c", "d"])[RNG.integers(0, 4, len(USERS))]
    pairs = list(zip(USERS.tolist(), items.tolist(), strict=True))
    train, test = split_interactions(NAMES, items, TIMES, test_size=0.3, random_state=seed)
    assert not {pairs[k] for k in train} & {pairs[k] for k in test}
    train, test = split_interactions(NAMES, items, by="time", times=TIMES, random_state=seed)
    first: dict[tuple[int, str], int] = {}
    for pair, time in zip(pairs, TIMES.tolist(), strict=True):
        first[pair] = min(time, first.get(pair, time))
    for user in np.unique(USERS):
        kept = {pairs[k] for k in train if USERS[k] == user}
        hidden = {pairs[k] for k in test if USERS[k] == user}
        assert len(hidden) == 1
        assert not kept & hidden
        assert all(first[pair] <= first[other] for pair in kept for other in hidden)


@each("form", ["csr", "csc", "coo", "lil", "bsr"])
def test_matrices(form) -> None:
    X = sp.random(20, 30, 0.3, random_state=0, format=form)
    train, test = split_interactions(X, random_state=0)
    entries = X.tocoo()
    assert is_split(train, test, entries.nnz)
    counts, hidden = (np.bincount(part, minlength=20) for part in (entries.row, entries.row[test]))
    assert (abs(hidden - 0.2 * counts) < 1).all()
    train, test = split_interactions(X, by="time", times=np.arange(entries.nnz))
    for row in np.flatnonzero(counts):
        assert (
            train[entries.row[train] == row].max(initial=-1) < test[entries.row[test] == row].min()
        )


def test_entries_of_a_matrix_that_occur_twice_are_on_one_side() -> None:
    for seed in range(20):
        train, _ = split_interactions(TWICE, test_size=0.5, random_state=seed)
        assert (0 in train) == (3 in train)


@each(
    ("given", "error", "message"),
    [
        ({"by": "item"}, ValueError, "by must be one of 'user', 'time'; got 'item'"),
        ({"by": "time"}, TypeError, 'times and by="time" must be given together'),
        ({"times": [1, 2, 3]}, TypeError, 'times and by="time" must be given together'),
        ({"test_size": 0}, ValueError, "test_size must be above 0 and below 1; got 0"),
        ({"test_size": 1.0}, ValueError, "test_size must be above 0"),
        ({"test_size": "a"}, TypeError, "test_size must be a number"),
        ({"random_state": -1}, ValueError, "random_state must be"),
        ({"items": [1, 2]}, ValueError, r"items has shape \(2,\), users \(3,\)"),
        ({"values": [1, 2]}, ValueError, r"values has shape \(2,\), users \(3,\)"),
        ({"by": "time", "times": [1]}, ValueError, r"times has shape \(1,\), users \(3,\)"),
        ({"by": "time", "times": [1, np.nan, 2]}, ValueError, "times has missing values"),
        ({"by": "time", "times": np.array(["NaT"] * 3, "M8[D]")}, ValueError, "times has missing"),
        ({"by": "time", "times": ["1", "2", "3"]}, TypeError, "times has dtype <U1"),
        ({"users": []}, ValueError, "at least one"),
        ({"users": [[1, 2]]}, ValueError, r"users must be a vector of ids; got shape \(1, 2\)"),
        ({"users": ["a", None, "b"]}, ValueError, r"users\[1\] is missing"),
        ({"items": [1.0, np.nan, 2.0]}, ValueError, r"items\[1\] is missing"),
        ({"users": TWICE, "items": [1, 2, 3, 4]}, TypeError, "users is a matrix"),
        ({"users": TWICE * 0, "values": [1]}, TypeError, "users is a matrix"),
    ],
)
def test_errors(given, error, message) -> None:
    refused(message, split_interactions, error=error, **{"users": [1, 1, 2], **given})


def test_a_split_feeds_the_measures() -> None:
    """Popular items of the training pairs, as a list for all."""
    items = RNG.integers(0, 25, len(USERS))
    train, test = sf.selection.split_interactions(USERS, items, random_state=0)
    counts = np.bincount(items[train], minlength=25)
    lists = np.tile(np.argsort(-counts)[:10], (30, 1))
    relevant = sp.coo_array((np.ones(len(test)), (USERS[test], items[test])), shape=(30, 25))
    assert 0 < sf.metrics.ranking.ndcg(lists, relevant) < 1
