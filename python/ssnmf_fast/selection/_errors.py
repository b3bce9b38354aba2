"""How well a model predicts entries that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._data.border import CleanMatrix
from .._models.represent import objective
from .._solver.losses import KULLBACK_LEIBLER, loss_named

# Of a prediction that comes from the sums of rows and columns.  A model may be 0 where a count is
# not, and losses that grow like a logarithm or faster would see nothing but these entries.
_SMOOTHING = 0.01
# Times the largest entry that was seen of a feature.  What a model says of a hidden entry may hang
# on next to nothing, if all else of a component is near 0; one such entry would outweigh all.
_MOST = 2.0
_AT_ONCE = 1 << 16


def needs_smoothing(loss: Any) -> bool:
    """Whether a loss sees little but entries for which a prediction is 0."""
    degree = loss_named(loss, "loss").degree
    return degree is not None and degree <= 1


def smoothed(predicted: Array, without_model: Array) -> Array:
    """Return predictions of which a little comes from what is known without a model."""
    return np.asarray((1 - _SMOOTHING) * predicted + _SMOOTHING * without_model)


def credible(predicted: Array, largest: Array) -> Array:
    """Return predictions within what is credible beside the largest entries that were seen."""
    return np.minimum(predicted, _MOST * largest, out=predicted)


def above_zero(sums: Array) -> Array:
    """Return sums of rows, or of columns, that are above 0, also where nothing was seen."""
    return np.asarray(sums + _SMOOTHING * (sums.mean() or 1.0))


def mean_loss(values: Array, predicted: Array, weights: Array, loss: Any, threads: int) -> float:
    """Return the weighted mean loss of predictions."""
    weights = weights.astype(np.float64)
    total = objective(
        CleanMatrix(values.astype(np.float64)[:, None]),
        predicted[:, None],
        np.ones((1, 1)),
        loss=loss,
        X_weights=weights[:, None],
        n_threads=threads,
    )
    return total / float(weights.sum())


class Seen(NamedTuple):
    """What is known of rows and columns without a model: sums, and largest entries; float64."""

    row_sums: Array
    column_sums: Array
    largest: Array  # of the columns

    @classmethod
    def of(cls, rows: Any, columns: Any | None = None) -> Seen:
        """Return what some rows say and, if they are others, some columns (transposed data)."""
        columns = rows.T if columns is None else columns
        by_row, by_column = (
            np.asarray(M.sum(axis=1), dtype=np.float64).ravel() for M in (rows, columns)
        )
        largest = columns.max(axis=1)
        largest = largest.toarray() if sp.issparse(largest) else np.asarray(largest)
        return cls(by_row, by_column, largest.ravel().astype(np.float64))


@dataclass(frozen=True)
class Unseen:
    """Entries to predict and their weights, (n, m) in the same order, and what was seen beside."""

    values: sp.csr_array
    weights: sp.csr_array
    seen: Seen

    def measures(self, S: Array, A: Array, loss: Any, threads: int) -> dict[str, float]:
        """Return the mean loss, "error", and of counts the perplexity."""
        S, F = S.astype(np.float64), np.ascontiguousarray(A.T, dtype=np.float64)
        predicted = self._predicted(S, F)
        if needs_smoothing(loss):
            predicted = smoothed(predicted, self._without_model)
        values, weights = self.values.data, self.weights.data
        found = {"error": mean_loss(values, predicted, weights, loss, threads)}
        if loss_named(loss, "loss") is KULLBACK_LEIBLER:
            sizes = (1 - _SMOOTHING) * (S @ F.sum(axis=0)) + _SMOOTHING * self._sums[0]
            found["perplexity"] = self._perplexity(predicted, sizes)
        return found

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        return entry_rows(self.values.indptr), self.values.indices

    def _predicted(self, S: Array, F: Array) -> Array:
        """Return what a model says of the entries, within what is credible."""
        rows, columns = self._places
        predicted = np.empty(len(rows))
        for first in range(0, len(rows), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            np.einsum("ik,ik->i", S[rows[part]], F[columns[part]], out=predicted[part])
        return credible(predicted, self.seen.largest[columns])

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Sums of rows and columns that are above 0, also where nothing was seen."""
        sums = self.seen.row_sums, self.seen.column_sums
        rows, columns = map(above_zero, sums)
        return rows, columns

    @cached_property
    def _without_model(self) -> Array:
        """What the sums say of the entries."""
        (rows, columns), (i, j) = self._sums, self._places
        return np.asarray(rows[i] * (columns / columns.sum())[j])

    def _perplexity(self, predicted: Array, sizes: Array) -> float:
        """Return exp of minus the mean log of the share that the model gives to a count."""
        counts = self.weights.data * self.values.data.astype(np.float64)
        counted = np.flatnonzero(counts > 0)
        if not len(counted):
            return float("nan")
        shares = predicted[counted] / sizes[self._places[0][counted]]
        counts = counts[counted]
        return float(np.exp(-(counts @ np.log(shares)) / counts.sum()))
