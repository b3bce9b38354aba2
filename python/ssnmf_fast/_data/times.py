"""Times as NumPy has them, from the forms in which people write them, and slices of time."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array
from .._common.optional import TABLES_HINT, require_package
from .._common.text import short
from .._common.warn import warn_user
from .._labels import is_missing
from .arrays import unmask
from .border import check_integer

# Units in a slice, and their shift: of days since 1970, which began on a Thursday, into weeks; of
# years into those of the calendar.
_LENGTHS = {
    "hour": ("h", 1, 0),
    "day": ("D", 1, 0),
    "week": ("D", 7, 3),
    "month": ("M", 1, 0),
    "quarter": ("M", 3, 0),
    "year": ("Y", 1, 1970),
}
FREQUENCIES = tuple(_LENGTHS)
_WHOLE = {"h": 24, "D": 1, "M": 12}  # units in a day or a year: what divides them begins with them
_IN_A_YEAR = {"h": 8766, "D": 365.25, "M": 12, "Y": 1}
_DRIFT = 0.05  # of a year, for a number of slices to stand for it
_MULTIPLE = re.compile(rf"(?:([1-9]\d{{0,5}}) )?({'|'.join(FREQUENCIES)})s?")

_MOST_SLICES = 100_000
_DIGITS = re.compile(r"([1-9]\d{3})(?:(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?)?)?(?:\.0)?")
_ISO = re.compile(
    r"(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)?)(?:Z|[+-]\d\d:?\d\d)?"
)
_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?(\d))?")
_QUARTER = re.compile(r"(?:Q([1-4])[ /-]?)?(\d{4})(?(1)|[ /-]?Q([1-4]))", re.IGNORECASE)
_DATES = "dates such as 2004-12-26, 20041226, datetime64 or datetime.date"

# How the numbers of a date such as 01/02/2003 or 01/02/03 may be meant; the first that fits counts.
_ORDERS = {"month": "mdy", "day": "dmy", "year": "ymd"}
_ZONE = re.compile(
    r"(:\d\d(?:\.\d+)?(?:\s?[AP]M)?)\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?:\s\(\w+\))?", re.IGNORECASE
)
_PARTS = re.compile(
    r"\d\d?:\d\d(?P<seconds>:\d\d)?(?P<fraction>\.\d+)?(?P<half>\s?[AP]M)?"
    r"|(?P<number>\d+)(?P<th>st|[nr]d|th)?|(?P<word>[^\W\d_]+)",
    re.IGNORECASE,
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of time without gaps.

    Attributes
    ----------
    starts : ndarray of datetime64, shape (T,)
        When they begin, in the unit of the slices: years, months, days, hours or seconds.
    of : ndarray of int, shape (n,)
        The slice of every document.
    """

    starts: Array
    of: Array

    @property
    def sizes(self) -> Array:
        """Numbers of documents."""
        return np.bincount(self.of, minlength=len(self.starts))

    @property
    def members(self) -> list[Array]:
        """The documents of every slice, in their order."""
        return np.split(np.argsort(self.of, kind="stable"), np.cumsum(self.sizes)[:-1])


class Times(NamedTuple):
    """Times in seconds, and what stands first in their dates: "month", "day" or "year".

    It is "any" where that makes no difference.
    """

    values: Array
    first: str


@dataclass(frozen=True)
class Length:
    """Length of slices: some times a length of the calendar, which has so many units."""

    times: int
    unit: str
    units: int
    shift: int

    @classmethod
    def of(cls, freq: Any) -> Length | None:
        """Return the length that a text names, such as "week" or "6 hours"; None for others."""
        found = _MULTIPLE.fullmatch(freq) if isinstance(freq, str) else None
        return found and cls(int(found[1] or 1), *_LENGTHS[found[2]])

    @property
    def count(self) -> int:
        """Number of units in a slice."""
        return self.times * self.units

    @property
    def period(self) -> int | None:
        """Number of slices in a day, where they divide it, else in a year; None for less than 2."""
        if self.unit == "h" and self.count < 24 and 24 % self.count == 0:
            return 24 // self.count
        exact = _IN_A_YEAR[self.unit] / self.count
        near = round(exact)
        return near if near >= 2 and abs(exact - near) <= _DRIFT * exact else None

    def shift_from(self, first: Any, after: Any = None) -> int:
        """Return how many units after the beginning of a slice 1970 is.

        Slices that divide no day or year have no border in the calendar: they begin with the day,
        the Monday, the month or the quarter of the first time, or continue those of `after`.
        """
        if self.times == 1 or self.unit == "Y" or _WHOLE[self.unit] % self.count == 0:
            return self.shift
        known = first if after is None else after
        unit = int(known.astype(f"datetime64[{self.unit}]").astype(np.int64))
        if after is not None:
            return -unit
        whole = 24 if self.unit == "h" else self.units
        return (unit + self.shift) % whole - unit


def period_of(freq: Any) -> int | None:
    """Return the number of slices after which what has a period comes back; None if unknown."""
    length = Length.of(freq)
    return None if length is None else length.period


def cut(
    times: Array, freq: Any, name: str = "times", *, after: Any = None, least: int = 2
) -> Slices:
    """Cut the time between the first and the last document into slices of one length.

    Slices without documents are slices too.  Weeks begin on Mondays.  With `after`, the beginning
    of a slice, the slices continue those that it is one of.
    """
    length = Length.of(freq)
    number = isinstance(freq, numbers.Integral) and not isinstance(freq, (bool, np.timedelta64))
    if length is not None:
        slices = _periods(times, length, name, after)
    elif number and after is None:
        slices = _equal_parts(times, check_integer(freq, "freq", 2, _MOST_SLICES), name)
    elif number:
        raise ValueError(
            f"freq={freq} cuts the time of a fit into parts, which other times do not continue. "
            "Fit with a length of slices, such as freq='month' or freq='2 weeks'."
        )
    else:
        listed = ", ".join(map(repr, FREQUENCIES))
        kind = ValueError if isinstance(freq, str) else TypeError
        raise kind(
            f"freq must be one of {listed}, a multiple such as '2 weeks' or '6 hours', or a number "
            f"of slices; got {freq!r}."
        )
    if len(slices.starts) < least:
        raise ValueError(
            f"all {name} lie in one slice, which begins at {slices.starts[0]}; topics over time "
            "need two slices or more: choose a shorter freq."
        )
    return slices


def _periods(times: Array, length: Length, name: str, after: Any) -> Slices:
    unit, shift = length.unit, length.shift_from(times.min(), after)
    count = (times.astype(f"datetime64[{unit}]").astype(np.int64) + shift) // length.count
    first, last = int(count.min()), int(count.max())
    if last - first >= _MOST_SLICES:
        early, late = int(times.argmin()), int(times.argmax())
        raise ValueError(
            f"{name} span {last - first + 1} slices ({name}[{early}] is {times[early]}, "
            f"{name}[{late}] is {times[late]}); at most {_MOST_SLICES} are allowed. Is a year "
            "wrong? Else choose a longer freq."
        )
    starts = (np.arange(first, last + 1) * length.count - shift).astype(f"datetime64[{unit}]")
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


def read_times(times: Any, name: str = "times", first: str = "any") -> Times:
    """Return times; of those with a zone the local ones, as they are written.

    All dates of text together decide what stands first in them, unless it is known.
    """
    if isinstance(times, Times):
        return times
    times = unmask(times, name, allow_nan=False)
    values = np.asarray(times if hasattr(times, "__array__") else _as_objects(times, name))
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; expected one for each document, (n,).")
    if values.dtype.kind == "M":
        read = values.astype("datetime64[s]")
    elif values.dtype.kind in "OUTiuf":
        read, first = _read_texts([_as_text(value) for value in values.tolist()], name, first)
    else:
        raise TypeError(f"{name} are of dtype {values.dtype}; expected {_DATES}.")
    wrong = np.flatnonzero(np.isnat(read))
    if len(wrong):
        value = values[wrong[0]] if values.dtype.kind == "M" else values.tolist()[wrong[0]]
        if is_missing(value) or not str(value).strip():
            what = "is missing; leave out documents without a time"
        else:
            what = f"is {short(value)}, which is not a date; expected {_DATES}"
            if re.fullmatch(r"[\d.]+", str(value)):
                what += (
                    ". Numbers are years or YYYYMMDD; pandas.to_datetime makes dates of those that "
                    "count seconds (unit='s') or, in Excel, days (unit='D', origin='1899-12-30')"
                )
        raise ValueError(f"{name}[{wrong[0]}] {what}.")
    return Times(np.asarray(read), first)


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


def _read_texts(texts: list[str], name: str, first: str) -> Times:
    """Return the times in texts, each different one read once; NaT for what is none."""
    known: dict[str, Any] = {text: _read_iso(text) for text in set(texts)}
    others = [text for text in dict.fromkeys(texts) if text and known[text] is None]
    if others:
        which = f"{name}[{texts.index(others[0])}] is {short(others[0])}, which is not an ISO date"
        with require_package(f"{which} such as 2004-12-26; pandas, for others,", TABLES_HINT):
            import pandas  # noqa: F401
        read, first = _decide(others, name, first)
        known.update(zip(others, read, strict=True))
    return Times(np.array([known[text] for text in texts], dtype="datetime64[s]"), first)


def _read_iso(text: str) -> Any:
    """Return the time of digits, of an ISO text without its zone, or of a quarter; else None."""
    digits, iso = _DIGITS.fullmatch(text), _ISO.fullmatch(text)
    week, quarter = _WEEK.fullmatch(text), _QUARTER.fullmatch(text)
    try:
        if digits:
            parts = [part for part in digits.groups() if part]
            day = "-".join(parts[:3])
            return np.datetime64(f"{day}T{':'.join(parts[3:])}" if parts[3:] else day, "s")
        if week:
            return np.datetime64(date.fromisocalendar(*(int(part or 1) for part in week.groups())))
        if quarter:
            first, year, last = quarter.groups()
            return np.datetime64(f"{year}-{3 * int(first or last) - 2:02d}", "s")
        return np.datetime64(iso[1], "s") if iso else None
    except ValueError:  # such as a 13th month
        return None


def _decide(texts: list[str], name: str, known: str) -> Times:
    """Return the times in texts that are not ISO, with the order that fits all of them."""
    bare = np.array([_ZONE.sub(r"\1", text) for text in texts], dtype=object)
    read = {one: _read_in(one, bare) for one in (_ORDERS if known == "any" else [known])}
    fitting = [one for one in read if not np.isnat(read[one]).any()]
    if not fitting:
        wrong = {one: int(np.isnat(times).argmax()) for one, times in read.items()}
        for one, k in wrong.items():
            if all(np.isnat(_read_in(other, bare[[k]])).any() for other in _ORDERS):
                return Times(read[one], known)
        why = ", ".join(f"{one} first does not fit {short(texts[k])}" for one, k in wrong.items())
        order = "one order" if known == "any" else "the order of the fit"
        raise ValueError(
            f"{name} are not all in {order}: {why}. Give dates such as 2004-12-26, "
            "as pandas.to_datetime returns them."
        )
    taken = read[fitting[0]]
    differing = [(one, int(k)) for one in fitting[1:] for k in np.flatnonzero(read[one] != taken)]
    if differing:
        other, k = differing[0]
        orders = " and ".join(f"{one} first" for one in fitting)
        warn_user(
            f"All of {name} fit {orders}. They are read {fitting[0]} first, {short(texts[k])} as "
            f"{taken[k].astype('datetime64[D]')}. If that is wrong, give dates such as 2004-12-26, "
            f"as pandas.to_datetime({name}, {other}first=True) returns them.",
            UserWarning,
        )
    late = [
        k for k in np.flatnonzero(taken > np.datetime64("now")) if not re.search(r"\d{4}", texts[k])
    ]
    if late:
        warn_user(
            f"Years of two digits are read as 1969 to 2068: {short(texts[late[0]])} in {name} as "
            f"{taken[late[0]].astype('datetime64[D]')}. Give years of four digits.",
            UserWarning,
        )
    return Times(taken, fitting[0] if differing or len(fitting) == 1 else "any")


def _read_in(order: str, texts: Array) -> Array:
    """Return the times in texts that have an order, up to the first that has not; NaT from there.

    Each form that occurs is read at once, wherever it occurs.
    """
    import pandas

    read = np.full(len(texts), "NaT", dtype="datetime64[s]")
    while np.isnat(read).any():
        rest = np.flatnonzero(np.isnat(read))
        form = _form(texts[rest[0]], _ORDERS[order])
        if form is None:
            break
        found = pandas.to_datetime(pandas.Series(texts[rest]), format=form, errors="coerce")
        read[rest] = found.to_numpy().astype("datetime64[s]")
        if np.isnat(read[rest[0]]):
            break
    return read


def _form(text: str, order: str) -> str | None:
    """Return the format of a date, as strptime has it; None for what is no date in the order."""
    parts = list(_PARTS.finditer(text))
    numbers = "".join("Y" if len(p["number"]) == 4 else "n" for p in parts if p["number"])
    words = [p["word"].lower() for p in parts if p["word"]]
    months = [word for word in words if word[:3] not in (*_WEEKDAYS, "of", "t")]
    # By the numbers, of which those of four digits are years, and whether a month has a name.
    letters = {
        ("nnn", 0): order,
        ("nnY", 0): order.replace("y", "Y") if order[2] == "y" else None,
        ("Ynn", 0): "Ymd",
        ("Yn", 0): "Ym",
        ("nY", 0): "mY",
        ("Y", 1): "Y",
        ("nY", 1): "dY",
        ("Yn", 1): "Yd",
        ("nn", 1): "dy",
    }.get((numbers, len(months)))
    if letters is None or "%" in text:
        return None
    left = iter(letters)

    def directive(part: re.Match[str]) -> str:
        if part["number"]:
            return f"%{next(left)}{part['th'] or ''}"
        if part["word"]:
            kind = "ab" if len(part["word"]) == 3 else "AB"
            word = part["word"].lower()
            return word if word in ("of", "t") else f"%{kind[word[:3] not in _WEEKDAYS]}"
        clock = "%I:%M" if part["half"] else "%H:%M"
        clock += ":%S" * bool(part["seconds"]) + ".%f" * bool(part["fraction"])
        return clock + (part["half"] or "")[:-2] + "%p" * bool(part["half"])

    return _PARTS.sub(directive, text)
