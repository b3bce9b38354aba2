"""Entries of tensors that are hidden from fits: which they are, and what the fits see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import prod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._common.arrays import Array
from .._data.tensors import (
    Coordinates,
    RowProducts,
    SparseTensor,
    Tensor,
    check_tensor,
    coordinate_parts,
    depth,
)
from .._data.threads import Stop, resolve_threads
from .._models.factorize import factorize_tensor
from .._solver.build import build_tensor_term
from .._solver.loop import verbose_progress
from .._solver.losses import FROBENIUS, loss_named
from .._solver.result import FitState
from ..estimators._cp import NonnegativeCP
from ..metrics import core_consistency, factor_match_score
from ._held_out import (
    MOST_PLACES,
    EstimatorFits,
    PlainFits,
    above_zero,
    credible,
    fits_of,
    fitted,
    mean_loss,
    needs_smoothing,
    smoothed,
    some_of,
)
from ._place_weights import PlaceWeights, parts, place_weights, values_at
from ._rank_choice import RankChoice
from ._search import Outcome, Search


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


CRITERIA_OF_TENSORS = ("held-out", "corcondia", "stability")
_AT_ONCE = 1 << 16


class TensorFit(NamedTuple):
    """A CP model, as metrics take it, and the value that it has reached."""

    weights: Array
    factors: list[Array]
    objective: float

    @property
    def model(self) -> tuple[Array, list[Array]]:
        return self.weights, self.factors


@dataclass(frozen=True)
class TensorFits:
    """Decompositions by a loss, or copies of an estimator that is fitted."""

    of: PlainFits | EstimatorFits
    init: str = "auto"  # of decompositions by a loss

    def that_differ(self) -> TensorFits:
        """Return fits from starts that their seeds alone decide: "auto" may be the same for all."""
        drawn = loss_named(self.of.loss, "loss").start
        if isinstance(self.of, PlainFits):
            return replace(self, init=drawn)
        estimator = self.of.estimator
        if estimator.init == "svd":
            raise ValueError(
                "criterion 'stability' needs starts that differ, and estimator.init is 'svd'; set "
                "it to 'random' or 'least-squares'."
            )
        if estimator.init == "auto":
            estimator = clone(estimator).set_params(init=drawn)
        return TensorFits(EstimatorFits(estimator))

    def fit(
        self, X: Any, X_weights: Any, rank: int, seed: int, threads: int, stop: Stop
    ) -> TensorFit:
        if isinstance(self.of, EstimatorFits):
            given = self.of.estimator, X, None, rank, seed, threads, stop
            model = fitted(*given, X_weights=X_weights)
            return TensorFit(model.weights_, model.factors_, model.objective_[-1][1])
        found = factorize_tensor(
            X,
            n_components=rank,
            X_weights=X_weights,
            init=self.init,
            random_state=seed,
            n_threads=threads,
            callback=stop,
            **self.of.settings,
        )
        return TensorFit(found.weights, found.factors, found.objective[-1][1])


@dataclass(frozen=True)
class _PlacesSplit:
    """Hidden entries anywhere in a tensor."""

    hidden: HiddenPlaces
    fits: TensorFits

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        hidden, loss = self.hidden, self.fits.of.loss
        fit = self.fits.fit(hidden.X, hidden.X_weights, rank, seed, threads, stop)
        predicted = _at(fit, hidden.places)
        pairs = [*zip(hidden.largest, hidden.places, strict=True)]
        predicted = credible(predicted, np.min([most[places] for most, places in pairs], axis=0))
        if needs_smoothing(loss):
            predicted = smoothed(predicted, _without_model(hidden))
        error = mean_loss(hidden.values, predicted, hidden.weights, loss, threads)
        return Outcome(fit.objective, {"error": error})


@dataclass(frozen=True)
class _Whole:
    """A tensor of which nothing is held out."""

    X: Any
    X_weights: Any
    fits: TensorFits
    consistent: bool = False  # whether core consistency is asked for

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        fit = self.fits.fit(self.X, self.X_weights, rank, seed, threads, stop)
        measures = {}
        if self.consistent:
            found = core_consistency(fit.model, self.X)
            measures["core consistency"] = float(np.nan_to_num(found))
        return Outcome(fit.objective, measures, fit)


def is_tensor(X: Any, estimator: Any) -> bool:
    """Whether X is a tensor: of three modes or more, by coordinates, or for its estimator."""
    if isinstance(estimator, NonnegativeCP):
        return True
    n_modes = len(X.shape) if hasattr(X, "shape") else depth(X)
    return n_modes > 2 or (not hasattr(X, "tocoo") and coordinate_parts(X, "X") is not None)


def choose_for_tensor(
    X: Any,
    X_weights: Any,
    criterion: str,
    estimator: Any,
    given: dict[str, Any],
    held_out: tuple[float, bool],
    search: Search,
    rule: str,
    rng: np.random.Generator,
) -> RankChoice:
    """Choose the rank of a tensor; `held_out` is a share, and whether zeros are held out, too."""
    if criterion not in CRITERIA_OF_TENSORS:
        raise ValueError(
            f"criterion {criterion!r} is of matrices, and X is a tensor; use one of "
            f"{', '.join(map(repr, CRITERIA_OF_TENSORS))}."
        )
    if estimator is not None and not isinstance(estimator, NonnegativeCP):
        raise TypeError(
            "X is a tensor, whose estimator is NonnegativeCP; got "
            f"{type(estimator).__name__}. Leave estimator out, or give X as a matrix."
        )
    fits = TensorFits(fits_of(estimator, **given))
    tensor = WeightedTensor.checked(X, X_weights, resolve_threads(search.n_threads))
    if criterion == "held-out":
        splits = _splits(tensor, fits, *held_out, rng)
        measures = search.run(islice(splits, search.n_splits), rng)
        scores = measures.pop("error")
        return RankChoice.of(search.ranks, scores, criterion, rule, measures=measures)
    if criterion == "corcondia":
        return _by_consistency(tensor, fits, search, rule, rng)
    return _by_agreement(tensor, fits.that_differ(), search, rule, rng)


def _splits(
    tensor: WeightedTensor,
    fits: TensorFits,
    share: float,
    zeros: bool,
    rng: np.random.Generator,
) -> Iterator[_PlacesSplit]:
    """Give one split after the other, without an end."""
    while True:
        yield _PlacesSplit(tensor.hide(share, zeros, rng), fits)


def _by_consistency(
    tensor: WeightedTensor, fits: TensorFits, search: Search, rule: str, rng: np.random.Generator
) -> RankChoice:
    """Compare the core consistency of the best fits to the whole tensor."""
    if tensor.weights.given is not None:
        raise ValueError(
            "criterion 'corcondia' takes no X_weights: its core is fitted to all entries; mark "
            "missing ones by NaN in a dense X, or use criterion='held-out'."
        )
    whole = _Whole(*tensor.as_given, fits, consistent=True)
    once = replace(search, n_splits=1)
    scores = once.run([whole], rng, "core consistency")["core consistency"]
    return RankChoice.of(search.ranks, scores, "corcondia", rule)


def _by_agreement(
    tensor: WeightedTensor, fits: TensorFits, search: Search, rule: str, rng: np.random.Generator
) -> RankChoice:
    """Compare how well the components of starts agree: the median factor match score of pairs.

    The mean would tell how many starts end in a poor optimum, whatever the rank.
    """
    if search.n_starts < 2:
        raise ValueError(
            "criterion 'stability' compares the components of starts with each other: it needs "
            f"n_starts of at least 2; got {search.n_starts}."
        )
    seeds = rng.integers(2**31 - 1, size=search.n_starts).tolist()
    whole = _Whole(*tensor.as_given, fits)
    scores: list[float] = []
    given = search.verbose, len(search.ranks), "choose_rank", "agreement"
    with verbose_progress(*given, unit="rank") as progress:
        for outcomes in search.starts(whole, search.ranks, seeds):
            models = [outcome.model.model for outcome in outcomes]
            pairs = [factor_match_score(A, B) for A, B in combinations(models, 2)]
            scores.append(float(np.median(pairs)))
            if progress is not None:
                progress(FitState(len(scores), scores[-1]))
    return RankChoice.of(search.ranks, np.array(scores)[:, None], "stability", rule)


def _at(fit: TensorFit, places: Array) -> Array:
    """Return what a model says of some places, float64."""
    rows = RowProducts(tuple(F.astype(np.float64) for F in fit.factors))
    weights = fit.weights.astype(np.float64)
    predicted = np.empty(places.shape[1])
    for first in range(0, len(predicted), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        predicted[part] = rows.at(places[:, part]) @ weights
    return predicted


def _without_model(hidden: HiddenPlaces) -> Array:
    """Return what the sums of the slices say of the hidden entries: their product."""
    first, *others = map(above_zero, hidden.sums)
    predicted = first[hidden.places[0]]
    for sums, places in zip(others, hidden.places[1:], strict=True):
        predicted = predicted * (sums / sums.sum())[places]
    return np.asarray(predicted)
