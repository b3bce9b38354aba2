"""Lists of the items with the largest scores, and reasons of a score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._data.entries import row_slices
from .._data.threads import Stop, run_side_by_side
from .._topics import Records

COLUMNS = ("user", "item", "score", "rank")


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations:
    """Lists of items for users; the result of :meth:`Recommender.recommend`.

    Attributes
    ----------
    users : list
        Ids of the users, or names of new users.
    items : ndarray, shape (users, n)
        Ids of the items, best first, filled up with None.
    scores : ndarray, shape (users, n)
        Scores of the items, filled up with NaN.
    popular : ndarray of bool, shape (users,)
        Users who like none of the known items.  They get the most popular items, scored by the
        share of users with the item.
    """

    users: list[Any]
    items: Array
    scores: Array
    popular: Array

    def __repr__(self) -> str:
        k, n = self.items.shape
        popular = f", {int(self.popular.sum())} with popular items" if self.popular.any() else ""
        return f"Recommendations({n} items for {k} users{popular})"

    def to_rows(self) -> Records[dict[str, Any]]:
        """Return a dictionary for each item of each user: user, item, score and rank (from 1)."""
        rows = (dict(zip(COLUMNS, row, strict=True)) for row in rows_of(self))
        return Records(rows, COLUMNS)

    def to_frame(self) -> Any:
        """Return a table of :meth:`to_rows` (needs pandas)."""
        return self.to_rows().to_frame()


def rows_of(lists: Recommendations) -> Iterator[tuple[Any, Any, float, int]]:
    for user, *row in zip(lists.users, lists.items, lists.scores.tolist(), strict=True):
        for rank, (item, score) in enumerate(zip(*row, strict=True), 1):
            if item is not None:
                yield user, item, score, rank


class Reasons(NamedTuple):
    """Why an item has its score for a user; the result of :meth:`Recommender.explain`.

    Attributes
    ----------
    score : float
        The score from the factors.
    items : list of (item, float)
        Items of the user and their contributions to the score, largest first.
    parts : ndarray, shape (r,)
        Contribution of each component to the score.
    """

    score: float
    items: list[tuple[Any, float]]
    parts: Array


_ENTRIES = 1 << 23  # of a block of scores, users x items
_NEIGHBORS = 0.5  # weight of a standardized score by neighbors


class Scores:
    """Scores of items for users: products of factors, optionally plus scores by neighbors."""

    def __init__(
        self, F: Array, G: Array, Z: sp.csr_array, W: Array | None, popularity: Array, power: float
    ) -> None:
        self.F, self.G, self.Z, self.W = F, G, Z, W
        self.users = np.asarray(F.any(axis=1))  # users who like items; others get popular items
        self.popularity, self.weights = popularity, popularity**power if power else None

    def block(self, rows: slice) -> Array:
        """Return the scores of some users, (users, m)."""
        scores = self.F[rows] @ self.G.T
        if self.W is not None:
            scores = _standardized(scores)
            scores += np.float32(_NEIGHBORS) * _standardized(np.asarray(self.Z[rows] @ self.W))
        if self.weights is not None:  # popular items lose, also if scores are negative
            scores = np.where(scores > 0, scores / self.weights, scores * self.weights)
        scores[~self.users[rows]] = self.popularity
        return np.asarray(scores)


def _standardized(scores: Array) -> Array:
    scores -= scores.mean(axis=1, keepdims=True)
    deviations = scores.std(axis=1, keepdims=True)
    return np.asarray(scores / np.where(deviations > 0, deviations, 1))


def best_items(
    scores: Callable[[slice], Array],
    shape: tuple[int, int],
    n: int,
    seen: sp.csr_array | None,
    allowed: Array | None,
    threads: int,
) -> tuple[Array, Array]:
    """Return columns of the `n` largest scores of each row, best first, and the scores.

    Equal scores are in the order of the columns; missing items are -1 and NaN.
    """

    def task(rows: slice, n_threads: int, stop: Stop) -> tuple[Array, Array]:
        del n_threads, stop
        block = np.asarray(scores(rows), dtype=np.float32)
        if seen is not None:
            pairs = seen[rows]
            block[entry_rows(pairs.indptr), pairs.indices] = -np.inf
        if allowed is not None:
            block = block[:, allowed]
        return _largest(block, n)

    tasks = [partial(task, rows) for rows in row_slices(shape[0], max(1, _ENTRIES // shape[1]))]
    nothing = np.empty((0, n), np.int64), np.empty((0, n), np.float32)  # of no users
    blocks = [nothing, *run_side_by_side(tasks, min(threads, len(tasks) or 1), 1)]
    columns, values = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    if allowed is not None:
        columns = np.append(allowed, -1)[columns]  # -1 stays -1
    return columns, values


def _largest(block: Array, n: int) -> tuple[Array, Array]:
    rows, m = block.shape
    count = min(n, m)
    columns = np.full((rows, n), -1, dtype=np.int64)
    values = np.full((rows, n), np.nan, dtype=np.float32)
    least = np.partition(block, m - count, axis=1)[:, m - count, None]
    line, at = np.nonzero((block >= least) & np.isfinite(block))
    order = np.lexsort((at, -block[line, at], line))
    line, at = line[order], at[order]
    begins = np.searchsorted(line, np.arange(rows))
    place = np.arange(len(line)) - begins[line]
    some = place < count
    columns[line[some], place[some]] = at[some]
    values[line[some], place[some]] = block[line[some], at[some]]
    return columns, values


def popularity(X: sp.csr_array) -> Array:
    """Return the share of users with each item, float32; at least half of one user."""
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return np.asarray(np.maximum(counts, 0.5) / X.shape[0], dtype=np.float32)


def popular_scores(popularity: Array) -> Callable[[slice], Array]:
    """Return scores that are the same for all users."""
    return lambda rows: np.tile(popularity, (rows.stop - rows.start, 1))
