"""Topics of classes: starts at the means of classes, supports, and the guided factorization."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization, factorize
from ._context import visible
from ._training_labels import TrainingLabels, as_outer

SUPPORTS = math.inf  # this supervision weight: labels decide which components may be used

_OVERALL = 0.3  # share of the mean of all samples in a start
_UNLIKELY = 0.1  # of a class in the start of B for components of others


def fit_options(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that each of its factorizations gets as they are."""
    chosen = ("n_components", "init", "random_state", "supervision_weight")
    return {name: p for name, p in model._arguments().items() if name not in chosen}


def components_of_classes(n_components: int, counts: Array) -> Array:
    """Return the class of every component, (r,): as many for each, what is left for large ones."""
    k = len(counts)
    each = np.full(k, n_components // k)
    each[np.argsort(-counts, kind="stable")[: n_components % k]] += 1
    return np.repeat(np.arange(k), each)


class LabeledSamples(Protocol):
    """Rows of X with labels, in memory or on a cluster, as far as topics of classes need them."""

    labels: TrainingLabels

    @property
    def dtype(self) -> Any:
        """The dtype of X."""

    def overall_mean(self) -> Array:
        """Return the mean of all samples, (m,).  NaN, and entries without weight, count as 0."""

    def sums(self, weights: Array) -> Array:
        """Return weights^T X, (columns of weights, m)."""

    def support(self, owner: Array) -> Any:
        """Return where S may be positive, see :func:`support_of`."""

    def even_start(self, A: Array, support: Any) -> Any:
        """Return a start of S, see :func:`even_start`; without a support, all may be positive."""

    def labeled_sums(self, S: Any) -> Array:
        """Return the sums of S over the labeled samples."""

    def targets(self) -> tuple[Any, Any]:
        """Return Y and its weights."""

    def factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        """Factorize X."""


@dataclass(frozen=True)
class SamplesInMemory(LabeledSamples):
    """Checked samples in memory, or on disk."""

    X: Any
    X_weights: Any
    labels: TrainingLabels
    options: dict[str, Any]

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @cached_property
    def _seen(self) -> Any:
        return visible(self.X, self.X_weights)

    def overall_mean(self) -> Array:
        n = self.X.shape[0]
        return np.asarray(weighted_sums(self._seen, np.full((n, 1), 1 / n))[0])

    def sums(self, weights: Array) -> Array:
        return weighted_sums(self._seen, weights)

    def support(self, owner: Array) -> Array:
        return support_of(self.labels.members, self.labels.known, owner)

    def even_start(self, A: Array, support: Array | None) -> Array:
        return even_start(self._seen, A, support)

    def labeled_sums(self, S: Array) -> Array:
        return np.asarray(S[self.labels.known].sum(axis=0, dtype=np.float64))

    def targets(self) -> tuple[Array, Any]:
        weights = self.labels.entry_weights
        Y = np.where(weights > 0, self.labels.members, 0).astype(self.dtype)
        equal = (weights == weights[:, :1]).all()
        return Y, as_outer(weights[:, 0]) if equal else weights

    def factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        X = CleanMatrix(self.X)
        return factorize(X, Y, X_weights=self.X_weights, **arguments, **self.options)


def fit_class_topics(
    samples: LabeledSamples,
    n_components: int,
    weight: float | None,
    init: Any,
    seed: int,
    start_seed: int | None,
) -> Factorization:
    """Factorize samples, guided by their labels; `start_seed` is that of random starts.

    With the weight :data:`SUPPORTS`, the limit of large ones (TS-NMF), labeled samples may have the
    components of their classes only.  B is then how much of a class one unit of a component
    stands for: columns sum over the labeled samples to those of Y.
    """
    rng = np.random.default_rng(seed)
    labels = samples.labels
    known, members = labels.known, labels.members
    owner = components_of_classes(n_components, labels.counts)
    if weight == SUPPORTS:
        given = isinstance(init, (tuple, list))
        A = np.asarray(init[1], dtype=np.float64) if given else _class_means(samples, owner, rng)
        support = samples.support(owner)
        start = samples.even_start(A, support), A.astype(samples.dtype)
        fit = samples.factorize(n_components=n_components, init=start, S_support=support)
        B = _class_readings(samples.labeled_sums(fit.S), members[known], owner)
        return replace(fit, B=B.astype(samples.dtype))
    if isinstance(init, str) and init == "labels":
        A = _class_means(samples, owner, rng)
        S = samples.even_start(A, None)
        means = samples.labeled_sums(S) / known.sum() if known.any() else None
        B = _guided_B(means, members[known], owner)
        init = S, A.astype(samples.dtype), B.astype(samples.dtype)
    Y, Y_weights = samples.targets()
    return samples.factorize(
        Y,
        n_components=n_components,
        supervision_weight="balanced" if weight is None else weight,
        Y_weights=Y_weights,
        init=init,
        random_state=seed if start_seed is None else start_seed,
    )


def _class_means(samples: LabeledSamples, owner: Array, rng: np.random.Generator) -> Array:
    """Return a start of A, (r, m): the mean of a class's samples, drawn a little to that of all."""
    overall = samples.overall_mean()
    members = samples.labels.members * samples.labels.known[:, None]
    weights = members[:, owner].astype(np.float64)
    for c in np.unique(owner):
        columns = np.flatnonzero(owner == c)
        rows = np.flatnonzero(members[:, c])
        if len(columns) > 1 and len(rows) > 1:
            chosen = columns[rng.permutation(len(rows)) % len(columns)]
            weights[np.ix_(rows, columns)] *= np.where(chosen[:, None] == columns, 1.0, 0.2)
            weights[np.ix_(rows, columns)] *= rng.uniform(0.5, 1.5, (len(rows), len(columns)))
    totals = weights.sum(axis=0)
    means = samples.sums(weights / np.where(totals > 0, totals, 1))
    means[totals == 0] = overall * rng.uniform(0.5, 1.5, (int((totals == 0).sum()), len(overall)))
    return np.asarray((1 - _OVERALL) * means + _OVERALL * overall)


def weighted_sums(X: Any, weights: Array) -> Array:
    """Return weights^T X, (columns of weights, m), float64; rows without weight are not read."""
    if isinstance(X, CsrFile):
        sums = np.zeros((weights.shape[1], X.shape[1]))
        for block_rows, block in X.blocks():
            sums += block.T.dot(weights[block_rows]).T
        return sums
    rows = np.flatnonzero(weights.any(axis=1))
    part = X if len(rows) == len(weights) else X[rows]
    if not sp.issparse(part):
        part = np.nan_to_num(part, nan=0.0)
    return np.asarray((part.T @ weights[rows]).T, dtype=np.float64)


def row_sums(X: Any) -> Array:
    """Return the sum of every sample, float64; NaN counts as 0."""
    if isinstance(X, CsrFile):
        return np.concatenate([np.asarray(block.sum(axis=1)).ravel() for _, block in X.blocks()])
    if sp.issparse(X):
        return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.nansum(X, axis=1, dtype=np.float64))


def support_of(members: Array, known: Array, owner: Array) -> Array:
    """Return where S may be positive, (n, r): labeled samples keep to those of their classes."""
    support = np.ones((len(members), len(owner)), dtype=bool)
    rows = np.flatnonzero(known & (members > 0).any(axis=1))
    support[rows] = (members[rows] > 0)[:, owner]
    return support


def even_start(X: Any, A: Array, support: Array | None) -> Array:
    """Return a start of S whose rows explain the sums of the samples in equal parts."""
    if support is None:
        support = np.ones((X.shape[0], len(A)), dtype=bool)
    scale = A.sum(axis=1).mean() * np.maximum(support.sum(axis=1), 1)
    return support * (row_sums(X) / np.where(scale > 0, scale, 1))[:, None]


def _class_readings(sums: Array, members: Array, owner: Array) -> Array:
    """Return B from the sums of S over the labeled samples, and the classes of these."""
    k = members.shape[1]
    belongs = np.eye(k)[owner]
    of_class = np.zeros(k)
    np.add.at(of_class, owner, sums)
    totals = members.sum(axis=0)
    rates = np.where(of_class > 0, totals / np.where(of_class > 0, of_class, 1), 0)
    return np.asarray(belongs * rates)


def _guided_B(means: Array | None, members: Array, owner: Array) -> Array:
    """Return a start of B; `means` are those of S over the labeled samples, if there are any."""
    B = np.where(np.eye(members.shape[1], dtype=bool)[owner], 1.0, _UNLIKELY)
    mean = 0.0 if means is None else float(means @ B.mean(axis=1))
    share = 1.0 if means is None else float(members.mean())
    B *= share / mean if mean > 0 else 1.0
    return B
