"""Times, read from the forms in which people write them, and slices of time."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Set
from contextlib import suppress
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.optional import COMMAND_HINT, require_package
from .._common.text import short
from .._common.warn import warn_user
from .arrays import is_missing, unmask
from .border import check_integer

# Unit, number of units in a slice, and shift: 1970 began on a Thursday, and years count from 0.
_LENGTHS = {
    "hour": ("h", 1, 0),
    "day": ("D", 1, 0),
    "week": ("D", 7, 3),
    "month": ("M", 1, 0),
    "quarter": ("M", 3, 0),
    "year": ("Y", 1, 1970),
}
FREQUENCIES = tuple(_LENGTHS)
_WHOLE = {"h": 24, "D": 1, "M": 12}  # units in a day or a year, at which divisors of them begin
_IN_A_YEAR = {"h": 8766, "D": 365.25, "M": 12, "Y": 1}
_DRIFT = 0.05  # largest difference of a number of slices from a year, as a share
_MULTIPLE = re.compile(rf"(?:([1-9]\d{{0,5}}) )?({'|'.join(FREQUENCIES)})s?")
_MOST_SLICES = 100_000
Start: TypeAlias = np.datetime64 | None
_YEAR, _CLOCK = r"(?:[+-]\d{3,6}|\d{4})", r"\d\d(?::\d\d(?::\d\d(?:[.,]\d+)?)?)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[+-][01]\d(?::?[0-5]\d)?))?(?:\[[\w/+-]+\])?"
_DIGITS = re.compile(
    r"([1-9]\d{3})(?:(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?(?:[.,]\d+)?" + _ZONE + r")?)?(?:\.0)?",
    re.IGNORECASE,
)
_ISO = re.compile(
    rf"({_YEAR}(?:-\d\d)?)|({_YEAR}-\d\d-\d\d(?:[T ]{_CLOCK})?){_ZONE}", re.IGNORECASE
)
_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?(\d))?")
_QUARTER = re.compile(r"(?:Q([1-4])[ /-]?)?(\d{4})(?(1)|[ /-]?Q([1-4]))", re.IGNORECASE)
_DATES = "dates such as 2004-12-26, 20041226, datetime64 or datetime.date"
_WORD = re.compile(r"[^\W\d_]{3,}")
# Zones, which are ignored, after the time of a date that is not ISO.
_NAMED_ZONE = re.compile(
    r"(:\d\d(?:\.\d+)?(?:\s?[AaPp][Mm])?)\s?(?:Z|[+-]\d{2}(?::?\d\d)?|UTC|GMT|[ECMP][SD]T|CES?T)\b"
    r"(?:\s\(\w+\))?"
)
_CHOICES = ["hour", "3 hours", "6 hours", "12 hours", "day", "2 days", "week", "month", "quarter"]
_CHOICES += ["year", "5 years", "10 years", "50 years", "100 years", "500 years"]


class Slices(NamedTuple):
    starts: Array  # (T,) datetime64, in the unit of the slices
    of: Array  # (n,) the slice of every document

    @property
    def sizes(self) -> Array:
        return np.bincount(self.of, minlength=len(self.starts))


class Times(NamedTuple):
    """Times in seconds, and the first part of their dates."""

    values: Array
    first: str  # "month", "day" or "year"; "any" if it makes no difference


class Length(NamedTuple):
    """Slices of `size` units, counted from `shift` units before 1970."""

    unit: str
    size: int
    shift: int
    whole: int  # slices may begin at multiples of it; 0: as in the calendar

    @classmethod
    def of(cls, freq: object) -> Length | None:
        """Return the length that a text names, such as "week" or "6 hours"; None for others."""
        match = _MULTIPLE.fullmatch(freq) if isinstance(freq, str) else None
        if match is None:
            return None
        (unit, units, shift), times = _LENGTHS[match[2]], int(match[1] or 1)
        calendar = times == 1 or unit == "Y" or _WHOLE[unit] % (times * units) == 0
        return cls(unit, times * units, shift, 0 if calendar else 24 if unit == "h" else units)


def period_of(freq: str | int) -> int | None:
    """Return the number of slices per day, if they divide it, or per year, or None."""
    length = Length.of(freq)
    if length is None:
        return None
    if length.unit == "h" and length.size < 24 and 24 % length.size == 0:
        return 24 // length.size
    exact = _IN_A_YEAR[length.unit] / length.size
    near = round(exact)
    return near if near >= 2 and abs(exact - near) <= _DRIFT * exact else None


def choose_freq(times: Array) -> str:
    """Return the length of 10 to 50 slices, near 20; days, at least, for dates without hours."""
    order = "YMDh"
    units = [unit for unit in order if (times == times.astype(f"datetime64[{unit}]")).all()]
    years = float((times.max() - times.min()).astype(np.int64)) / (365.25 * 24 * 3600)
    misfit = dict[str, tuple[bool, float]]()
    for freq in _CHOICES:
        length = Length.of(freq)
        if length is not None and order.index(length.unit) <= order.index([*units, "h"][0]):
            count = 1 + years * _IN_A_YEAR[length.unit] / length.size
            misfit[freq] = not 10 <= count <= 50, abs(math.log(count / 20))
    return min(misfit, key=misfit.__getitem__)


def cut(
    times: Array, freq: str | int, name: str = "times", *, after: Start = None, least: int = 2
) -> Slices:
    """Cut times into slices of equal length, which continue those of `after`."""
    length = Length.of(freq)
    if length is not None:
        counts = times.astype(f"datetime64[{length.unit}]").astype(np.int64)
        shift = length.shift
        if length.whole and after is not None:
            shift = -int(after.astype(f"datetime64[{length.unit}]").astype(np.int64))
        elif length.whole:
            shift = (int(counts.min()) + shift) % length.whole - int(counts.min())
        number = (counts + shift) // length.size
        first, last = int(number.min()), int(number.max())
        if last - first >= _MOST_SLICES:
            ends = ", ".join(f"{name}[{k}] is {times[k]}" for k in (times.argmin(), times.argmax()))
            raise ValueError(
                f"{name} span {last - first + 1} slices ({ends}); at most {_MOST_SLICES} are "
                "allowed. Correct a wrong year, or choose a longer freq."
            )
        starts = np.arange(first, last + 1) * length.size - shift
        slices = Slices(starts.astype(f"datetime64[{length.unit}]"), number - first)
    elif isinstance(freq, numbers.Integral) and not isinstance(freq, (bool, np.timedelta64)):
        count = check_integer(freq, "freq", 2, _MOST_SLICES)
        if after is not None:
            raise ValueError(
                f"freq={freq} divides the time of one fit, and cannot be continued. Fit with a "
                "length of slices, such as freq='month' or freq='2 weeks'."
            )
        seconds = times.astype(np.int64)
        first, length_of_all = int(seconds.min()), int(seconds.max()) - int(seconds.min()) + 1
        if length_of_all < count:
            raise ValueError(f"{name} lie within {length_of_all} seconds; {freq=} is too many.")
        # Python's integers: the products may lie outside of int64.
        starts = np.array([first + k * length_of_all // count for k in range(count)], np.int64)
        of = np.searchsorted(starts, seconds, side="right") - 1
        slices = Slices(starts.astype("datetime64[s]"), of)
    else:
        raise (ValueError if isinstance(freq, str) else TypeError)(
            f"freq must be one of {', '.join(map(repr, FREQUENCIES))}, a multiple such as "
            f"'2 weeks' or '6 hours', or a number of slices; got {freq!r}."
        )
    if len(slices.starts) < least:
        why = f"all {name} lie in one slice, which begins at {slices.starts[0]}"
        raise ValueError(f"{why}; topics over time need two or more: choose a shorter freq.")
    return slices


def read_times(
    times: npt.ArrayLike | Times | None, name: str = "times", first: str = "any"
) -> Times:
    """Return times, local if they have zones; all together determine the order of their parts."""
    if isinstance(times, Times):
        return times
    if isinstance(times, (str, bytes, Set, Mapping)) or not hasattr(times, "__iter__"):
        raise TypeError(f"{name} must be a sequence of times, one per document; got {times!r:.80}.")
    sequence: Any = unmask(times, name, allow_nan=False)
    # A list of dates and texts would become an array of texts.
    is_array = hasattr(sequence, "__array__")
    values = np.asarray(sequence) if is_array else np.asarray(list(sequence), dtype=object)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; expected one for each document, (n,).")
    if values.dtype.kind == "M":
        dates = values.astype("datetime64[s]")
    elif values.dtype.kind in "OUTiuf":
        texts = [_as_text(value) for value in values.tolist()]
        date_of: dict[str, Any] = {text: _read_iso(text) for text in set(texts)}
        others = [text for text in dict.fromkeys(texts) if text and date_of[text] is None]
        if others and len(others) == sum(map(bool, date_of)):  # all are in one form
            which = f"{name}[{texts.index(others[0])}] is {short(others[0])}, not an ISO date"
            with require_package(f"{which} such as 2004-12-26; pandas, for others,", COMMAND_HINT):
                import pandas  # noqa: F401
            read_dates, first = _read_others(others, name, first)
            date_of.update(zip(others, read_dates, strict=True))
        dates = np.array([date_of[text] for text in texts], dtype="datetime64[s]")
    else:
        raise TypeError(f"{name} have dtype {values.dtype}; expected {_DATES}.")
    for place in np.flatnonzero(np.isnat(dates))[:1]:
        value = values[place] if values.dtype.kind == "M" else values.tolist()[place]
        problem = (
            f"is {short(value)}, which is not a date; expected {_DATES}, or texts that all have "
            f"the form of the first. pandas.to_datetime({name}, format=...) reads other forms, and "
            "in the command --time-format"
        )
        if is_missing(value) or not str(value).strip():
            problem = "is missing; leave out documents without a time"
        elif re.fullmatch(r"[\d.]+", str(value)):
            problem += (
                ". Numbers are years or YYYYMMDD; pandas.to_datetime converts numbers of seconds "
                "(unit='s') or, from Excel, of days (unit='D', origin='1899-12-30')"
            )
        raise ValueError(f"{name}[{place}] {problem}.")
    return Times(np.asarray(dates), first)


def _as_text(value: Any) -> str:
    """Return a time in ISO form, or as written; empty if it is missing or not a time."""
    if isinstance(value, bool) or is_missing(value):
        return ""
    if isinstance(value, (int, float, np.integer, np.floating)):
        return str(int(value)) if value > 0 and value % 1 == 0 else ""
    if hasattr(value, "to_timestamp"):  # a period of pandas
        value = np.datetime64(value.asfreq("s", how="start").ordinal, "s")
    return str(value).strip().replace("\u2212", "-")


def _read_iso(text: str) -> np.datetime64 | None:
    """Return the time of digits, an ISO text without its zone, a week or a quarter, or None."""
    try:
        if match := _ISO.fullmatch(text):
            iso = (match[1] or match[2]).upper().lstrip("+").replace(",", ".")
            return np.datetime64(iso, "s")
        if match := _DIGITS.fullmatch(text):
            fields = [field for field in match.groups() if field]
            clock = f"T{':'.join(fields[3:])}" if fields[3:] else ""
            return np.datetime64("-".join(fields[:3]) + clock, "s")
        if re.fullmatch(r"\d{4}-\d{3}", text):
            return np.datetime64(datetime.strptime(text, "%Y-%j"), "s")
        if match := _WEEK.fullmatch(text):
            return np.datetime64(date.fromisocalendar(*(int(part or 1) for part in match.groups())))
        if match := _QUARTER.fullmatch(text):
            return np.datetime64(f"{match[2]}-{3 * int(match[1] or match[3]) - 2:02d}", "s")
        return None
    except ValueError:  # such as a 13th month
        return None


def _read_others(texts: list[str], name: str, first: str) -> Times:
    """Return times of one form that pandas recognizes, or NaT, and what comes first in them."""
    orders = [first] if first in ("month", "day") else ["month", "day"]
    # As strptime writes them: 26-FEB-1987 is 26-Feb-1987.
    plain = [_WORD.sub(lambda word: word[0].capitalize(), _NAMED_ZONE.sub(r"\1", t)) for t in texts]
    times_in = {order: _read_in(order, plain) for order in orders}
    fitting = [order for order in orders if not np.isnat(times_in[order]).any()]
    if not fitting:
        return Times(max(times_in.values(), key=lambda times: np.isnat(times).argmax()), first)
    times, other = times_in[fitting[0]], times_in[fitting[-1]]
    differing = np.flatnonzero(times != other)
    for k in differing[:1]:
        warn_user(
            f"All of {name} fit month first and day first. They are read month first, "
            f"{short(texts[k])} as {times[k].astype('datetime64[D]')}. If that is wrong, give what "
            f"pandas.to_datetime({name}, dayfirst=True) returns.",
            UserWarning,
        )
    return Times(times, fitting[0] if len(differing) or len(fitting) < len(orders) else first)


def _read_in(order: str, texts: list[str]) -> Array:
    """Return the times in texts of the form of the first; NaT for others."""
    import pandas

    try:
        from pandas.tseries.api import guess_datetime_format
    except ImportError:  # before pandas 2.2
        from pandas.core.tools.datetimes import guess_datetime_format

    day, year_first = order == "day", re.match(r"\d{4}", texts[0]) is not None
    # On the 10th, lest pandas warn of the order, in the morning, perhaps of a year that nanoseconds
    # reach: pandas knows these forms only.
    days = texts[0] if _WORD.search(texts[0]) else re.sub(r"\b(1[3-9]|[2-9]\d)\b", "10", texts[0])
    first = re.sub(r"(?i)pm\b", "AM", days)
    guesses = (
        guess_datetime_format(text, dayfirst=day and not year_first)
        for text in (first, re.sub(r"\b\d{4}\b", "2004", first))
    )
    no_zone = re.search(r"\b(?![AP]M\b)[A-Z]{2}\b", first) is None  # such as BC
    form = next(filter(None, guesses), "None") if no_zone else "None"
    times = np.full(len(texts), "NaT", dtype="datetime64[s]")
    words = set(re.findall(r"[^\W\d_]+", re.sub("%.", " ", form)))
    other = "%m" in form and not year_first and (form.find("%d") < form.find("%m")) != day
    if words <= {"at", "of", "T"} and not other:  # pandas takes BC, and the other order if needed
        parsed = pandas.to_datetime(pandas.Series(texts), format=form, errors="coerce")
        times[:] = parsed.to_numpy().astype("datetime64[s]")
        with suppress(ValueError):
            for k in np.flatnonzero(np.isnat(times)):  # perhaps beyond the nanoseconds of pandas
                times[k] = datetime.strptime(texts[k], form)
    return times
