"""A common weight of all entries of a matrix, and more at those of a sparse pattern."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._data.arrays import drop_entries, sample, scale_rows, with_values
from .._data.border import read_pattern
from .._data.entries import SparseEntries
from .._data.tensors import Coordinates, Tensor
from .._data.weight_forms import MissingEntries, MoreEntries, Separable
from . import terms, weights
from .terms import Loss, Term
from .weights import Absent, ByPattern, Entrywise, Grouped, Missing, Outer, Weights


@dataclass(frozen=True, eq=False)
class Base(ByPattern):
    """Weights `w0` of all entries, and those of a pattern more; both times weights of `rows`."""

    w0: float
    rows: Array | None = None
    hides: bool = False  # whether entries of the pattern below 0 mark entries without weight

    @property
    def divisible(self) -> bool:  # type: ignore[override]
        return self.rows is None

    def absent(self, shape: tuple[int, int]) -> Absent:
        hidden = read_pattern(self.pattern, "X_weights") < 0
        return Missing(hidden, Outer(self.rows, None)).absent(shape)

    def of_tensor(self) -> Weights:
        raise ValueError(
            "X_weights are weights.base(...), which are for matrices; of a tensor give an array of "
            "its shape, a list with a vector for each mode, or weights.observed(pattern)."
        )

    def pattern_of(self, Z: Matrix, name: str) -> sp.csr_array:
        return self.pattern.astype(Z.dtype) if self.hides else super().pattern_of(Z, name)

    def _whole(self, Z: Any, name: str, threads: int = 1) -> Separable:
        vectors = Outer(self.rows, np.full(Z.shape[1], self.w0))
        return Separable(tuple(vectors.checked(Z, name, (".rows", ".w0"))), threads)

    def _weights(self, Z: Any, name: str) -> Array:
        """Return the weights of the entries that a sparse matrix stores, or of an array."""
        pattern, whole = self.pattern_of(Z, name), self._whole(Z, name)
        if sp.issparse(Z):
            more, common = sample(pattern, Z).data, whole.at(terms.places_of(Z), Z.dtype)
        else:
            more, common = pattern.toarray(), whole.present(slice(None), Z.shape, Z.dtype)
        return np.where(more < 0, 0, common + more)

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        w, whole, pattern = (
            self._weights(Z, name),
            self._whole(Z, name, threads),
            self.pattern_of(Z, name),
        )
        form = MoreEntries(SparseEntries(pattern, threads), whole)
        if self.hides:
            gaps = drop_entries(pattern, pattern.data >= 0)
            gaps.data = whole.at(terms.places_of(gaps), Z.dtype)
            more = SparseEntries(drop_entries(pattern, pattern.data < 0), threads)
            form = MoreEntries(more, MissingEntries(SparseEntries(gaps, threads), whole))
        holes = not sp.issparse(Z) and np.isnan(Z).any()
        return terms.weighted(Z, w, loss, threads, None if holes else form)

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        return self._weights(weights.as_pattern(at.places, X), "X_weights")  # sorted, as places are

    def excluding(self, X: Tensor, hidden: Coordinates) -> Base:
        kept = weights.tensor_pattern(self.pattern, X).without(hidden)
        places = np.concatenate([hidden.places, kept.at.places], axis=1)
        values = np.concatenate([np.full(hidden.places.shape[1], -1), kept.values])
        return replace(self, pattern=weights.as_pattern(places, X, values), hides=True)

    def with_rows(self, rows: Array, name: str) -> Base:
        pattern = read_pattern(self.pattern, name).astype(np.float64)
        weights.check_rows(pattern, rows, f"The pattern of {name}")
        both = rows if self.rows is None else rows * self.rows
        return replace(self, pattern=scale_rows(pattern, rows), rows=both)

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        w = self._weights(X, name)
        if not sp.issparse(X):
            return Entrywise(w).grouped(X, G, loss, name)
        if self.hides:
            raise ValueError(
                "Samples with a common representation cannot hold out entries of a sparse X that "
                f"has {name} of weights.base(...); give a dense X."
            )
        rows = np.ones(X.shape[0]) if self.rows is None else self.rows
        total = Base(G @ self.pattern_of(X, name), self.w0, G @ rows)
        mean = G @ with_values(X, w * X.data)
        of_mean = total._weights(mean, name)
        mean.data = weights.ratio(mean.data, of_mean)
        return mean, total, terms.lost_energy(loss, (X.data, w), (mean.data, of_mean))
