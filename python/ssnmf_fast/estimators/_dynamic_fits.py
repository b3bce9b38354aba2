"""Fits of topics of dated documents: of their tensor, or of their matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.checks import check_random_state
from .._data.times import Slices
from .._models.factorize import factorize
from .._models.factorize_tensor import factorize_tensor
from .._models.folding import folded, start_from_slices

_FROM_SLICES = ("auto", "slices")
_POISSON = "kullback-leibler"  # the loss of counts, which Bayesian models have
_ALIKE = 0.8  # cosine of two topics that say the same
_SINGLE, _FEW_SLICES = 0.9, 4
_LOOP = ("solver", "max_iter", "tol", "callback", "verbose", "n_threads")


@dataclass(frozen=True)
class Fit:
    """What was fitted; the prevalence is None where it is the mean of the representation."""

    components: Array
    prevalence: Array | None
    loss: Any
    objective: list[tuple[int, float]]
    n_iter: int
    converged: bool | None  # None where a warning has been given already


def fit_tensor(model: Any, X: Any, slices: Slices, rank: int) -> Fit:
    """Fit the tensor of the documents of every slice."""
    rng = check_random_state(model.random_state)
    per_slice, largest = model.documents_per_slice, int(slices.sizes.max())
    if per_slice is None:
        per_slice = int(np.median(slices.sizes[slices.sizes > 0]))
    per_slice = min(int(per_slice), largest)
    X = sp.csr_array(X)
    tensor = folded(X, slices, per_slice, rng)
    init = model.init
    if isinstance(init, str) and init in _FROM_SLICES:
        init = start_from_slices(tensor, rank, rng, model.n_threads)
    result = factorize_tensor(
        tensor,
        n_components=rank,
        loss=model.loss,
        init=init,
        random_state=rng,
        **model._arguments(_LOOP),
    )
    terms, documents, time = result.factors
    components, sums = _unit_sums(terms.T)
    taken = np.minimum(slices.sizes, per_slice)
    prevalence = time * (result.weights * sums * documents.sum(axis=0))
    prevalence = (prevalence / np.maximum(taken, 1)[:, None]).astype(time.dtype)
    return Fit(components, prevalence, model.loss, *_run(result))


def fit_matrix(model: Any, X: Any, rank: int) -> Fit:
    """Fit the matrix of all documents, by NMF or by the estimator that is given."""
    if not isinstance(model.method, str):
        return _fit_estimator(clone(model.method).set_params(n_components=rank), X)
    result = factorize(
        CleanMatrix(X),
        n_components=rank,
        loss=model.loss,
        **model._arguments((*_LOOP, "init", "random_state")),
    )
    return Fit(_unit_sums(result.A)[0], None, model.loss, *_run(result))


def _run(result: Any) -> tuple[list[tuple[int, float]], int, bool]:
    return result.objective, result.n_iter, result.converged


def _fit_estimator(model: Any, X: Any) -> Fit:
    model.fit(X)
    loss = getattr(model, "loss", _POISSON)
    components = _unit_sums(model.components_)[0]
    return Fit(components, None, loss, model.objective_, model.n_iter_, None)


def _unit_sums(components: Array) -> tuple[Array, Array]:
    """Return components with sum 1, and their sums; zeros stay."""
    sums = components.sum(axis=1)
    scaled = components / np.where(sums > 0, sums, 1)[:, None]
    return np.ascontiguousarray(scaled).astype(components.dtype, copy=False), sums


def degeneracy(components: Array, prevalence: Array, sizes: Array) -> str:
    """Return in which way topics tell little, as a part of a sentence; "" if they do not.

    In stories of a news agency topics of useful fits have cosines below 0.7; a tensor with about as
    many topics as slices gave one topic for each slice, all of them like the mean of all documents.
    """
    rank, used = len(components), int((sizes > 0).sum())
    rows = components.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    alike = int((np.tril(rows @ rows.T, -1).max(axis=1) > _ALIKE).sum())
    totals = prevalence.sum(axis=0, dtype=np.float64)
    single = int((prevalence.max(axis=0) > _SINGLE * totals).sum()) if used >= _FEW_SLICES else 0
    found = [(alike, "resemble others"), (single, "lie in one slice of time alone")]
    return " and ".join(f"{count} {what}" for count, what in found if 2 * count > rank)


def means(S: Array, slices: Slices) -> Array:
    """Return the mean representation of the documents of every slice."""
    n = len(slices.of)
    members = sp.csr_array((np.ones(n), (slices.of, np.arange(n))), (len(slices.starts), n))
    return np.asarray(members @ S / np.maximum(slices.sizes, 1)[:, None]).astype(S.dtype)
