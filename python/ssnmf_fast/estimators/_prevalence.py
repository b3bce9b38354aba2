"""How the prevalence of topics goes over time: tables, peaks, periods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array


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
        How much the topic comes back with the period, from 0 to 1; NaN where there are less than
        two periods.
    """

    topic: int
    slice: np.datetime64
    prevalence: float
    concentration: float
    periodicity: float


def peaks_of(prevalence: Array, starts: Array, window: int, period: int | None) -> list[Peak]:
    """Return the peak of every topic, of prevalences (slices x topics)."""
    found = []
    for topic, values in enumerate(np.asarray(prevalence, dtype=np.float64).T):
        top = int(values.argmax())
        total = float(values.sum())
        near = float(values[max(0, top - window) : top + window + 1].sum())
        found.append(
            Peak(
                topic,
                starts[top],
                float(values[top]),
                near / total if total > 0 else 0.0,
                periodicity(values, period),
            )
        )
    return found


def periodicity(values: Array, period: int | None) -> float:
    """Return the autocorrelation at one period of what is left without the trend, from 0 to 1.

    The trend is the moving mean over a period.  What is left is related to the variance of all: a
    topic that only comes and goes slowly has next to none.
    """
    n = len(values)
    if period is None or n < 2 * period:
        return float("nan")
    ones = np.ones(period + 1 - period % 2)
    mean = np.convolve(values, ones, "same") / np.convolve(np.ones(n), ones, "same")
    rest, variance = values - mean, float(values.var())
    if not variance > 0:
        return 0.0
    return float(np.clip((rest[:-period] * rest[period:]).mean() / variance, 0.0, 1.0))


def over_time(prevalence: Array, starts: Array, names: list[str]) -> Any:
    """Return a data frame with a row for each slice; without pandas, a structured array."""
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
