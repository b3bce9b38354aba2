"""How well a model predicts entries that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.csr import entry_rows
from .._models.objective import objective
from .._solver.beta_divergences import KULLBACK_LEIBLER, loss_named
from .._solver.pattern_weights import Observed

# Of a prediction that comes from the sums of rows and columns.  A model may be 0 where a count is
# not, and losses that grow like a logarithm or faster would see nothing but these entries.
_SMOOTHING = 0.01
_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Unseen:
    """Entries to predict and their weights, (n, m) in the same order, and sums of those seen."""

    values: sp.csr_array
    weights: sp.csr_array
    row_sums: Array
    column_sums: Array

    def measures(self, S: Array, A: Array, loss: Any, threads: int) -> dict[str, float]:
        """Return the mean loss, "error", and of counts the perplexity."""
        known = loss_named(loss, "loss")
        if known.degree is not None and known.degree <= 1:
            S, A = self._smoothed(S, A)
        total = objective(
            CleanMatrix(self.values),
            S,
            A,
            loss=loss,
            X_weights=Observed(self.weights),
            n_threads=threads,
        )
        found = {"error": total / self._total}
        if known is KULLBACK_LEIBLER:
            found["perplexity"] = self._perplexity(S, A)
        return found

    @cached_property
    def _total(self) -> float:
        return float(self.weights.data.sum(dtype=np.float64))

    def _smoothed(self, S: Array, A: Array) -> tuple[Array, Array]:
        """Return a model that has a little of the one of the sums, which is positive."""
        rows, columns = (sums + _SMOOTHING * (sums.mean() or 1.0) for sums in self._sums)
        rows = rows * (_SMOOTHING / columns.sum())
        return (
            np.column_stack([(1 - _SMOOTHING) * S, rows.astype(S.dtype)]),
            np.vstack([A, columns.astype(A.dtype)]),
        )

    @property
    def _sums(self) -> tuple[Array, Array]:
        return self.row_sums, self.column_sums

    def _perplexity(self, S: Array, A: Array) -> float:
        """Return exp of minus the mean log of the share that the model gives to a count."""
        counted = np.flatnonzero(self.values.data > 0)
        rows, columns = entry_rows(self.values.indptr)[counted], self.values.indices[counted]
        counts = (self.weights.data * self.values.data)[counted].astype(np.float64)
        S, A = S.astype(np.float64), A.T.astype(np.float64)
        sizes = S @ A.sum(axis=0)
        total = 0.0
        for first in range(0, len(counted), _AT_ONCE):
            i, j = (places[first : first + _AT_ONCE] for places in (rows, columns))
            models = np.einsum("ik,ik->i", S[i], A[j])
            total += float(counts[first : first + _AT_ONCE] @ np.log(models / sizes[i]))
        return float(np.exp(-total / counts.sum())) if len(counted) else float("nan")


def sums_of(X: Any, unseen: sp.csr_array | None = None) -> tuple[Array, Array]:
    """Return the sums of the rows and of the columns of X without some entries, float64."""
    sums = []
    for axis in (1, 0):
        whole = X.sum(axis=axis) if sp.issparse(X) else np.nansum(X, axis=axis, dtype=np.float64)
        left_out = 0 if unseen is None else np.asarray(unseen.sum(axis=axis)).ravel()
        sums.append(np.maximum(np.asarray(whole, dtype=np.float64).ravel() - left_out, 0))
    return sums[0], sums[1]
