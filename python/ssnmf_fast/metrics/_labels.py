"""Labels of samples, as the user gives them: classes, places among them, who has one."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._missing import unlabelled_samples
from .._validation import check_shape
from ._matrices import as_array, read_matrix

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """One label for each of some samples.

    Attributes
    ----------
    labelled : ndarray of bool, shape (n,)
        Which samples have one.
    known : ndarray
        The labels of these samples.
    classes : ndarray, shape (k,)
        The different labels, sorted.
    codes : ndarray
        Places of `known` among the classes.
    """

    labelled: Array
    known: Array
    classes: Array
    codes: Array

    def one_hot(self) -> sp.csr_array:
        """Return the classes of the labelled samples, a row of zeros and one 1 for each."""
        n_labelled = len(self.codes)
        places = (np.arange(n_labelled), self.codes)
        return sp.csr_array((np.ones(n_labelled), places), shape=(n_labelled, len(self.classes)))


def read_labels(labels: Any, name: str, n_samples: int | None, unlabelled: Any) -> Labels:
    """Check labels; None, NaN and the marker `unlabelled` stand for no label."""
    array = as_vector(labels, name)
    if n_samples is not None and len(array) != n_samples:
        raise ValueError(
            f"{name} holds {len(array)} labels; needed is one for each of the {n_samples} samples."
        )
    labelled = ~unlabelled_samples(array, name, unlabelled)
    known = plain(array[labelled], name)
    if not len(known):
        raise ValueError(
            f"{name} has no labelled sample: all of it is marked as unlabelled. Label some "
            "samples, or change `unlabelled`."
        )
    classes, codes = np.unique(known, return_inverse=True)
    return Labels(labelled, known, classes, codes)


def as_vector(labels: Any, name: str) -> Array:
    """Return labels as a vector, without turning None or numbers among strings into strings."""
    if sp.issparse(labels):
        raise TypeError(f"{name} must be a vector of labels; got a sparse matrix.")
    array = as_array(labels)
    if array.dtype.kind == "U" and not isinstance(labels, np.ndarray):
        array = np.asarray(labels, dtype=object)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, a label for each sample; got shape {array.shape}. "
            f"Give a column as {name}.ravel()."
        )
    return array


def plain(known: Array, name: str) -> Array:
    """Return labels as an array of text, integers or whole numbers; raise for all else."""
    if known.dtype.kind in "OT":
        items = known.tolist()
        if not (
            all(isinstance(item, str) for item in items)
            or all(isinstance(item, (numbers.Real, np.bool_)) for item in items)
        ):
            raise TypeError(
                f"{name} must hold labels of one kind, all text or all numbers; convert them, for "
                f"example with [str(label) for label in {name}]."
            )
        known = np.array(items)
    if known.dtype.kind not in "biufUS":
        raise TypeError(f"{name} has dtype {known.dtype}; labels must be text or integers.")
    if known.dtype.kind == "f":
        fractions = ~np.isfinite(known) | (np.trunc(known) != known)
        if fractions.any():
            raise ValueError(
                f"{name} holds {known[fractions][0]:g}; labels must be text or whole numbers. Cut "
                "a continuous target into classes first."
            )
    return known


def is_text(known: Array) -> bool:
    """Return whether labels are text."""
    return known.dtype.kind in "US"


@dataclass(frozen=True, eq=False)
class Memberships:
    """How much the samples belong to true classes.

    Attributes
    ----------
    samples : ndarray or None
        Numbers of the samples whose truth is known, where others are not; None: all.
    matrix : csr_array, shape (number of these samples, k)
        Their memberships.
    classes : ndarray, shape (k,)
        The classes.
    """

    samples: Array | None
    matrix: sp.csr_array
    classes: Array

    def of(self, S: Any) -> Any:
        """Return the rows of a matrix that belong to these samples."""
        return S if self.samples is None else S[self.samples]


def read_memberships(truth: Any, n_samples: int, unlabelled: Any) -> Memberships:
    """Read labels (n,), or memberships (n, k), dense or sparse."""
    if not sp.issparse(truth) and np.ndim(as_array(truth)) != 2:
        labels = read_labels(truth, "truth", n_samples, unlabelled)
        samples = None if labels.labelled.all() else np.flatnonzero(labels.labelled)
        return Memberships(samples, labels.one_hot(), labels.classes)
    matrix = read_matrix(truth, "truth", "samples", "classes")
    if matrix.shape[1] == 1:
        raise ValueError(
            "truth has one column; needed is a column for each class, or a vector of labels "
            "(truth.ravel())."
        )
    check_shape(matrix, (n_samples, matrix.shape[1]), "truth", "one row for each row of S")
    members = sp.csr_array(matrix)
    if not members.data.any():
        raise ValueError("truth has no member of any class: all of it is zero.")
    return Memberships(None, members, np.arange(members.shape[1]))
