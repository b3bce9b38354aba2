"""The best items for every user, of those that they have not rated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._data.csr import entry_rows

_BLOCK_ENTRIES = 4_000_000  # predictions held at a time (32 MB of float64)


def recommendations(
    completion: Any, rated: sp.csr_array, top: int
) -> Iterator[tuple[int, int, int, float]]:
    """Yield user, rank (from 1), item and predicted rating, user by user and best first.

    The stored entries of `rated` (n, m) are left out.  A user gets `top` items, or all if fewer are
    left.
    """
    n, m = rated.shape
    step = max(1, _BLOCK_ENTRIES // m)
    for first in range(0, n, step):
        last = min(first + step, n)
        for user, items, values in _best(completion, rated, first, last, min(top, m)):
            for rank, (item, value) in enumerate(zip(items, values, strict=True), start=1):
                yield user, rank, item, value


def _best(
    completion: Any, rated: sp.csr_array, first: int, last: int, top: int
) -> Iterator[tuple[int, list[int], list[float]]]:
    losses = -(completion.left[first:last] @ completion.right)  # the least comes first
    indptr = rated.indptr[first : last + 1]
    losses[entry_rows(indptr), rated.indices[slice(*indptr[[0, -1]])]] = np.inf
    items = np.argpartition(losses, top - 1, axis=1)[:, :top]
    chosen = np.take_along_axis(losses, items, axis=1)
    order = np.lexsort((items, chosen), axis=1)  # of equal predictions the first item
    items = np.take_along_axis(items, order, axis=1)
    chosen = np.take_along_axis(chosen, order, axis=1)
    values = np.clip(completion.offset - chosen, completion.lower, completion.upper)
    for row in range(last - first):
        count = int(np.count_nonzero(np.isfinite(chosen[row])))
        yield first + row, items[row, :count].tolist(), values[row, :count].tolist()
