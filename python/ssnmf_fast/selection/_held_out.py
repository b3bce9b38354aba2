"""Entries that are hidden from fits: which they are, and what the fits see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_regressor

from .._common.arrays import Array
from .._data.arrays import as_array, drop_entries, entry_rows, sample, with_values
from .._data.border import CleanMatrix, check_integer, check_real
from .._data.threads import Stop
from .._labels import ClassLabels, RealTargets, label_vector, labels_of
from .._models.factorize import factorize
from .._models.represent import objective
from .._solver.build import as_weights
from .._solver.losses import KULLBACK_LEIBLER, loss_named
from .._solver.weights import Weights

# Hidden places at most: fits to sparse data go over them in every iteration, zeros among them.
MOST_PLACES = 1 << 22
_SLACK = 8  # standard deviations of a number of places


@dataclass(frozen=True)
class Hidden:
    """Hidden entries of X and their weights, (n, m) in the same order, and what fits see."""

    values: sp.csr_array
    weights: sp.csr_array
    X: Any
    X_weights: Weights


def hide_entries(
    X: Any, X_weights: Any, share: float, zeros: bool, rng: np.random.Generator
) -> Hidden:
    """Hide a random share of the entries of a clean matrix, drawn by :func:`draw_entries`."""
    given = as_weights(X_weights, "X_weights")
    values, weights = draw_entries(X, given, share, zeros, rng)
    ones = with_values(values, np.ones_like(values.data))
    return Hidden(values, weights, *given.without(X, ones))


def draw_entries(
    X: Any, given: Weights, share: float, zeros: bool, rng: np.random.Generator
) -> tuple[sp.csr_array, sp.csr_array]:
    """Return a random share of the entries that have a weight, and their weights.

    Every entry has the same chance: that of sparse data is smaller than `share` where so many
    places would not fit into memory.  Unless `zeros`, only entries above 0 are drawn.
    """
    pattern = _draw(X, given, share, zeros, rng)
    values, weights = sample(X, pattern), given.at(X, pattern)
    left_out = np.isnan(values.data) | ~(weights.data > 0)
    if not zeros:
        left_out |= values.data == 0
    values, weights = (drop_entries(M, left_out) for M in (values, weights))
    if not values.nnz:
        raise ValueError(
            "held_out holds out no entry of X that has a weight; give a larger share, or more data."
        )
    return values, weights


def _draw(
    X: Any, given: Weights, share: float, zeros: bool, rng: np.random.Generator
) -> sp.csr_array:
    """Return a pattern of entries that were drawn, in sorted rows."""
    n, m = X.shape
    listed = given.listed(X)
    if listed is None and sp.issparse(X) and not zeros:
        listed = X
    if listed is not None:
        listed = listed if listed.has_sorted_indices else listed.sorted_indices()
        places = some_of(listed.nnz, share, rng)
        rows = np.searchsorted(listed.indptr, places, side="right") - 1
        columns = listed.indices[places]
    else:
        if sp.issparse(X):
            share = min(share, MOST_PLACES / prod(X.shape))
        rows, columns = np.divmod(some_of(n * m, share, rng), m)
    counts = np.bincount(rows, minlength=n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    data = np.ones(len(columns), dtype=X.dtype)
    return sp.csr_array((data, columns.astype(np.int32), indptr), shape=X.shape)


def some_of(count: int, share: float, rng: np.random.Generator) -> Array:
    """Return numbers below a count, each with the same chance, in their order.

    The gaps between them are drawn: the memory is that of the result.
    """
    expected = count * share
    gaps = rng.geometric(share, int(expected + _SLACK * np.sqrt(expected) + _SLACK))
    places = np.cumsum(gaps) - 1
    return np.asarray(places[places < count])


@dataclass(frozen=True)
class HiddenLabels:
    """What fits see of the labels, and the samples whose labels are hidden, with these."""

    y: Any
    rows: Array
    truth: Any

    def score(self, model: Any, X: Any) -> float:
        """Return the score of a fitted model: an accuracy, or R^2 of a regressor."""
        return float(model.score(X[self.rows], self.truth))


def hide_labels(
    y: Any, estimator: Any, n: int, share: float, rng: np.random.Generator
) -> HiddenLabels:
    """Hide a random share of the labels; each class keeps a sample with a label."""
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
        order = order[_may_be_hidden(codes[order])]
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
        return HiddenLabels(seen, rows, given[rows])
    given = y.toarray() if sp.issparse(y) else as_array(y, "y")
    seen = given.astype(np.float64)
    seen[rows] = np.nan
    return HiddenLabels(seen, rows, given[rows])


def _may_be_hidden(codes: Array) -> Array:
    """Return for labels in an order whether one of their class comes later: the last one stays."""
    last = {code: place for place, code in enumerate(codes.tolist())}
    stays = np.fromiter(last.values(), dtype=np.intp)
    allowed = np.ones(len(codes), dtype=bool)
    allowed[stays] = False
    return allowed


# Of a prediction that comes from the sums of rows and columns.  A model may be 0 where a count is
# not, and losses that grow like a logarithm or faster would see nothing but these entries.
_SMOOTHING = 0.01
# Times the largest entry that was seen of a feature.  What a model says of a hidden entry may hang
# on next to nothing, if all else of a component is near 0; one such entry would outweigh all.
_MOST = 2.0
_AT_ONCE = 1 << 16


def needs_smoothing(loss: Any) -> bool:
    """Whether a loss sees little but entries for which a prediction is 0."""
    degree = loss_named(loss, "loss").degree
    return degree is not None and degree <= 1


def smoothed(predicted: Array, without_model: Array) -> Array:
    """Return predictions of which a little comes from what is known without a model."""
    return np.asarray((1 - _SMOOTHING) * predicted + _SMOOTHING * without_model)


def credible(predicted: Array, largest: Array) -> Array:
    """Return predictions within what is credible beside the largest entries that were seen."""
    return np.minimum(predicted, _MOST * largest, out=predicted)


def above_zero(sums: Array) -> Array:
    """Return sums of rows, or of columns, that are above 0, also where nothing was seen."""
    return np.asarray(sums + _SMOOTHING * (sums.mean() or 1.0))


def mean_loss(values: Array, predicted: Array, weights: Array, loss: Any, threads: int) -> float:
    """Return the weighted mean loss of predictions."""
    weights = weights.astype(np.float64)
    total = objective(
        CleanMatrix(values.astype(np.float64)[:, None]),
        predicted[:, None],
        np.ones((1, 1)),
        loss=loss,
        X_weights=weights[:, None],
        n_threads=threads,
    )
    return total / float(weights.sum())


class Seen(NamedTuple):
    """What is known of rows and columns without a model: sums, and largest entries; float64."""

    row_sums: Array
    column_sums: Array
    largest: Array  # of the columns

    @classmethod
    def of(cls, rows: Any, columns: Any | None = None) -> Seen:
        """Return what some rows say and, if they are others, some columns (transposed data)."""
        columns = rows.T if columns is None else columns
        by_row, by_column = (
            np.asarray(M.sum(axis=1), dtype=np.float64).ravel() for M in (rows, columns)
        )
        largest = columns.max(axis=1)
        largest = largest.toarray() if sp.issparse(largest) else np.asarray(largest)
        return cls(by_row, by_column, largest.ravel().astype(np.float64))


@dataclass(frozen=True)
class Unseen:
    """Entries to predict and their weights, (n, m) in the same order, and what was seen beside."""

    values: sp.csr_array
    weights: sp.csr_array
    seen: Seen

    def measures(self, S: Array, A: Array, loss: Any, threads: int) -> dict[str, float]:
        """Return the mean loss, "error", and of counts the perplexity."""
        S, F = S.astype(np.float64), np.ascontiguousarray(A.T, dtype=np.float64)
        predicted = self._predicted(S, F)
        if needs_smoothing(loss):
            predicted = smoothed(predicted, self._without_model)
        values, weights = self.values.data, self.weights.data
        found = {"error": mean_loss(values, predicted, weights, loss, threads)}
        if loss_named(loss, "loss") is KULLBACK_LEIBLER:
            sizes = (1 - _SMOOTHING) * (S @ F.sum(axis=0)) + _SMOOTHING * self._sums[0]
            found["perplexity"] = self._perplexity(predicted, sizes)
        return found

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        return entry_rows(self.values.indptr), self.values.indices

    def _predicted(self, S: Array, F: Array) -> Array:
        """Return what a model says of the entries, within what is credible."""
        rows, columns = self._places
        predicted = np.empty(len(rows))
        for first in range(0, len(rows), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            np.einsum("ik,ik->i", S[rows[part]], F[columns[part]], out=predicted[part])
        return credible(predicted, self.seen.largest[columns])

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Sums of rows and columns that are above 0, also where nothing was seen."""
        sums = self.seen.row_sums, self.seen.column_sums
        rows, columns = map(above_zero, sums)
        return rows, columns

    @cached_property
    def _without_model(self) -> Array:
        """What the sums say of the entries."""
        (rows, columns), (i, j) = self._sums, self._places
        return np.asarray(rows[i] * (columns / columns.sum())[j])

    def _perplexity(self, predicted: Array, sizes: Array) -> float:
        """Return exp of minus the mean log of the share that the model gives to a count."""
        counts = self.weights.data * self.values.data.astype(np.float64)
        counted = np.flatnonzero(counts > 0)
        if not len(counted):
            return float("nan")
        shares = predicted[counted] / sizes[self._places[0][counted]]
        counts = counts[counted]
        return float(np.exp(-(counts @ np.log(shares)) / counts.sum()))


_NEEDED = ("n_components", "loss", "random_state", "n_threads", "callback")
_MAX_ITER = 500
_TOL = {True: 1e-6, False: 1e-5}  # of squared errors, and of other losses


class Fit(NamedTuple):
    """A model of data, and the value that it has reached."""

    S: Array
    A: Array
    objective: float
    model: Any = None


@dataclass(frozen=True)
class PlainFits:
    """Factorizations by a loss."""

    loss: Any = "frobenius"
    max_iter: int = _MAX_ITER
    tol: float | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of :func:`factorize`."""
        tol = _TOL[self._quadratic] if self.tol is None else self.tol
        return {"loss": self.loss, "max_iter": self.max_iter, "tol": tol}

    @property
    def _quadratic(self) -> bool:
        return loss_named(self.loss, "loss").quadratic

    def fit(
        self, X: Any, X_weights: Any, y: Any, rank: int, seed: int, threads: int, stop: Stop
    ) -> Fit:
        del y
        found = factorize(
            CleanMatrix(X),
            n_components=rank,
            X_weights=X_weights,
            # Multiplicative steps are slow where squares are weighted, and stop too early.
            solver="hals" if self._quadratic else "auto",
            random_state=seed,
            n_threads=threads,
            callback=stop,
            **self.settings,
        )
        return Fit(found.S, found.A, found.objective[-1][1])


@dataclass(frozen=True)
class EstimatorFits:
    """Fits of copies of an estimator."""

    estimator: Any

    @property
    def loss(self) -> Any:
        return self.estimator.loss

    def fit(
        self, X: Any, X_weights: Any, y: Any, rank: int, seed: int, threads: int, stop: Stop
    ) -> Fit:
        if not X_weights.divisible:
            raise ValueError(
                "X_weights has weights of the rows of a sparse X, which an estimator cannot take "
                "beside hidden entries; leave estimator out, or give a dense X."
            )
        model = fitted(self.estimator, X, y, rank, seed, threads, stop, X_weights=X_weights)
        S, A, value = model.representation_, model.components_, model.objective_[-1][1]
        return Fit(S, A, value, model)


def fitted(
    estimator: Any, X: Any, y: Any, rank: int, seed: int, threads: int, stop: Stop, **given: Any
) -> Any:
    """Return a copy of an estimator that was fitted with this rank and seed."""
    own = estimator.callback

    def observe(state: Any) -> bool:
        return bool(own(state)) or stop(state)

    model = clone(estimator).set_params(
        n_components=rank,
        random_state=seed,
        n_threads=threads,
        callback=stop if own is None else observe,
    )
    arguments = (X,) if y is None else (X, y)
    return model.fit(*arguments, **given)


def fits_of(estimator: Any, loss: Any, max_iter: Any, tol: Any) -> PlainFits | EstimatorFits:
    """Return the fits that a user asks for: by an estimator, or by parameters."""
    given = {"loss": loss, "max_iter": max_iter, "tol": tol}
    given = {name: value for name, value in given.items() if value is not None}
    if estimator is None:
        if "loss" in given:
            loss_named(loss, "loss")
        if "max_iter" in given:
            check_integer(max_iter, "max_iter", 0)
        if "tol" in given:
            check_real(tol, "tol")
        return PlainFits(**given)
    refuse_both(estimator, given)
    if not all(hasattr(estimator, name) for name in ("fit", *_NEEDED)) or (
        "X_weights" not in signature(estimator.fit).parameters
    ):
        raise TypeError(
            "estimator must be one of ssnmf_fast with n_components and X_weights, such as NMF, "
            f"SSNMFClassifier or SSNMFRegressor; got {estimator!r:.100}."
        )
    require_no_start(estimator)
    return EstimatorFits(estimator)


def refuse_both(estimator: Any, given: dict[str, Any]) -> None:
    """Raise ValueError for parameters beside an estimator, which has its own."""
    if given:
        names = ", ".join(given)
        raise ValueError(
            f"{names} and estimator are both given; set {names} of the estimator instead, or leave "
            "the estimator out."
        )


def require_no_start(estimator: Any) -> None:
    """Raise ValueError for a start of arrays, which have one rank."""
    if not isinstance(estimator.init, str):
        raise ValueError(
            "estimator.init holds arrays, which have one rank; set it to 'random' to choose a rank."
        )
