"""The term of a tensor: its data, loss and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_entries
from .._data.checks import check_vector
from .._data.missing_weights import MissingPlaces
from .._data.tensor_checks import check_tensor
from .._data.tensor_entries import DenseTensorEntries, SparseTensorEntries, TensorEntries
from .._data.tensors import Coordinates, SparseTensor
from .._data.weight_forms import Listed, Separable, WeightForm
from .losses import Loss
from .terms import Term, row_lengths

Tensor = Array | SparseTensor


def _term(
    X: Tensor, entries: TensorEntries, form: WeightForm, loss: Loss, w: Array | None, listed: bool
) -> Term:
    """Return a term whose weights are ones where `w` is None."""
    values = X.values if isinstance(X, SparseTensor) else X
    sparse = isinstance(X, SparseTensor)
    data = None
    if loss.entrywise(sparse, listed, w is not None):
        data = _entries(X, entries.threads), w
    constant, lengths = loss.constant(values, w), row_lengths(values, X.shape)
    return Term(loss, entries, form, X.shape, constant, listed, data, lengths)


def _entries(X: Tensor, threads: int) -> TensorEntries:
    if isinstance(X, SparseTensor):
        return SparseTensorEntries(X, threads)
    return DenseTensorEntries(X, threads)


def _times(X: Tensor, w: Array) -> Tensor:
    return X.with_values(w * X.values) if isinstance(X, SparseTensor) else w * X


def by_mode(X: Tensor, vectors: Sequence[Any], loss: Loss, threads: int) -> Term:
    """A term with one vector of weights for each mode."""
    if len(vectors) != len(X.shape):
        raise ValueError(
            f"X_weights has {len(vectors)} vectors, and X has {len(X.shape)} modes; give one for "
            "each mode, or None for ones."
        )
    dtype = X.dtype
    checked = tuple(
        None if vector is None else check_vector(vector, f"X_weights[{mode}]", length, dtype)
        for mode, (vector, length) in enumerate(zip(vectors, X.shape, strict=True))
    )
    plain = all(vector is None for vector in checked)
    form: WeightForm = Separable(checked, threads)
    w = None if plain else _products(checked, X)
    if not isinstance(X, SparseTensor) and np.isnan(X).any():
        if w is not None:
            return _weighted(X, w, loss, threads)
        form = Listed(DenseTensorEntries(X, threads, mask=True))
    data = X if w is None else _times(X, w)
    return _term(X, _entries(data, threads), form, loss, w, not isinstance(X, SparseTensor))


def _products(vectors: tuple[Array | None, ...], X: Tensor) -> Array:
    """Return the products of vectors at the entries of X, or at all places of a dense one."""
    if isinstance(X, SparseTensor):
        return Separable(vectors).at(tuple(X.at.places), X.dtype)
    w = np.ones_like(X)
    for mode, vector in enumerate(vectors):
        if vector is not None:
            w *= vector.reshape([-1 if k == mode else 1 for k in range(X.ndim)])
    return w


def _weighted(X: Array, w: Array, loss: Loss, threads: int) -> Term:
    """A term with a weight for every entry of a dense tensor, 0 where it is NaN."""
    absent = np.isnan(X)
    if absent.any():
        X, w = np.where(absent, 0, X), np.where(absent, 0, w)
    form = Listed(DenseTensorEntries(w, threads))
    return _term(X, DenseTensorEntries(w * X, threads), form, loss, w, listed=True)


def entrywise(X: Tensor, weights: Any, loss: Loss, threads: int) -> Term:
    """A term with a dense tensor of weights."""
    dtype = X.dtype
    W = check_tensor(weights, "X_weights", dtype)
    if isinstance(W, SparseTensor):
        raise TypeError(
            "X_weights is a sparse tensor, which can be read in two ways: give "
            "weights.observed(pattern) if all other entries weigh 0, weights.missing(pattern) if "
            "its entries are the missing ones."
        )
    check_entries(W, "X_weights")
    if W.shape != X.shape:
        raise ValueError(f"X_weights has shape {W.shape}; expected {X.shape}, the shape of X.")
    if not isinstance(X, SparseTensor):
        return _weighted(X, W, loss, threads)
    w = W[tuple(X.at.places)]
    form = Listed(DenseTensorEntries(W, threads))
    return _term(X, _entries(_times(X, w), threads), form, loss, w, listed=False)


def _pattern(pattern: Any, X: Tensor) -> SparseTensor:
    """Return the nonzero entries of a pattern of weights."""
    dtype = X.dtype
    checked = check_tensor(pattern, "X_weights", dtype)
    if checked.shape != X.shape:
        raise ValueError(f"X_weights has shape {checked.shape}; expected {X.shape}, that of X.")
    if isinstance(checked, SparseTensor):
        places, values = checked.at.places[:, checked.values > 0], checked.values
        return SparseTensor(Coordinates(places, checked.shape), values[values > 0])
    check_entries(checked, "X_weights")
    places = np.array(np.nonzero(checked), dtype=np.int32)
    return SparseTensor(Coordinates(places, checked.shape), checked[tuple(places)])


def observed(X: Tensor, given: Any, loss: Loss, threads: int) -> Term:
    """A term of the observed entries, zeros among them."""
    pattern = _pattern(given, X)
    if isinstance(X, SparseTensor):
        known = X.sampled(pattern.at)
    else:
        known = SparseTensor(pattern.at, X[tuple(pattern.at.places)])
        check_entries(known.values[None], "the observed entries of X")
    form = Listed(SparseTensorEntries(pattern, threads))
    weighted = known.with_values(pattern.values * known.values)
    entries = SparseTensorEntries(weighted, threads)
    return _term(known, entries, form, loss, pattern.values, listed=True)


def missing(X: Tensor, given: Any, loss: Loss, threads: int) -> Term:
    """A term without the entries of a pattern."""
    pattern, none = _pattern(given, X), [None] * len(X.shape)
    if not isinstance(X, SparseTensor):
        known = X.copy()
        known[tuple(pattern.at.places)] = np.nan
        return by_mode(known, none, loss, threads)
    X = X.without(pattern.at)
    ones = pattern.with_values(np.ones_like(pattern.values))
    form = MissingPlaces(SparseTensorEntries(ones, threads), Separable(tuple(none), threads))
    return _term(X, SparseTensorEntries(X, threads), form, loss, None, listed=False)
