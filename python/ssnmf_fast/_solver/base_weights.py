"""A common weight of all entries of a matrix, and more where a sparse pattern stores something."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._data.arrays import drop_entries, scale_rows, take, with_values
from .._data.border import read_pattern
from .._data.entries import SparseEntries
from .._data.tensors import Coordinates, Tensor
from .._data.weight_forms import MissingEntries, MoreEntries, Separable
from . import terms
from .terms import Loss, Term
from .weights import (
    Absent,
    ByPattern,
    Entrywise,
    Grouped,
    Missing,
    Outer,
    Weights,
    as_pattern,
    check_rows,
    ratio,
    tensor_pattern,
)


@dataclass(frozen=True, eq=False)
class Base(ByPattern):
    """Weights `w0` of all entries, and those of a pattern more; both times weights of `rows`.

    Below 0 in the pattern, which users cannot give, are entries without weight.
    """

    w0: float
    rows: Array | None = None
    hides: bool = False  # whether there are such entries

    @property
    def divisible(self) -> bool:  # type: ignore[override]
        return self.rows is None

    def absent(self, shape: tuple[int, int]) -> Absent:
        others = Outer(self.rows, None)
        if not self.hides:
            return others.absent(shape)
        return Missing(with_values(self.pattern, self.pattern.data < 0), others).absent(shape)

    def of_tensor(self) -> Weights:
        raise ValueError(
            "X_weights are weights.base(...), which are for matrices; of a tensor give an array of "
            "its shape, a list with a vector for each mode, or weights.observed(pattern)."
        )

    def pattern_of(self, Z: Matrix, name: str) -> sp.csr_array:
        return self.pattern.astype(Z.dtype) if self.hides else super().pattern_of(Z, name)

    def _whole(self, Z: Any, name: str, threads: int = 1) -> Separable:
        columns = np.full(Z.shape[1], self.w0)
        vectors = Outer(self.rows, columns).checked(Z, name, (".rows", ".w0"))
        return Separable(tuple(vectors), threads)

    def _at(self, Z: Any, places: tuple[Array, ...], name: str) -> Array:
        """Return the weights of single entries of data."""
        more = take(self.pattern_of(Z, name), places)
        return np.where(more < 0, 0, self._whole(Z, name).at(places, Z.dtype) + more)

    def _array(self, Z: Array, name: str) -> Array:
        """Return the weights of dense data."""
        more = self.pattern_of(Z, name).toarray()
        whole = self._whole(Z, name).present(slice(None), Z.shape, Z.dtype)
        return np.where(more < 0, 0, whole + more)

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        pattern, whole = self.pattern_of(Z, name), self._whole(Z, name, threads)
        form = MoreEntries(SparseEntries(pattern, threads), whole)
        if self.hides:
            hidden = pattern.data < 0
            missing, more = drop_entries(pattern, ~hidden), drop_entries(pattern, hidden)
            missing.data = whole.at(terms.places_of(missing), Z.dtype)
            gaps = MissingEntries(SparseEntries(missing, threads), whole)
            form = MoreEntries(SparseEntries(more, threads), gaps)
        if sp.issparse(Z):
            return terms.weighted(Z, self._at(Z, terms.places_of(Z), name), loss, threads, form)
        W = self._array(Z, name)
        return terms.weighted(Z, W, loss, threads, None if np.isnan(Z).any() else form)

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        return self._at(X, tuple(at.places), "X_weights")

    def excluding(self, X: Tensor, hidden: Coordinates) -> Base:
        kept = tensor_pattern(self.pattern, X).without(hidden)
        places = np.concatenate([hidden.places, kept.at.places], axis=1)
        values = np.concatenate([np.full(hidden.places.shape[1], -1), kept.values])
        return replace(self, pattern=as_pattern(places, X, values), hides=True)

    def with_rows(self, rows: Array, name: str) -> Base:
        pattern = read_pattern(self.pattern, name).astype(np.float64)
        check_rows(pattern, rows, f"The pattern of {name}")
        both = rows if self.rows is None else rows * self.rows
        return replace(self, pattern=scale_rows(pattern, rows), rows=both)

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        """Return means of the stored entries, and sums of weights in the same form."""
        if not sp.issparse(X):
            return Entrywise(self._array(X, name)).grouped(X, G, loss, name)
        if self.hides:
            raise ValueError(
                f"{name} are weights.base(...), of which samples with a common representation "
                "cannot hold out entries of a sparse X; give a dense X."
            )
        w = self._at(X, terms.places_of(X), name)
        rows = np.ones(X.shape[0]) if self.rows is None else self.rows
        total = Base(sp.csr_array(G @ self.pattern_of(X, name)), self.w0, G @ rows)
        mean = sp.csr_array(G @ with_values(X, w * X.data))
        mean.sort_indices()
        weights = total._at(mean, terms.places_of(mean), name)
        mean.data = ratio(mean.data, weights)
        return mean, total, terms.lost_energy(loss, (X.data, w), (mean.data, weights))
