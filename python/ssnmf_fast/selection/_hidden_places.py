"""Entries of tensors that are hidden from fits: which they are, and what the fits see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.arrays import as_array
from .._data.tensor_checks import check_tensor, coordinate_parts
from .._data.tensors import Coordinates, SparseTensor, Tensor, in_order
from .._data.weight_forms import Separable
from .._solver.beta_divergences import FROBENIUS
from .._solver.pattern_weights import Missing, Observed, tensor_pattern
from .._solver.weights import Outer, build_tensor_term
from ._hidden import MOST_PLACES, some_of


@dataclass(frozen=True)
class HiddenPlaces:
    """Hidden entries of a tensor and their weights, and what fits see of it.

    `sums` and `largest` have a vector for each mode: of the slices that the fits see, the sums and
    the largest entries.
    """

    places: Array
    values: Array
    weights: Array
    X: Any
    X_weights: Any
    sums: Sequence[Array]
    largest: Sequence[Array]


@dataclass(frozen=True)
class WeightedTensor:
    """A clean tensor, and its weights: None, a vector for each mode, a pattern, or an array."""

    X: Tensor
    given: Any

    @classmethod
    def checked(cls, X: Any, X_weights: Any, threads: int) -> WeightedTensor:
        """Return what a user gave, or raise an error."""
        X = check_tensor(X, "X")
        build_tensor_term(X, X_weights, FROBENIUS, threads)  # which checks the weights
        given = X_weights
        if isinstance(given, Outer):
            given = [given.rows, given.columns]
        if isinstance(given, (list, tuple)) and coordinate_parts(given, "X_weights") is None:
            vectors = [None if one is None else as_array(one, "X_weights") for one in given]
            given = None if all(one is None for one in vectors) else vectors
        elif given is not None and not isinstance(given, (Observed, Missing)):
            given = check_tensor(given, "X_weights", X.dtype)
        return cls(X, given)

    def hide(self, share: float, zeros: bool, rng: np.random.Generator) -> HiddenPlaces:
        """Hide a random share of the entries that have a weight; every one has the same chance.

        That of sparse tensors is smaller than `share` where so many places would not fit into
        memory.  Unless `zeros`, only entries above 0 are hidden.
        """
        at = self._draw(share, zeros, rng)
        values, weights = self._values_at(at), self._weights_at(at)
        kept = ~np.isnan(values) & (weights > 0)
        if not zeros:
            kept &= values > 0
        if not kept.any():
            raise ValueError(
                "held_out holds out no entry of X that has a weight; give a larger share, or more "
                "data."
            )
        at = Coordinates(np.ascontiguousarray(at.places[:, kept]), at.shape)
        fitted = self.without(at)
        sums, largest = _marginals(fitted.seen())
        hidden = at.places, values[kept], weights[kept]
        return HiddenPlaces(*hidden, *fitted.as_given, sums, largest)

    @property
    def as_given(self) -> tuple[Any, Any]:
        """The tensor and its weights as `factorize_tensor` takes them."""
        X = self.X
        return (X.at.places, X.values, X.shape) if isinstance(X, SparseTensor) else X, self.given

    def without(self, hidden: Coordinates) -> WeightedTensor:
        """Return the same but for some places, which do not count."""
        X, given = self.X, self.given
        if isinstance(given, Observed):
            return WeightedTensor(X, Observed(_parts(self._pattern.without(hidden))))
        if not isinstance(X, SparseTensor):
            X = X.copy()
            X[tuple(hidden.places)] = np.nan
            return WeightedTensor(X, given)
        if given is None or isinstance(given, Missing):
            places = hidden.places
            if given is not None:
                places = np.concatenate([places, self._pattern.at.places], axis=1)
            ones = np.ones(places.shape[1], dtype=X.dtype)
            return WeightedTensor(X, Missing(_parts(in_order(places, ones, X.shape))))
        if isinstance(given, list):
            raise ValueError(
                "X_weights has vectors of the modes of a sparse X, which cannot be combined with "
                "hidden entries; give a dense X, or weights of entries."
            )
        given = given.copy()
        given[tuple(hidden.places)] = 0
        return WeightedTensor(X, given)

    def seen(self) -> Tensor:
        """Return the tensor with 0 where an entry is missing, or has no weight."""
        X, given = self.X, self.given
        if isinstance(given, Observed):
            pattern = self._pattern
            return SparseTensor(pattern.at, self._values_at(pattern.at))
        if isinstance(X, SparseTensor):
            present = self._weights_at(X.at) > 0
            return X.with_values(np.where(present, X.values, 0))
        X = np.nan_to_num(X)
        if isinstance(given, Missing):
            X[tuple(self._pattern.at.places)] = 0
        elif isinstance(given, list):
            for mode, vector in enumerate(given):
                if vector is not None:
                    X *= (vector > 0).reshape(-1, *[1] * (X.ndim - 1 - mode))
        elif given is not None:
            X *= given > 0
        return X

    @property
    def _pattern(self) -> SparseTensor:
        return tensor_pattern(self.given.pattern, self.X)

    def _draw(self, share: float, zeros: bool, rng: np.random.Generator) -> Coordinates:
        X, listed = self.X, None
        if isinstance(self.given, Observed):
            listed = self._pattern.at
        elif isinstance(X, SparseTensor) and not zeros:
            listed = X.at
        if listed is not None:
            chosen = some_of(listed.places.shape[1], share, rng)
            return Coordinates(np.ascontiguousarray(listed.places[:, chosen]), X.shape)
        if isinstance(X, SparseTensor):
            X.at.keys()  # raises an error unless places can be counted
            share = min(share, MOST_PLACES / prod(X.shape))
        chosen = some_of(prod(X.shape), share, rng)
        return Coordinates(np.array(np.unravel_index(chosen, X.shape), dtype=np.int32), X.shape)

    def _values_at(self, at: Coordinates) -> Array:
        X = self.X
        return X.sampled(at).values if isinstance(X, SparseTensor) else X[tuple(at.places)]

    def _weights_at(self, at: Coordinates) -> Array:
        given = self.given
        if given is None:
            return np.ones(at.places.shape[1])
        if isinstance(given, Observed):
            return self._pattern.sampled(at).values
        if isinstance(given, Missing):
            return np.asarray(self._pattern.sampled(at).values == 0, dtype=np.float64)
        if isinstance(given, list):
            return Separable(tuple(given)).at(tuple(at.places), np.float64)
        return np.asarray(given[tuple(at.places)])


def _parts(X: SparseTensor) -> tuple[Array, Array, tuple[int, ...]]:
    return X.at.places, X.values, X.shape


def _marginals(X: Tensor) -> tuple[list[Array], list[Array]]:
    """Return the sums and the largest entries of the slices along every mode, float64."""
    sums, largest = [], []
    for mode, length in enumerate(X.shape):
        if isinstance(X, SparseTensor):
            indices, values = X.at.places[mode], X.values.astype(np.float64)
            sums.append(np.bincount(indices, weights=values, minlength=length))
            most = np.zeros(length)
            np.maximum.at(most, indices, values)
            largest.append(most)
        else:
            others = tuple(k for k in range(X.ndim) if k != mode)
            sums.append(X.sum(axis=others, dtype=np.float64))
            largest.append(X.max(axis=others).astype(np.float64))
    return sums, largest
