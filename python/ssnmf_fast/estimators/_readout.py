"""The readout: logistic regression from what a model sees of samples whose labels it does not know.

A factorization explains labels through components that only labeled samples use: the factor S of
the fit knows the labels, and new samples have none.  The readout is therefore fitted on features of
the labeled samples that are computed without their labels, as those of new samples will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from .._common.arrays import Array
from .._common.saved import Saved
from .._data.threads import one_blas_thread
from .._linalg.randomized_svd import randomized_svd
from ._missing import filled

# What is saved of a readout, and of the classes that it predicts.
READOUT_ATTRIBUTES = {
    "readout_coef_": Saved("kp", "finite", optional=True),
    "readout_intercept_": Saved("k", "finite", optional=True),
    "readout_directions_": Saved("dm", "finite", optional=True),
    "readout_row_scale_": Saved(None, "finite", optional=True),
    "readout_slope_": Saved("k", "finite", optional=True),
    "readout_offset_": Saved("k", "finite", optional=True),
    "thresholds_": Saved("k", "finite", optional=True),
    "class_shares_": Saved("rk", optional=True),
    "classes_": Saved("k", optional=True),
    "class_prior_": Saved("k", "finite", optional=True),
    "multilabel_": Saved("", optional=True),
}
N_DIRECTIONS = 50
_OVERSAMPLES, _POWER_STEPS = 10, 2
_LARGEST_LOGIT = 30.0  # probabilities stay above 1e-13
_NEGLIGIBLE = 1e-15  # a weight beside the penalty; LIBLINEAR does not end for subnormal ones
_MAX_ITER = 1000
_SLOPES = (0.2, 1.5)  # of a calibration: validation of few labels may look too good


def unit_rows(X: Any) -> Any:
    """Return X with rows of length 1, float64; empty rows stay."""
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        if matrix.nnz <= np.iinfo(np.int32).max:  # liblinear takes no other indices
            matrix.indices = matrix.indices.astype(np.int32, copy=False)
            matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
        largest = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
        _divide_rows(matrix, largest)
        _divide_rows(matrix, np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()))
        return matrix
    array = np.array(X, dtype=np.float64)
    for norm in (np.abs(array).max(axis=1, initial=0.0), None):
        length = np.linalg.norm(array, axis=1) if norm is None else norm
        array /= np.where(length > 0, length, 1)[:, None]
    return array


def _divide_rows(matrix: Any, lengths: Array) -> None:
    lengths = np.where(lengths > 0, lengths, 1)
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))


@dataclass(frozen=True)
class Context:
    """What the readout sees of samples besides their topics: unit rows and leading directions.

    `rows` (n, m) are the samples with length 1, `scores` (n, d) their coordinates in the leading
    right singular vectors of the training samples, with length 1 again.  Both are None for a
    readout that sees the topics only.
    """

    rows: Any = None
    scores: Array | None = None

    def __getitem__(self, chosen: Array) -> Context:
        if self.rows is None or self.scores is None:
            return self
        return Context(self.rows[chosen], self.scores[chosen])

    def features(self, shares: Array, row_scale: float) -> Any:
        """Return the features, (n, p): Hellinger coordinates of the shares, scores, rows."""
        topics = np.sqrt(shares)
        if self.rows is None or self.scores is None:
            return topics
        parts = [topics, self.scores]
        if sp.issparse(self.rows):
            blocks = [sp.csr_array(part) for part in parts]
            return sp.csr_array(sp.hstack([*blocks, row_scale * self.rows], format="csr"))
        return np.hstack([*parts, row_scale * self.rows])


def directions_of(X: Any, X_weights: Any, random_state: Any, n_threads: int | None) -> Any:
    """Return the leading directions of X, or None if the readout uses the topics only.

    It does so for data that are not in memory, and for data with weights.
    """
    in_memory = isinstance(X, np.ndarray) or sp.issparse(X)
    if not in_memory or X_weights is not None:
        return None
    seed = random_state if isinstance(random_state, (int, np.integer)) else 0
    return leading_directions(filled(X, None, None), int(seed), n_threads)


@one_blas_thread()
def leading_directions(X: Any, random_state: Any, n_threads: int | None) -> Array:
    """Return leading right singular vectors of the rows of X at length 1, (d, m)."""
    rows = unit_rows(X)
    rank = min(N_DIRECTIONS, min(rows.shape))
    _, singular, Vt = randomized_svd(
        rows,
        rank,
        n_oversamples=_OVERSAMPLES,
        n_power=_POWER_STEPS,
        random_state=random_state,
        n_threads=n_threads,
    )
    # A direction without data is noise of rounding.
    kept = singular > singular[0] * 1e-10 if len(singular) else singular > 0
    return np.asarray(Vt[kept])


@one_blas_thread()
def context_of(X: Any, directions: Array | None) -> Context:
    """Return the context of samples without missing entries.

    Where data have no direction at all, as zeros have, the readout sees the topics only.
    """
    if directions is None or not len(directions):
        return Context()
    rows = unit_rows(X)
    return Context(rows, unit_rows(np.asarray(rows @ directions.T)))


@dataclass(frozen=True)
class ReadoutOptions:
    """Settings of the logistic regression.

    `C` is the inverse of the penalty, `row_scale` the length of the samples beside their topics.
    """

    C: float = 10.0
    row_scale: float = 1.0
    class_weight: Any = None
    tol: float = 1e-3

    @property
    def name(self) -> str:
        weight = "" if self.class_weight is None else f", class_weight={self.class_weight}"
        return f"C={self.C:g}, row_scale={self.row_scale:g}{weight}"


@dataclass(frozen=True)
class Readout:
    """A fitted readout.

    `coefficients` (k, p) and `intercepts` (k,) are those of the logistic regressions, one of all
    classes or (`several`) one for each label; `slopes` and `offsets` (k,) calibrate its logits.
    """

    coefficients: Array
    intercepts: Array
    row_scale: float
    several: bool
    slopes: Array
    offsets: Array

    @one_blas_thread()
    def logits(self, context: Context, shares: Array) -> Array:
        """Return calibrated logits, (n, k), for classes up to a constant of each sample."""
        features = context.features(shares, self.row_scale)
        raw = np.asarray(features @ self.coefficients.T) + self.intercepts
        return np.asarray(raw * self.slopes + self.offsets)


def probabilities(logits: Array, several: bool) -> Array:
    """Return probabilities that are never exactly 0 or 1, (n, k)."""
    if several:
        return np.asarray(expit(np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)))
    below = np.maximum(logits - logits.max(axis=1, keepdims=True), -_LARGEST_LOGIT)
    return np.asarray(softmax(below, axis=1))


@one_blas_thread()
def fit_readout(
    context: Context,
    shares: Array,
    targets: Array,
    weights: Array,
    options: ReadoutOptions,
    several: bool,
) -> Readout:
    """Fit logistic regression to n labeled samples.

    `targets` are codes of the classes, (n,), some of which may not occur; with `several` labels,
    indicators, (n, k).  `weights`, (n,) or (n, k), are at least 0, and 0 where unknown.
    """
    features = context.features(shares, options.row_scale)
    fit = _fit_labels if several else _fit_classes
    coefficients, intercepts = fit(features, targets, weights, options)
    k = len(intercepts)
    return Readout(coefficients, intercepts, options.row_scale, several, np.ones(k), np.zeros(k))


def _fit_classes(
    features: Any, codes: Array, weights: Array, options: ReadoutOptions
) -> tuple[Array, Array]:
    present = np.unique(codes)
    k = int(codes.max()) + 1
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.full(k, -_LARGEST_LOGIT)
    if len(present) == 1:
        intercepts[present] = 0.0
        return coefficients, intercepts
    machine = LogisticRegression(
        C=options.C, tol=options.tol, max_iter=_MAX_ITER, class_weight=options.class_weight
    )
    machine.fit(features, codes, sample_weight=weights)
    if len(present) == 2:
        coefficients[present] = np.vstack([-machine.coef_, machine.coef_]) / 2
        intercepts[present] = np.array([-1, 1]) * machine.intercept_ / 2
    else:
        coefficients[present], intercepts[present] = machine.coef_, machine.intercept_
    return coefficients, intercepts


def _fit_labels(
    features: Any, indicators: Array, weights: Array, options: ReadoutOptions
) -> tuple[Array, Array]:
    k = indicators.shape[1]
    weights = np.broadcast_to(weights if weights.ndim == 2 else weights[:, None], (len(weights), k))
    coefficients, intercepts = np.zeros((k, features.shape[1])), np.zeros(k)
    for label in range(k):
        used = weights[:, label] > _NEGLIGIBLE
        truth = indicators[used, label] > 0
        if truth.all() or not truth.any():  # with the rule of succession
            share = (truth.sum() + 1) / (len(truth) + 2)
            intercepts[label] = np.log(share / (1 - share))
            continue
        machine = LogisticRegression(
            C=options.C,
            tol=options.tol,
            max_iter=_MAX_ITER,
            solver="liblinear",
            intercept_scaling=10.0,
            random_state=0,
            class_weight=options.class_weight,
        )
        machine.fit(features[used], truth, sample_weight=weights[used, label])
        coefficients[label], intercepts[label] = machine.coef_[0], machine.intercept_[0]
    return coefficients, intercepts


@one_blas_thread()
def calibration(logits: Array, targets: Array, several: bool) -> tuple[float, float]:
    """Return slope and offset that make validated logits probable (Platt 1999; temperature).

    For classes one slope for all, at most 1.5 and at least 0.2; with several labels slope and
    offset in common, since a rare label has too few examples for a fit of its own.
    """
    if not several:
        return _temperature(logits, targets), 0.0
    flat, truth = logits.ravel()[:, None], targets.ravel() > 0
    if truth.all() or not truth.any():
        return 1.0, 0.0
    machine = LogisticRegression(C=1e6, max_iter=_MAX_ITER).fit(flat, truth)
    slope = float(np.clip(machine.coef_[0, 0], *_SLOPES))
    return slope, float(machine.intercept_[0])


def _temperature(logits: Array, codes: Array) -> float:
    slopes = np.geomspace(*_SLOPES, 25)
    rows = np.arange(len(codes))
    losses = [-np.log(probabilities(s * logits, False)[rows, codes]).mean() for s in slopes]
    return float(slopes[int(np.argmin(losses))])
