"""What a classifier sees of samples beside topics: rows of length 1, leading directions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import scale_rows
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._linalg.operators import unit_rows
from .._linalg.randomized_svd import randomized_svd
from .._solver.weights import as_weights

N_DIRECTIONS = 50  # of unit scores
_MORE_DIRECTIONS = 100  # of coordinates
_OVERSAMPLES, _POWER_STEPS = 10, 2
_MOSTLY_ZERO = 0.1  # share of nonzeros of data that are like counts of words
_BLOCK_ENTRIES = 1 << 22  # of X at a time, where they are filled


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
    if X_weights is not None:
        absent = as_weights(X_weights, "X_weights").absent(X.shape)
    if isinstance(X, CsrFile):
        for rows, block in X.blocks():
            yield rows, block, None if X_weights is None else absent(rows)
        return
    if X_weights is None:
        yield slice(None), X, None
        return
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


@dataclass(frozen=True)
class Context:
    """Rows of length 1, (n, m), and their coordinates in leading directions, (n, d); or nothing."""

    rows: Any = None
    coordinates: Array | None = None
    directions: Array | None = None  # (d, m)

    def __bool__(self) -> bool:
        return self.rows is not None

    def __getitem__(self, chosen: Any) -> Context:
        if self.rows is None or self.coordinates is None:
            return self
        return Context(self.rows[chosen], self.coordinates[chosen], self.directions)

    @cached_property
    def like_counts(self) -> bool:
        """Whether few entries are not zero, as in counts of words."""
        entries = self.rows.nnz if sp.issparse(self.rows) else np.count_nonzero(self.rows)
        return bool(entries < _MOSTLY_ZERO * math.prod(self.rows.shape))

    @cached_property
    def scores(self) -> Array:
        """Coordinates in the first directions, at length 1."""
        assert self.coordinates is not None
        return np.asarray(unit_rows(self.coordinates[:, :N_DIRECTIONS]))


@one_blas_thread()
def directions_of(
    X: Any, X_weights: Any, seed: int, n_threads: int | None, sample_weight: Array | None = None
) -> Array | None:
    """Return leading right singular vectors of the rows of X at length 1, (d, m), or None.

    With weights of the samples, the squares of these lengths are the weights.
    """
    # On a cluster, on disk, or with weights only the topics of X are seen.
    if X_weights is not None or not (isinstance(X, np.ndarray) or sp.issparse(X)):
        return None
    rows = unit_rows(filled(X))
    if sample_weight is not None:
        root = np.sqrt(sample_weight)
        rows = scale_rows(rows, root) if sp.issparse(rows) else rows * root[:, None]
    _, singular, Vt = randomized_svd(
        rows,
        min(_MORE_DIRECTIONS, *rows.shape),
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
    return Context(rows, np.asarray(rows @ directions.T), directions)
