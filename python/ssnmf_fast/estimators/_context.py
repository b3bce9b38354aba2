"""What a readout sees of samples: rows without missing entries, and their leading directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._linalg.randomized_svd import randomized_svd
from .._solver.weights import as_weights

N_DIRECTIONS = 50
_OVERSAMPLES, _POWER_STEPS = 10, 2
_BLOCK_ENTRIES = 1 << 22  # of X at a time, where they are filled


def visible(X: Any, X_weights: Any) -> Any:
    """Return X with 0 where an entry has no weight, as far as the form of the weights tells it."""
    if X_weights is None or sp.issparse(X_weights):  # the fit refuses the latter
        return X
    return as_weights(X_weights, "X_weights").hide(X)


@one_blas_thread()
def filled(X: Any, S: Array | None, A: Array | None, absent: Any = None) -> Any:
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
    """Rows (n, m) of length 1, and their scores (n, d) in the leading directions, or None."""

    rows: Any = None
    scores: Array | None = None

    def __getitem__(self, chosen: Array) -> Context:
        if self.rows is None or self.scores is None:
            return self
        return Context(self.rows[chosen], self.scores[chosen])

    def features(self, shares: Array, row_scale: float) -> Any:
        """Return the features, (n, p): Hellinger coordinates of the shares, scores, rows."""
        topics = np.sqrt(shares)
        if self.rows is None or self.scores is None:
            return topics
        parts = [topics, self.scores]
        if sp.issparse(self.rows):
            blocks = [sp.csr_array(part) for part in parts]
            return sp.csr_array(sp.hstack([*blocks, row_scale * self.rows], format="csr"))
        return np.hstack([*parts, row_scale * self.rows])


def directions_of(X: Any, X_weights: Any, random_state: Any, n_threads: int | None) -> Any:
    """Return the leading directions of X, or None for X on disk or with weights."""
    in_memory = isinstance(X, np.ndarray) or sp.issparse(X)
    if not in_memory or X_weights is not None:
        return None
    seed = random_state if isinstance(random_state, (int, np.integer)) else 0
    return leading_directions(filled(X, None, None), int(seed), n_threads)


@one_blas_thread()
def leading_directions(X: Any, random_state: Any, n_threads: int | None) -> Array:
    """Return leading right singular vectors of the rows of X at length 1, (d, m)."""
    rows = unit_rows(X)
    rank = min(N_DIRECTIONS, min(rows.shape))
    _, singular, Vt = randomized_svd(
        rows,
        rank,
        n_oversamples=_OVERSAMPLES,
        n_power=_POWER_STEPS,
        random_state=random_state,
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
    return Context(rows, unit_rows(np.asarray(rows @ directions.T)))
