"""Terms of data by the form of their weights: by mode, by entry, observed or missing entries.

Z and weights are clean data: matrices from `check_matrix`, or tensors from `check_tensor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._data.arrays import drop_entries, entry_rows, sample
from .._data.arrays import with_values as csr_with_values
from .._data.csr_file import CsrFile
from .._data.entries import DenseEntries, Entries, SparseEntries, StreamedEntries, block_slices
from .._data.tensor_entries import DenseTensorEntries, SparseTensorEntries
from .._data.tensors import SparseTensor
from .._data.weight_forms import Listed, MissingEntries, MoreEntries, Separable, WeightForm
from .losses import FROBENIUS
from .terms import Loss, Term

_LEAST_COVERED = 0.05  # of the largest weights of rows: the mean of all weights
_DENSE_SHARE = 0.2  # of observed entries, from which on a dense array of weights costs less


def values_of(Z: Any) -> Array:
    """Return the stored values of a sparse matrix or tensor, or an array itself."""
    values: Array = Z.values if isinstance(Z, SparseTensor) else Z.data if sp.issparse(Z) else Z
    return values


def with_values(Z: Matrix, values: Array) -> Any:
    """Return data of the same kind as Z with other values at its places."""
    if isinstance(Z, SparseTensor):
        return Z.with_values(values)
    return csr_with_values(Z, values) if sp.issparse(Z) else values


def entries_of(Z: Matrix, threads: int, tensor: bool = False) -> Entries:
    if isinstance(Z, SparseTensor):
        return SparseTensorEntries(Z, threads)
    if sp.issparse(Z):
        return SparseEntries(Z, threads)
    return DenseTensorEntries(Z, threads) if tensor else DenseEntries(Z, threads)


def on_disk(Z: CsrFile, loss: Loss, threads: int) -> Term:
    """Return the term of a file, without weights."""
    constant = Z.squares if loss.quadratic else 0.0
    if not loss.quadratic and not loss.constant_of_weights:
        constant = sum(loss.constant(block.data, None) for _, block in Z.blocks())
    entries, lengths = StreamedEntries(Z, threads), tuple(Z.nnz // n for n in Z.shape)
    form = Separable((None, None), threads)
    return Term(loss, entries, form, Z.shape, constant, row_lengths=lengths)


def separable(
    Z: Any, vectors: Sequence[Array | None], loss: Loss, threads: int, tensor: bool = False
) -> Term:
    """Return the term of data whose weights are a product of a vector, or None, for each mode."""
    form: WeightForm
    form = whole = Separable(tuple(vectors), threads)
    plain = all(vector is None for vector in vectors)
    if not isinstance(Z, np.ndarray):
        w = None if plain else whole.at(places_of(Z), Z.dtype)
        return weighted(Z, w, loss, threads, whole)
    raw = entries_of(Z, threads, tensor)
    holes = raw.moments.missing > 0
    missing = np.isnan(Z) if holes else np.zeros(0, dtype=bool)
    seen = _seen_rows(missing, whole, Z.dtype) if holes else None
    if tensor:
        if plain:
            mask = DenseTensorEntries(Z, threads, mask=True)
            form = Listed(mask, seen or whole) if holes else whole
            return weighted(Z, None, loss, threads, form, raw=raw)
        pairs = zip(vectors, Z.shape, strict=True)
        sides = np.ix_(*(np.ones(n, dtype=Z.dtype) if v is None else v for v, n in pairs))
        w = reduce(np.multiply, sides)
        return weighted(Z, w, loss, threads, None if holes else whole, tensor=True)
    if 2 * raw.moments.missing > Z.size:
        form = Listed(DenseEntries(Z, threads, True, *vectors), seen or whole)
    elif holes:
        pattern = sp.csr_array(missing.astype(Z.dtype))
        pattern.data = whole.at(places_of(pattern), pattern.dtype)
        form = MissingEntries(SparseEntries(pattern, threads), whole, seen)
    if plain:
        return weighted(Z, None, loss, threads, form, raw=raw)
    data = (raw, whole) if loss.entrywise(False, True, True) else None
    constant, nonzero = 0.0, 0
    for rows in block_slices(Z.shape):
        w = whole.present(rows, Z.shape, Z.dtype)
        constant += loss.constant(Z[rows], w)
        nonzero += np.count_nonzero((Z[rows] != 0) & (w > 0))
    lengths = _lengths(nonzero, Z.shape)
    entries = DenseEntries(Z, threads, False, *vectors)
    return Term(loss, entries, form, Z.shape, constant, True, data, lengths)


def _seen_rows(missing: Array, whole: Separable, dtype: npt.DTypeLike) -> Separable | None:
    """Return the weights without rows that are missing as a whole, such as hidden labels, if any.

    What other terms say of them is then not held back by entries that are filled in.
    """
    seen = ~missing.reshape(len(missing), -1).all(axis=1)
    if seen.all():
        return None
    return whole.with_rows(seen.astype(dtype) if whole.rows is None else seen * whole.rows)


def _largest_rows(w: Array, threads: int) -> Separable | None:
    """Return the largest weight of each row for all of its entries; None if these would not pay."""
    by_row = w.reshape(len(w), -1)
    largest = by_row.max(axis=1, initial=0.0)
    if by_row.mean(dtype=np.float64) < _LEAST_COVERED * largest.mean(dtype=np.float64):
        return None  # steps would be as short as this share
    return Separable((largest, *[None] * (w.ndim - 1)), threads)


def weighted(
    Z: Matrix,
    w: Array | None,
    loss: Loss,
    threads: int,
    form: WeightForm | None = None,
    *,
    listed: bool = False,
    tensor: bool = False,
    raw: Entries | None = None,
) -> Term:
    """Return the term of data with a weight for each value (None: 1); `listed`: others weigh 0.

    `raw` are the entries of Z, if they are there already.
    """
    dense = isinstance(Z, np.ndarray)
    if dense and w is not None and (absent := np.isnan(Z)).any():
        Z, w = np.where(absent, 0, Z), np.where(absent, 0, w)
    raw = entries = raw or entries_of(Z, threads, tensor)
    if w is not None:
        entries = entries_of(with_values(Z, w * values_of(Z)), threads, tensor)
    if form is None and w is not None:
        form = Listed(entries_of(w, threads, tensor), _largest_rows(w, threads) if dense else None)
    assert form is not None
    data = (raw, w) if loss.entrywise(raw.sparse, listed or dense, w is not None) else None
    known = loss is FROBENIUS and w is None
    constant = raw.moments.squares if known else loss.constant(raw.values, w)
    lengths = _lengths(entries.moments.nonzero, Z.shape)
    return Term(loss, entries, form, Z.shape, constant, listed or dense, data, lengths)


def entrywise(Z: Matrix, W: Array, loss: Loss, threads: int, tensor: bool = False) -> Term:
    if isinstance(Z, np.ndarray) and np.isin(W, (0, 1)).all():
        nothing = [None] * Z.ndim
        return separable(np.where(W > 0, Z, np.nan), nothing, loss, threads, tensor)
    if isinstance(Z, np.ndarray):
        return weighted(Z, W, loss, threads, tensor=tensor)
    form = Listed(entries_of(W, threads, tensor), _largest_rows(W, threads))
    return weighted(Z, W[places_of(Z)], loss, threads, form)


def observed(Z: Any, known: Any, pattern: Any, loss: Loss, threads: int) -> Term:
    """Return the term of data at the places of a pattern, whose values are their weights.

    `known` are the data there.  For squared errors of an array at many places, an array of
    weights costs less: one Gram matrix for all rows.
    """
    w = values_of(pattern)
    if isinstance(Z, np.ndarray) and loss.quadratic and len(w) >= _DENSE_SHARE * Z.size:
        W = np.zeros_like(Z)
        W[places_of(pattern)] = w
        return entrywise(Z, W, loss, threads, isinstance(pattern, SparseTensor))
    form = Listed(entries_of(pattern, threads))
    return weighted(known, w, loss, threads, form, listed=True)


def missing(
    Z: Any, pattern: Any, vectors: Sequence[Array | None], loss: Loss, threads: int
) -> Term:
    """Return the term of all entries except those of a pattern."""
    tensor = isinstance(pattern, SparseTensor)
    if isinstance(Z, np.ndarray):
        Z = Z.copy()
        Z[places_of(pattern)] = np.nan
        return separable(Z, vectors, loss, threads, tensor)
    whole, w = Separable(tuple(vectors), threads), None
    if tensor:
        pattern = pattern.with_values(np.ones_like(pattern.values))
        present = Z.without(pattern.at)
    else:
        present = drop_entries(Z, sample(pattern, Z).data != 0)
        present.sort_indices()
    if any(vector is not None for vector in vectors):
        pattern.data = whole.at(places_of(pattern), Z.dtype)
        w = whole.at(places_of(present), Z.dtype)
    gaps: Any = entries_of(pattern, threads)  # sparse ones
    form = MissingEntries(gaps, whole)
    return weighted(present, w, loss, threads, form)


def sums_of(Z: Matrix, pattern: sp.csr_array, whole: Separable) -> Array:
    """Return the sums of both weights for all entries of Z; 0 if the pattern is below 0."""
    if sp.issparse(Z):
        more, w = sample(pattern, Z).data, whole.at(places_of(Z), Z.dtype)
    else:
        more, w = pattern.toarray(), whole.present(slice(None), Z.shape, Z.dtype)
    return np.where(more < 0, 0, w + more)


def increased(Z: Matrix, pattern: sp.csr_array, whole: Separable, loss: Loss, threads: int) -> Term:
    """Return the term of data with the weights of `sums_of`."""
    whole, form = replace(whole, threads=threads), None
    if sp.issparse(Z) or not np.isnan(Z).any():
        gaps, more = (drop_entries(pattern, at) for at in (pattern.data >= 0, pattern.data < 0))
        gaps.data = whole.at(places_of(gaps), Z.dtype)
        below = MissingEntries(SparseEntries(gaps, threads), whole) if gaps.nnz else whole
        form = MoreEntries(SparseEntries(more, threads), below)
    return weighted(Z, sums_of(Z, pattern, whole), loss, threads, form)


def _lengths(nonzero: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(nonzero // n for n in shape)


def with_gaps(term: Term, dtype: npt.DTypeLike) -> Term:
    """Return a term without missing entries in the form of terms with missing entries."""
    if not term.form.separable:
        return term
    none = SparseEntries(sp.csr_array(term.shape, dtype=dtype), term.threads)
    return replace(term, form=MissingEntries(none, cast(Separable, term.form)))


def places_of(Z: Any) -> tuple[Array, ...]:
    """Return the indices of every stored entry of a sparse matrix or tensor, by mode."""
    return tuple(Z.at.places) if isinstance(Z, SparseTensor) else (entry_rows(Z.indptr), Z.indices)


def energy_of(Z: Matrix, loss: Loss) -> Any:
    """Return phi (see `Loss.energy`) of the entries, float64."""
    return with_values(Z, loss.energy(values_of(Z).astype(np.float64)))


def lost_energy(loss: Loss, before: tuple[Array, Array], after: tuple[Array, Array]) -> float:
    """Return the part of the loss that is lost by means over groups."""
    high, low = (float(np.sum(w * energy_of(values, loss))) for values, w in (before, after))
    return max(high - low, 0.0)


def check_rows(array: Array | sp.csr_array, rows: Array, name: str) -> None:
    if len(array.shape) != 2 or array.shape[0] != len(rows):
        raise ValueError(f"{name} has shape {array.shape}; expected {len(rows)} rows.")


def ratio(sums: Array, weights: Array) -> Array:
    """Return weighted means, 0 without weight."""
    return np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
