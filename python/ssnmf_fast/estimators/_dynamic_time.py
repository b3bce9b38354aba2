"""Topics of dated documents: how they are learned, and when they are prevalent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array, Matrix
from .._common.warn import warn_user
from .._data.border import CleanMatrix, check_integer
from .._data.times import Slices, cut, period_of
from .._linalg.operators import unit_rows
from .._models import dated
from .._models.factorize import factorize
from .._models.online import Stream
from .._solver.losses import loss_named
from .._solver.result import sizes_of
from .._topics import Records, count_copies

_NEAR = 0.75  # with more topics, relative to the number of slices, each topic becomes a slice
_FEW_TOPICS = 4  # no warning for this number of topics
_ALIKE = 0.8  # cosine of two similar topics; useful fits to news stay below 0.7
_SINGLE, _FEW_SLICES = 0.9, 4


class Peak(NamedTuple):
    """When a topic is most prevalent, and how concentrated it is in time.

    Attributes
    ----------
    topic : int
        Number of the component.
    slice : numpy.datetime64
        Beginning of the slice in which the topic is most prevalent.
    prevalence : float
        Its prevalence in that slice.
    concentration : float
        Share of its total prevalence in a window around the peak; near 1 for a single event.
    periodicity : float
        How regularly the topic recurs, from 0 to 1: the autocovariance at one period divided by the
        variance, after removing the moving mean.  NaN for less than two periods.
    """

    topic: int
    slice: np.datetime64
    prevalence: float
    concentration: float
    periodicity: float


class PeakInterval(NamedTuple):
    """Intervals for the peak and the length of a topic, from several fits.

    Attributes
    ----------
    topic : int
        Number of the component.
    slice, low_slice, high_slice : numpy.datetime64
        Beginnings of the slice of the model's peak and of the first and last slice of the interval.
    length, low_length, high_length : int
        The same for the number of slices that the topic lasts; see :meth:`DynamicTopics.lengths`.
    similarity : float
        Mean cosine of the topic and its matches in the fits, from 0 to 1; if it is small, the
        intervals mean little.
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
    """Prevalence of topics in slices.

    Attributes
    ----------
    slices : ndarray of datetime64, shape (slices,)
        Beginnings of the slices, from that of the first document to that of the last.
    sizes : ndarray of int, shape (slices,)
        Numbers of documents.
    values : ndarray, shape (slices, r)
        The prevalence of each topic in each slice, as `prevalence_`.
    """

    slices: Array
    sizes: Array
    values: Array


def find_topics(
    method: str, X: Matrix, slices: Slices, per_slice: int | None, arguments: dict[str, Any]
) -> dated.DatedTopics:
    """Learn topics of clean documents, with arguments of `factorize`; components have sum 1."""
    if method == "tensor":
        found = dated.factorize_folded(X, slices, per_slice, arguments)
    elif method == "nmf":
        fit = factorize(CleanMatrix(X), **arguments)
        found = dated.DatedTopics(fit.A, fit, method)
    else:
        found = dated.factorize_documents(method, X, slices, per_slice, arguments)
    A, prevalence = found.components, found.prevalence
    totals = A.sum(axis=1)
    components = np.ascontiguousarray(A / np.where(totals > 0, totals, 1)[:, None])
    if prevalence is not None:
        prevalence = (prevalence * totals).astype(prevalence.dtype, copy=False)
    components = components.astype(X.dtype, copy=False)
    return found._replace(components=components, prevalence=prevalence)


def warn_if_degenerate(method: str, components: Array, prevalence: Array, sizes: Array) -> None:
    """Warn if topics are copies, lie in single slices, or are too many for the slices."""
    rank, used = len(components), int((sizes > 0).sum())
    largest, totals = prevalence.max(axis=0), prevalence.sum(axis=0, dtype=np.float64)
    single = int((largest > _SINGLE * totals).sum()) if used >= _FEW_SLICES else 0
    alike = count_copies(components, _ALIKE)
    counts = [(alike, "resemble others"), (single, "lie in one slice of time alone")]
    problem = " and ".join(f"{count} {what}" for count, what in counts if 2 * count > rank)
    if problem:
        text = f"Of the {rank} topics, {problem}, with {used} slices that have documents"
    elif method in ("tied", "tensor") and rank > max(_NEAR * used, _FEW_TOPICS):
        text = (
            f"n_components={rank} is near or above the number of slices with documents, "
            f"{used}: each topic may become a slice"
        )
    else:
        return
    ways = "shorter slices (freq)" + (", or method='nmf'" if method != "nmf" else "")
    warn_user(f"{text}. Use fewer topics or {ways}.", UserWarning)


def peaks_of(
    prevalence: Array, starts: Array, freq: str | int, window: int, period: int | None
) -> Records[Peak]:
    """Return the peak of each topic, with its concentration and periodicity."""
    check_integer(window, "window", 0)
    period = period_of(freq) if period is None else check_integer(period, "period", 2)
    n, peaks = len(starts), []
    for topic, values in enumerate(prevalence.astype(np.float64).T):
        top, total, periodicity = int(values.argmax()), float(values.sum()), float("nan")
        near = float(values[max(0, top - window) : top + window + 1].sum())
        if period is not None and n >= 2 * period:
            # The autocovariance without trend, divided by the variance.
            ones, variance = np.ones(period + 1 - period % 2), float(values.var())
            mean = np.convolve(values, ones, "same") / np.convolve(np.ones(n), ones, "same")
            covariance = ((values - mean)[:-period] * (values - mean)[period:]).mean()
            periodicity = float(np.clip(covariance / variance, 0, 1)) if variance > 0 else 0.0
        share = near / total if total > 0 else 0.0
        peaks.append(Peak(topic, starts[top], float(values[top]), share, periodicity))
    return Records(peaks)


def lengths_of(prevalence: Array, share: float = 0.5) -> Array:
    """Return the number of slices in which each topic has at least a share of its peak."""
    lasts = prevalence >= share * prevalence.max(axis=0)
    return np.asarray((lasts & (prevalence > 0)).sum(axis=0))


def intervals_of(
    model: tuple[Array, Array, Array], fits: Sequence[tuple[Array, Array]], level: float
) -> Iterator[PeakInterval]:
    """Yield the interval of each topic, from the components and prevalence of several fits."""
    components, prevalence, starts = model
    rank = len(components)
    peaks, lengths, cosines = (np.zeros((len(fits), rank)) for _ in range(3))
    for number, (others, of_others) in enumerate(fits):
        cosine = unit_rows(components) @ unit_rows(others).T
        topics, matched = linear_sum_assignment(cosine, maximize=True)
        values = of_others[:, matched]
        peaks[number], cosines[number] = values.argmax(axis=0), cosine[topics, matched]
        lengths[number] = lengths_of(values)
    ends = [(1 - level) / 2, (1 + level) / 2]
    of_both = np.quantile([peaks, lengths], ends, axis=1, method="inverted_cdf").astype(int)
    at, long = of_both.swapaxes(0, 1)
    for k, length in enumerate(lengths_of(prevalence).tolist()):
        top, low, high = starts[[prevalence[:, k].argmax(), *at[:, k]]]
        similarity = float(np.clip(cosines[:, k].mean(), 0, 1))
        least, most = long[:, k].tolist()
        yield PeakInterval(k, top, low, high, length, least, most, similarity)


def add_slices(
    known: SlicePrevalence, new: Slices, totals: Array, freq: str | int
) -> SlicePrevalence:
    """Merge known and new slices; `totals` are sums of prevalence in the latter."""
    ends = np.concatenate([known.slices[[0, -1]], new.starts[[0, -1]]]).astype("datetime64[s]")
    starts = cut(ends, freq, "earlier and new times", after=known.slices[0]).starts
    sizes = np.zeros(len(starts), dtype=known.sizes.dtype)
    sums = np.zeros((len(starts), totals.shape[1]))
    before, at = np.searchsorted(starts, known.slices), np.searchsorted(starts, new.starts)
    sizes[before], sums[before] = known.sizes, known.values * known.sizes[:, None]
    sizes[at] += new.sizes
    sums[at] += totals
    values = (sums / np.maximum(sizes, 1)[:, None]).astype(known.values.dtype)
    # A slice without new documents keeps exactly its values.
    same = ~np.isin(known.slices, new.starts[new.sizes > 0])
    values[before[same]] = known.values[same]
    return SlicePrevalence(starts, sizes, values)


def stream_of(model: Any, threads: int) -> Stream:
    """Return the stream that a model has learned, from its statistics or from its fit."""
    # The factor of terms (m, r) with columns of size 1, and their former sizes.
    A = model.components_
    size = sizes_of(A.T, loss_named(model.loss_, "loss")).astype(A.dtype)
    F = np.ascontiguousarray(A.T / np.where(size > 0, size, 1))
    if hasattr(model, "stream_statistics_"):
        return Stream.of_arrays([F], model.stream_statistics_)
    if model.method_ == "tensor":
        rows = (model.prevalence_ * model.slice_sizes_[:, None])[model.slice_sizes_ > 0]
    else:
        rows = model.representation_
    rows = (rows * size).astype(F.dtype)
    fitted = Stream.resumed([F], rows, loss=model.loss_, keep=1.0, total=0.0, threads=threads)
    return replace(fitted, seen=0.0)  # losses are those of new rows: the fit may have others
