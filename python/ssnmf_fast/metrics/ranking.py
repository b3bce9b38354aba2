"""Measures of lists of recommended items, given the items that users like."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .._common.arrays import Array, MatrixLike
from .._common.docstrings import completing
from .._data.arrays import as_array, entry_rows, sample
from .._data.border import check_integer, check_real, check_vector
from ._sparsity import read_matrix

__all__ = ["coverage", "mean_average_precision", "ndcg", "popular_share", "precision", "recall"]

_complete_docstring = completing(
    """What the measures share.

Parameters
----------
recommended : array_like of int, shape (n, at least k)
    The list of each user: columns of items, best first; -1 for no item.
relevant : array_like or sparse, shape (n, m)
    Users and items: positive entries are relevant.  Users without any are left out of the mean.
k : int
    Number of items of each list that count, at least 1.
cap : bool
    Divide by k if more than k items are relevant, so that the best list scores 1.
per_user : bool
    Return the values of all users, shape (n,), instead of the mean; NaN for those left out.

Returns
-------
float
    From 0 to 1.

Raises
------
TypeError
    If `recommended` does not hold integers, or another argument has the wrong type.
ValueError
    If shapes do not match, a list has an item twice or one out of range, or no item is relevant.
"""
)


def _read_lists(recommended: ArrayLike, k: int, n_items: int) -> Array:
    """Return the first k items of every list, int64, (n x k)."""
    lists, k = as_array(recommended, "recommended"), check_integer(k, "k", 1)
    expected = "expected columns of items, best first, with -1 for no item"
    if lists.dtype.kind not in "iu":
        raise TypeError(f"recommended has dtype {lists.dtype}; {expected}.")
    if lists.ndim != 2 or lists.shape[1] < k:
        what = f"expected a row for each user and at least k={k} columns. Give a smaller k"
        raise ValueError(f"recommended has shape {lists.shape}; {what}.")
    lists = lists[:, :k].astype(np.int64)
    for wrong in lists[(lists < -1) | (lists >= n_items)][:1]:
        raise ValueError(f"recommended holds {wrong}; {expected}, less than {n_items}.")
    ordered = np.sort(lists, axis=1)
    for user, place in np.argwhere((np.diff(ordered) == 0) & (ordered[:, 1:] >= 0))[:1]:
        raise ValueError(f"recommended[{user}] has item {ordered[user, place]} twice; {expected}.")
    return lists


def _hits(recommended: ArrayLike, relevant: MatrixLike, k: int) -> tuple[Array, Array]:
    """Return whether items of lists are relevant, (n x k), and numbers of relevant items, (n,)."""
    liked = sp.csr_array(read_matrix(relevant, "relevant", allow_negative=True))
    n_users, n_items = liked.shape
    lists = _read_lists(recommended, k, n_items)
    if len(lists) != n_users:
        rows = f"recommended has {len(lists)} rows, relevant {n_users}"
        raise ValueError(f"{rows}; expected a row for each user in both, in the same order.")
    counts = np.bincount(entry_rows(liked.indptr)[liked.data > 0], minlength=n_users)
    if not counts.any():
        raise ValueError("relevant has no positive entry; expected a relevant item of some user.")
    csr = lists.ravel(), np.maximum(lists, 0).ravel(), np.arange(0, lists.size + 1, k)
    values = sample(liked, sp.csr_array(csr, shape=liked.shape)).data.reshape(lists.shape)
    return (values > 0) & (lists >= 0), counts


def _mean(values: Array, counts: Array, per_user: bool) -> float | Array:
    return np.where(counts, values, np.nan) if per_user else float(values[counts > 0].mean())


@_complete_docstring
def ndcg(
    recommended: ArrayLike, relevant: MatrixLike, k: int = 10, *, per_user: bool = False
) -> float | Array:
    r"""Return the normalized discounted cumulative gain (nDCG) of lists.

    A relevant item at place i (from 1) gains :math:`1 / \log_2(i + 1)`; the gain of a list is
    divided by that of the best possible list (Jarvelin and Kekalainen, ACM TOIS 20, 2002).

    Examples
    --------
    >>> from ssnmf_fast.metrics import ranking
    >>> recommended, relevant = [[2, 0], [1, 0]], [[0, 0, 1], [1, 0, 0]]
    >>> ranking.ndcg(recommended, relevant, k=2, per_user=True).round(4).tolist()
    [1.0, 0.6309]
    """
    hits, counts = _hits(recommended, relevant, k)
    gains = 1 / np.log2(np.arange(2, k + 2))
    best = np.cumsum(gains)[np.minimum(counts, k) - 1]
    return _mean((hits * gains).sum(axis=1) / best, counts, per_user)


@_complete_docstring
def precision(
    recommended: ArrayLike, relevant: MatrixLike, k: int = 10, *, per_user: bool = False
) -> float | Array:
    """Return the number of relevant items in lists, divided by k.

    Examples
    --------
    >>> from ssnmf_fast.metrics import ranking
    >>> ranking.precision([[2, 0], [1, 0]], [[0, 0, 1], [1, 1, 0]], k=2)
    0.75
    """
    hits, counts = _hits(recommended, relevant, k)
    return _mean(hits.mean(axis=1), counts, per_user)


@_complete_docstring
def recall(
    recommended: ArrayLike,
    relevant: MatrixLike,
    k: int = 10,
    *,
    cap: bool = False,
    per_user: bool = False,
) -> float | Array:
    """Return the share of the relevant items that are in the lists.

    Examples
    --------
    >>> from ssnmf_fast.metrics import ranking
    >>> recommended, relevant = [[2], [1]], [[0, 0, 1], [1, 1, 0]]
    >>> ranking.recall(recommended, relevant, k=1)
    0.75
    >>> ranking.recall(recommended, relevant, k=1, cap=True)
    1.0
    """
    hits, counts = _hits(recommended, relevant, k)
    return _mean(hits.sum(axis=1) / np.clip(counts, 1, k if cap else None), counts, per_user)


@_complete_docstring
def mean_average_precision(
    recommended: ArrayLike,
    relevant: MatrixLike,
    k: int = 10,
    *,
    cap: bool = False,
    per_user: bool = False,
) -> float | Array:
    """Return the mean average precision (MAP).

    The average of a user is taken over the relevant items: the precision of the list up to the
    item, or 0 for an item that is not in the list.

    Examples
    --------
    >>> from ssnmf_fast.metrics import ranking
    >>> ranking.mean_average_precision([[2, 0], [1, 0]], [[0, 0, 1], [1, 0, 0]],
    ...                                k=2)
    0.75
    """
    hits, counts = _hits(recommended, relevant, k)
    sums = (hits * np.cumsum(hits, axis=1) / np.arange(1, k + 1)).sum(axis=1)
    return _mean(sums / np.clip(counts, 1, k if cap else None), counts, per_user)


@_complete_docstring
def coverage(recommended: ArrayLike, n_items: int, k: int = 10) -> float:
    """Return the share of all items that occur in any list.

    Parameters
    ----------
    n_items : int
        Number of all items, at least 1.

    Examples
    --------
    >>> from ssnmf_fast.metrics import ranking
    >>> ranking.coverage([[2, 0], [2, 1]], n_items=4, k=2)
    0.75
    """
    lists = _read_lists(recommended, k, check_integer(n_items, "n_items", 1))
    return len(np.unique(lists[lists >= 0])) / n_items


@_complete_docstring
def popular_share(
    recommended: ArrayLike, counts: ArrayLike, k: int = 10, *, top: float = 0.01
) -> float:
    """Return the share of the recommendations that are among the most popular items.

    Parameters
    ----------
    counts : array_like, shape (m,)
        Number of times that each item occurs in the data.
    top : float, 0 to 1
        Share of the items that count as popular, rounded to at least one item.

    Examples
    --------
    >>> from ssnmf_fast.metrics import ranking
    >>> ranking.popular_share([[2, 0], [2, 1]], [3, 1, 9, 0], k=2)
    0.5
    """
    occur = check_vector(counts, "counts", np.size(counts), np.float64)
    lists = _read_lists(recommended, k, len(occur))
    n_popular = max(1, round(check_real(top, "top", maximum=1) * len(occur)))
    items = lists[lists >= 0]
    if not len(items):
        raise ValueError("recommended is -1 everywhere; expected at least one item.")
    return float(np.isin(items, np.argsort(-occur, kind="stable")[:n_popular]).mean())
