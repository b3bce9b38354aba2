"""Topics of dated documents: fits of their tensor or matrix, and how topics go over time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.border import CleanMatrix
from .._data.checks import check_random_state
from .._data.times import Slices
from .._models.factorize import factorize
from .._models.factorize_tensor import factorize_tensor
from .._models.folding import folded, start_from_slices
from ._base import count_copies

METHODS = ("tensor", "nmf")
_NEAR = 0.75  # of the number of slices: more topics than that become slices
_FEW_TOPICS = 4  # and not too many to see at a glance what they are
_FROM_SLICES = ("auto", "slices")
_ALIKE = 0.8  # cosine of two topics that are alike; in news those of useful fits are below 0.7
_SINGLE, _FEW_SLICES = 0.9, 4


def fit_tensor(model: Any, X: Any, slices: Slices, rank: int) -> Array:
    """Fit the tensor of the documents of every slice, and return the prevalence of the topics."""
    rng = check_random_state(model.random_state)
    per_slice = model.documents_per_slice
    if per_slice is None:
        per_slice = int(np.median(slices.sizes[slices.sizes > 0]))
    per_slice = min(int(per_slice), int(slices.sizes.max()))
    tensor = folded(X, slices, per_slice, rng)
    init = model.init
    if isinstance(init, str) and init in _FROM_SLICES:
        init = start_from_slices(tensor, rank, rng, model.n_threads)
    drawn = {"n_components": rank, "init": init, "random_state": rng}
    result = factorize_tensor(tensor, **model._arguments(factorize_tensor) | drawn)
    terms, documents, time = result.factors
    model.components_, sums = _unit_sums(terms.T)
    model.objective_, model.n_iter_ = result.objective, result.n_iter
    model._warn_unless_converged(result)
    taken = np.minimum(slices.sizes, per_slice)
    prevalence = time * (result.weights * sums * documents.sum(axis=0))
    return np.asarray(prevalence / np.maximum(taken, 1)[:, None]).astype(time.dtype)


def fit_matrix(model: Any, X: Any, rank: int) -> None:
    """Fit the matrix of all documents."""
    result = factorize(CleanMatrix(X), **model._arguments() | {"n_components": rank})
    model.components_ = _unit_sums(result.A)[0]
    model.objective_, model.n_iter_ = result.objective, result.n_iter
    model._warn_unless_converged(result)


def _unit_sums(components: Array) -> tuple[Array, Array]:
    """Return components with sum 1, and their sums; zeros stay."""
    sums = components.sum(axis=1)
    scaled = components / np.where(sums > 0, sums, 1)[:, None]
    return np.ascontiguousarray(scaled).astype(components.dtype, copy=False), sums


def warn_if_degenerate(model: Any, tensor: bool) -> None:
    """Warn if topics tell little: a tensor with about as many as slices gives one for each."""
    rank, used = len(model.components_), int((model.slice_sizes_ > 0).sum())
    alike = count_copies(model.components_, _ALIKE)
    largest, totals = model.prevalence_.max(axis=0), model.prevalence_.sum(axis=0, dtype=np.float64)
    single = int((largest > _SINGLE * totals).sum()) if used >= _FEW_SLICES else 0
    counts = [(alike, "resemble others"), (single, "lie in one slice of time alone")]
    found = " and ".join(f"{count} {what}" for count, what in counts if 2 * count > rank)
    if found:
        text = f"Of the {rank} topics {found}, with {used} slices that have documents"
    elif tensor and rank > max(_NEAR * used, _FEW_TOPICS):
        text = (
            f"n_components={rank} is near or above the number of slices with documents, "
            f"{used}: each topic may become a slice"
        )
    else:
        return
    other = ", or method='nmf'" if tensor else ""
    warn_user(f"{text}. Give fewer topics, shorter slices (freq){other}.", UserWarning)


def means(S: Array, slices: Slices) -> Array:
    """Return the mean representation of the documents of every slice."""
    n = len(slices.of)
    members = sp.csr_array((np.ones(n), (slices.of, np.arange(n))), (len(slices.starts), n))
    return np.asarray(members @ S / np.maximum(slices.sizes, 1)[:, None]).astype(S.dtype)


class Peak(NamedTuple):
    """When a topic is most prevalent, and how much it is bound to that time.

    Attributes
    ----------
    topic : int
        Number of the component.
    slice : numpy.datetime64
        Beginning of the slice in which the topic is most prevalent.
    prevalence : float
        Its prevalence there.
    concentration : float
        Share of the topic's prevalence, summed over all slices, that lies in a window around the
        peak; near 1 for a topic of a single event.
    periodicity : float
        How much the topic comes back with the period, from 0 to 1: the autocovariance at one
        period, divided by the variance, without the moving mean over a period.  NaN where there
        are less than two periods.
    """

    topic: int
    slice: np.datetime64
    prevalence: float
    concentration: float
    periodicity: float


def peak_of(topic: int, values: Array, starts: Array, window: int, period: int | None) -> Peak:
    """Return the peak of a topic, of its prevalence in all slices."""
    top, total = int(values.argmax()), float(values.sum())
    near = float(values[max(0, top - window) : top + window + 1].sum())
    concentration = near / total if total > 0 else 0.0
    periodic = periodicity(values, period)
    return Peak(topic, starts[top], float(values[top]), concentration, periodic)


def periodicity(values: Array, period: int | None) -> float:
    """Return the autocovariance at one period, without the trend, over the variance."""
    n = len(values)
    if period is None or n < 2 * period:
        return float("nan")
    ones = np.ones(period + 1 - period % 2)
    mean = np.convolve(values, ones, "same") / np.convolve(np.ones(n), ones, "same")
    rest, variance = values - mean, float(values.var())
    if not variance > 0:
        return 0.0
    return float(np.clip((rest[:-period] * rest[period:]).mean() / variance, 0.0, 1.0))
