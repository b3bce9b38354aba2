"""Terms: what a data matrix with a loss and weights contributes to the update of a factor.

A term of the objective is ``sum V .* d(Z, F G^T)``.  Its loss gives P and N from the two things
that a term holds: the entries V .* Z and the form of the weights V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.block_entries import StreamedEntries, WeightedEntries
from .._data.csr import entry_rows
from .._data.csr import with_values as csr_with_values
from .._data.csr_file import CsrFile
from .._data.entries import (
    DenseEntries,
    Entries,
    SparseEntries,
    Target,
    block_slices,
)
from .._data.missing_weights import MissingEntries
from .._data.tensors import SparseTensor
from .._data.weight_forms import Listed, Separable, WeightForm
from .losses import Loss

_FEW_MISSING = 0.5


def values_of(Z: Any) -> Array:
    """Return the stored values of a sparse matrix or tensor, or an array itself."""
    values: Array = Z.values if isinstance(Z, SparseTensor) else Z.data if sp.issparse(Z) else Z
    return values


def with_values(Z: Any, values: Array) -> Any:
    """Return data of the kind of Z with other values at its places."""
    if isinstance(Z, SparseTensor):
        return Z.with_values(values)
    return csr_with_values(Z, values) if sp.issparse(Z) else values


@dataclass(frozen=True)
class Term:
    """One data matrix Z (p x q) with its loss and weights; `entries` holds V .* Z.

    Or a tensor, unfolded by one mode: its `shape` has a length for each, that of the rows first.
    `row_lengths` are the numbers of entries that are not zero to a row, to a column, and so on, in
    the mean over the data as a whole, however they are stored.

    `listed` says that all entries which are not listed weigh nothing; `data` is Z and a weight for
    each of its values, or None for ones, for losses that read them so.
    """

    loss: Loss
    entries: Entries
    form: WeightForm
    shape: tuple[int, ...]
    constant: float = 0.0
    listed: bool = False
    data: tuple[Entries, Any] | None = None
    row_lengths: tuple[int, ...] = ()

    @property
    def threads(self) -> int:
        return self.entries.threads

    @property
    def gram(self) -> bool:
        """Whether one Gram matrix, times weights of the rows, is the curvature of every row."""
        return self.loss.quadratic and self.form.separable

    def view(self, position: int) -> Term:
        """Return the term as the factor at a position sees it: as that of the rows.

        Its value is taken by the first one only.
        """
        if position == 0:
            return self
        return replace(
            self,
            entries=self.entries.view(position),
            form=self.form.view(position),
            shape=_first(self.shape, position),
            data=None,
            row_lengths=_first(self.row_lengths, position),
        )

    def part(self, rows: slice, entries: Entries | None = None) -> Term:
        """Return the term of some rows, for updates; their entries may have been read already."""
        entries = entries or self.entries.part(rows)
        shape = rows.stop - rows.start, *self.shape[1:]
        return replace(self, entries=entries, form=self.form.part(rows), shape=shape, data=None)

    def P(self, F: Array, G: Array, to: Target) -> None:
        """Give P, which pulls F up."""
        self.loss.P(self.entries, F, G, to)

    def N(self, F: Array, G: Array, to: Target) -> None:
        """Give N, which pulls F down."""
        self.loss.N(self.form, F, G, to)

    def value(self, F: Array, G: Array) -> float:
        """Return sum V .* d(Z, F G^T)."""
        found = self.loss.value(self, F, G)
        if not isinstance(found, Real) or found != found:
            raise ValueError(
                f"the loss {self.loss.name!r} has the value {found!r:.50}; expected a number. Its "
                "method value must return sum V .* d(Z, F G^T), or the data are out of its range."
            )
        return float(found)

    def unreached(self, F: Array, G: Array) -> float:
        """Return what entries that no component can reach have of the value: a constant."""
        return self.loss.unreached(self.entries, F, G)

    def mean(self) -> float:
        """Weighted mean of the data; 1 for data of zeros or without weight, where any will do."""
        weight = self.form.total(self.shape)
        mean = self.entries.total() / weight if weight > 0 else 0.0
        return mean if mean > 0 else 1.0


def _first(numbers: tuple[int, ...], position: int) -> tuple[int, ...]:
    """Return the numbers with that of a position first."""
    return (*numbers[position : position + 1], *numbers[:position], *numbers[position + 1 :])


def row_lengths(values: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many values that are not zero there are for each index of the modes."""
    return tuple(int(np.count_nonzero(values)) // n for n in shape)


# ------------------------------------------------------------------------------- building
# Z is a clean matrix (of `check_matrix`), and so are the weights.


def on_disk(Z: CsrFile, loss: Loss, threads: int) -> Term:
    """Return the term of a file, without weights."""
    constant = Z.squares if loss.quadratic else 0.0
    if not loss.quadratic and not loss.constant_of_weights:
        constant = sum(loss.constant(block.data, None) for _, block in Z.blocks())
    entries, lengths = StreamedEntries(Z, threads), tuple(Z.nnz // n for n in Z.shape)
    form = ones(threads)
    return Term(loss, entries, form, Z.shape, constant, row_lengths=lengths)


def plain(Z: Any, loss: Loss, threads: int, form: WeightForm | None = None) -> Term:
    """A term whose weights are 0 or 1, with Z zero (sparse) or NaN (dense) where they are 0."""
    if sp.issparse(Z):
        return _term(Z, None, SparseEntries(Z, threads), form, loss, listed=False)
    if form is None and np.isnan(Z).any():
        form = _without_nan(Z, ones(threads))
    return _term(Z, None, DenseEntries(Z, threads), form, loss)


def ones(threads: int) -> Separable:
    """Return the weights of a matrix whose entries all have the weight 1."""
    return Separable((None, None), threads)


def with_gaps(term: Term, dtype: Any) -> Term:
    """Return a term that has no missing entries as a part of data that have some.

    Which updates a fit makes depends on the form of the weights: it must be that of all data.
    """
    if not term.form.separable:
        return term
    none = SparseEntries(sp.csr_array(term.shape, dtype=dtype), term.threads)
    return replace(term, form=MissingEntries(none, cast(Separable, term.form)))


def _without_nan(Z: Array, whole: Separable) -> WeightForm:
    """Separable weights, but 0 where a dense matrix has NaN.

    To list the missing ones costs a pass over them alone, but 24 bytes for each.
    """
    missing = np.isnan(Z)
    if np.count_nonzero(missing) > _FEW_MISSING * missing.size:
        mask = DenseEntries(Z, whole.threads, mask=True)
        if all(vector is None for vector in whole.vectors):
            return Listed(mask)
        return Listed(WeightedEntries(mask, *whole.vectors))
    pattern = sp.csr_array(missing.astype(Z.dtype))
    pattern.data = whole.at(_places(pattern), pattern.dtype)
    return MissingEntries(SparseEntries(pattern, whole.threads), whole)


def separable(Z: Any, a: Array | None, b: Array | None, loss: Loss, threads: int) -> Term:
    """A term with the weights a b^T; None stands for ones."""
    whole = Separable((a, b), threads)
    if sp.issparse(Z):
        return weighted(Z, whole.at(_places(Z), Z.dtype), loss, threads, whole)
    form = _without_nan(Z, whole) if np.isnan(Z).any() else whole
    entries = WeightedEntries(DenseEntries(Z, threads), a, b)
    term = _term(Z, whole, entries, form, loss)
    constant = sum(
        loss.constant(Z[rows], whole.present(rows, Z.shape, Z.dtype))
        for rows in block_slices(Z.shape)
    )
    return replace(term, constant=constant)


def weighted(
    Z: Any,
    w: Array,
    loss: Loss,
    threads: int,
    form: WeightForm | None = None,
    *,
    listed: bool = False,
) -> Term:
    """A term with a weight for every entry: the stored ones of a CSR matrix, or all of an array."""
    if sp.issparse(Z):
        entries: Entries = SparseEntries(with_values(Z, w * Z.data), threads)
        return _term(Z, w, entries, form, loss, listed=listed)
    absent = np.isnan(Z)
    if absent.any():
        Z, w = np.where(absent, 0, Z), np.where(absent, 0, w)
    form = form or every(w, threads)
    return _term(Z, w, DenseEntries(w * Z, threads), form, loss)


def _term(
    Z: Any, w: Any, entries: Entries, form: WeightForm | None, loss: Loss, listed: bool = True
) -> Term:
    """Return the term of entries V .* Z; `listed` says that all that is not listed weighs 0."""
    sparse = sp.issparse(Z)
    data = None
    if loss.entrywise(sparse, listed, w is not None):
        data = (entries if w is None else _entries(Z, entries.threads)), w
    values = Z.data if sparse else Z
    constant = loss.constant(values, w) if w is None or isinstance(w, np.ndarray) else 0.0
    form = form or ones(entries.threads)
    lengths = row_lengths(values, Z.shape)
    return Term(loss, entries, form, Z.shape, constant, listed, data, lengths)


def _entries(Z: Any, threads: int) -> Entries:
    return SparseEntries(Z, threads) if sp.issparse(Z) else DenseEntries(Z, threads)


def every(W: Array, threads: int) -> WeightForm:
    """The form of weights in a dense array."""
    return Listed(DenseEntries(W, threads))


def without(Z: Any, missing: sp.csr_array, loss: Loss, threads: int) -> Term:
    """A term without the entries of a 0/1 pattern, which Z no longer has."""
    form = MissingEntries(SparseEntries(missing, threads), ones(threads))
    return plain(Z, loss, threads, form)


def _places(Z: Any) -> tuple[Array, Array]:
    """Return the row and the column of every stored entry."""
    return entry_rows(Z.indptr), Z.indices
