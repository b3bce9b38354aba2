"""Observed entries from what a caller passes: an array with NaN, a sparse matrix, or triplets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import MatrixLike
from .._common.text import short
from .._common.warn import UNINFORMED, is_quiet, warn_user
from .._data.arrays import (
    DUPLICATES,
    as_array,
    check_dtype,
    inspect_csr,
    inspect_sparse,
    list_entries,
    require_real,
    sample,
)
from .._data.border import check_integer, check_matrix, read_pattern

_LONG = (
    "A table with one entry on a line, such as user, item and rating, is given as "
    "(rows, columns, values)."
)
_IDS = "Ids become positions by numpy.unique: users, rows = numpy.unique(ids, return_inverse=True)."


def read_observed(
    M: MatrixLike | tuple[npt.ArrayLike, ...],
    observed: MatrixLike | None,
    shape: tuple[int, int] | None,
    n_threads: int,
    dtype: npt.DTypeLike | None = None,
) -> sp.csr_array:
    """Return the observed entries as a CSR array with sorted rows; explicit zeros are kept."""
    if isinstance(M, tuple):
        if observed is not None:
            raise ValueError("observed must be None where M is (rows, columns, values).")
        matrix = _without_repeats(_triplets(M, shape))
    elif shape is not None:
        raise ValueError("shape belongs to M = (rows, columns, values); leave it out.")
    elif sp.issparse(M):
        matrix = _sorted(M, n_threads)
        if observed is not None:
            matrix = sample(matrix, _pattern(observed, matrix.shape))
    else:
        matrix = _from_dense(M, observed)
    signs: dict[str, Any] = {"allow_nan": False, "allow_negative": True}
    matrix = check_matrix(matrix, "M", dtype=check_dtype(dtype), **signs, n_threads=n_threads)
    if matrix.nnz == 0:
        raise ValueError("M has no observed entry; at least one is needed.")
    return matrix


def _triplets(M: tuple[npt.ArrayLike, ...], shape: tuple[int, int] | None) -> sp.coo_array:
    if len(M) != 3:
        raise ValueError(f"M must be (rows, columns, values); got a tuple of {len(M)}.")
    values = as_array(M[2], "values of M")
    try:
        rows, columns = as_array(M[0], "rows of M"), as_array(M[1], "columns of M")
    except TypeError as error:
        raise TypeError(f"{error} {_IDS}") from error
    if not rows.shape == columns.shape == values.shape or rows.ndim != 1:
        raise ValueError(
            "rows, columns and values of M must be vectors of one length; got shapes "
            f"{rows.shape}, {columns.shape} and {values.shape}."
        )
    for name, index in (("rows", rows), ("columns", columns)):
        if index.size and index.dtype.kind not in "iu":
            raise TypeError(
                f"{name} of M must be integers, positions from 0; got dtype {index.dtype}. {_IDS}"
            )
        if index.size and index.min() < 0:
            raise ValueError(f"{name} of M must be at least 0; got {index.min()}.")
        if index.size and index.max() >= np.iinfo(np.int32).max:
            raise ValueError(f"{name} of M must be below 2147483647; got {index.max()}.")
    n, m = (int(index.max()) + 1 if index.size else 0 for index in (rows, columns))
    if shape is None:
        shape = n, m
    elif isinstance(shape, (tuple, list)) and len(shape) == 2:
        shape = check_integer(shape[0], "shape[0]", 1), check_integer(shape[1], "shape[1]", 1)
    else:
        raise ValueError(f"shape must be (rows, columns); got {short(shape)}.")
    if n > shape[0] or m > shape[1]:
        raise ValueError(f"M has entries beyond shape {shape}; expected at least {n, m}.")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"values of M must be real numbers; got dtype {values.dtype}.")
    return sp.coo_array((values, (rows, columns)), shape=shape)


def _without_repeats(matrix: sp.coo_array) -> sp.csr_array:
    matrix = inspect_sparse(matrix, "M")[0]
    if matrix.data.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    result = matrix.tocsr()
    if result.nnz != len(matrix.data):
        places = matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col
        ordered = np.sort(places)
        repeated = int(ordered[1:][ordered[1:] == ordered[:-1]][0])
        raise ValueError(
            f"M holds the entry {list(divmod(repeated, matrix.shape[1]))} more than once; merge "
            "repeated entries first, for example by their mean."
        )
    return result


def _sorted(M: sp.sparray | sp.spmatrix, n_threads: int) -> sp.csr_array:
    if M.format not in ("csr", "csc"):
        return _without_repeats(inspect_sparse(M, "M")[0].tocoo())
    matrix, state = inspect_csr(M, "M", n_threads)
    if state == DUPLICATES:
        return _without_repeats(matrix.tocoo())
    return matrix if matrix.has_sorted_indices else matrix.sorted_indices()


def _from_dense(M: MatrixLike, observed: MatrixLike | None) -> sp.csr_array:
    try:
        M = as_array(M, "M", allow_nan=True)
        M = as_array(M.astype(object), "M") if M.dtype.kind in "SU" else M
        require_real(M.dtype, "M")
    except TypeError as error:
        raise TypeError(f"{error} {_LONG} {_IDS}") from error
    array = check_matrix(M, "M", allow_negative=True)
    if observed is None:
        pattern = ~np.isnan(array)
    else:
        pattern = _pattern(observed, array.shape).toarray()
        if np.isnan(array[pattern]).any():
            row, column = np.argwhere(pattern & np.isnan(array))[0]
            raise ValueError(f"M[{row}, {column}] is NaN, but `observed` is True there.")
    return list_entries(array, pattern)


def _pattern(observed: MatrixLike, shape: tuple[int, int]) -> sp.csr_array:
    mask = read_pattern(observed, "observed")
    if not sp.issparse(observed) and np.any((mask.data != 0) & (mask.data != 1)):
        raise TypeError("observed must be a mask: True (1) where an entry is observed.")
    if mask.shape != shape:
        raise ValueError(f"observed has shape {mask.shape}; expected {shape}, that of M.")
    mask = mask.astype(bool)
    mask.sum_duplicates()
    mask.eliminate_zeros()
    return mask


def empty_lines(matrix: sp.csr_array) -> tuple[int, int]:
    n, m = matrix.shape
    rows = int(np.count_nonzero(np.diff(matrix.indptr)))
    return n - rows, m - len(np.unique(matrix.indices))


def only_value(matrix: sp.csr_array) -> float | None:
    """The value of all entries, if there are several and it is the same one other than 0."""
    values = matrix.data
    first = float(values[0])
    return first if len(values) > 1 and first != 0 and bool(np.all(values == first)) else None


def counts(rows: int, columns: int, names: tuple[str, str] = ("row", "column")) -> str:
    """Return a text with the numbers of rows and columns, or of what else they are."""
    pairs = zip((rows, columns), names, strict=True)
    return " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in pairs if count)


def is_long(matrix: sp.csr_array) -> bool:
    """Return whether a matrix looks like a table of row, column and value, one entry on a line."""
    n, m = matrix.shape
    if m != 3 or n <= m or np.bincount(matrix.indices)[:2].min() < n:
        return False
    ids = matrix[:, :2].toarray()
    pairs = len(np.unique(ids, axis=0))
    repeated = max(len(np.unique(side)) for side in ids.T) < n
    return pairs == n and repeated and bool(np.all(ids == ids.round()))


def warn_of_uninformed(
    matrix: sp.csr_array, fill_value: float, *, biases: bool, listed: bool
) -> None:
    """Warn of empty rows and columns, of equal entries, or of none missing; listed: triplets."""
    if is_quiet(UNINFORMED):
        return
    hint = "" if listed else f" {_LONG}"
    if matrix.nnz == matrix.shape[0] * matrix.shape[1]:
        warn_user(
            "M has no missing entry, so there is nothing to complete: missing is NaN in a dense "
            f"M, and what is not stored in a sparse one.{hint}",
            UserWarning,
        )
    elif not listed and is_long(matrix):
        warn_user(f"The first two of the three columns of M look like ids.{hint}", UserWarning)
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
            f"All {len(matrix.data)} observed entries of M are {value:g}: the completion is "
            "meaningless. If they stand for what users did (implicit feedback), what they did "
            "not do is 0, not missing: use NMF on the whole matrix instead.",
            UserWarning,
        )
