"""The kinds of weights, and what is asked of each; see :mod:`ssnmf_fast.weights`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import (
    as_array,
    check_matrix,
    check_shape,
    check_vector,
    pattern_csr,
    unmasked,
)
from .._data.csr import entry_rows, keys, sample, scaled_rows, with_values
from .._data.csr_file import CsrFile
from .._data.entries import SparseEntries
from .._data.weight_forms import Listed
from . import terms
from .losses import Loss
from .terms import Term


class Weights(ABC):
    """What is asked of weights; `name` is what errors call them."""

    @abstractmethod
    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """Check the weights of a clean matrix in memory, and return its term."""

    @abstractmethod
    def with_rows(self, rows: Array, name: str) -> Weights:
        """Return the weights with each row multiplied by a number >= 0."""

    @abstractmethod
    def dense(self, shape: tuple[int, int]) -> Array:
        """Return the weights of all entries, float64."""

    @abstractmethod
    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        """Return a clean X with one row for each group, its weights, and the constant left out.

        G (groups x samples) has a 1 for each sample.
        """


@dataclass(frozen=True, eq=False)
class Observed(Weights):
    """Weights that are zero outside of a sparse pattern."""

    pattern: Any

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

    def dense(self, shape: tuple[int, int]) -> Array:
        return np.asarray(pattern_csr(self.pattern, "weights").toarray(), dtype=np.float64)

    def with_rows(self, rows: Array, name: str) -> Observed:
        pattern = pattern_csr(self.pattern, name).astype(np.float64)
        _check_rows(pattern, rows, f"The pattern of {name}")
        return Observed(scaled_rows(pattern, rows))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        pattern = _checked_pattern(self.pattern, X, name)
        X = sample(X, pattern)
        total = sp.csr_array(G @ pattern)
        sums = sp.csr_array(G @ with_values(pattern, pattern.data * X.data))
        total.sort_indices()
        sums.sort_indices()
        mean = sample(sums, total)
        mean.data = _ratio(mean.data, total.data)
        constant = _rest(loss, (X.data, pattern.data), (mean.data, total.data))
        return mean, Observed(total), constant


@dataclass(frozen=True, eq=False)
class Missing(Weights):
    """Weights that are one outside of a sparse pattern, zero on it."""

    pattern: Any

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """All entries but those of the pattern, which are dropped from Z once."""
        pattern = _checked_pattern(self.pattern, Z, name).copy()
        pattern.data = (pattern.data != 0).astype(Z.dtype)
        pattern.eliminate_zeros()
        if not sp.issparse(Z):
            Z = Z.copy()
            Z[entry_rows(pattern.indptr), pattern.indices] = np.nan
            return terms.plain(Z, loss, threads)
        stored = keys(Z)
        keep = ~np.isin(stored, keys(pattern), assume_unique=True)
        entries = Z.data[keep], (stored[keep] // Z.shape[1], Z.indices[keep])
        return terms.without(sp.csr_array(entries, shape=Z.shape), pattern, loss, threads)

    def dense(self, shape: tuple[int, int]) -> Array:
        return np.asarray(1.0 - (pattern_csr(self.pattern, "weights").toarray() != 0))

    def with_rows(self, rows: Array, name: str) -> Missing:
        """A row of weight 0 is missing as a whole."""
        if not np.isin(rows, (0, 1)).all():
            raise ValueError(
                f"{name} are weights.missing(...), which weights of samples cannot be combined "
                "with. Mark missing entries by NaN in a dense X, give weights.observed(...), or "
                "set labelled_weight=1."
            )
        pattern = pattern_csr(self.pattern, name).astype(np.float64)
        _check_rows(pattern, rows, f"The pattern of {name}")
        whole = np.repeat((rows == 0)[:, None], pattern.shape[1], axis=1)
        return Missing(scaled_rows(pattern, rows) + sp.csr_array(whole.astype(np.float64)))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        """Refuse: the sums over groups are not sparse."""
        raise ValueError(
            f"{name} are weights.missing(...), which samples with a common representation cannot "
            "take; mark missing entries by NaN in a dense X, or give weights.observed(...)."
        )


@dataclass(frozen=True, eq=False)
class Outer(Weights):
    """Separable weights."""

    rows: Array | None
    columns: Array | None

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        a, b = self._checked(Z, name)
        if a is None and b is None:
            return terms.plain(Z, loss, threads)
        return terms.separable(Z, a, b, loss, threads)

    def _checked(self, Z: Any, name: str) -> list[Array | None]:
        sides = zip((self.rows, self.columns), ("rows", "columns"), Z.shape, strict=True)
        return [
            None if vector is None else check_vector(vector, f"{name}.{side}", length, Z.dtype)
            for vector, side, length in sides
        ]

    def dense(self, shape: tuple[int, int]) -> Array:
        sides = zip((self.rows, self.columns), shape, strict=True)
        return np.outer(*(np.ones(n) if v is None else np.asarray(v) for v, n in sides))

    def with_rows(self, rows: Array, name: str) -> Outer:
        if self.rows is not None:
            given = np.asarray(self.rows)
            if given.shape != rows.shape:
                raise ValueError(f"{name}.rows has shape {given.shape}; expected {rows.shape}.")
            rows = np.where(rows > 0, rows * given, 0)
        return Outer(rows, self.columns)

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        """The weights of the groups are the sums of those of their samples."""
        rows, columns = self._checked(X, name)
        a = np.ones(X.shape[0], dtype=X.dtype) if rows is None else rows
        b = np.ones(X.shape[1], dtype=X.dtype) if columns is None else columns
        if not sp.issparse(X) and np.isnan(X).any():
            return Entrywise(np.outer(a, b)).grouped(X, G, loss, name)
        total = G @ a
        share = G.copy()
        share.data = _ratio(a[G.indices], total[entry_rows(G.indptr)])
        mean = share @ X
        before, after = (
            float(weights.astype(np.float64) @ (_energy(Z, loss) @ b.astype(np.float64)))
            for weights, Z in ((a, X), (total, mean))
        )
        return mean, Outer(total, columns), max(before - after, 0.0)


@dataclass(frozen=True, eq=False)
class Entrywise(Weights):
    """A weight for every entry, in a dense array."""

    array: Any

    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        W = self._checked(Z, name)
        if not sp.issparse(Z):
            return terms.weighted(Z, W, loss, threads)
        stored = W[entry_rows(Z.indptr), Z.indices]
        return terms.weighted(Z, stored, loss, threads, terms.every(W, threads))

    def _checked(self, Z: Any, name: str) -> Array:
        W: Array = check_matrix(self.array, name, dtype=Z.dtype, allow_nan=False)
        check_shape(W, Z.shape, name, f"the shape of {name[0]}")
        return W

    def dense(self, shape: tuple[int, int]) -> Array:
        return np.asarray(self.array, dtype=np.float64)

    def with_rows(self, rows: Array, name: str) -> Entrywise:
        array = as_array(unmasked(self.array, name, allow_nan=False), name)
        _check_rows(array, rows, name)
        return Entrywise(np.where((rows > 0)[:, None], array * rows[:, None], 0))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        """Also with NaN for missing: arrays as large as X."""
        X = X.toarray() if sp.issparse(X) else X
        W = self._checked(X, name)
        absent = np.isnan(X)
        X, W = np.where(absent, 0, X), np.where(absent, 0, W)
        total = G @ W
        mean = _ratio(G @ (W * X), total)
        return mean, Entrywise(total), _rest(loss, (X, W), (mean, total))


def as_weights(given: Any, name: str) -> Weights:
    """Return what a user gave as weights: None stands for ones, an array for its entries."""
    if isinstance(given, Weights):
        return given
    if given is None:
        return Outer(None, None)
    if sp.issparse(given):
        raise TypeError(
            f"{name} is a sparse matrix, which can be read in two ways: give "
            "weights.observed(pattern) if all other entries weigh 0, weights.missing(pattern) if "
            "its entries are the missing ones."
        )
    return Entrywise(given)


def build_term(Z: Any, given: Any, loss: Loss, name: str, threads: int) -> Term:
    """Check the weights of a clean data matrix (of :func:`check_data`) and return its term.

    `name` is "X" or "Y"; the weights are called X_weights or Y_weights in errors.
    """
    title = f"{name}_weights"
    if not isinstance(Z, CsrFile):
        term = as_weights(given, title).term(Z, loss, title, threads)
        loss.check(term, name)
        return term
    if given is not None:
        raise ValueError(
            f"{title} are given with a matrix on disk, which takes none; load it into memory, or "
            "save the weighted problem in parts."
        )
    term = terms.on_disk(Z, loss, threads)
    loss.check(term, name)
    return term


def _checked_pattern(pattern: Any, Z: Any, name: str) -> sp.csr_array:
    checked = check_matrix(pattern_csr(pattern, name), name, dtype=Z.dtype, allow_nan=False)
    check_shape(checked, Z.shape, name, "the shape of the data")
    return checked


def _check_rows(array: Any, rows: Array, name: str) -> None:
    if len(array.shape) != 2 or array.shape[0] != len(rows):
        raise ValueError(f"{name} has shape {array.shape}; expected {len(rows)} rows.")


def _ratio(sums: Array, weights: Array) -> Array:
    """Weighted means, and 0 without weight."""
    return np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)


def _energy(Z: Any, loss: Loss) -> Any:
    """The function whose Bregman divergence the loss is, entrywise, float64."""
    if sp.issparse(Z):
        return with_values(Z, loss.energy(Z.data.astype(np.float64)))
    return loss.energy(Z.astype(np.float64))


def _rest(loss: Loss, before: tuple[Array, Array], after: tuple[Array, Array]) -> float:
    """What of the loss means over groups do not have."""
    parts = [float(np.sum(weights * _energy(values, loss))) for values, weights in (before, after)]
    return max(parts[0] - parts[1], 0.0)
