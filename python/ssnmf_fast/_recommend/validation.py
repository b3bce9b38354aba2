"""Hidden pairs: splits of pairs for a test, and the choice among settings of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, MatrixLike, Seed, VectorLike
from .._common.warn import warn_user
from .._data.arrays import as_array, drop_entries, inspect_sparse
from .._data.border import check_option, check_random_state, check_share
from ..metrics import ranking
from . import factors, lists
from .factors import Setting
from .pairs import numbered, read_ids


def split_interactions(
    users: MatrixLike,
    items: VectorLike = None,
    values: VectorLike = None,
    *,
    by: Literal["user", "time"] = "user",
    times: VectorLike = None,
    test_size: float = 0.2,
    random_state: Seed = None,
) -> tuple[Array, Array]:
    """Split pairs of users and items into training and test pairs.

    Parameters
    ----------
    users : array_like, shape (p,), or sparse, shape (n, m)
        User of each pair; or a matrix of users and items with p stored entries.
    items : array_like, shape (p,), optional
        Item of each pair.  If it is given, repeated pairs stay together, and the first time of a
        pair counts.
    values : array_like, shape (p,), optional
        Not used, so that triplets can be passed.
    by : {"user", "time"}
        Test pairs of each user: a random share, exact on average ("user"), or the last pairs, at
        least one, with equal times in random order ("time").
    times : array_like of numbers or datetime64, shape (p,), optional
        Time of each pair, for ``by="time"``.
    test_size : float
        Share of the pairs of each user in the test, above 0 and below 1.
    random_state : None, int, Generator or RandomState
        Seed.

    Returns
    -------
    train, test : ndarray of int64
        Sorted places of the pairs in the arrays, or in the entries of ``users.tocoo()``.

    Raises
    ------
    TypeError
        If `times` has the wrong type, or `times` does not match `by`.
    ValueError
        If lengths differ, an id or a time is missing, or an option is unknown or out of range.

    Examples
    --------
    >>> from ssnmf_fast.selection import split_interactions
    >>> train, test = split_interactions(["ann"] * 3 + ["bo"] * 2, by="time",
    ...                                  times=[7, 9, 8, 2, 1])
    >>> train.tolist(), test.tolist()
    ([0, 2, 4], [1, 3])
    """
    check_option(by, "by", ("user", "time"))
    share, rng = check_share(test_size, "test_size"), check_random_state(random_state)
    if (times is None) == (by == "time"):
        raise TypeError('times and by="time" must be given together; give both or neither.')
    if sp.issparse(users):
        if items is not None or values is not None:
            raise TypeError("users is a matrix of users and items; leave out items and values.")
        entries = inspect_sparse(users, "users")[0].tocoo()
        user, item = entries.row.astype(np.int64), entries.col
    else:
        user = numbered(read_ids(users, "users"))[1]
        item = np.arange(len(user)) if items is None else numbered(read_ids(items, "items"))[1]
    n_pairs = len(user)
    moments = np.zeros(n_pairs) if times is None else _read_moments(times)
    if moments.dtype.kind not in "biufM":
        how = "expected numbers or datetime64. Convert text, and dates with a time zone, by "
        how += "pandas.to_datetime(times, utc=True)"
        raise TypeError(f"times has dtype {moments.dtype}; {how}.")
    for name, part in (("items", item), ("values", values), ("times", moments)):
        if part is not None and (np.shape(part) != (n_pairs,) or not n_pairs):
            what = "expected equal shapes and at least one pair"
            raise ValueError(f"{name} has shape {np.shape(part)}, users ({n_pairs},); {what}.")
    if np.isnan(moments).any():
        raise ValueError("times has missing values; leave out pairs without a time.")
    order = np.lexsort((rng.random(n_pairs), moments))
    pair = user * (int(item.max()) + 1) + item
    _, first, unit = np.unique(pair[order], return_index=True, return_inverse=True)
    of = user[order[first]]  # rising
    counts = np.bincount(of)
    turn: Array = rng.random(len(first)) if by == "user" else first
    most = share * counts + (rng.random(len(counts)) if by == "user" else 1e-9)
    hidden = np.maximum(np.floor(most), by == "time")
    last = np.empty(len(of), dtype=bool)
    last[np.lexsort((turn, of))] = np.arange(len(of)) >= (np.cumsum(counts) - hidden)[of]
    tested = np.empty(n_pairs, dtype=bool)
    tested[order] = last[unit]
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def _read_moments(times: VectorLike) -> Array:
    """Return times as numbers, or as dates in UTC."""
    if getattr(getattr(times, "dtype", None), "tz", None) is not None:  # of pandas
        times = np.asarray(times, dtype="M8[ns]")
    moments = as_array(times, "times", allow_objects=True)
    if any(isinstance(one, date) for one in moments.ravel()[:1].tolist()):
        return read_ids(moments, "times")
    return as_array(times, "times")


_HIDDEN, _CUT = 0.1, 10


@dataclass(frozen=True)
class Trial:
    """A model tried on the hidden pairs: name, parameters, and nDCG@10."""

    name: str
    ndcg: float
    n_components: int | None = None
    unseen_weight: float | None = None
    ridge: float | None = None


def best_setting(
    Z: sp.csr_array,
    liked: Array,
    settings: Sequence[Setting],
    larger: int | None,
    passes: int,
    rng: np.random.Generator,
    threads: int,
) -> tuple[Setting, list[Trial]]:
    """Return the setting with the largest nDCG at the `liked` pairs of a hidden tenth.

    A `larger` rank is tried with the best setting.
    """
    hidden = np.zeros(Z.nnz, dtype=bool)
    hidden[split_interactions(Z, test_size=_HIDDEN, random_state=rng)[1]] = True
    seed, trials, relevant = int(rng.integers(2**31)), list[Trial](), drop_entries(Z, ~hidden)
    relevant.data = liked[hidden].astype(np.float32)
    if not relevant.data.any():
        warn_user("Too few pairs to validate: the defaults are used.", UserWarning)
        return settings[0], trials
    kept = drop_entries(Z, hidden)
    popularity = lists.popularity(kept)

    def ndcg(scores: Callable[[slice], Array]) -> float:
        items, _ = lists.best_items(scores, Z.shape, _CUT, kept, None, threads)
        return float(ranking.ndcg(items, relevant, _CUT))

    def score_of(setting: Setting) -> float:
        F, G = factors.factorize_pairs(kept, setting, passes, np.random.default_rng(seed), threads)
        score = ndcg(lists.Scores(F, G, kept, None, popularity, 0.0).block)
        trials.append(Trial("Recommender", score, *setting[:3]))
        return score

    best = max(settings, key=score_of)
    largest = max(trial.ndcg for trial in trials)
    if larger is not None and score_of(wide := best._replace(n_components=larger)) > largest:
        best, largest = wide, trials[-1].ndcg
    of_popular = ndcg(lists.popular_scores(popularity))
    trials.append(Trial("popular items", of_popular))
    if of_popular >= largest:
        warn_user(
            f"Popular items have nDCG@{_CUT} {of_popular:.3f} at hidden pairs, the model only "
            f"{largest:.3f}: too few pairs per user. Recommend popular items.",
            UserWarning,
        )
    return best, trials
