"""True classes of samples: labels, or how much each sample belongs to each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import check_shape
from .._labels import ClassLabels, label_vector
from ._matrices import as_array, read_matrix


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
