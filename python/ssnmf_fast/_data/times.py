"""Times as NumPy has them, from the forms in which people write them, and slices of time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.optional import TABLES_HINT, MissingPackageError
from .._labels import is_missing
from .checks import check_integer, check_option

FREQUENCIES = ("day", "week", "month", "quarter", "year")
PER_YEAR = {"day": 365, "week": 52, "month": 12, "quarter": 4}

_MOST_SLICES = 100_000
_NOT_A_TIME = np.datetime64("NaT", "s")
_DIGITS = re.compile(r"\d{8}|\d{4}")
_ISO = re.compile(
    r"(\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?)?)(?:Z|[+-]\d{2}:?\d{2})?"
)
_DATES = "dates such as 2004-12-26, 20041226, datetime64 or datetime.date"


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of time without gaps.

    Attributes
    ----------
    starts : ndarray of datetime64, shape (T,)
        When they begin, in the unit of the slices: years, months, days or seconds.
    of : ndarray of int, shape (n,)
        The slice of every document.
    """

    starts: Array
    of: Array

    @property
    def sizes(self) -> Array:
        """Numbers of documents."""
        return np.bincount(self.of, minlength=len(self.starts))


def cut(times: Array, freq: Any, name: str = "times") -> Slices:
    """Cut the time between the first and the last document into slices of one length.

    Slices without documents are slices too.  Weeks begin on Mondays.
    """
    if isinstance(freq, str):
        starts, of = _periods(times, check_option(freq, "freq", FREQUENCIES), name)
    elif isinstance(freq, (int, np.integer)) and not isinstance(freq, bool):
        starts, of = _equal_parts(times, check_integer(freq, "freq", 2, _MOST_SLICES), name)
    else:
        listed = ", ".join(map(repr, FREQUENCIES))
        raise TypeError(f"freq must be one of {listed}, or a number of slices; got {freq!r}.")
    if len(starts) < 2:
        raise ValueError(
            f"all {name} lie in one slice, which begins at {starts[0]}; topics over time need two "
            "slices or more: choose a shorter freq."
        )
    return Slices(starts, of)


def _periods(times: Array, freq: str, name: str) -> tuple[Array, Array]:
    if freq in ("day", "week"):
        step, shift, unit = (7, 3, "D") if freq == "week" else (1, 0, "D")  # day 0 is a Thursday
    else:
        step, shift, unit = {"month": (1, 0, "M"), "quarter": (3, 0, "M"), "year": (1, 0, "Y")}[
            freq
        ]
    count = (times.astype(f"datetime64[{unit}]").astype(np.int64) + shift) // step
    first, last = int(count.min()), int(count.max())
    if last - first >= _MOST_SLICES:
        early, late = int(times.argmin()), int(times.argmax())
        raise ValueError(
            f"{name} span {last - first + 1} slices ({name}[{early}] is {times[early]}, "
            f"{name}[{late}] is {times[late]}); at most {_MOST_SLICES} are allowed. Is a year "
            "wrong? Else choose a longer freq."
        )
    starts = (np.arange(first, last + 1) * step - shift).astype(f"datetime64[{unit}]")
    return starts, count - first


def _equal_parts(times: Array, count: int, name: str) -> tuple[Array, Array]:
    seconds = times.astype(np.int64)
    first, last = int(seconds.min()), int(seconds.max())
    if last - first + 1 < count:
        raise ValueError(
            f"{name} lie within {last - first + 1} seconds, which cannot be cut into freq={count} "
            "slices."
        )
    # Python's integers: the products may lie outside of int64.
    starts = np.array([first + k * (last - first + 1) // count for k in range(count)], np.int64)
    of = np.searchsorted(starts, seconds, side="right") - 1
    return starts.astype("datetime64[s]"), of


def read_times(times: Any, name: str = "times") -> Array:
    """Return times in seconds, (n,); of times with a zone the local ones, as they are written."""
    values = np.asarray(times if hasattr(times, "__array__") else _listed(times, name))
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; expected one for each document, (n,).")
    if values.dtype.kind == "M":
        read = values.astype("datetime64[s]")
    elif values.dtype.kind in "iuf":
        read = _numbers(values)
    elif values.dtype.kind in "OUT":
        read = _mixed(values, name)
    else:
        raise TypeError(f"{name} are of dtype {values.dtype}; expected {_DATES}.")
    wrong = np.isnat(read)
    if wrong.any():
        raise _unreadable(values, int(np.flatnonzero(wrong)[0]), name)
    return np.asarray(read)


def _listed(times: Any, name: str) -> Array:
    unordered = isinstance(times, (Set, Mapping))
    if isinstance(times, (str, bytes)) or unordered or not hasattr(times, "__iter__"):
        raise TypeError(
            f"{name} must be a sequence of times, one for each document in their order; got "
            f"{times!r:.80}."
        )
    # An array of objects: a list of dates and texts would become an array of texts.
    listed = list(times)
    values = np.empty(len(listed), dtype=object)
    values[:] = listed
    return values


def _numbers(values: Array) -> Array:
    """Read numbers of eight digits, YYYYMMDD, or of four, YYYY; NaT for others."""
    values = np.asarray(values, dtype=np.float64)
    whole = np.isfinite(values) & (values == np.floor(values)) & (values > 0) & (values < 1e8)
    number = np.where(whole, values, 0).astype(np.int64)
    number = np.where((number >= 1000) & (number <= 9999), number * 10_000 + 101, number)
    year, month, day = number // 10_000, number // 100 % 100, number % 100
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    found = first.astype("datetime64[D]") + (day - 1)
    real = (year >= 1000) & (month >= 1) & (month <= 12) & (day >= 1)
    real &= found.astype("datetime64[M]") == first
    return np.where(real, found.astype("datetime64[s]"), _NOT_A_TIME)


def _mixed(values: Array, name: str) -> Array:
    """Read texts and objects, each different one once."""
    known: dict[Any, Any] = {}
    others: list[str] = []
    for value in values.tolist():
        try:
            new = value not in known
        except TypeError:  # what has no hash is no time
            continue
        if new:
            known[value] = _one(value)
            if known[value] is None and isinstance(value, str) and value.strip():
                others.append(value)
    if others:
        known.update(zip(others, _by_pandas(others, values, name), strict=True))
    read = [known.get(value) if _hashable(value) else None for value in values.tolist()]
    return np.array([_NOT_A_TIME if one is None else one for one in read], dtype="datetime64[s]")


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _one(value: Any) -> Any:
    """Return the time that a value is; None if that is not plain to see."""
    if isinstance(value, str):
        text = value.strip()
        if _DIGITS.fullmatch(text):
            return _numbers(np.array([int(text)]))[0]
        iso = _ISO.fullmatch(text)
        try:
            return np.datetime64(iso[1], "s") if iso else None
        except ValueError:  # such as a 13th month
            return None
    if isinstance(value, bool) or is_missing(value):
        return None
    if isinstance(value, (int, float)):
        return _numbers(np.array([value]))[0]
    if hasattr(value, "to_timestamp"):  # a period of pandas
        value = value.to_timestamp()
    if isinstance(value, datetime):
        return np.datetime64(value.replace(tzinfo=None), "s")
    if isinstance(value, date):
        return np.datetime64(value, "s")
    return value.astype("datetime64[s]") if isinstance(value, np.datetime64) else None


def _by_pandas(texts: list[str], values: Array, name: str) -> Array:
    """Read dates in other forms, all in one form: that of the first."""
    try:
        import pandas
    except ImportError as error:
        entry = next(i for i, value in enumerate(values.tolist()) if value == texts[0])
        raise MissingPackageError(
            f"{name}[{entry}] is {texts[0]!r}, which is no ISO date such as 2004-12-26, and "
            f"pandas, which reads other forms, is missing: {TABLES_HINT}"
        ) from error
    # Said in advance, since pandas warns where it finds out: a first number that is no month.
    options = {"dayfirst": bool(re.match(r"\s*(1[3-9]|2\d|3[01])\D", texts[0]))}
    form = _guess_of_pandas()(texts[0], **options) or "mixed"
    dates = pandas.Series(texts)
    read = pandas.to_datetime(dates, format=form, errors="coerce", utc=True, **options)
    return np.asarray(read.dt.tz_localize(None).to_numpy(dtype="datetime64[s]"))


def _guess_of_pandas() -> Any:
    """Return its function that finds the form of a date."""
    try:
        from pandas.tseries.api import guess_datetime_format
    except ImportError:  # before it became public
        from pandas.core.tools.datetimes import guess_datetime_format
    return guess_datetime_format


def _unreadable(values: Array, entry: int, name: str) -> ValueError:
    value = values[entry]
    value = value.item() if isinstance(value, np.generic) and values.dtype.kind != "M" else value
    if is_missing(value) or not str(value).strip():
        return ValueError(f"{name}[{entry}] is missing; leave out documents without a time.")
    return ValueError(f"{name}[{entry}] is {value!r}, which is no date; expected {_DATES}.")
