"""Times as NumPy has them, from the forms in which people write them, and slices of time."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.optional import TABLES_HINT, require_package
from .._labels import is_missing
from .checks import check_integer, check_option

# Units in a slice, and their shift: of days since 1970, which began on a Thursday, into weeks.
_LENGTHS = {
    "day": ("D", 1, 0),
    "week": ("D", 7, 3),
    "month": ("M", 1, 0),
    "quarter": ("M", 3, 0),
    "year": ("Y", 1, 0),
}
FREQUENCIES = tuple(_LENGTHS)
PER_YEAR = {"day": 365, "week": 52, "month": 12, "quarter": 4}

_MOST_SLICES = 100_000
_DIGITS = re.compile(r"([1-9]\d{3})(?:(\d{2})(\d{2}))?")
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
        slices = _periods(times, check_option(freq, "freq", FREQUENCIES), name)
    elif isinstance(freq, numbers.Integral) and not isinstance(freq, bool):
        slices = _equal_parts(times, check_integer(freq, "freq", 2, _MOST_SLICES), name)
    else:
        listed = ", ".join(map(repr, FREQUENCIES))
        raise TypeError(f"freq must be one of {listed}, or a number of slices; got {freq!r}.")
    if len(slices.starts) < 2:
        raise ValueError(
            f"all {name} lie in one slice, which begins at {slices.starts[0]}; topics over time "
            "need two slices or more: choose a shorter freq."
        )
    return slices


def _periods(times: Array, freq: str, name: str) -> Slices:
    unit, length, shift = _LENGTHS[freq]
    count = (times.astype(f"datetime64[{unit}]").astype(np.int64) + shift) // length
    first, last = int(count.min()), int(count.max())
    if last - first >= _MOST_SLICES:
        early, late = int(times.argmin()), int(times.argmax())
        raise ValueError(
            f"{name} span {last - first + 1} slices ({name}[{early}] is {times[early]}, "
            f"{name}[{late}] is {times[late]}); at most {_MOST_SLICES} are allowed. Is a year "
            "wrong? Else choose a longer freq."
        )
    starts = (np.arange(first, last + 1) * length - shift).astype(f"datetime64[{unit}]")
    return Slices(starts, count - first)


def _equal_parts(times: Array, count: int, name: str) -> Slices:
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
    return Slices(starts.astype("datetime64[s]"), of)


def read_times(times: Any, name: str = "times") -> Array:
    """Return times in seconds, (n,); of times with a zone the local ones, as they are written."""
    values = np.asarray(times if hasattr(times, "__array__") else _as_objects(times, name))
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; expected one for each document, (n,).")
    if values.dtype.kind == "M":
        read = values.astype("datetime64[s]")
    elif values.dtype.kind in "OUTiuf":
        read = _read_texts([_as_text(value) for value in values.tolist()], name)
    else:
        raise TypeError(f"{name} are of dtype {values.dtype}; expected {_DATES}.")
    wrong = np.flatnonzero(np.isnat(read))
    if len(wrong):
        value = values[wrong[0]] if values.dtype.kind == "M" else values.tolist()[wrong[0]]
        if is_missing(value) or not str(value).strip():
            what = "is missing; leave out documents without a time"
        else:
            what = f"is {value!r}, which is not a date; expected {_DATES}"
        raise ValueError(f"{name}[{wrong[0]}] {what}.")
    return np.asarray(read)


def _as_objects(times: Any, name: str) -> Array:
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


def _as_text(value: Any) -> str:
    """Return a time in its ISO form, or as it is written; empty where it is no time."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or is_missing(value):
        return ""
    if isinstance(value, numbers.Real):
        return f"{value:.0f}" if float(value).is_integer() else ""
    if hasattr(value, "to_timestamp"):  # a period of pandas
        value = value.to_timestamp()
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    elif isinstance(value, np.datetime64):
        value = value.astype("datetime64[s]")
    return str(value) if isinstance(value, (date, np.datetime64)) else ""


def _read_texts(texts: list[str], name: str) -> Array:
    """Return the times in texts, each different one read once; NaT for what is none."""
    known: dict[str, Any] = {text: _read_iso(text) for text in set(texts)}
    others = [text for text in dict.fromkeys(texts) if text and known[text] is None]
    if others:
        known.update(zip(others, _read_by_pandas(others, texts, name), strict=True))
    return np.array([known[text] for text in texts], dtype="datetime64[s]")


def _read_iso(text: str) -> Any:
    """Return the time of YYYY, YYYYMMDD or an ISO text, without its zone; None for others."""
    digits, iso = _DIGITS.fullmatch(text), _ISO.fullmatch(text)
    try:
        if digits:
            return np.datetime64("-".join(filter(None, digits.groups())), "s")
        return np.datetime64(iso[1], "s") if iso else None
    except ValueError:  # such as a 13th month
        return None


def _read_by_pandas(others: list[str], texts: list[str], name: str) -> Array:
    """Read dates in other forms, all in one form: that of the first."""
    first = others[0]
    why = f"{name}[{texts.index(first)}] is {first!r}, which is not an ISO date such as 2004-12-26"
    with require_package(f"{why}, and pandas, which reads other forms,", TABLES_HINT):
        import pandas
    try:
        from pandas.tseries.api import guess_datetime_format
    except ImportError:  # before it became public
        from pandas.core.tools.datetimes import guess_datetime_format
    # Given in advance, since pandas warns where it finds out: a first number that is no month.
    dayfirst = bool(re.match(r"\s*(1[3-9]|2\d|3[01])\D", first))
    read = pandas.to_datetime(
        pandas.Series(others),
        format=guess_datetime_format(first, dayfirst=dayfirst) or "mixed",
        errors="coerce",
        utc=True,
        dayfirst=dayfirst,
    )
    return np.asarray(read.dt.tz_localize(None).to_numpy(dtype="datetime64[s]"))
