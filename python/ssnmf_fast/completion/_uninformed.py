"""Data that say nothing of some entries, or of all: what is told of them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._common.warn import UNINFORMED, is_quiet, warn_user


def empty_lines(matrix: sp.csr_array) -> tuple[int, int]:
    """Number of rows and of columns without an entry."""
    n, m = matrix.shape
    rows = int(np.count_nonzero(np.diff(matrix.indptr)))
    return n - rows, m - len(np.unique(matrix.indices))


def only_value(matrix: sp.csr_array) -> float | None:
    """The value of all entries, if there are several and it is the same one other than 0."""
    values = matrix.data
    first = float(values[0])
    return first if len(values) > 1 and first != 0 and bool(np.all(values == first)) else None


def counts(rows: int, columns: int, names: tuple[str, str] = ("row", "column")) -> str:
    """Say how many rows and columns, or what else they are, there are."""
    pairs = zip((rows, columns), names, strict=True)
    return " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in pairs if count)


def warn_of_uninformed(matrix: sp.csr_array, fill_value: float, *, biases: bool) -> None:
    """Warn of rows and columns without an entry, and of entries that are all equal."""
    if is_quiet(UNINFORMED):
        return
    empty = empty_lines(matrix)
    if any(empty):
        filled = f"fill_value = {fill_value:g}"
        if biases:
            filled = "the mean of M plus the bias of the other side (of the column for a row)"
        warn_user(
            f"M has no observed entry in {counts(*empty)}; these are completed by {filled}.",
            UserWarning,
        )
    value = only_value(matrix)
    if value is not None and len(matrix.data) < matrix.shape[0] * matrix.shape[1]:
        warn_user(
            f"All {len(matrix.data)} observed entries of M are {value:g}, so the completion tells "
            "nothing. If they stand for what users did (implicit feedback), what they did not do "
            "is 0, not missing: use NMF on the whole matrix instead.",
            UserWarning,
        )
