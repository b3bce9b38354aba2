"""Results of the recommender."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._common.arrays import Array
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


@dataclass(frozen=True)
class Trial:
    """A model tried on the hidden pairs: name, parameters, and nDCG@10."""

    name: str
    ndcg: float
    n_components: int | None = None
    unseen_weight: float | None = None
    ridge: float | None = None


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
