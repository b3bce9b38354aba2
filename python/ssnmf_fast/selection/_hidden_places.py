"""Entries of tensors that are hidden from fits: which they are, and what the fits see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.tensors import Coordinates, SparseTensor, Tensor, check_tensor
from .._solver.losses import FROBENIUS
from .._solver.weights import build_tensor_term
from ._hidden import MOST_PLACES, some_of
from ._place_weights import PlaceWeights, parts, place_weights, values_at


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
    """A clean tensor, and the weights of its entries."""

    X: Tensor
    weights: PlaceWeights

    @classmethod
    def checked(cls, X: Any, X_weights: Any, threads: int) -> WeightedTensor:
        """Return what a user gave, or raise an error."""
        X = check_tensor(X, "X")
        build_tensor_term(X, X_weights, FROBENIUS, threads)  # which checks the weights
        return cls(X, place_weights(X_weights, X))

    def hide(self, share: float, zeros: bool, rng: np.random.Generator) -> HiddenPlaces:
        """Hide a random share of the entries that have a weight; every one has the same chance.

        That of sparse tensors is smaller than `share` where so many places would not fit into
        memory.  Unless `zeros`, only entries above 0 are hidden.
        """
        at = self._draw(share, zeros, rng)
        values, weights = values_at(self.X, at), self.weights.at(at)
        kept = ~np.isnan(values) & (weights > 0)
        if not zeros:
            kept &= values > 0
        if not kept.any():
            raise ValueError(
                "held_out holds out no entry of X that has a weight; give a larger share, or more "
                "data."
            )
        at = Coordinates(np.ascontiguousarray(at.places[:, kept]), at.shape)
        fitted = WeightedTensor(*self.weights.without(self.X, at))
        sums, largest = _marginals(fitted.weights.seen(fitted.X))
        hidden = at.places, values[kept], weights[kept]
        return HiddenPlaces(*hidden, *fitted.as_given, sums, largest)

    @property
    def as_given(self) -> tuple[Any, Any]:
        """The tensor and its weights as `factorize_tensor` takes them."""
        X = self.X
        return parts(X) if isinstance(X, SparseTensor) else X, self.weights.given

    def _draw(self, share: float, zeros: bool, rng: np.random.Generator) -> Coordinates:
        X, listed = self.X, self.weights.listed
        if listed is None and isinstance(X, SparseTensor) and not zeros:
            listed = X.at
        if listed is not None:
            chosen = some_of(listed.places.shape[1], share, rng)
            return Coordinates(np.ascontiguousarray(listed.places[:, chosen]), X.shape)
        if isinstance(X, SparseTensor):
            X.at.keys()  # raises an error unless places can be counted
            share = min(share, MOST_PLACES / prod(X.shape))
        chosen = some_of(prod(X.shape), share, rng)
        return Coordinates(np.array(np.unravel_index(chosen, X.shape), dtype=np.int32), X.shape)


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
