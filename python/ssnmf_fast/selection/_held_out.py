"""Entries and labels that are held out of fits, the fits, and how well these predict them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_regressor

from .._common.arrays import Array, LossName
from .._data.arrays import DataLike, as_array, entry_rows, refuse_on_disk
from .._data.border import CleanMatrix, check_data, check_integer, check_real
from .._data.tensors import (
    Coordinates,
    RowProducts,
    SparseTensor,
    Tensor,
    TensorLike,
    check_tensor,
)
from .._data.threads import Stop
from .._labels import ClassLabels, RealTargets, label_vector, labels_of
from .._models.factorize import factorize, factorize_tensor
from .._models.represent import objective
from .._solver.build import as_weights, build_term
from .._solver.losses import FROBENIUS, KULLBACK_LEIBLER, loss_named
from .._solver.result import FitState
from .._solver.weights import Weights, WeightsLike, entries_at

# Places held out at most: fits to sparse data go over them in every iteration, zeros among them.
MOST_PLACES = 1 << 22
_SLACK = 8  # standard deviations of a number of places
# Share of a prediction that comes from marginal sums.  A model may be 0 where a count is not, and
# losses that grow like a logarithm or faster would be dominated by these entries.
_SMOOTHING = 0.01
# Largest prediction, times the largest entry seen in a column or slice.  Where all else of a
# component is near 0, a single hidden entry would otherwise outweigh all others.
_MOST = 2.0
_AT_ONCE = 1 << 16
_NEEDED = ("n_components", "loss", "random_state", "n_threads", "callback")
_MAX_ITER = 500
_TOL = {True: 1e-6, False: 1e-5}  # of squared errors, and of other losses


class Outcome(NamedTuple):
    """The value that a fit minimizes, measures of the fit, and the model."""

    objective: float
    measures: dict[str, float]
    model: Any = None


Run = Callable[[int, int, int, Stop], Outcome]  # fits a rank from a seed by some threads


class Fit(NamedTuple):
    """Factors (n_k, r) and component weights of a fitted model, and its objective."""

    factors: Sequence[Array]
    weights: Array | None
    objective: float
    model: Any = None


@dataclass(frozen=True)
class Fits:
    """Fits by a loss or, if there is an estimator, of copies of it."""

    loss: Any
    settings: dict[str, Any]
    estimator: Any
    tensor: bool
    init: str = "auto"  # of tensors

    @classmethod
    def checked(cls, estimator: BaseEstimator | None, tensor: bool, **given: object) -> Fits:
        """Return the fits for an estimator, or for a loss, `max_iter` and `tol`."""
        given = {name: value for name, value in given.items() if value is not None}
        if estimator is None:
            loss = given.get("loss", "frobenius")
            quadratic = loss_named(loss, "loss").quadratic
            max_iter = check_integer(given.get("max_iter", _MAX_ITER), "max_iter", 0)
            tol = check_real(given.get("tol", _TOL[quadratic]), "tol")
            settings = {"loss": loss, "max_iter": max_iter, "tol": tol}
            if not tensor and quadratic:  # multiplicative steps are slow with weights
                settings["solver"] = "hals"
            return cls(loss, settings, None, tensor)
        refuse_both(estimator, given)
        if not all(hasattr(estimator, name) for name in ("fit", *_NEEDED)) or (
            "X_weights" not in signature(estimator.fit).parameters
        ):
            raise TypeError(
                "estimator must be one of ssnmf_fast with n_components and X_weights, such as NMF, "
                f"SSNMFClassifier or SSNMFRegressor; got {estimator!r:.100}."
            )
        require_no_start(estimator)
        return cls(estimator.loss, {}, estimator, tensor)

    def with_random_starts(self) -> Fits:
        """Return fits of tensors from random starts: "auto" may not depend on the seed."""
        drawn = loss_named(self.loss, "loss").start
        if self.estimator is None:
            return replace(self, init=drawn)
        if self.estimator.init == "svd":
            raise ValueError(
                "criterion 'stability' needs starts that differ, and estimator.init is 'svd'; set "
                "it to 'random' or 'least-squares'."
            )
        if self.estimator.init == "auto":
            return replace(self, estimator=clone(self.estimator).set_params(init=drawn))
        return self

    def fit(
        self,
        X: Any,
        X_weights: WeightsLike,
        y: npt.ArrayLike | None,
        rank: int,
        seed: int,
        threads: int,
        stop: Stop,
    ) -> Fit:
        if self.estimator is not None:
            if isinstance(X_weights, Weights) and not X_weights.divisible:
                raise ValueError(
                    "X_weights has weights of the rows of a sparse X, which an estimator does not "
                    "support together with held-out entries; leave estimator out, or give a dense "
                    "X."
                )
            model = fit_copy(self.estimator, X, y, rank, seed, threads, stop, X_weights=X_weights)
            value = model.objective_[-1][1]
            if self.tensor:
                return Fit(model.factors_, model.weights_, value, model)
            return Fit((model.representation_, model.components_.T), None, value, model)
        own: dict[str, Any] = {"n_components": rank, "X_weights": X_weights, "random_state": seed}
        own |= {"n_threads": threads, "callback": stop, **self.settings}
        if self.tensor:
            cp = factorize_tensor(X, init=self.init, **own)
            return Fit(cp.factors, cp.weights, cp.objective[-1][1])
        found = factorize(CleanMatrix(X), **own)
        return Fit((found.S, found.A.T), None, found.objective[-1][1])


def fit_copy(
    estimator: BaseEstimator,
    X: Any,
    y: npt.ArrayLike | None,
    rank: int,
    seed: int,
    threads: int,
    stop: Stop,
    **given: object,
) -> Any:
    """Return a copy of an estimator, fitted with this rank and seed."""
    own = estimator.callback

    def observe(state: FitState) -> bool:
        return bool(own(state)) or stop(state)

    model = clone(estimator).set_params(
        n_components=rank,
        random_state=seed,
        n_threads=threads,
        callback=stop if own is None else observe,
    )
    arguments = (X,) if y is None else (X, y)
    return model.fit(*arguments, **given)


def refuse_both(estimator: BaseEstimator, given: dict[str, Any]) -> None:
    """Raise ValueError for parameters that the estimator has itself."""
    if given:
        names = ", ".join(given)
        raise ValueError(
            f"{names} and estimator are both given; set {names} of the estimator instead, or leave "
            "the estimator out."
        )


def require_no_start(estimator: BaseEstimator) -> None:
    """Raise ValueError for a start of arrays, which have one rank."""
    if not isinstance(estimator.init, str):
        raise ValueError(
            "estimator.init holds arrays, which have one rank; set it to 'random' to choose a rank."
        )


@dataclass(frozen=True)
class Data:
    """Clean data as fits take them, as arrays or `SparseTensor`, and their weights."""

    X: Any
    entries: Tensor
    weights: Weights
    tensor: bool

    @classmethod
    def of_matrix(cls, X: DataLike, X_weights: WeightsLike, threads: int) -> Data:
        X = check_data(X, threads)
        refuse_on_disk(X, "criterion 'held-out' (other than 'stability')")
        if 0 in X.shape:
            raise ValueError(
                f"X has shape {X.shape}; expected at least one sample and one feature."
            )
        build_term(X, X_weights, FROBENIUS, "X", threads)  # checks the weights
        entries = X
        if sp.issparse(X):
            X = X if X.has_sorted_indices else X.sorted_indices()
            places = np.array([entry_rows(X.indptr), X.indices], dtype=np.int32)
            entries = SparseTensor(Coordinates(places, X.shape), X.data)
        return cls(X, entries, as_weights(X_weights, "X_weights"), False)

    @classmethod
    def of_tensor(cls, X: TensorLike, X_weights: WeightsLike, threads: int) -> Data:
        entries = check_tensor(X, "X")
        build_term(entries, X_weights, FROBENIUS, "X", threads, tensor=True)  # checks the weights
        weights = as_weights(X_weights, "X_weights", len(entries.shape))
        if isinstance(entries, SparseTensor):
            X = entries.at.places, entries.values, entries.shape
        else:
            X = entries
        return cls(X, entries, weights, True)

    def hold_out(self, share: float, zeros: bool, rng: np.random.Generator) -> HeldOut:
        """Hold out a random share of the entries that have a weight, each with the same chance.

        Of sparse data at most :data:`MOST_PLACES` are drawn.  Unless `zeros`, only entries above 0
        are held out.
        """
        at = self._draw(share, zeros, rng)
        values, weights = entries_at(self.entries, at), self.weights.values_at(self.entries, at)
        kept = ~np.isnan(values) & (weights > 0)
        if not zeros:
            kept &= values > 0
        if not kept.any():
            raise ValueError(
                "No entry with positive weight was held out; increase validation_fraction, or give "
                "more data."
            )
        at = Coordinates(np.ascontiguousarray(at.places[:, kept]), at.shape)
        entries, seen = self.weights.without(self.entries, at)
        X = self.X if isinstance(entries, SparseTensor) else entries
        marginals = Marginals.of(seen.seen(entries))
        return HeldOut(X, seen, at.places, values[kept], weights[kept], marginals, self.tensor)

    def _draw(self, share: float, zeros: bool, rng: np.random.Generator) -> Coordinates:
        X, listed = self.entries, self.weights.listed(self.entries)
        if listed is None and isinstance(X, SparseTensor) and not zeros:
            listed = X.at
        if listed is not None:
            chosen = draw_numbers(listed.places.shape[1], share, rng)
            return Coordinates(np.ascontiguousarray(listed.places[:, chosen]), X.shape)
        if isinstance(X, SparseTensor):
            X.at.keys()  # raises an error unless places can be counted
            share = min(share, MOST_PLACES / prod(X.shape))
        chosen = draw_numbers(prod(X.shape), share, rng)
        return Coordinates(np.array(np.unravel_index(chosen, X.shape), dtype=np.int32), X.shape)


def draw_numbers(count: int, share: float, rng: np.random.Generator) -> Array:
    """Return sorted numbers below a count, each with the same chance.

    The gaps between them are drawn: the memory is that of the result.
    """
    expected = count * share
    gaps = rng.geometric(share, int(expected + _SLACK * np.sqrt(expected) + _SLACK))
    places = np.cumsum(gaps) - 1
    return np.asarray(places[places < count])


@dataclass(frozen=True)
class Marginals:
    """Sums and largest entries of the slices along every mode, float64."""

    sums: list[Array]
    largest: list[Array]

    @classmethod
    def of(cls, X: Tensor) -> Marginals:
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
        return cls(sums, largest)

    @cached_property
    def positive(self) -> list[Array]:
        """The sums, above 0 also where nothing was seen."""
        return [sums + _SMOOTHING * (sums.mean() or 1.0) for sums in self.sums]


@dataclass(frozen=True)
class HeldOut:
    """Data and weights that fits see, and the held-out entries with their weights."""

    X: Any
    X_weights: Any
    places: Array
    values: Array
    weights: Array
    marginals: Marginals
    tensor: bool

    def measures(self, fit: Fit, loss: LossName | float, threads: int) -> dict[str, float]:
        """Return the mean loss, "error", and for counts in a matrix the perplexity."""
        predicted, of_loss = self._predicted(fit), loss_named(loss, "loss")
        if of_loss.degree is not None and of_loss.degree <= 1:
            predicted = (1 - _SMOOTHING) * predicted + _SMOOTHING * self._without_model
        measures = {"error": self._mean_loss(predicted, loss, threads)}
        if of_loss is KULLBACK_LEIBLER and not self.tensor:
            S, F = (factor.astype(np.float64) for factor in fit.factors)
            sizes = (1 - _SMOOTHING) * (S @ F.sum(axis=0))
            sizes += _SMOOTHING * self.marginals.positive[0]
            measures["perplexity"] = self._perplexity(predicted, sizes)
        return measures

    def _predicted(self, fit: Fit) -> Array:
        """Return predictions, at most a multiple of the largest entries that were seen."""
        *first, last = (np.ascontiguousarray(F, dtype=np.float64) for F in fit.factors)
        if fit.weights is not None:
            last = last * fit.weights.astype(np.float64)
        rows, predicted = RowProducts(tuple(first)), np.empty(len(self.values))
        for begin in range(0, len(predicted), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            *places, at = self.places[:, part]
            np.einsum("ik,ik->i", rows.at(places), last[at], out=predicted[part])
        modes = range(len(self.places)) if self.tensor else (1,)
        largest = np.min([self.marginals.largest[k][self.places[k]] for k in modes], axis=0)
        return np.asarray(np.minimum(predicted, _MOST * largest))

    @cached_property
    def _without_model(self) -> Array:
        """Products of the marginal sums."""
        first, *others = self.marginals.positive
        predicted = first[self.places[0]]
        for sums, places in zip(others, self.places[1:], strict=True):
            predicted = predicted * (sums / sums.sum())[places]
        return np.asarray(predicted)

    def _mean_loss(self, predicted: Array, loss: LossName | float, threads: int) -> float:
        weights = self.weights.astype(np.float64)
        total = objective(
            CleanMatrix(self.values.astype(np.float64)[:, None]),
            predicted[:, None],
            np.ones((1, 1)),
            loss=loss,
            X_weights=weights[:, None],
            n_threads=threads,
        )
        return float(total / weights.sum())

    def _perplexity(self, predicted: Array, sizes: Array) -> float:
        """Return exp of minus the mean log share of a count in its sample, by the model."""
        counts = self.weights * self.values.astype(np.float64)
        counted = np.flatnonzero(counts > 0)
        if not len(counted):
            return float("nan")
        shares = predicted[counted] / sizes[self.places[0][counted]]
        counts = counts[counted]
        return float(np.exp(-(counts @ np.log(shares)) / counts.sum()))


def splits(
    data: Data,
    y: npt.ArrayLike | None,
    fits: Fits,
    share: float,
    zeros: bool,
    rng: np.random.Generator,
) -> Iterator[Run]:
    """Give one split after the other, without an end."""
    while True:
        held_out, labels = data.hold_out(share, zeros, rng), None
        if y is not None:
            labels = hold_out_labels(y, fits.estimator, data.X.shape[0], share, rng)
        yield _split(data.X, held_out, labels, fits)


def _split(X: Any, held_out: HeldOut, labels: HeldOutLabels | None, fits: Fits) -> Run:
    def run(rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        y = None if labels is None else labels.y
        fit = fits.fit(held_out.X, held_out.X_weights, y, rank, seed, threads, stop)
        measures = held_out.measures(fit, fits.loss, threads)
        if labels is not None:
            measures["label_score"] = float(fit.model.score(X[labels.rows], labels.truth))
        return Outcome(fit.objective, measures)

    return run


class HeldOutLabels(NamedTuple):
    """Labels that fits see, and the rows and values of those that are held out."""

    y: Any
    rows: Array
    truth: Any


def hold_out_labels(
    y: npt.ArrayLike,
    estimator: BaseEstimator | None,
    n: int,
    share: float,
    rng: np.random.Generator,
) -> HeldOutLabels:
    """Hold out a random share of the labels; each class keeps a labeled sample."""
    if is_regressor(estimator):
        targets: Any = RealTargets(y)
    else:
        targets = labels_of(y, getattr(estimator, "unlabeled", None))
    labeled = targets.labeled
    if len(labeled) != n:
        raise ValueError(f"y has {len(labeled)} samples and X has {n}; expected one row for each.")
    order = rng.permutation(np.flatnonzero(labeled))
    wanted = max(1, round(share * len(order)))
    if isinstance(targets, ClassLabels):
        codes = np.full(n, -1)
        codes[labeled] = targets.codes
        last = {code: place for place, code in enumerate(codes[order].tolist())}
        order = np.delete(order, list(last.values()))  # the last sample of each class stays
    rows = np.sort(order[:wanted])
    if not len(rows) or len(rows) == np.count_nonzero(labeled):
        raise ValueError(
            f"y has {np.count_nonzero(labeled)} labels, too few to hide some of them; label more "
            "samples, or leave y out."
        )
    if isinstance(targets, ClassLabels):
        given = label_vector(y, "y", column=True)
        seen = np.array(given, dtype=object)
        seen[rows] = None
        return HeldOutLabels(seen, rows, given[rows])
    given = as_array(y.toarray() if isinstance(y, (sp.sparray, sp.spmatrix)) else y, "y")
    seen = given.astype(np.float64)
    seen[rows] = np.nan
    return HeldOutLabels(seen, rows, given[rows])
