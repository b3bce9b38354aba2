"""Weights of the entries of tensors, some of which are hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.arrays import as_array
from .._data.tensors import (
    Coordinates,
    SparseTensor,
    Tensor,
    check_tensor,
    coordinate_parts,
    in_order,
)
from .._data.weight_forms import Separable
from .._solver.weights import Missing, Observed, Outer, tensor_pattern


class PlaceWeights(ABC):
    """Weights of the entries of a tensor."""

    @property
    @abstractmethod
    def given(self) -> Any:
        """The weights as `factorize_tensor` takes them."""

    @property
    def listed(self) -> Coordinates | None:
        """The places beside which nothing has weight, if there are such."""
        return None

    @abstractmethod
    def at(self, at: Coordinates) -> Array:
        """Return the weights at places."""

    def without(self, X: Tensor, hidden: Coordinates) -> tuple[Tensor, PlaceWeights]:
        """Return a tensor and its weights, for which some places do not count."""
        if isinstance(X, SparseTensor):
            return X, self.apart_from(X, hidden)
        known = X.copy()
        known[tuple(hidden.places)] = np.nan
        return known, self

    @abstractmethod
    def apart_from(self, X: SparseTensor, hidden: Coordinates) -> PlaceWeights:
        """Return the weights with 0 at some places."""

    def seen(self, X: Tensor) -> Tensor:
        """Return a tensor with 0 where an entry is missing, or has no weight."""
        if isinstance(X, SparseTensor):
            return X.with_values(np.where(self.at(X.at) > 0, X.values, 0))
        return self.clear(np.nan_to_num(X))

    @abstractmethod
    def clear(self, X: Array) -> Array:
        """Return an array with 0 where an entry has no weight; it may be changed."""


@dataclass(frozen=True)
class Everywhere(PlaceWeights):
    """Weights of 1, but for the places of a pattern."""

    missing: SparseTensor | None

    @property
    def given(self) -> Any:
        return None if self.missing is None else Missing(parts(self.missing))

    def at(self, at: Coordinates) -> Array:
        if self.missing is None:
            return np.ones(at.places.shape[1])
        return np.asarray(self.missing.sampled(at).values == 0, dtype=np.float64)

    def apart_from(self, X: SparseTensor, hidden: Coordinates) -> PlaceWeights:
        places = hidden.places
        if self.missing is not None:
            places = np.concatenate([places, self.missing.at.places], axis=1)
        return Everywhere(in_order(places, np.ones(places.shape[1], dtype=X.dtype), X.shape))

    def clear(self, X: Array) -> Array:
        if self.missing is not None:
            X[tuple(self.missing.at.places)] = 0
        return X


@dataclass(frozen=True)
class OnPattern(PlaceWeights):
    """Weights at the places of a pattern alone."""

    pattern: SparseTensor

    @property
    def given(self) -> Any:
        return Observed(parts(self.pattern))

    @property
    def listed(self) -> Coordinates:
        return self.pattern.at

    def at(self, at: Coordinates) -> Array:
        return np.asarray(self.pattern.sampled(at).values)

    def without(self, X: Tensor, hidden: Coordinates) -> tuple[Tensor, PlaceWeights]:
        return X, OnPattern(self.pattern.without(hidden))

    def apart_from(self, X: SparseTensor, hidden: Coordinates) -> PlaceWeights:
        return self.without(X, hidden)[1]

    def seen(self, X: Tensor) -> Tensor:
        return SparseTensor(self.pattern.at, values_at(X, self.pattern.at))

    def clear(self, X: Array) -> Array:
        return X


@dataclass(frozen=True)
class ByVectors(PlaceWeights):
    """Products of the entries of a vector, or None, for each mode."""

    vectors: Sequence[Array | None]

    @property
    def given(self) -> Any:
        return list(self.vectors)

    def at(self, at: Coordinates) -> Array:
        return np.asarray(Separable(tuple(self.vectors)).at(tuple(at.places), np.float64))

    def apart_from(self, X: SparseTensor, hidden: Coordinates) -> PlaceWeights:
        raise ValueError(
            "X_weights has vectors of the modes of a sparse X, which cannot be combined with "
            "hidden entries; give a dense X, or weights of entries."
        )

    def clear(self, X: Array) -> Array:
        for mode, vector in enumerate(self.vectors):
            if vector is not None:
                X *= (vector > 0).reshape(-1, *[1] * (X.ndim - 1 - mode))
        return X


@dataclass(frozen=True)
class ByEntry(PlaceWeights):
    """A weight for each entry, in an array."""

    weights: Any

    @property
    def given(self) -> Any:
        return self.weights

    def at(self, at: Coordinates) -> Array:
        return np.asarray(self.weights[tuple(at.places)])

    def apart_from(self, X: SparseTensor, hidden: Coordinates) -> PlaceWeights:
        weights = self.weights.copy()
        weights[tuple(hidden.places)] = 0
        return ByEntry(weights)

    def clear(self, X: Array) -> Array:
        return np.asarray(X * (self.weights > 0))


@singledispatch
def place_weights(given: Any, X: Tensor) -> PlaceWeights:
    """Return checked weights, in the forms of `factorize_tensor`, of the entries of a tensor."""
    if given is None:
        return Everywhere(None)
    if isinstance(given, (list, tuple)) and coordinate_parts(given, "X_weights") is None:
        vectors = [None if one is None else as_array(one, "X_weights") for one in given]
        return Everywhere(None) if all(one is None for one in vectors) else ByVectors(vectors)
    return ByEntry(check_tensor(given, "X_weights", X.dtype))


@place_weights.register(Observed)
def _observed(given: Observed, X: Tensor) -> PlaceWeights:
    return OnPattern(tensor_pattern(given.pattern, X))


@place_weights.register(Missing)
def _missing(given: Missing, X: Tensor) -> PlaceWeights:
    return Everywhere(tensor_pattern(given.pattern, X))


@place_weights.register(Outer)
def _outer(given: Outer, X: Tensor) -> PlaceWeights:
    return place_weights([given.rows, given.columns], X)


def values_at(X: Tensor, at: Coordinates) -> Array:
    """Return the entries of a tensor at places."""
    return X.sampled(at).values if isinstance(X, SparseTensor) else X[tuple(at.places)]


def parts(X: SparseTensor) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the coordinates, values and shape of a tensor."""
    return X.at.places, X.values, X.shape
