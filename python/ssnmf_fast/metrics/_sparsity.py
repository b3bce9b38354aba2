"""Arguments of the metrics, and measures of sparsity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, MatrixLike
from .._common.docstrings import completing
from .._common.text import short
from .._data.arrays import entry_rows, unmask, with_values
from .._data.border import check_matrix, check_shape
from .._labels import ClassLabels, label_vector, unmask_labels

complete_docstring = completing(
    """What the metrics share.

Parameters
----------
S : array_like or sparse, shape (n, r)
    Nonnegative representation.
truth : array_like, shape (n,), or array_like or sparse, shape (n, k)
    True class of each sample (text or integers), or nonnegative memberships with a column for each
    class (at least two); a row of zeros is a sample without a class, not a missing label.
normalize : {"rows", "columns", "none"}
    Scaling of both matrices before the comparison: the weights of each sample ("rows") or of each
    topic ("columns") sum to 1, unless all are 0; "none" leaves them as they are.
unlabeled : "auto", None or a label
    Marker of unlabeled samples in a vector of labels, in addition to None and NaN; these samples
    are left out.  "auto" means -1, unless the labels are exactly -1 and 1: then both are classes,
    and a warning is issued.  Pass -1 if it always marks unlabeled samples, None if no label does.
components : array_like or sparse, shape (r, m)
    Nonnegative dictionary; the terms of largest weight are used.
n_terms : int
    Number of terms taken from each row, at least 1; terms of weight 0 are skipped.

Raises
------
TypeError
    If values are not numbers, or labels are of mixed kinds.
ValueError
    If shapes do not match, entries are negative or missing, no sample is labeled, a row of
    `components` is zero, or an option is unknown or out of range.
"""
)
_BLOCK_ENTRIES = 1 << 21  # of a dense block of rows: 16 MB


def read_matrix(Z: MatrixLike, name: str, *, allow_negative: bool = False) -> Any:
    """Return a finite, nonempty float64 ndarray or CSR array, which must not be modified."""
    matrix = check_matrix(Z, name, dtype=np.float64, allow_nan=False, allow_negative=allow_negative)
    if 0 in matrix.shape:
        expected = "expected at least one row and one column"
        raise ValueError(f"{name} has shape {matrix.shape}; {expected}.")
    return matrix


def as_array(values: object) -> Array:
    """Return an array, of objects if the rows differ in length; masked entries become None."""
    try:
        return np.asarray(unmask_labels(values))
    except ValueError:
        return np.asarray(values, dtype=object)


def sums_along(Z: Any, axis: int) -> Array:
    """Return the sums of the columns (axis 0) or rows (axis 1) of a matrix, 1-D."""
    return np.asarray(Z.sum(axis=axis), dtype=np.float64).ravel()


def shares_along(Z: Any, axis: int) -> Any:
    """Return Z with columns (axis 0) or rows (axis 1) divided by their sums, unless these are 0."""
    sums = sums_along(Z, axis)
    sums = np.where(sums > 0, sums, 1.0)
    if sp.issparse(Z):
        return with_values(Z, Z.data / sums[entry_rows(Z.indptr) if axis else Z.indices])
    return Z / np.expand_dims(sums, axis)


def row_blocks(Z: Any, rows: Array | None = None) -> Iterator[tuple[Array, Array]]:
    """Yield (row numbers, these rows as a dense array), a bounded number at a time."""
    numbers = np.arange(Z.shape[0]) if rows is None else rows
    at_once = max(1, _BLOCK_ENTRIES // Z.shape[1])
    for begin in range(0, len(numbers), at_once):
        part = numbers[begin : begin + at_once]
        block = Z[part]
        yield part, block.toarray() if sp.issparse(block) else block


def read_classes(
    labels: npt.ArrayLike, name: str, n_samples: int, unlabeled: object
) -> ClassLabels:
    vector = label_vector(labels, name)
    if len(vector) != n_samples:
        expected = f"expected one for each of the {n_samples} samples"
        raise ValueError(f"{name} holds {len(vector)} labels; {expected}.")
    classes = ClassLabels(vector, unlabeled, name=name)
    if not len(classes.values):
        why = "all are marked as unlabeled. Label some samples, or change `unlabeled`"
        raise ValueError(f"{name} has no labeled sample: {why}.")
    return classes


def read_truth(
    S: MatrixLike, truth: MatrixLike, unlabeled: object
) -> tuple[Any, sp.csr_array, Array]:
    """Return the rows of S whose truth is known, their memberships (n, k), and the classes (k,)."""
    S = read_matrix(S, "S")
    if not sp.issparse(truth) and np.ndim(array := as_array(truth)) != 2:
        text = array.dtype.kind == "U"  # perhaps numbers or None among text
        labels = read_classes(truth if text else array, "truth", S.shape[0], unlabeled)
        rows = S if labels.labeled.all() else S[labels.labeled]
        return rows, labels.matrix(np.float64)[labels.labeled], labels.classes
    matrix = read_matrix(truth, "truth")
    if matrix.shape[1] == 1:
        expected = "a column for each class, or a vector of labels (truth.ravel())"
        raise ValueError(f"truth has one column; expected {expected}.")
    check_shape(matrix, (S.shape[0], matrix.shape[1]), "truth", "one row for each row of S")
    members = sp.csr_array(matrix)
    if not members.data.any():
        raise ValueError("truth has no member of any class: all entries are zero.")
    return S, members, np.arange(members.shape[1])


@dataclass(frozen=True, eq=False)
class InterLabelSparsity:
    """Result of :func:`inter_label_sparsity`.

    Attributes
    ----------
    score : float
        Hoyer sparsity of all class sums, 0 to 1.
    per_topic : ndarray of float64, shape (r,)
        Hoyer sparsity of the class sums of each topic.
    class_sums : ndarray of float64, shape (r, k)
        Weights of each topic, summed over the samples of each class.
    classes : ndarray, shape (k,)
        The classes, sorted.
    """

    score: float
    per_topic: Array
    class_sums: Array
    classes: Array


def hoyer_sparsity(x: MatrixLike) -> float:
    r"""Return Hoyer's sparsity of a vector, or of all entries of a matrix.

    :math:`(\sqrt n - \|x\|_1 / \|x\|_2) / (\sqrt n - 1)` for n entries ([1]_, equation 12; [2]_): 1
    if a single entry is not zero, 0 if all have the same size.

    Parameters
    ----------
    x : array_like or sparse, shape (n,) or (n, m)
        At least two finite numbers of any sign.

    Returns
    -------
    float
        From 0 to 1; 0 for zeros.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014.
    .. [2] P. O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR, 2004.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.metrics.hoyer_sparsity([0.0, 0.0, 5.0, 0.0])
    1.0
    >>> round(sf.metrics.hoyer_sparsity([[3.0, 4.0], [0.0, 0.0]]), 4)
    0.6
    """
    x = unmask(x, "x", allow_nan=False)
    values: Any = x if sp.issparse(x) else np.atleast_2d(as_array(x))
    if values.ndim == 1:  # sparse
        values = values.tocoo().reshape(1, -1)
    n_entries = math.prod(values.shape)
    if values.ndim != 2 or n_entries < 2:
        expected = "expected a vector or a matrix of at least two entries"
        raise ValueError(f"x has shape {np.shape(x)}; {expected}.")
    matrix = read_matrix(values, "x", allow_negative=True)
    entries = matrix.data if sp.issparse(matrix) else matrix
    return float(_sparsity(entries.reshape(1, -1), n_entries)[0])


@complete_docstring
def inter_label_sparsity(
    S: MatrixLike, labels: npt.ArrayLike, *, unlabeled: object = "auto"
) -> InterLabelSparsity:
    """Return how few classes use each topic: the sparsity of the class sums of S.

    The rows of S are summed over the samples of each class ([1]_, equation 13).  The Hoyer sparsity
    of these sums is high if each class uses few topics.

    Parameters
    ----------
    labels : array_like, shape (n,)
        Class of each sample, text or integers; at least two classes.

    Returns
    -------
    InterLabelSparsity

    Notes
    -----
    As in the paper, the sums depend on the sizes of the classes and the scale of the topics.  A
    topic that no labeled sample uses has sparsity 0.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> S = [[2.0, 1.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]
    >>> result = sf.metrics.inter_label_sparsity(S, ["car", "car", "sea", None])
    >>> result.class_sums.tolist()
    [[3.0, 0.0], [1.0, 1.0]]
    >>> result.per_topic.round(6).tolist(), round(result.score, 4)
    ([1.0, 0.0], 0.4924)
    """
    representation = read_matrix(S, "S")
    targets = read_classes(labels, "labels", representation.shape[0], unlabeled)
    n_classes = len(targets.classes)
    if n_classes < 2:
        only = f"{short(targets.classes.tolist()[0])}; expected labeled samples of at least two"
        raise ValueError(f"labels has one class only, {only}.")
    sums = targets.matrix(np.float64).T @ representation
    sums = np.ascontiguousarray((sums.toarray() if sp.issparse(sums) else sums).T)
    score = float(_sparsity(sums.reshape(1, -1), sums.size)[0])
    return InterLabelSparsity(score, _sparsity(sums, n_classes), sums, targets.classes)


def _sparsity(entries: Array, n_entries: int) -> Array:
    """Return the Hoyer sparsity of every row, filled up to `n_entries` by zeros."""
    sizes = np.abs(entries)
    largest = sizes.max(axis=1, initial=0.0, keepdims=True)
    sizes = sizes / np.where(largest > 0, largest, 1.0)  # squares neither overflow nor vanish
    lengths = np.sqrt((sizes * sizes).sum(axis=1))
    equal = np.full(len(sizes), math.sqrt(n_entries))  # for rows of zeros
    ratios = np.divide(sizes.sum(axis=1), lengths, out=equal, where=lengths > 0)
    sparsity = (math.sqrt(n_entries) - ratios) / (math.sqrt(n_entries) - 1)
    return np.asarray(np.clip(sparsity, 0.0, 1.0))
