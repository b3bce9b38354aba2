"""Topics of classes: starts at the means of classes, supports, and the guided factorization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization, factorize
from ._missing import visible

_OVERALL = 0.3  # share of the mean of all samples in a start
_UNLIKELY = 0.1  # of a class in the start of B for components of others


@dataclass(frozen=True)
class FitOptions:
    """Parameters of a factorization as the user gave them."""

    loss: str
    supervision_loss: str
    solver: str
    max_iter: int
    tol: float
    n_threads: int | None
    callback: Any = None
    verbose: int = 0

    @classmethod
    def of(cls, model: Any) -> FitOptions:
        """Return the parameters of an estimator."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls)})

    def short(self, max_iter: int) -> FitOptions:
        """Return the same for a trial: fewer iterations, no callback, no output."""
        return replace(self, max_iter=min(self.max_iter, max_iter), callback=None, verbose=0)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of :func:`factorize` but for those of the labels."""
        names = ("loss", "solver", "max_iter", "tol", "n_threads", "callback", "verbose")
        return {name: getattr(self, name) for name in names}


def components_of_classes(n_components: int, counts: Array) -> Array:
    """Return the class of every component, (r,): as many for each, what is left for large ones."""
    k = len(counts)
    each = np.full(k, n_components // k)
    each[np.argsort(-counts, kind="stable")[: n_components % k]] += 1
    return np.repeat(np.arange(k), each)


def class_means(X: Any, members: Array, owner: Array, rng: np.random.Generator) -> Array:
    """Return a start of A, (r, m): the mean of a class's samples, drawn a little to that of all.

    `members` (n, k) are the weights of the samples in the classes, and `owner` (r,) the classes of
    the components.  Several components of a class get random parts of its samples.  NaN counts as
    0; so should entries that weights exclude (:func:`visible`).
    """
    overall = weighted_sums(X, np.full((len(members), 1), 1 / len(members)))[0]
    return drawn_means(partial(weighted_sums, X), overall, members, owner, rng)


def drawn_means(
    sums: Callable[[Array], Array],
    overall: Array,
    members: Array,
    owner: Array,
    rng: np.random.Generator,
) -> Array:
    """Return the same from what sums rows of X with given weights, and the mean of all samples."""
    shown = members[:, owner].astype(np.float64)
    for c in np.unique(owner):
        own = np.flatnonzero(owner == c)
        rows = np.flatnonzero(members[:, c])
        if len(own) > 1 and len(rows) > 1:
            chosen = own[rng.permutation(len(rows)) % len(own)]
            shown[np.ix_(rows, own)] *= np.where(chosen[:, None] == own, 1.0, 0.2)
            shown[np.ix_(rows, own)] *= rng.uniform(0.5, 1.5, (len(rows), len(own)))
    totals = shown.sum(axis=0)
    means = sums(shown / np.where(totals > 0, totals, 1))
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
    """Return where S may be positive, (n, r): labeled samples keep to the components of their
    classes; those without any class, and unlabeled ones, may have all."""
    support = np.ones((len(members), len(owner)), dtype=bool)
    rows = np.flatnonzero(known & (members > 0).any(axis=1))
    support[rows] = (members[rows] > 0)[:, owner]
    return support


def fit_class_topics(
    X: Any,
    X_weights: Any,
    members: Array,
    known: Array,
    owner: Array,
    options: FitOptions,
    rng: np.random.Generator,
    start: Array | None = None,
) -> Factorization:
    """Factorize X where labeled samples may have the components of their classes only.

    This is the limit of a large supervision weight (TS-NMF).  B says how much of a class one unit
    of a component stands for: columns sum over the labeled samples to those of Y.
    """
    support = support_of(members, known, owner)
    seen = visible(X, X_weights)
    A = class_means(seen, members * known[:, None], owner, rng) if start is None else start
    S = even_start(seen, A, support)
    result = factorize(
        CleanMatrix(X),
        n_components=len(owner),
        X_weights=X_weights,
        init=(S.astype(X.dtype), A.astype(X.dtype)),
        S_support=support,
        **options.arguments(),
    )
    sums = result.S[known].sum(axis=0, dtype=np.float64)
    return replace(result, B=class_readings(sums, members[known], owner).astype(result.S.dtype))


def even_start(X: Any, A: Array, support: Array) -> Array:
    """Return a start of S whose rows explain the sums of the samples in equal parts."""
    scale = A.sum(axis=1).mean() * np.maximum(support.sum(axis=1), 1)
    return support * (row_sums(X) / np.where(scale > 0, scale, 1))[:, None]


def class_readings(sums: Array, members: Array, owner: Array) -> Array:
    """Return B from the sums of S over the labeled samples, and the classes of these."""
    k = members.shape[1]
    own = np.eye(k)[owner]
    of_class = np.zeros(k)
    np.add.at(of_class, owner, sums)
    totals = members.sum(axis=0)
    rates = np.where(of_class > 0, totals / np.where(of_class > 0, of_class, 1), 0)
    return np.asarray(own * rates)


def guided_start(
    X: Any, members: Array, known: Array, owner: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return S, A and B to start a fit with a finite supervision weight from."""
    A = class_means(X, members * known[:, None], owner, rng)
    S = even_start(X, A, np.ones((len(members), len(owner)), dtype=bool))
    B = guided_B(S[known].mean(axis=0) if known.any() else None, members[known], owner)
    return S.astype(X.dtype), A.astype(X.dtype), B.astype(X.dtype)


def guided_B(means: Array | None, members: Array, owner: Array) -> Array:
    """Return a start of B; `means` are those of S over the labeled samples, if there are any."""
    B = np.where(np.eye(members.shape[1], dtype=bool)[owner], 1.0, _UNLIKELY)
    mean = 0.0 if means is None else float(means @ B.mean(axis=1))
    share = 1.0 if means is None else float(members.mean())
    B *= share / mean if mean > 0 else 1.0
    return B
