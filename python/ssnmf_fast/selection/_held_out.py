"""Held-out entries and labels, the fits without them, and the errors of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.random import Generator
from sklearn.base import BaseEstimator, clone, is_regressor

from .._common.arrays import Array, LossName, VectorLike
from .._common.locks import cached_property
from .._data import tensors
from .._data.arrays import as_array, entry_rows, refuse_on_disk
from .._data.border import CleanMatrix, check_data, check_integer, check_real
from .._data.tensors import Coordinates, SparseTensor, Tensor, TensorLike, entries_at
from .._data.threads import Stop
from .._labels import ClassLabels, RealTargets, label_vector, labels_of
from .._models.factorize import factorize, factorize_tensor
from .._models.represent import objective
from .._solver.build import as_weights, build_term
from .._solver.losses import FROBENIUS, KULLBACK_LEIBLER, loss_named
from .._solver.weights import Weights, WeightsLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Largest number of held-out places, zeros included: fits to sparse data use them in each iteration.
MOST_PLACES = 1 << 22
_SLACK = 8  # standard deviations of a number of places
# Share of a prediction that comes from marginal sums.  Otherwise entries for which the model is 0
# would dominate losses that grow at least like a logarithm.
_SMOOTHING = 0.01
# Largest prediction, relative to the largest entry seen in a column or slice.  Otherwise a hidden
# entry in a component that is near 0 elsewhere could outweigh all others.
_MOST = 2.0
_AT_ONCE = 1 << 16
_TASK = ("n_components", "random_state", "n_threads", "callback")  # the arguments in a `Task`
_MAX_ITER = 500
_TOL = {True: 1e-6, False: 1e-5}  # of squared errors, and of other losses

Task = tuple[int, int, int, Stop]  # rank, seed, threads and callback of a fit


class RankFit(NamedTuple):
    """Objective, measures, factors (n_k, r) and component weights of a fit."""

    objective: float
    factors: Sequence[Array] = ()
    weights: Array | None = None
    model: Any = None
    measures: Mapping[str, float] = {}


Run = Callable[[int, int, int, Stop], RankFit]  # the arguments are a `Task`


class RankFits:
    """Fits of plain factorizations or of copies of an estimator.

    With `drawn`, fits of tensors have random starts: "auto" may not depend on the seed.
    """

    def __init__(self, estimator: Any, tensor: bool, drawn: bool, **arguments: object) -> None:
        arguments = {name: value for name, value in arguments.items() if value is not None}
        self.estimator, self.tensor = estimator, tensor
        self.settings: dict[str, Any] = {}
        if estimator is None:
            self.loss: Any = arguments.get("loss", "frobenius")
            quadratic = loss_named(self.loss, "loss").quadratic
            max_iter = check_integer(arguments.get("max_iter", _MAX_ITER), "max_iter", 0)
            tol = check_real(arguments.get("tol", _TOL[quadratic]), "tol")
            self.settings = {"loss": self.loss, "max_iter": max_iter, "tol": tol}
            self._by_rows = quadratic and not tensor
        else:
            fits = all(hasattr(estimator, name) for name in ("fit", "loss", *_TASK))
            if not fits or "X_weights" not in signature(estimator.fit).parameters:
                what = "one of ssnmf_fast with n_components and X_weights"
                such = f"such as NMF, SSNMFClassifier or SSNMFRegressor; got {estimator!r:.100}"
                raise TypeError(f"estimator must be {what}, {such}.")
            refuse_both(estimator, arguments)
            self.loss = estimator.loss
        if tensor and drawn:
            init = loss_named(self.loss, "loss").start
            if estimator is None:
                self.settings["init"] = init
            elif estimator.init == "svd":
                how = "estimator.init is 'svd'; set it to 'random' or 'least-squares'"
                raise ValueError(f"criterion 'stability' needs different starts, but {how}.")
            elif estimator.init == "auto":
                self.estimator = clone(estimator).set_params(init=init)

    def fit(self, X: Any, X_weights: WeightsLike, y: VectorLike, *task: Unpack[Task]) -> RankFit:
        if self.estimator is not None:
            if isinstance(X_weights, Weights) and not X_weights.divisible:
                raise ValueError(
                    "X_weights has weights of the rows of a sparse X, which estimators do not "
                    "support with held-out entries; leave estimator out, or give a dense X."
                )
            model = fit_copy(self.estimator, X, y, *task, X_weights=X_weights)
            value = model.objective_[-1][1]
            if self.tensor:
                return RankFit(value, model.factors_, model.weights_, model)
            return RankFit(value, (model.representation_, model.components_.T), None, model)
        arguments: dict[str, Any] = dict(zip(_TASK, task, strict=True))
        arguments |= {"X_weights": X_weights, **self.settings}
        # The same rule for the same weights, whether in an array or in a pattern.
        if self._by_rows and getattr(X_weights, "by_entries", False):
            arguments["solver"] = "hals"
        if self.tensor:
            cp = factorize_tensor(X, **arguments)
            return RankFit(cp.objective[-1][1], cp.factors, cp.weights)
        fit = factorize(CleanMatrix(X), **arguments)
        return RankFit(fit.objective[-1][1], (fit.S, fit.A.T))


def fit_copy(
    estimator: BaseEstimator, X: Any, y: VectorLike, *task: Unpack[Task], **arguments: object
) -> Any:
    """Return a copy of an estimator, fitted with the settings of a task."""
    own, settings = estimator.callback, dict(zip(_TASK, task, strict=True))
    if own is not None:
        settings["callback"] = lambda state: bool(own(state)) or task[3](state)
    model = clone(estimator).set_params(**settings)
    return model.fit(X, **arguments) if y is None else model.fit(X, y, **arguments)


def refuse_both(estimator: BaseEstimator, arguments: Iterable[str]) -> None:
    """Raise ValueError for parameters of the estimator, or if its start is for one rank."""
    if names := ", ".join(arguments):
        how = f"set {names} of the estimator instead, or leave the estimator out"
        raise ValueError(f"{names} and estimator are both given; {how}.")
    if not isinstance(estimator.init, str):
        how = "set it to 'random' to choose a rank"
        raise ValueError(f"estimator.init holds arrays for a single rank; {how}.")


class RankData:
    """Clean data in the form of fits, their entries as an array or `SparseTensor`, and weights."""

    def __init__(self, X: TensorLike, X_weights: WeightsLike, threads: int, tensor: bool) -> None:
        clean: Any = tensors.new_tensor(X) if tensor else check_data(X, threads)
        refuse_on_disk(clean, "criterion 'held-out' (other than 'stability')")
        if 0 in clean.shape:
            expected = "expected at least one sample and one feature"
            raise ValueError(f"X has shape {clean.shape}; {expected}.")
        build_term(clean, X_weights, FROBENIUS, "X", threads, tensor)  # checks the weights
        self.tensor = tensor
        self.weights = as_weights(X_weights, "X_weights", len(clean.shape) if tensor else 0)
        self.X = self.entries = clean
        if isinstance(clean, SparseTensor):
            self.X = clean.at.places, clean.values, clean.shape
        elif sp.issparse(clean):
            self.X = clean = clean if clean.has_sorted_indices else clean.sorted_indices()
            places = np.array([entry_rows(clean.indptr), clean.indices], dtype=np.int32)
            self.entries = SparseTensor(Coordinates(places, clean.shape), clean.data)

    def hold_out(self, share: float, zeros: bool, rng: Generator) -> HeldOut:
        """Hold out a random share of the entries with a weight (positive ones unless `zeros`).

        All entries have the same chance.  For sparse data, at most :data:`MOST_PLACES` are drawn.
        """
        X, coordinates = self.entries, self.weights.listed(self.entries)
        if coordinates is None and isinstance(X, SparseTensor) and not zeros:
            coordinates = X.at
        if coordinates is not None:
            places = coordinates.places
            places = places[:, draw_numbers(places.shape[1], share, rng)]
        else:
            if isinstance(X, SparseTensor):
                X.at.keys()  # raises an error if there are too many places to count
                share = min(share, MOST_PLACES / prod(X.shape))
            numbers = draw_numbers(prod(X.shape), share, rng)
            places = np.array(np.unravel_index(numbers, X.shape), dtype=np.int32)
        at = Coordinates(np.ascontiguousarray(places), X.shape)
        values, weights = entries_at(X, at), self.weights.values_at(X, at)
        mask = ~np.isnan(values) & (weights > 0)
        if not zeros:
            mask &= values > 0
        if not mask.any():
            how = "increase validation_fraction, or give more data"
            raise ValueError(f"No entry with positive weight was held out; {how}.")
        at = Coordinates(np.ascontiguousarray(at.places[:, mask]), at.shape)
        entries, seen_weights = self.weights.without(X, at)
        seen_X = self.X if isinstance(entries, SparseTensor) else entries
        held_out = at.places, values[mask], weights[mask]
        marginals = marginals_of(seen_weights.seen(entries))
        return HeldOut(seen_X, seen_weights, *held_out, *marginals, self.tensor)


def draw_numbers(count: int, share: float, rng: Generator) -> Array:
    """Return sorted numbers below a count, each drawn with the same chance."""
    expected = count * share  # gaps are drawn, so that memory is needed only for the result
    gaps = rng.geometric(share, int(expected + _SLACK * np.sqrt(expected) + _SLACK))
    places = np.cumsum(gaps) - 1
    return np.asarray(places[places < count])


def marginals_of(X: Tensor) -> tuple[list[Array], list[Array]]:
    """Return sums (smoothed, so that they are positive) and largest entries of slices by mode."""
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
    return [part + _SMOOTHING * (part.mean() or 1.0) for part in sums], largest


@dataclass(frozen=True)
class HeldOut:
    """Data and weights for the fits, and the held-out entries with their weights."""

    X: Any
    X_weights: Any
    places: Array
    values: Array
    weights: Array
    sums: list[Array]  # see `marginals_of`
    largest: list[Array]
    tensor: bool

    def measures(self, fit: RankFit, loss: LossName | float, threads: int) -> dict[str, float]:
        """Return "error", the mean loss, and "perplexity" for counts in a matrix."""
        predicted, of_loss = self._predicted(fit), loss_named(loss, "loss")
        if of_loss.degree is not None and of_loss.degree <= 1:
            predicted = (1 - _SMOOTHING) * predicted + _SMOOTHING * self._without_model
        values, weights = (array.astype(np.float64) for array in (self.values, self.weights))
        as_column = CleanMatrix(values[:, None]), predicted[:, None], np.ones((1, 1))
        options: dict[str, Any] = {"loss": loss, "n_threads": threads}
        total = objective(*as_column, X_weights=weights[:, None], **options)
        measures = {"error": float(total / weights.sum())}
        if of_loss is KULLBACK_LEIBLER and not self.tensor:
            counts = self.weights * values
            positive = np.flatnonzero(counts > 0)
            S, F = (factor.astype(np.float64) for factor in fit.factors)
            sizes = (1 - _SMOOTHING) * (S @ F.sum(axis=0))
            sizes += _SMOOTHING * self.sums[0]
            # Predicted shares of the counts in their samples, and the mean of their logarithms.
            shares = predicted[positive] / sizes[self.places[0][positive]]
            counts = counts[positive]
            mean = counts @ np.log(shares) / counts.sum() if len(counts) else np.nan
            measures["perplexity"] = float(np.exp(-mean))
        return measures

    def _predicted(self, fit: RankFit) -> Array:
        """Return predictions, limited to a multiple of the largest entries seen."""
        *first, last = (np.ascontiguousarray(F, dtype=np.float64) for F in fit.factors)
        if fit.weights is not None:
            last = last * fit.weights.astype(np.float64)
        rows, predicted = tensors.RowProducts(tuple(first)), np.empty(len(self.values))
        for begin in range(0, len(predicted), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            *places, at = self.places[:, part]
            np.einsum("ik,ik->i", rows.at(places), last[at], out=predicted[part])
        modes = range(len(self.places)) if self.tensor else (1,)
        largest = np.min([self.largest[k][self.places[k]] for k in modes], axis=0)
        return np.asarray(np.minimum(predicted, _MOST * largest))

    @cached_property
    def _without_model(self) -> Array:
        """Predictions from the marginal sums."""
        first, *others = self.sums
        predicted = first[self.places[0]]
        for sums, places in zip(others, self.places[1:], strict=True):
            predicted = predicted * (sums / sums.sum())[places]
        return np.asarray(predicted)


def splits(
    data: RankData, y: VectorLike, fits: RankFits, share: float, zeros: bool, rng: Generator
) -> Iterator[Run]:
    """Yield splits, without limit."""
    while True:
        held_out, n = data.hold_out(share, zeros, rng), data.entries.shape[0]
        labels = None if y is None else hold_out_labels(y, fits.estimator, n, share, rng)
        yield partial(_measured, fits, data.X, held_out, labels)


def _measured(
    fits: RankFits, X: Any, held_out: HeldOut, labels: HeldOutLabels | None, *task: Unpack[Task]
) -> RankFit:
    """Fit a rank from a seed, and measure the predictions of held-out entries and labels."""
    y = None if labels is None else labels[0]
    fit = fits.fit(held_out.X, held_out.X_weights, y, *task)
    measures = held_out.measures(fit, fits.loss, task[2])
    if labels is not None:
        _, rows, truth = labels
        measures["label_score"] = float(fit.model.score(X[rows], truth))
    return RankFit(fit.objective, measures=measures)


HeldOutLabels = tuple[Any, Array, Any]  # labels for fits; rows and values of held-out labels


def hold_out_labels(
    y: npt.ArrayLike, estimator: BaseEstimator | None, n: int, share: float, rng: Generator
) -> HeldOutLabels:
    """Hold out a random share of the labels, but not the last one of a class."""
    marker = getattr(estimator, "unlabeled", None)
    targets: Any = RealTargets(y) if is_regressor(estimator) else labels_of(y, marker)
    labeled = targets.labeled
    if len(labeled) != n:
        raise ValueError(f"y has {len(labeled)} samples and X has {n}; expected one row for each.")
    order = rng.permutation(np.flatnonzero(labeled))
    most = max(1, round(share * len(order)))
    classes = isinstance(targets, ClassLabels)
    if classes:
        codes = np.full(n, -1)
        codes[labeled] = targets.codes
        last = {code: place for place, code in enumerate(codes[order].tolist())}
        order = np.delete(order, list(last.values()))  # the last sample of each class stays
    rows = np.sort(order[:most])
    count = np.count_nonzero(labeled)
    if not len(rows) or len(rows) == count:
        how = "label more samples, or leave y out"
        raise ValueError(f"y has {count} labels, too few to hide some of them; {how}.")
    if classes:
        values = label_vector(y, "y", column=True)
    else:
        values = as_array(y.toarray() if isinstance(y, (sp.sparray, sp.spmatrix)) else y, "y")
    labels = values.astype(object if classes else np.float64)
    labels[rows] = None if classes else np.nan
    return labels, rows, values[rows]
