"""Weights by a sparse pattern of the observed or of the missing entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import check_matrix, read_pattern
from .._data.checks import check_shape
from .._data.csr import drop_entries, entry_rows, sample, scale_rows, with_values
from .._data.entries import SparseEntries
from .._data.weight_forms import Listed
from . import tensor_terms, terms
from .losses import Loss
from .tensor_terms import Tensor
from .terms import Term
from .weights import Weights, check_rows, ratio, rest


@dataclass(frozen=True, eq=False)
class Observed(Weights):
    """Weights that are zero outside of a sparse pattern."""

    pattern: Any
    _row_field: ClassVar = "pattern"

    def hide(self, X: Any) -> sp.csr_array:
        return sp.csr_array((read_pattern(self.pattern, "X_weights") != 0).multiply(X))

    def absent(self, shape: tuple[int, int]) -> Callable[[slice], Any]:
        pattern = read_pattern(self.pattern, "X_weights")
        return lambda rows: pattern[rows].toarray() == 0

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """The data on the pattern, explicit zeros included."""
        pattern = _checked_pattern(self.pattern, Z, name)
        known = sample(Z, pattern)
        if np.isnan(known.data).any():
            k = int(np.flatnonzero(np.isnan(known.data))[0])
            row = int(np.searchsorted(pattern.indptr, k, side="right")) - 1
            raise ValueError(
                f"{name} says that entry [{row}, {pattern.indices[k]}] is observed, but it is NaN "
                f"in {name[0]}. Take it out of the pattern, or give the entry a value."
            )
        form = Listed(SparseEntries(pattern, threads))
        return terms.weighted(known, pattern.data, loss, threads, form, listed=True)

    def tensor_term(self, X: Tensor, loss: Loss, threads: int) -> Term:
        return tensor_terms.observed(X, self.pattern, loss, threads)

    def dense(self, shape: tuple[int, int]) -> Array:
        return np.asarray(read_pattern(self.pattern, "weights").toarray(), dtype=np.float64)

    def with_rows(self, rows: Array, name: str) -> Observed:
        pattern = read_pattern(self.pattern, name).astype(np.float64)
        check_rows(pattern, rows, f"The pattern of {name}")
        return Observed(scale_rows(pattern, rows))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        pattern = _checked_pattern(self.pattern, X, name)
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
class Missing(Weights):
    """Weights that are one outside of a sparse pattern, zero on it."""

    pattern: Any
    _row_field: ClassVar = "pattern"

    def hide(self, X: Any) -> Any:
        hidden = self._hidden()
        if sp.issparse(X):
            return sp.csr_array(X - X.multiply(hidden))
        return np.where(hidden.toarray(), 0, X)

    def absent(self, shape: tuple[int, int]) -> Callable[[slice], Any]:
        hidden = self._hidden()
        return lambda rows: hidden[rows]

    def _hidden(self) -> sp.csr_array:
        return sp.csr_array(read_pattern(self.pattern, "X_weights") != 0)

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """All entries but those of the pattern, which are dropped from Z once."""
        pattern = _checked_pattern(self.pattern, Z, name).copy()
        pattern.data = (pattern.data != 0).astype(Z.dtype)
        pattern.eliminate_zeros()
        if not sp.issparse(Z):
            Z = Z.copy()
            Z[entry_rows(pattern.indptr), pattern.indices] = np.nan
            return terms.plain(Z, loss, threads)
        present = drop_entries(Z, sample(pattern, Z).data != 0)
        present.sort_indices()
        return terms.without(present, pattern, loss, threads)

    def tensor_term(self, X: Tensor, loss: Loss, threads: int) -> Term:
        return tensor_terms.missing(X, self.pattern, loss, threads)

    def dense(self, shape: tuple[int, int]) -> Array:
        return np.asarray(1.0 - (read_pattern(self.pattern, "weights").toarray() != 0))

    def with_rows(self, rows: Array, name: str) -> Missing:
        """A row of weight 0 is missing as a whole."""
        if not np.isin(rows, (0, 1)).all():
            raise ValueError(
                f"{name} are weights.missing(...), which weights of samples cannot be combined "
                "with. Mark missing entries by NaN in a dense X, give weights.observed(...), or "
                "set labeled_weight=1."
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
