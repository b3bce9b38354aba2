"""Topics of dated documents: the methods that find them, and how they go over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array, LossName, Matrix
from .._common.warn import warn_user
from .._data.border import CleanMatrix
from .._data.tensors import check_tensor
from .._data.threads import resolve_threads
from .._data.times import Slices, cut
from .._linalg.operators import unit_rows
from .._models.dated import (
    DatedTopics,
    best_short_fit,
    factorize_tied,
    folded,
    means_of_slices,
    normalize_documents,
    start_from_slices,
    sums_of_slices,
)
from .._models.factorize import factorize, factorize_tensor
from .._models.online import Stream
from .._models.represent import represent
from .._solver.losses import loss_named
from .._solver.result import sizes_of
from .._topics import count_copies

_NEAR = 0.75  # of the number of slices: more topics than that become slices
_FEW_TOPICS = 4  # and not too many to see at a glance what they are
_ALIKE = 0.8  # cosine of two topics that are alike; in news those of useful fits are below 0.7
_SINGLE, _FEW_SLICES = 0.9, 4


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


class PeakInterval(NamedTuple):
    """How sure the peak and the length of a topic are: what they are in several fits.

    Attributes
    ----------
    topic : int
        Number of the component.
    slice, low_slice, high_slice : numpy.datetime64
        Beginnings of the slice of the peak of the model, and of those between which the peaks of
        the fits lie.
    length, low_length, high_length : int
        The same of the number of slices that the topic lasts, as of :meth:`DynamicTopics.lengths`.
    similarity : float
        Mean cosine of the topic and those that match it in the fits, from 0 to 1: near 1 for a
        topic that all of them find.  The intervals of a topic with a small one mean little.
    """

    topic: int
    slice: np.datetime64
    low_slice: np.datetime64
    high_slice: np.datetime64
    length: int
    low_length: int
    high_length: int
    similarity: float


class SlicePrevalence(NamedTuple):
    """How prevalent topics are in slices.

    Attributes
    ----------
    slices : ndarray of datetime64, shape (slices,)
        When the slices begin, from that of the first document to that of the last.
    sizes : ndarray of int, shape (slices,)
        Numbers of documents.
    values : ndarray, shape (slices, r)
        How much of a mean document of every slice each topic explains, as `prevalence_`.
    """

    slices: Array
    sizes: Array
    values: Array


class Dated(Protocol):
    """What is used of a :class:`DynamicTopics`."""

    freq: str | int
    method: Any
    documents_per_slice: int | None
    loss: LossName | float
    init: Any
    n_threads: int | None
    components_: Array
    representation_: Array
    prevalence_: Array
    slices_: Array
    slice_sizes_: Array
    loss_: LossName | float
    stream_statistics_: dict[str, Array]

    def _arguments(self, function: Callable[..., Any] = ...) -> dict[str, Any]: ...


Fit = Callable[[Dated, Matrix, Slices, int, Generator], DatedTopics]


@dataclass(frozen=True)
class SliceMethod:
    """A method whose prevalence is that of the mean, and which learns from sums of documents."""

    fit: Fit
    prepare: Callable[[Matrix, str | float], Matrix] = lambda X, loss: X

    def prevalence(self, model: Dated, X: Matrix, slices: Slices) -> Array:
        means = means_of_slices(self.prepare(X, model.loss_), slices)
        return represent(means, model.components_, loss=model.loss_, n_threads=model.n_threads)

    def rows(self, X: Matrix, slices: Slices, loss: LossName | float) -> Matrix:
        return sums_of_slices(self.prepare(X, loss), slices)[slices.sizes > 0]

    def fitted_rows(self, model: Dated) -> Array:
        return (model.prevalence_ * model.slice_sizes_[:, None])[model.slice_sizes_ > 0]

    def totals(self, explained: Array, slices: Slices) -> Array:
        totals = np.zeros((len(slices.starts), explained.shape[1]))
        totals[slices.sizes > 0] = explained
        return totals


class DocumentMethod:
    """A method without regard to time: prevalence is the mean of the documents."""

    @staticmethod
    def fit(model: Dated, X: Matrix, slices: Slices, rank: int, rng: Generator) -> DatedTopics:
        settings = model._arguments() | {"n_components": rank, "random_state": rng}
        result = factorize(CleanMatrix(X), **settings)
        return DatedTopics(result.A, None, result)

    def prevalence(self, model: Dated, X: Matrix, slices: Slices) -> Array:
        S = represent(X, model.components_, loss=model.loss_, n_threads=model.n_threads)
        return np.asarray(means_of_slices(S, slices))

    def rows(self, X: Matrix, slices: Slices, loss: LossName | float) -> Matrix:
        return X

    def fitted_rows(self, model: Dated) -> Array:
        return model.representation_

    def totals(self, explained: Array, slices: Slices) -> Array:
        return np.asarray(means_of_slices(explained, slices) * slices.sizes[:, None])


def _fit_tensor(model: Dated, X: Matrix, slices: Slices, rank: int, rng: Generator) -> DatedTopics:
    per_slice = model.documents_per_slice
    if per_slice is None:
        per_slice = int(np.median(slices.sizes[slices.sizes > 0]))
    per_slice = min(int(per_slice), int(slices.sizes.max()))
    tensor = folded(X, slices, per_slice, rng)
    init = model.init
    if isinstance(init, str) and init in ("auto", "slices"):
        init = start_from_slices(tensor, rank, rng, model.n_threads)
    settings = model._arguments(factorize_tensor)
    settings |= {"n_components": rank, "init": init, "random_state": rng}
    result = factorize_tensor(tensor, **settings)
    terms, documents, time = result.factors
    taken = np.maximum(np.minimum(slices.sizes, per_slice), 1)[:, None]
    prevalence = (time * (result.weights * documents.sum(axis=0)) / taken).astype(time.dtype)
    return DatedTopics(terms.T, prevalence, result)


def _fit_sums(model: Dated, X: Matrix, slices: Slices, rank: int, rng: Generator) -> DatedTopics:
    sums, init = sums_of_slices(X, slices), model.init
    if isinstance(init, str) and init in ("auto", "slices"):
        init = best_short_fit(sums, rank, rng, model.n_threads)
    settings = model._arguments() | {"n_components": rank, "init": init, "random_state": rng}
    result = factorize(sums, **settings)
    prevalence = (result.S / np.maximum(slices.sizes, 1)[:, None]).astype(result.S.dtype)
    return DatedTopics(result.A, prevalence, result)


METHODS: dict[str, SliceMethod | DocumentMethod] = {
    "tied": SliceMethod(
        lambda model, X, slices, rank, rng: factorize_tied(
            X, slices, rank, rng, model.documents_per_slice, model._arguments()
        ),
        normalize_documents,
    ),
    "tensor": SliceMethod(_fit_tensor),
    "sums": SliceMethod(_fit_sums),
    "nmf": DocumentMethod(),
}


def find_topics(model: Dated, X: Matrix, slices: Slices, rank: int, rng: Generator) -> DatedTopics:
    """Find topics of clean documents with the method of a model; components have sum 1."""
    A, prevalence, fit = METHODS[model.method].fit(model, X, slices, rank, rng)
    sums = A.sum(axis=1)
    components = np.ascontiguousarray(A / np.where(sums > 0, sums, 1)[:, None])
    if prevalence is not None:
        prevalence = (prevalence * sums).astype(prevalence.dtype, copy=False)
    return DatedTopics(components.astype(A.dtype, copy=False), prevalence, fit)


def warn_if_degenerate(model: Dated) -> None:
    """Warn if topics are copies, lie in single slices, or are nearly as many as the slices."""
    rank, used = len(model.components_), int((model.slice_sizes_ > 0).sum())
    of_slices = model.method != "nmf"
    alike = count_copies(model.components_, _ALIKE)
    largest, totals = model.prevalence_.max(axis=0), model.prevalence_.sum(axis=0, dtype=np.float64)
    single = int((largest > _SINGLE * totals).sum()) if used >= _FEW_SLICES else 0
    counts = [(alike, "resemble others"), (single, "lie in one slice of time alone")]
    problem = " and ".join(f"{count} {what}" for count, what in counts if 2 * count > rank)
    if problem:
        text = f"Of the {rank} topics {problem}, with {used} slices that have documents"
    elif of_slices and rank > max(_NEAR * used, _FEW_TOPICS):
        text = (
            f"n_components={rank} is near or above the number of slices with documents, "
            f"{used}: each topic may become a slice"
        )
    else:
        return
    other = ", or method='nmf'" if of_slices else ""
    warn_user(f"{text}. Give fewer topics, shorter slices (freq){other}.", UserWarning)


def peak_of(topic: int, values: Array, starts: Array, window: int, period: int | None) -> Peak:
    top, total = int(values.argmax()), float(values.sum())
    near = float(values[max(0, top - window) : top + window + 1].sum())
    concentration = near / total if total > 0 else 0.0
    n, periodicity, variance = len(values), float("nan"), float(values.var())
    if period is not None and n >= 2 * period:  # the autocovariance without trend, over variance
        ones = np.ones(period + 1 - period % 2)
        rest = values - np.convolve(values, ones, "same") / np.convolve(np.ones(n), ones, "same")
        covariance = (rest[:-period] * rest[period:]).mean()
        periodicity = float(np.clip(covariance / variance, 0.0, 1.0)) if variance > 0 else 0.0
    return Peak(topic, starts[top], float(values[top]), concentration, periodicity)


def lengths_of(prevalence: Array, share: float = 0.5) -> Array:
    """Return the number of slices in which every topic has at least a share of its peak."""
    lasts = prevalence >= share * prevalence.max(axis=0)
    return np.asarray((lasts & (prevalence > 0)).sum(axis=0))


def intervals_of(
    model: Dated, fits: Sequence[tuple[Array, Array]], level: float
) -> Iterator[PeakInterval]:
    """Give the interval of every topic, of the components and prevalence of several fits."""
    rank = len(model.components_)
    peaks, lengths, cosines = (np.zeros((len(fits), rank)) for _ in range(3))
    for number, (components, prevalence) in enumerate(fits):
        cosine = unit_rows(model.components_) @ unit_rows(components).T
        topics, matched = linear_sum_assignment(cosine, maximize=True)
        values = prevalence[:, matched]
        peaks[number], cosines[number] = values.argmax(axis=0), cosine[topics, matched]
        lengths[number] = lengths_of(values)
    ends = [(1 - level) / 2, (1 + level) / 2]
    at, long = (
        np.quantile(values, ends, axis=0, method="inverted_cdf").astype(int)
        for values in (peaks, lengths)
    )
    for k, length in enumerate(lengths_of(model.prevalence_).tolist()):
        low, high = model.slices_[at[:, k]]
        short, wide = long[:, k].tolist()
        similarity = float(np.clip(cosines[:, k].mean(), 0, 1))
        top = model.slices_[model.prevalence_[:, k].argmax()]
        yield PeakInterval(k, top, low, high, length, short, wide, similarity)


def stream_of(model: Dated, threads: int) -> Stream:
    """Return what was learned so far: with its statistics, or as it follows from the fit."""
    # The factor of terms (m, r) with columns of size 1, and their former sizes.
    size = sizes_of(model.components_.T, loss_named(model.loss_, "loss"))
    size = size.astype(model.components_.dtype)
    F = np.ascontiguousarray(model.components_.T / np.where(size > 0, size, 1))
    if hasattr(model, "stream_statistics_"):
        return Stream.of_arrays([F], model.stream_statistics_)
    rows = (METHODS[model.method].fitted_rows(model) * size).astype(F.dtype)
    fitted = Stream.resumed([F], rows, loss=model.loss, keep=1.0, total=0.0, threads=threads)
    return replace(fitted, seen=0.0)  # losses are those of new rows: the fit may have others


def learn_slices(model: Dated, X: Matrix, new: Slices, keep: float) -> Stream:
    """Learn from documents of slices, and set topics, slices and prevalence."""
    rows = METHODS[model.method].rows(
        X.astype(model.components_.dtype, copy=False), new, model.loss
    )
    seen = np.isin(new.starts[new.sizes > 0], model.slices_[model.slice_sizes_ > 0])
    share = keep ** (float((~seen).sum()) / rows.shape[0])  # of earlier rows, for each of these
    if sp.issparse(rows):
        places = sp.coo_array(rows)
        tensor = check_tensor((np.stack([places.row, places.col]), places.data, rows.shape), "X")
    else:
        tensor = check_tensor(np.ascontiguousarray(rows), "X")
    threads = resolve_threads(model.n_threads)
    stream, S = stream_of(model, threads).learn(
        tensor, loss=model.loss, keep=share, threads=threads
    )
    (F,) = stream.factors
    sums = F.sum(axis=0)
    model.components_ = np.ascontiguousarray((F / np.where(sums > 0, sums, 1)).T)
    explained = S * sums
    ends = np.concatenate([model.slices_[[0, -1]], new.starts[[0, -1]]]).astype("datetime64[s]")
    starts = cut(ends, model.freq, "earlier and new times", after=model.slices_[0]).starts
    sizes = np.zeros(len(starts), dtype=model.slice_sizes_.dtype)
    totals = np.zeros((len(starts), explained.shape[1]))
    before, at = np.searchsorted(starts, model.slices_), np.searchsorted(starts, new.starts)
    sizes[before] = model.slice_sizes_
    totals[before] = model.prevalence_ * model.slice_sizes_[:, None]
    sizes[at] += new.sizes
    totals[at] += METHODS[model.method].totals(explained, new)
    # A slice to which nothing came stays as it is, to the last bit.
    prevalence = (totals / np.maximum(sizes, 1)[:, None]).astype(model.prevalence_.dtype)
    same = ~np.isin(model.slices_, new.starts[new.sizes > 0])
    prevalence[before[same]] = model.prevalence_[same]
    model.prevalence_, model.slices_, model.slice_sizes_ = prevalence, starts, sizes
    return stream
