"""Arguments of the measures: matrices, and true classes of samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import entry_rows, with_values
from .._data.border import check_matrix, check_shape
from .._labels import ClassLabels, label_vector, unmask_labels

# Numbers of a dense block of rows: 16 MB.
_BLOCK_ENTRIES = 1 << 21


def read_matrix(Z: Any, name: str, rows: str, columns: str, *, allow_negative: bool = False) -> Any:
    """Return a finite float64 ndarray or CSR array of at least one row and one column.

    It may share memory with `Z` and must not be written to.
    """
    matrix = check_matrix(Z, name, dtype=np.float64, allow_nan=False, allow_negative=allow_negative)
    if 0 in matrix.shape:
        raise ValueError(
            f"{name} has shape {matrix.shape}; expected at least one row ({rows}) and one column "
            f"({columns})."
        )
    return matrix


def as_array(values: Any) -> Array:
    """Return an array, of objects where the lengths of the rows differ; None for masked entries."""
    try:
        return np.asarray(unmask_labels(values))
    except ValueError:
        return np.asarray(values, dtype=object)


def column_sums(Z: Any) -> Array:
    """Return the sums of the columns, (m,)."""
    return np.asarray(Z.sum(axis=0), dtype=np.float64).ravel()


def row_shares(Z: Any) -> Any:
    """Return Z with rows that sum to 1; rows of zeros stay."""
    sums = _divisors(np.asarray(Z.sum(axis=1), dtype=np.float64).ravel())
    if sp.issparse(Z):
        return with_values(Z, Z.data / sums[entry_rows(Z.indptr)])
    return Z / sums[:, None]


def column_shares(Z: Any) -> Any:
    """Return Z with columns that sum to 1; columns of zeros stay."""
    sums = _divisors(column_sums(Z))
    if sp.issparse(Z):
        return with_values(Z, Z.data / sums[Z.indices])
    return Z / sums


def _divisors(sums: Array) -> Array:
    return np.where(sums > 0, sums, 1.0)


def row_blocks(Z: Any, rows: Array | None = None) -> Iterator[tuple[Array, Array]]:
    """Yield (row numbers, these rows as a dense array), a bounded number at a time."""
    chosen = np.arange(Z.shape[0]) if rows is None else rows
    at_once = max(1, _BLOCK_ENTRIES // Z.shape[1])
    for begin in range(0, len(chosen), at_once):
        some = chosen[begin : begin + at_once]
        block = Z[some]
        yield some, block.toarray() if sp.issparse(block) else block


def read_classes(labels: Any, name: str, n_samples: int | None, unlabeled: Any) -> ClassLabels:
    """Check labels; None, NaN and the marker `unlabeled` stand for no label."""
    vector = label_vector(labels, name)
    if n_samples is not None and len(vector) != n_samples:
        raise ValueError(
            f"{name} holds {len(vector)} labels; expected one for each of the {n_samples} samples."
        )
    found = ClassLabels(vector, unlabeled, name=name)
    if not len(found.known):
        raise ValueError(
            f"{name} has no labeled sample: all of it is marked as unlabeled. Label some "
            "samples, or change `unlabeled`."
        )
    return found


@dataclass(frozen=True, eq=False)
class Memberships:
    """How much samples belong to the true `classes`, (k,).

    `samples` are the numbers of those whose truth is known (None: all), and `matrix` has a row of
    memberships for each of them.
    """

    samples: Array | None
    matrix: sp.csr_array
    classes: Array

    def of(self, S: Any) -> Any:
        """Return the rows of a matrix that belong to these samples."""
        return S if self.samples is None else S[self.samples]


def read_memberships(truth: Any, n_samples: int, unlabeled: Any) -> Memberships:
    """Read labels (n,), or memberships (n, k), dense or sparse."""
    if not sp.issparse(truth) and np.ndim(as_array(truth)) != 2:
        array = as_array(truth)
        text = array.dtype.kind == "U"  # perhaps only since numbers or None stand beside text
        labels = read_classes(truth if text else array, "truth", n_samples, unlabeled)
        samples = None if labels.labeled.all() else np.flatnonzero(labels.labeled)
        return Memberships(samples, labels.matrix(np.float64)[labels.labeled], labels.classes)
    matrix = read_matrix(truth, "truth", "samples", "classes")
    if matrix.shape[1] == 1:
        raise ValueError(
            "truth has one column; expected a column for each class, or a vector of labels "
            "(truth.ravel())."
        )
    check_shape(matrix, (n_samples, matrix.shape[1]), "truth", "one row for each row of S")
    members = sp.csr_array(matrix)
    if not members.data.any():
        raise ValueError("truth has no member of any class: all of it is zero.")
    return Memberships(None, members, np.arange(members.shape[1]))
