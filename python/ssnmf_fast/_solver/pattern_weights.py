"""Weights by a sparse pattern of the observed or of the missing entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import drop_entries, entry_rows, sample, scale_rows, with_values
from .._data.border import check_entries, check_matrix, check_shape, read_pattern
from .._data.entries import SparseEntries
from .._data.tensor_entries import SparseTensorEntries
from .._data.tensors import Coordinates, SparseTensor, Tensor, check_tensor
from .._data.weight_forms import MissingEntries, MissingPlaces, Separable
from . import terms
from .losses import Loss
from .terms import Term
from .weights import Outer, Weights, _pattern, check_rows, entries_at, ratio, rest


@dataclass(frozen=True, eq=False)
class ByPattern(Weights):
    """Weights that a sparse pattern gives."""

    pattern: Any
    _row_field: ClassVar = "pattern"

    def pattern_of(self, Z: Any, name: str) -> sp.csr_array:
        """Return the pattern, checked to be one of a clean matrix."""
        return _checked_pattern(self.pattern, Z, name)


@dataclass(frozen=True, eq=False)
class Observed(ByPattern):
    """Weights that are zero outside of a sparse pattern."""

    def hide(self, X: Any) -> sp.csr_array:
        return sp.csr_array((read_pattern(self.pattern, "X_weights") != 0).multiply(X))

    def absent(self, shape: tuple[int, int]) -> Callable[[slice], Any]:
        pattern = read_pattern(self.pattern, "X_weights")
        return lambda rows: pattern[rows].toarray() == 0

    def listed(self, X: Tensor) -> Coordinates:
        return tensor_pattern(self.pattern, X).at

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        return tensor_pattern(self.pattern, X).sampled(at).values

    def without(self, X: Tensor, hidden: Coordinates) -> tuple[Tensor, Weights]:
        return X, self.excluding(X, hidden)

    def excluding(self, X: Tensor, hidden: Coordinates) -> Observed:
        kept = tensor_pattern(self.pattern, X).without(hidden)
        return Observed(_pattern(kept.at.places, X, kept.values))

    def seen(self, X: Tensor) -> Tensor:
        at = tensor_pattern(self.pattern, X).at
        return SparseTensor(at, entries_at(X, at))

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """The data on the pattern, explicit zeros included."""
        pattern = self.pattern_of(Z, name)
        known = sample(Z, pattern)
        if np.isnan(known.data).any():
            k = int(np.flatnonzero(np.isnan(known.data))[0])
            row = int(np.searchsorted(pattern.indptr, k, side="right")) - 1
            raise ValueError(
                f"{name} marks entry [{row}, {pattern.indices[k]}] as observed, but it is NaN "
                f"in {name[0]}. Take it out of the pattern, or give the entry a value."
            )
        return terms.observed(known, pattern, loss, threads)

    def tensor_term(self, X: Tensor, loss: Loss, threads: int) -> Term:
        pattern = tensor_pattern(self.pattern, X)
        if isinstance(X, SparseTensor):
            return terms.observed(X.sampled(pattern.at), pattern, loss, threads)
        known = SparseTensor(pattern.at, X[tuple(pattern.at.places)])
        check_entries(known.values[None], "the observed entries of X")
        return terms.observed(known, pattern, loss, threads)

    def with_rows(self, rows: Array, name: str) -> Observed:
        pattern = read_pattern(self.pattern, name).astype(np.float64)
        check_rows(pattern, rows, f"The pattern of {name}")
        return Observed(scale_rows(pattern, rows))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        pattern = self.pattern_of(X, name)
        X = sample(X, pattern)
        total = sp.csr_array(G @ pattern)
        sums = sp.csr_array(G @ with_values(pattern, pattern.data * X.data))
        total.sort_indices()
        sums.sort_indices()
        mean = sample(sums, total)
        mean.data = ratio(mean.data, total.data)
        constant = rest(loss, (X.data, pattern.data), (mean.data, total.data))
        return mean, Observed(total), constant


@dataclass(frozen=True, eq=False)
class Missing(ByPattern):
    """Weights that are zero on a sparse pattern, and `others`, which are ones, outside of it."""

    others: Outer = field(default_factory=lambda: Outer(None, None))

    def absent(self, shape: tuple[int, int]) -> Callable[[slice], Any]:
        hidden = sp.csr_array(read_pattern(self.pattern, "X_weights") != 0)
        others = self.others.absent(shape)
        return lambda rows: hidden[rows] + others(rows)

    @property
    def divisible(self) -> bool:  # type: ignore[override]
        return self.others.rows is None

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        missing = tensor_pattern(self.pattern, X).sampled(at).values != 0
        return np.where(missing, 0, self.others.values_at(X, at))

    def excluding(self, X: Tensor, hidden: Coordinates) -> Missing:
        missing = tensor_pattern(self.pattern, X).at.places
        places = np.concatenate([hidden.places, missing], axis=1)
        return replace(self, pattern=_pattern(places, X))

    def clear(self, X: Array) -> Array:
        X[tuple(tensor_pattern(self.pattern, X).at.places)] = 0
        return self.others.clear(X)

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """All entries but those of the pattern, which are dropped from Z once."""
        pattern = self.pattern_of(Z, name).copy()
        pattern.data = (pattern.data != 0).astype(Z.dtype)
        pattern.eliminate_zeros()
        vectors = self.others.checked(Z, name)
        if not sp.issparse(Z):
            Z = Z.copy()
            Z[entry_rows(pattern.indptr), pattern.indices] = np.nan
            return terms.separable(Z, vectors, loss, threads)
        present = drop_entries(Z, sample(pattern, Z).data != 0)
        present.sort_indices()
        whole, w = Separable(tuple(vectors), threads), None
        if any(vector is not None for vector in vectors):
            pattern.data = whole.at(terms.places_of(pattern), Z.dtype)
            w = whole.at(terms.places_of(present), Z.dtype)
        form = MissingEntries(SparseEntries(pattern, threads), whole)
        return terms.weighted(present, w, loss, threads, form)

    def tensor_term(self, X: Tensor, loss: Loss, threads: int) -> Term:
        pattern = tensor_pattern(self.pattern, X)
        if isinstance(X, SparseTensor):
            ones = pattern.with_values(np.ones_like(pattern.values))
            whole = Separable((None,) * len(X.shape), threads)
            form = MissingPlaces(SparseTensorEntries(ones, threads), whole)
            return terms.weighted(X.without(pattern.at), None, loss, threads, form)
        known = X.copy()
        known[tuple(pattern.at.places)] = np.nan
        return terms.separable(known, [None] * X.ndim, loss, threads, tensor=True)

    def with_rows(self, rows: Array, name: str) -> Missing:
        """A row of weight 0 is missing as a whole."""
        if not np.isin(rows, (0, 1)).all():
            raise ValueError(
                f"{name} are weights.missing(...), which weights of samples cannot be combined "
                "with. Mark missing entries by NaN in a dense X, give weights.observed(...), or no "
                "weights of samples (sample_weight None, labeled_weight 1)."
            )
        pattern = read_pattern(self.pattern, name).astype(np.float64)
        check_rows(pattern, rows, f"The pattern of {name}")
        whole = np.repeat((rows == 0)[:, None], pattern.shape[1], axis=1)
        return Missing(scale_rows(pattern, rows) + sp.csr_array(whole.astype(np.float64)))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        """Refuse: the sums over groups are not sparse."""
        raise ValueError(
            f"{name} are weights.missing(...), which samples with a common representation cannot "
            "take; mark missing entries by NaN in a dense X, or give weights.observed(...)."
        )


def _checked_pattern(pattern: Any, Z: Any, name: str) -> sp.csr_array:
    checked = check_matrix(read_pattern(pattern, name), name, dtype=Z.dtype, allow_nan=False)
    check_shape(checked, Z.shape, name, "the shape of the data")
    return checked


def tensor_pattern(pattern: Any, X: Tensor) -> SparseTensor:
    """Return the nonzero entries of a pattern of weights."""
    checked = check_tensor(pattern, "X_weights", X.dtype)
    if checked.shape != X.shape:
        raise ValueError(f"X_weights has shape {checked.shape}; expected {X.shape}, that of X.")
    if isinstance(checked, SparseTensor):
        return checked
    check_entries(checked, "X_weights")
    places = np.array(np.nonzero(checked), dtype=np.int32)
    return SparseTensor(Coordinates(places, checked.shape), checked[tuple(places)])
