"""How topics go over time: peaks, lengths and periods, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._data.border import check_integer, check_option, check_random_state, check_real
from .._data.times import Slices, cut, period_of
from .._linalg.operators import unit_rows
from .._models.dated import resampled
from .._models.many_starts import draw_seeds
from .._topics import numbered_names
from ._dynamic_fits import find_topics, method_of
from ._dynamic_stream import DatedLearner, dated


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


def lengths_of(prevalence: Array, share: float = 0.5) -> Array:
    """Return the number of slices in which every topic has at least a share of its peak."""
    lasts = prevalence >= share * prevalence.max(axis=0)
    return np.asarray((lasts & (prevalence > 0)).sum(axis=0))


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
        topic that all of them find.  The intervals of a topic with a small one say little.
    """

    topic: int
    slice: np.datetime64
    low_slice: np.datetime64
    high_slice: np.datetime64
    length: int
    low_length: int
    high_length: int
    similarity: float


def intervals_of(
    model: Any, fits: Sequence[tuple[Array, Array]], level: float
) -> Iterator[PeakInterval]:
    """Give the interval of every topic, of the components and prevalence of several fits."""
    of_model = model.prevalence_.T
    peaks, lengths, cosines = (np.zeros((len(fits), len(of_model))) for _ in range(3))
    for number, (components, prevalence) in enumerate(fits):
        cosine = unit_rows(model.components_) @ unit_rows(components).T
        topics, matched = linear_sum_assignment(cosine, maximize=True)
        values = prevalence.T[matched]
        peaks[number], cosines[number] = values.argmax(axis=1), cosine[topics, matched]
        lengths[number] = lengths_of(values.T)
    ends = [(1 - level) / 2, (1 + level) / 2]
    at, long = (
        np.quantile(found, ends, axis=0, method="inverted_cdf").astype(int)
        for found in (peaks, lengths)
    )
    for k, (values, length) in enumerate(zip(of_model, model.lengths().tolist(), strict=True)):
        low, high = model.slices_[at[:, k]]
        short, wide = long[:, k].tolist()
        similarity = float(np.clip(cosines[:, k].mean(), 0, 1))
        top = model.slices_[values.argmax()]
        yield PeakInterval(k, top, low, high, length, short, wide, similarity)


class TopicsOverTime(DatedLearner):
    """What a model of dated documents tells of its topics over time."""

    def topics_over_time(self, feature_names: Any = None, n_terms: int = 3) -> Any:
        """Return the prevalence of the topics as a table.

        Parameters
        ----------
        n_terms : int
            Number of terms in the name of a column, at least 1.

        Returns
        -------
        pandas.DataFrame
            A row for each slice, indexed by its beginning, and a column for each topic, called by
            its number and largest terms, as "3: tsunami, aceh, quake".  Without pandas: a
            structured array with the same columns behind one called "slice".
        """
        names = numbered_names(self.topics(feature_names, n_terms))
        starts, prevalence = self.slices_, self.prevalence_
        try:
            import pandas
        except ImportError:
            columns = [("slice", starts.dtype), *((name, prevalence.dtype) for name in names)]
            table = np.empty(len(starts), dtype=columns)
            table["slice"] = starts
            for name, values in zip(names, prevalence.T, strict=True):
                table[name] = values
            return table
        index = pandas.DatetimeIndex(starts.astype("datetime64[s]"), name="slice")
        return pandas.DataFrame(prevalence, index=index, columns=names)

    def peaks(self, window: int = 1, period: int | None = None) -> list[Peak]:
        """Return when every topic is most prevalent, and how much it is bound to that time.

        Parameters
        ----------
        window : int
            Number of slices before and after the peak whose share in the prevalence is its
            `concentration`, at least 0.
        period : int, optional
            Period in slices, at least 2, for the `periodicity`.  None stands for a year; for a day
            if `freq` is an hour, or hours that divide a day.

        Returns
        -------
        list of Peak
            One for each topic, in their order; ``pandas.DataFrame(model.peaks())`` is a table of
            them.
        """
        check_is_fitted(self)
        check_integer(window, "window", 0)
        if period is None:
            known = period_of(self._learned_with()["freq"])
        else:
            known = check_integer(period, "period", 2)
        of_topics = self.prevalence_.astype(np.float64).T
        return [
            peak_of(k, values, self.slices_, window, known) for k, values in enumerate(of_topics)
        ]

    def lengths(self, share: float = 0.5) -> Array:
        """Return how many slices every topic lasts.

        Parameters
        ----------
        share : float
            A topic lasts where it has at least this share of the prevalence of its peak, above 0
            and at most 1.

        Returns
        -------
        ndarray of int, shape (r,)
            Numbers of slices, also of those that are not next to each other; 0 for a topic without
            any prevalence.
        """
        check_is_fitted(self)
        if not 0 < check_real(share, "share") <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {share!r}.")
        return lengths_of(self.prevalence_, share)

    def intervals(
        self,
        X: Any,
        times: Any,
        *,
        over: str = "documents",
        n_fits: int = 20,
        level: float = 0.8,
    ) -> list[PeakInterval]:
        """Return between which slices the peaks of topics lie, and how long the topics last.

        The model is fitted again `n_fits` times, with other seeds, which takes that many times as
        long as one fit without representations.  Topics are matched by the cosine of their terms.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            The documents of the fit.
        times : array_like, shape (n,)
            When each document is from, as in :meth:`fit`.
        over : {"documents", "starts"}
            What differs between the fits.  "documents": as many documents of every slice are drawn
            with replacement (the bootstrap), and the start too.  "starts": the start, and for the
            tensor which documents are drawn.
        n_fits : int
            Number of fits, at least 2.

        Returns
        -------
        list of PeakInterval
            One for each topic, in their order; ``pandas.DataFrame(model.intervals(X, times))`` is a
            table of them.  The peak of a topic that comes back every year may lie in any of them.
        """
        check_is_fitted(self)
        self._refuse_changes()
        n_fits = check_integer(n_fits, "n_fits", 2)
        if not 0 < check_real(level, "level") < 1:
            raise ValueError(f"level must be above 0 and below 1; got {level!r}.")
        redrawn = check_option(over, "over", ("documents", "starts")) == "documents"
        X = self._checked(X, reset=False)
        slices = cut(dated(X, times, self.date_order_).values, self.freq)
        if not np.array_equal(slices.starts, self.slices_):
            raise ValueError(
                f"times have {len(slices.starts)} slices from {slices.starts[0]} on, and the fit "
                f"had {len(self.slices_)} from {self.slices_[0]} on; give the documents of the fit."
            )
        seeds = draw_seeds(check_random_state(self.random_state), n_fits)
        again = clone(self).set_params(callback=None, verbose=0)
        fits = [self._refit(again, X, slices, redrawn, np.random.default_rng(s)) for s in seeds]
        return list(intervals_of(self, fits, level))

    def _refit(
        self, again: Any, X: Any, slices: Slices, redrawn: bool, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return components and prevalence of another fit."""
        if redrawn:
            X, slices = resampled(X, slices, rng)
        found = find_topics(again, X, slices, len(self.components_), rng)
        if found.prevalence is not None:
            return found.components, found.prevalence
        again.components_, again.loss_ = found.components, self.loss_
        return found.components, method_of(self.method).prevalence(again, X, slices)
