"""Weights of the entries of data: vectors, an array, a pattern of observed or missing entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._data import border, tensors
from .._data.arrays import as_array, entry_rows, sample, scale_rows, with_values
from .._data.border import check_entries, check_matrix, check_shape, check_vector, read_pattern
from .._data.tensors import Coordinates, SparseTensor, Tensor, check_tensor
from .._data.weight_forms import Separable
from . import term_forms as forms
from .terms import Loss, Term

Self = TypeVar("Self", bound="Weights")
Grouped: TypeAlias = tuple[Any, "Weights", float]  # data, weights, and a constant of the loss
Absent: TypeAlias = Callable[[slice], Any]  # where rows have no weight: a boolean array or CSR


class Weights(ABC):
    """Base class of weights; `name` is for error messages."""

    row_field: ClassVar[str]  # the field with a row, or a number, for each sample
    by_entries: ClassVar = False  # whether weights above 0 may differ from entry to entry

    @property
    def by_rows(self) -> Any:
        """The part with a row, or a number, for each sample."""
        return getattr(self, self.row_field)

    def with_part(self: Self, part: object) -> Self:
        """Return the weights of some samples, from their part of `by_rows`."""
        return replace(self, **{self.row_field: part})  # type: ignore[type-var]

    @property
    def shape(self) -> Any:
        """Shape of `by_rows`; with it, splitters of scikit-learn take rows of the weights."""
        if self.by_rows is None:
            raise AttributeError("the same weights for all rows have no shape")
        return np.shape(self.by_rows)

    def __getitem__(self: Self, key: Any) -> Self:
        from sklearn.utils import _safe_indexing, indexable  # which loads OpenMP

        rows = key[0] if isinstance(key, tuple) else key
        return self.with_part(_safe_indexing(*indexable(self.by_rows), rows))

    def hide(self, X: Any) -> Any:
        """Return X with 0 for entries without weight."""
        absent = self.absent(X.shape)(slice(None))
        if sp.issparse(X):
            return sp.csr_array(X - X.multiply(absent))
        return np.where(absent.toarray() if sp.issparse(absent) else absent, 0, X)

    def by_name(self, labels: border.Labels, name: str) -> Weights:
        """Return the weights in the order of the labels of rows and columns."""
        return self.with_part(border.in_order(self.by_rows, labels, name))

    @abstractmethod
    def absent(self, shape: tuple[int, int]) -> Absent: ...
    @abstractmethod
    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        """Check the weights of clean data in memory, and return their term."""

    def of_tensor(self) -> Weights:
        """Return the same weights by modes."""
        return self

    @abstractmethod
    def with_rows(self, rows: Array, name: str) -> Weights:
        """Return the weights with each row multiplied by a number >= 0."""

    @abstractmethod
    def grouped(self, X: Matrix, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        """Return clean X by groups, with the indicator matrix G (groups x samples)."""

    # The following methods hold out entries of clean data, an array or a `SparseTensor`.

    divisible = True  # whether `by_rows` suffices for a part of the samples

    def listed(self, X: Tensor) -> Coordinates | None:
        """Return the places with weight, if they are listed."""
        return None

    @abstractmethod
    def values_at(self, X: Tensor, at: Coordinates) -> Array: ...
    @abstractmethod
    def excluding(self, X: Tensor, hidden: Coordinates) -> Weights: ...  # 0 for some entries

    def without(self, X: Tensor, hidden: Coordinates) -> tuple[Tensor, Weights]:
        """Return data and weights without some entries."""
        if isinstance(X, SparseTensor) or self.listed(X) is not None:
            return X, self.excluding(X, hidden)
        visible = X.copy()
        visible[tuple(hidden.places)] = np.nan
        return visible, self

    def seen(self, X: Tensor) -> Tensor:
        """Return X with 0 for entries that are missing or have no weight."""
        if isinstance(X, SparseTensor):
            return X.with_values(np.where(self.values_at(X, X.at) > 0, X.values, 0))
        return self.clear(np.nan_to_num(X))

    def clear(self, X: Array) -> Array:
        """Return an array, which may be changed, with 0 for entries without weight."""
        return X


WeightsLike: TypeAlias = npt.ArrayLike | Weights | Sequence[npt.ArrayLike | None] | None

TWO_WAYS = (
    "{}, which is ambiguous: give weights.observed(pattern) if all other entries have weight 0, or "
    "weights.missing(pattern) if its entries are missing."
)


@dataclass(frozen=True, eq=False)
class Outer(Weights):
    """Weights ``rows[i] * columns[j]``."""

    rows: Array | None
    columns: Array | None
    labels: border.Labels = field(default=(None, None), kw_only=True)
    row_field: ClassVar = "rows"

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        names, others = self.labels
        return replace(part, labels=(None if names is None else np.asarray(names)[key], others))

    def hide(self, X: Any) -> Any:
        for vector, shape in zip(self.by_modes, ((-1, 1), (1, -1)), strict=True):
            if vector is not None and not np.all(vector):
                kept = (np.asarray(vector) > 0).astype(X.dtype).reshape(shape)
                X = sp.csr_array(X.multiply(kept)) if sp.issparse(X) else X * kept
        return X

    def by_name(self, labels: border.Labels, name: str) -> Outer:
        orders = map(border.order_of, labels, self.labels, (name, name), (0, 1))
        pairs = zip((self.rows, self.columns), orders, strict=True)
        return Outer(*(v if v is None or order is None else v[order] for v, order in pairs))

    def absent(self, shape: tuple[int, int]) -> Absent:
        sides = zip((self.rows, self.columns), shape, strict=True)
        a, b = (np.zeros(n, bool) if v is None else np.asarray(v) == 0 for v, n in sides)
        nowhere = None if a.any() or b.any() else sp.csr_array(shape, dtype=bool)
        return lambda rows: a[rows, None] | b if nowhere is None else nowhere[rows]

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        n_modes, n_vectors, sides = len(Z.shape), len(self.by_modes), [".rows", ".columns"]
        if n_vectors != n_modes:
            raise ValueError(
                f"{name} has {n_vectors} vectors, but X has {n_modes} modes; give one per mode."
            )
        if tensor:
            sides = [f"[{mode}]" for mode in range(n_modes)]
        return forms.separable(Z, self.checked(Z, name, sides), loss, threads, tensor)

    @property
    def by_modes(self) -> Sequence[Array | None]:
        """A vector, or None, for each mode."""
        return self.rows, self.columns

    def of_tensor(self) -> Weights:
        return ByMode(vectors=tuple(self.by_modes))

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        vectors = [None if v is None else np.asarray(v) for v in self.by_modes]
        if all(vector is None for vector in vectors):
            return np.ones(at.places.shape[1], dtype=X.dtype)
        return Separable(tuple(vectors)).at(tuple(at.places), X.dtype)

    def excluding(self, X: Tensor, hidden: Coordinates) -> Weights:
        return Missing(tensors.as_pattern(hidden.places, X), self)

    def clear(self, X: Array) -> Array:
        for mode, vector in enumerate(self.by_modes):
            if vector is not None:
                X *= (np.asarray(vector) > 0).reshape(-1, *[1] * (X.ndim - 1 - mode))
        return X

    def checked(
        self, Z: Tensor, name: str, sides: Sequence[str] = (".rows", ".columns")
    ) -> list[Array | None]:
        """Return the vectors of clean data."""
        return [
            None if vector is None else check_vector(vector, name + side, length, Z.dtype)
            for vector, side, length in zip(self.by_modes, sides, Z.shape, strict=True)
        ]

    def with_rows(self, rows: Array, name: str) -> Outer:
        if self.rows is not None:
            given = np.asarray(self.rows)
            if given.shape != rows.shape:
                raise ValueError(f"{name}.rows has shape {given.shape}; expected {rows.shape}.")
            rows = np.where(rows > 0, rows * given, 0)
        return Outer(rows, self.columns)

    def grouped(self, X: Matrix, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        """The weights of the groups are the sums of those of their samples."""
        rows, columns = self.checked(X, name)
        a = np.ones(X.shape[0], dtype=X.dtype) if rows is None else rows
        b = np.ones(X.shape[1], dtype=X.dtype) if columns is None else columns
        if not sp.issparse(X) and np.isnan(X).any():
            return Entrywise(np.outer(a, b)).grouped(X, G, loss, name)
        total = G @ a
        share = G.copy()
        share.data = forms.ratio(a[G.indices], total[entry_rows(G.indptr)])
        mean = share @ X
        before, after = (
            float(w.astype(np.float64) @ (forms.energy_of(Z, loss) @ b.astype(np.float64)))
            for w, Z in ((a, X), (total, mean))
        )
        return mean, Outer(total, columns), max(before - after, 0.0)


class SampleWeights(Outer):
    """Weights of samples; a fit takes the same steps as for repeated samples."""

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        rows = np.asarray(self.checked(Z, name)[0], dtype=np.float64)
        nonzeros = float(rows @ np.asarray((Z != 0).sum(axis=1)))
        lengths = tuple(int(nonzeros / max(n, 1.0)) for n in (rows.sum(), Z.shape[1]))
        return replace(super().term(Z, loss, name, threads, tensor), row_lengths=lengths)


@dataclass(frozen=True, eq=False)
class ByMode(Outer):
    """Separable weights of a tensor: a vector, or None for ones, for each mode."""

    rows: None = None
    columns: None = None
    vectors: tuple[Any, ...] = ()

    @property
    def by_modes(self) -> Sequence[Any]:
        return self.vectors

    def excluding(self, X: Tensor, hidden: Coordinates) -> Weights:
        if any(vector is not None for vector in self.vectors):
            raise ValueError(
                "X_weights has vectors of the modes of a sparse X, which cannot be combined with "
                "held-out entries; give a dense X, or weights of entries."
            )
        return Missing(tensors.as_pattern(hidden.places, X))


@dataclass(frozen=True, eq=False)
class Entrywise(Weights):
    """A weight for every entry, in a dense array."""

    array: Any
    row_field: ClassVar = "array"
    by_entries: ClassVar = True

    def absent(self, shape: tuple[int, int]) -> Absent:
        array = as_array(self.array, "X_weights")
        check_shape(array, shape, "X_weights", "the shape of X")
        return lambda rows: array[rows] == 0

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        return forms.entrywise(Z, self.checked(Z, name, tensor), loss, threads, tensor)

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        return np.asarray(as_array(self.array, "X_weights")[tuple(at.places)])

    def excluding(self, X: Tensor, hidden: Coordinates) -> Entrywise:
        W = np.array(as_array(self.array, "X_weights"), dtype=X.dtype)
        W[tuple(hidden.places)] = 0
        return Entrywise(W)

    def clear(self, X: Array) -> Array:
        return np.asarray(X * (as_array(self.array, "X_weights") > 0))

    def checked(self, Z: Any, name: str, tensor: bool = False) -> Array:
        W: Any = check_tensor(self.array, name, Z.dtype, ordinary=False) if tensor else self.array
        if not isinstance(W, np.ndarray) and (tensor or sp.issparse(W)):
            kind = "tensor" if tensor else "matrix"  # that of a block of rows on a cluster
            raise TypeError(TWO_WAYS.format(f"{name} is a sparse {kind}"))
        if tensor:
            check_entries(W, name)
        else:
            W = check_matrix(W, name, dtype=Z.dtype, allow_nan=False)
        check_shape(W, Z.shape, name, f"the shape of {name[0]}")
        return np.asarray(W)

    def with_rows(self, rows: Array, name: str) -> Entrywise:
        array = as_array(self.array, name)
        forms.check_rows(array, rows, name)
        return Entrywise(np.where((rows > 0)[:, None], array * rows[:, None], 0))

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        """Also for X with NaN; it makes arrays as large as X."""
        X = X.toarray() if sp.issparse(X) else X
        W = self.checked(X, name)
        absent = np.isnan(X)
        X, W = np.where(absent, 0, X), np.where(absent, 0, W)
        total = G @ W
        mean = forms.ratio(G @ (W * X), total)
        return mean, Entrywise(total), forms.lost_energy(loss, (X, W), (mean, total))


@dataclass(frozen=True, eq=False)
class ByPattern(Weights):
    pattern: Any
    row_field: ClassVar = "pattern"
    by_entries: ClassVar = True

    def pattern_of(self, Z: Matrix, name: str) -> sp.csr_array:
        """Return the pattern, checked to be one of a clean matrix."""
        pattern = read_pattern(self.pattern, name)
        checked = check_matrix(pattern, name, dtype=Z.dtype, allow_nan=False)
        check_shape(checked, Z.shape, name, "the shape of the data")
        return checked

    def with_rows(self, rows: Array, name: str) -> Any:
        pattern = read_pattern(self.pattern, name).astype(np.float64)
        forms.check_rows(pattern, rows, f"The pattern of {name}")
        return replace(self, pattern=scale_rows(pattern, rows))

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        return tensors.tensor_pattern(self.pattern, X).sampled(at).values


@dataclass(frozen=True, eq=False)
class Observed(ByPattern):
    """Weights that are zero outside of a sparse pattern."""

    def hide(self, X: Matrix) -> sp.csr_array:
        return sp.csr_array((read_pattern(self.pattern, "X_weights") != 0).multiply(X))

    def absent(self, shape: tuple[int, int]) -> Absent:
        pattern = read_pattern(self.pattern, "X_weights")
        return lambda rows: pattern[rows].toarray() == 0

    def listed(self, X: Tensor) -> Coordinates:
        return tensors.tensor_pattern(self.pattern, X).at

    def excluding(self, X: Tensor, hidden: Coordinates) -> Observed:
        kept = tensors.tensor_pattern(self.pattern, X).without(hidden)
        return Observed(tensors.as_pattern(kept.at.places, X, kept.values))

    def seen(self, X: Tensor) -> Tensor:
        at = tensors.tensor_pattern(self.pattern, X).at
        return SparseTensor(at, tensors.entries_at(X, at))

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        """Return the term of the data on the pattern, including explicit zeros."""
        if tensor:
            at = tensors.tensor_pattern(self.pattern, Z)
            values = SparseTensor(at.at, tensors.entries_at(Z, at.at))
            check_entries(values.values[None], "the observed entries of X")
            return forms.observed(Z, values, at, loss, threads)
        pattern = self.pattern_of(Z, name)
        entries = sample(Z, pattern)
        if len(nans := np.flatnonzero(np.isnan(entries.data))):
            k, row = nans[0], entry_rows(pattern.indptr)[nans[0]]
            raise ValueError(
                f"{name} marks entry [{row}, {pattern.indices[k]}] as observed, but it is NaN "
                f"in {name[0]}. Remove it from the pattern, or give the entry a value."
            )
        return forms.observed(Z, entries, pattern, loss, threads)

    def grouped(self, X: Matrix, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        pattern = self.pattern_of(X, name)
        X = sample(X, pattern)
        total = sp.csr_array(G @ pattern)
        sums = sp.csr_array(G @ with_values(pattern, pattern.data * X.data))
        total.sort_indices()
        sums.sort_indices()
        mean = sample(sums, total)
        mean.data = forms.ratio(mean.data, total.data)
        constant = forms.lost_energy(loss, (X.data, pattern.data), (mean.data, total.data))
        return mean, Observed(total), constant


@dataclass(frozen=True, eq=False)
class Missing(ByPattern):
    """Weights that are zero on a sparse pattern, and `others` (ones) outside of it."""

    others: Outer = field(default_factory=lambda: Outer(None, None))
    by_entries: ClassVar = False

    def absent(self, shape: tuple[int, int]) -> Absent:
        hidden = sp.csr_array(read_pattern(self.pattern, "X_weights") != 0)
        others = self.others.absent(shape)
        return lambda rows: hidden[rows] + others(rows)

    @property
    def divisible(self) -> bool:  # type: ignore[override]
        return self.others.rows is None

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        return np.where(super().values_at(X, at) != 0, 0, self.others.values_at(X, at))

    def excluding(self, X: Tensor, hidden: Coordinates) -> Missing:
        missing = tensors.tensor_pattern(self.pattern, X).at.places
        places = np.concatenate([hidden.places, missing], axis=1)
        return replace(self, pattern=tensors.as_pattern(places, X))

    def clear(self, X: Array) -> Array:
        X[tuple(tensors.tensor_pattern(self.pattern, X).at.places)] = 0
        return self.others.clear(X)

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        """Return the term of all entries except those of the pattern."""
        if tensor:
            listed = tensors.tensor_pattern(self.pattern, Z)
            return forms.missing(Z, listed, [None] * len(Z.shape), loss, threads)
        pattern = self.pattern_of(Z, name).copy()
        pattern.data = (pattern.data != 0).astype(Z.dtype)
        pattern.eliminate_zeros()
        return forms.missing(Z, pattern, self.others.checked(Z, name), loss, threads)

    def with_rows(self, rows: Array, name: str) -> Missing:
        """Rows of weight 0 are missing."""
        if not np.isin(rows, (0, 1)).all():
            raise ValueError(
                f"{name} are weights.missing(...), which cannot be combined with weights of "
                "samples. Mark missing entries by NaN in a dense X, give weights.observed(...), or "
                "no weights of samples (sample_weight None, labeled_weight 1)."
            )
        kept = super().with_rows(rows, name).pattern
        whole = np.repeat((rows == 0)[:, None], kept.shape[1], axis=1)
        return Missing(kept + sp.csr_array(whole.astype(np.float64)))

    def grouped(self, X: Matrix, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        """Refuse: the sums over groups are not sparse."""
        raise ValueError(
            f"{name} are weights.missing(...), which do not support samples with a common "
            "representation; mark missing entries by NaN in a dense X, or give "
            "weights.observed(...)."
        )


@dataclass(frozen=True, eq=False)
class Base(ByPattern):
    """Weights `w0` (a vector with sample weights) of all entries, plus those of a pattern."""

    w0: float | Array
    hides: bool = False  # whether entries of the pattern below 0 mark entries without weight

    @property
    def divisible(self) -> bool:  # type: ignore[override]
        return np.ndim(self.w0) == 0

    def _whole(self, shape: tuple[int, ...]) -> Outer:
        return Outer(np.broadcast_to(self.w0, shape[:1]), None)

    def absent(self, shape: tuple[int, int]) -> Absent:
        hidden = read_pattern(self.pattern, "X_weights") < 0
        return Missing(hidden, self._whole(shape)).absent(shape)

    def of_tensor(self) -> Weights:
        raise ValueError(
            "X_weights are weights.base(...), which are for matrices; for a tensor give an array "
            "of its shape, a list with a vector for each mode, or weights.observed(pattern)."
        )

    def pattern_of(self, Z: Matrix, name: str) -> sp.csr_array:
        return self.pattern.astype(Z.dtype) if self.hides else super().pattern_of(Z, name)

    def _parts(self, Z: Any, name: str) -> tuple[sp.csr_array, Separable]:
        vectors = self._whole(Z.shape).checked(Z, name, (".w0", ""))
        return self.pattern_of(Z, name), Separable(tuple(vectors))

    def term(self, Z: Any, loss: Loss, name: str, threads: int, tensor: bool = False) -> Term:
        return forms.increased(Z, *self._parts(Z, name), loss, threads)

    def values_at(self, X: Tensor, at: Coordinates) -> Array:
        Z = tensors.as_pattern(at.places, X)  # sorted, as places are
        return forms.sums_of(Z, *self._parts(Z, "X_weights"))

    def excluding(self, X: Tensor, hidden: Coordinates) -> Base:
        kept = tensors.tensor_pattern(self.pattern, X).without(hidden)
        places = np.concatenate([hidden.places, kept.at.places], axis=1)
        values = np.concatenate([np.full(hidden.places.shape[1], -1), kept.values])
        return replace(self, pattern=tensors.as_pattern(places, X, values), hides=True)

    def with_rows(self, rows: Array, name: str) -> Base:
        return replace(self, pattern=super().with_rows(rows, name).pattern, w0=self.w0 * rows)

    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> Grouped:
        pattern, whole = self._parts(X, name)
        w = forms.sums_of(X, pattern, whole)
        if not sp.issparse(X):
            return Entrywise(w).grouped(X, G, loss, name)
        if self.hides:
            return Missing(self.pattern).grouped(X, G, loss, name)  # refused
        mean, total = G @ with_values(X, w * X.data), Base(G @ pattern, G @ whole.rows)
        of_mean = forms.sums_of(mean, *total._parts(mean, name))
        mean.data = forms.ratio(mean.data, of_mean)
        return mean, total, forms.lost_energy(loss, (X.data, w), (mean.data, of_mean))
