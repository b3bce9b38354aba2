"""What classifiers are trained on: labels with weights, samples without gaps, their directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import check_vector
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._labels import ClassLabels, Targets
from .._linalg.randomized_svd import randomized_svd
from .._solver.weights import Outer, as_weights
from .._topics import class_means

N_DIRECTIONS = 50
_OVERSAMPLES, _POWER_STEPS = 10, 2
_BLOCK_ENTRIES = 1 << 22  # of X at a time, where they are filled


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of n samples."""

    members: Array  # (n, k): 1 for the classes of a sample, 0 elsewhere
    entry_weights: Array  # (n, k): how much each of these counts, 0 where it is unknown
    several: bool

    @property
    def known(self) -> Array:
        """Whether any label of a sample counts, (n,)."""
        return np.asarray(self.entry_weights.any(axis=1))

    @property
    def codes(self) -> Array:
        """Class of every sample, (n,); 0 where there is none."""
        return np.asarray(self.members.argmax(axis=1))

    @property
    def counts(self) -> Array:
        """Number of known samples of each class, (k,)."""
        return np.asarray((self.members[self.known] > 0).sum(axis=0))

    def prior(self) -> Array:
        """Return the share of each class among the samples of which it is known, (k,)."""
        seen = (self.entry_weights > 0).sum(axis=0)
        return np.asarray((self.members > 0).sum(axis=0) / np.maximum(seen, 1))

    def only(self, rows: Array) -> TrainingLabels:
        """Return the labels of some samples, all others being unknown."""
        return replace(self, entry_weights=self.entry_weights * rows[:, None])

    def part(self, rows: Array) -> TrainingLabels:
        """Return some samples with their labels."""
        return replace(self, members=self.members[rows], entry_weights=self.entry_weights[rows])

    def class_shares(self, shares: Array) -> Array:
        """Return the mean shares (r, k) of the classes, of the shares of the known samples."""
        rows = self.known
        return class_means(shares, self.members[rows] * (self.entry_weights[rows] > 0))

    def targets(self, rows: Array) -> Array:
        """Return what the readout is fitted to, for some rows: codes, or indicators."""
        return self.members[rows] if self.several else self.codes[rows]

    def readout_weights(self, rows: Array) -> Array:
        """Return weights for the readout, (rows,) or with several labels (rows, k)."""
        chosen = self.entry_weights[rows]
        if self.several:
            return chosen
        of_class = chosen[np.arange(len(chosen)), self.codes[rows]]
        return np.asarray(of_class / of_class.mean() if of_class.any() else of_class)


def label_weights(sample_weight: Any, labeled: Array) -> Array:
    """Return the weight of the labels of every sample, (n,): 0 where it is unlabeled."""
    if sample_weight is None:
        return labeled.astype(np.float64)
    given = check_vector(sample_weight, "sample_weight", len(labeled), np.float64)
    return np.where(labeled, given, 0.0)


def as_outer(rows: Array) -> Outer | None:
    """Return weights of samples as weights of Y; None stands for ones."""
    return None if (rows == 1).all() else Outer(rows, None)


def labels_for_training(
    targets: Targets, sample_weight: Any = None, chosen: Any = None
) -> TrainingLabels:
    """Return weighted labels, of `chosen` samples if given; those of weight 0 are unknown."""
    Y: Any = targets.matrix(np.float64)
    rows = label_weights(sample_weight, targets.labeled)
    if chosen is not None:
        Y, rows = Y[chosen], rows[chosen]
    members = Y.toarray() if sp.issparse(Y) else np.array(Y, dtype=np.float64)
    weights = np.where(np.isnan(members), 0.0, rows[:, None])
    if not weights.any():
        raise ValueError(
            "The weights of all labels are zero. Give at least one labeled sample a weight above 0."
        )
    members[weights == 0] = 0
    return TrainingLabels(members, weights, not isinstance(targets, ClassLabels))


def visible(X: Any, X_weights: Any) -> Any:
    """Return X with 0 where an entry has no weight, as far as the form of the weights tells it."""
    if X_weights is None or sp.issparse(X_weights):  # the fit refuses the latter
        return X
    return as_weights(X_weights, "X_weights").hide(X)


@one_blas_thread()
def filled(X: Any, S: Array | None = None, A: Array | None = None, absent: Any = None) -> Any:
    """Return X with S A, or 0 without factors, where X is NaN or entries are `absent`."""
    if sp.issparse(X) and sp.issparse(absent):
        rest = sp.csr_array(X - X.multiply(absent))
        places = absent.nonzero()
        values = np.zeros(len(places[0])) if S is None or A is None else (S @ A)[places]
        return rest + sp.csr_array((values.astype(X.dtype), places), shape=X.shape)
    missing = False if sp.issparse(X) else np.isnan(X)
    if absent is not None:
        missing = missing | (absent.toarray() if sp.issparse(absent) else absent)
    if not np.any(missing):
        return X
    X = X.toarray() if sp.issparse(X) else np.array(X)
    X[missing] = 0 if S is None or A is None else (S @ A)[missing]
    return X


def row_blocks(X: Any, X_weights: Any) -> Iterator[tuple[slice, Any, Any]]:
    """Yield bounded numbers of rows: which, these of X, and where they are missing, or None."""
    if isinstance(X, CsrFile):
        for rows, block in X.blocks():
            yield rows, block, None
        return
    if X_weights is None:
        yield slice(None), X, None
        return
    absent = as_weights(X_weights, "X_weights").absent(X.shape)
    step = max(1, _BLOCK_ENTRIES // X.shape[1])
    for begin in range(0, X.shape[0], step):
        rows = slice(begin, begin + step)
        yield rows, X[rows], absent(rows)


def row_sums(X: Any) -> Array:
    """Return the sum of every sample, float64; NaN counts as 0."""
    if isinstance(X, CsrFile):
        return np.concatenate([np.asarray(block.sum(axis=1)).ravel() for _, block in X.blocks()])
    if sp.issparse(X):
        return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.nansum(X, axis=1, dtype=np.float64))


def unit_rows(X: Any) -> Any:
    """Return X with rows of length 1, float64; empty rows stay."""
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        if matrix.nnz <= np.iinfo(np.int32).max:  # liblinear takes no other indices
            matrix.indices = matrix.indices.astype(np.int32, copy=False)
            matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
        largest = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
        _divide_rows(matrix, largest)
        _divide_rows(matrix, np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()))
        return matrix
    array = np.array(X, dtype=np.float64)
    for norm in (np.abs(array).max(axis=1, initial=0.0), None):
        length = np.linalg.norm(array, axis=1) if norm is None else norm
        array /= np.where(length > 0, length, 1)[:, None]
    return array


def _divide_rows(matrix: Any, lengths: Array) -> None:
    lengths = np.where(lengths > 0, lengths, 1)
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))


@dataclass(frozen=True)
class Context:
    """Scores of samples in the leading directions, (n, d), and rows of length 1; or nothing."""

    parts: tuple[Any, ...] = ()

    def __getitem__(self, chosen: Array) -> Context:
        return Context(tuple(part[chosen] for part in self.parts))

    def features(self, shares: Array, row_scale: float) -> Any:
        """Return the features, (n, p): Hellinger coordinates of the shares, scores, rows."""
        topics = np.sqrt(shares)
        if not self.parts:
            return topics
        scores, rows = self.parts
        parts = [topics, scores, row_scale * rows]
        if sp.issparse(rows):
            return sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts], format="csr"))
        return np.hstack(parts)


@one_blas_thread()
def directions_of(X: Any, X_weights: Any, seed: int, n_threads: int | None) -> Array | None:
    """Return leading right singular vectors of the rows of X at length 1, (d, m), or None."""
    # On disk, on a cluster, or with weights only the topics of X are seen.
    if X_weights is not None or not (isinstance(X, np.ndarray) or sp.issparse(X)):
        return None
    rows = unit_rows(filled(X))
    _, singular, Vt = randomized_svd(
        rows,
        min(N_DIRECTIONS, *rows.shape),
        n_oversamples=_OVERSAMPLES,
        n_power=_POWER_STEPS,
        random_state=seed,
        n_threads=n_threads,
    )
    # A direction without data is noise of rounding.
    kept = singular > singular[0] * 1e-10 if len(singular) else singular > 0
    return np.asarray(Vt[kept])


@one_blas_thread()
def context_of(X: Any, directions: Array | None) -> Context:
    """Return the context of complete samples; without directions it is empty."""
    if directions is None or not len(directions):
        return Context()
    rows = unit_rows(X)
    return Context((unit_rows(np.asarray(rows @ directions.T)), rows))
