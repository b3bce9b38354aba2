"""Times are read in the forms in which people write them; slices have no gaps."""

import warnings
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from helpers.absent_packages import hide
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import ssnmf_fast as sf

EAST = timezone(timedelta(hours=9))
DAYS = (date(2004, 12, 26), date(2004, 12, 28))
FORMS = {
    "ISO": date.isoformat,
    "digits": lambda day: f" {day:%Y%m%d} ",
    "UTC": lambda day: f"{day}T00:00:00Z",
    "zone": lambda day: f"{day} 00:00+09:00",
    "fraction": lambda day: f"{day}T23:59:59.75",
    "integer": lambda day: int(f"{day:%Y%m%d}"),
    "real": lambda day: float(f"{day:%Y%m%d}"),
    "integer of NumPy": lambda day: np.int32(f"{day:%Y%m%d}"),
    "date": lambda day: day,
    "datetime": lambda day: datetime(day.year, day.month, day.day, tzinfo=EAST),
    "datetime64": np.datetime64,
}
ARRAYS = {"integer": np.int32, "ISO": str, "datetime64": "datetime64[ns]"}


def one_topic(freq):
    options = {"freq": freq, "method": "nmf", "max_iter": 1, "tol": 0, "random_state": 0}
    return sf.DynamicTopics(1, **options)


def slices(times, freq="day"):
    """Return the beginnings of the slices into which times are cut, and the numbers in them."""
    count = len(times) if hasattr(times, "__len__") else 2
    model = one_topic(freq).fit(np.ones((max(count, 1), 2)), times)
    return model.slices_.astype(str).tolist(), model.slice_sizes_.tolist()


THREE_DAYS = ["2004-12-26", "2004-12-27", "2004-12-28"], [1, 0, 1]


@each("form", FORMS)
def test_forms(form):
    assert slices(tuple(map(FORMS[form], DAYS))) == THREE_DAYS


@pytest.mark.parametrize("form", ["integer", "ISO", "datetime64"])
def test_forms_in_arrays(form):
    assert slices(np.array(list(map(FORMS[form], DAYS)), dtype=ARRAYS[form])) == THREE_DAYS


def test_forms_may_be_mixed():
    starts, sizes = slices(["2004", 2005, "2006-02", date(2007, 1, 1), "20080229"], "month")
    found = [start for start, size in zip(starts, sizes, strict=True) if size]
    assert found == ["2004-01", "2005-01", "2006-02", "2007-01", "2008-02"]


# All dates of a column, what stands first in them, and the dates, of which a warning tells.
COLUMNS = {
    "day": (["05/04/2021", "13/04/2021"], "day", ["2021-04-05", "2021-04-13"], ""),
    "month": (["05/04/2021", "04/13/2021"], "month", ["2021-05-04", "2021-04-13"], ""),
    "dots": (["5.4.2021", "31.1.2021"], "day", ["2021-04-05", "2021-01-31"], ""),
    "either": (["01-02-2020", "03-04-2020"], "month", ["2020-01-02", "2020-03-04"], "fit month"),
    "same": (["01/01/2020", "02/02/2020"], "any", ["2020-01-01", "2020-02-02"], ""),
    "times": (["4/25/2021 1:05 PM", "1/2/2021 9:00 AM"], "month", ["2021-04-25", "2021-01-02"], ""),
    "year first": (["2021/04/05", "2021/4/6"], "any", ["2021-04-05", "2021-04-06"], ""),
    "mail": (
        ["Thu, 26 Feb 2004 10:00:00 +0000", "Mon, 01 Mar 2004 09:00:00 GMT"],
        *("any", ["2004-02-26", "2004-03-01"], ""),
    ),
    "names": (["26-FEB-2020", "1-mar-2020"], "any", ["2020-02-26", "2020-03-01"], ""),
    "beyond nanoseconds": (["14/10/1066", "01/11/1066"], "day", ["1066-10-14", "1066-11-01"], ""),
    "named zones": (
        ["Mon Apr 06 22:19:45 PDT 2009", "Sun Dec 26 23:00:00 +0900 2004"],
        *("any", ["2009-04-06", "2004-12-26"], ""),
    ),
}
# ISO 8601, in any mixture, and what follows from them.
ISO = {
    "-0044-03-15T00:00:00Z": "-044-03-15T00:00:00",
    "-0500-01": "-500-01-01T00:00:00",
    "\u22120500": "-500-01-01T00:00:00",
    "+12004-12-26": "12004-12-26T00:00:00",
    "0001-01-01": "0001-01-01T00:00:00",
    "2020-01-01 00:30:00+00": "2020-01-01T00:30:00",
    "2020-01-01t00:30z": "2020-01-01T00:30:00",
    "2020-01-01T00:30:00,123 +0200": "2020-01-01T00:30:00",
    "2020-01-01T00:30:00+01:00[Europe/Berlin]": "2020-01-01T00:30:00",
    "2020-01-01Z": "2020-01-01T00:00:00",
    "20201231T212558Z": "2020-12-31T21:25:58",
    "20201231T2125+02": "2020-12-31T21:25:00",
    "2004-361": "2004-12-26T00:00:00",
    "2004Q4": "2004-10-01T00:00:00",
    "2020W067": "2020-02-09T00:00:00",
    2019.0: "2019-01-01T00:00:00",
    np.datetime64("-0044-03-15"): "-044-03-15T00:00:00",
}


def test_iso():
    for time, start in ISO.items():
        assert slices([time, "+20000-01-01"], 2)[0][0] == start


@each("column", COLUMNS)
def test_all_dates_of_a_column_decide_their_order(column):
    pytest.importorskip("pandas")
    dates, first, expected, warning = COLUMNS[column]
    sizes = 2.0 ** np.arange(len(dates))  # of the documents, whose sums show which are in a slice
    X = np.outer(sizes, [1, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tensor = {"method": "tensor", "loss": "kullback-leibler", "documents_per_slice": len(dates)}
        model = one_topic("day").set_params(**tensor, max_iter=50).fit(X, dates)
    assert model.date_order_ == first
    assert len(caught) == bool(warning)
    assert all(warning in str(one.message) for one in caught)
    found = sum_by_day(model.slices_, model.slice_sizes_, model.prevalence_)
    wanted = {}
    for day, size in zip(expected, sizes.tolist(), strict=True):
        wanted[day] = wanted.get(day, 0) + size
    assert found == pytest.approx({day: size / wanted[min(wanted)] for day, size in wanted.items()})
    again = model.prevalence(X, dates)  # in the order of the fit
    assert sum_by_day(again.slices, again.sizes, again.values) == pytest.approx(found)


def sum_by_day(starts, counts, prevalence):
    """Return the sums of the documents of every day relative to the first one."""
    sums = counts * prevalence[:, 0]
    used = np.flatnonzero(counts)
    return {str(starts[k]): sums[k] / sums[0] for k in used}


@each(
    ("dates", "message"),
    [
        (["13/04/2021", "04/13/2021"], r"times\[1\] is '04/13/2021'"),
        (["2021-04-05", "25/12/2021"], r"times\[1\] .* all have the form of the first"),
        (["2010/11", "2011/12"], "'2010/11'.*pandas.to_datetime.*--time-format"),
        (["01/02/03"], "--time-format"),
        (["0044-03-15 00:00:00 BC"], "not a date"),
        (["10:12 SEPT 2009"], "not a date"),
        ([-2004], "not a date"),
        (["13/04/2021", "soon"], r"times\[1\] is 'soon', which is not a date"),
        (["10:30"], "not a date"),
        (["now"], "not a date"),
        (["Jan"], "not a date"),
        (["26 Dec"], "not a date"),
        (["31/02/2020"], "not a date"),
        (["2021-13-04"], "not a date"),
        (["200402"], "years or YYYYMMDD; pandas.to_datetime"),
        (["10102020"], "years or YYYYMMDD"),
        ([1612137600], r"unit='s'"),
        (["44197"], "from Excel, of days"),
        (np.ma.array(["2020-01-01", "2020-01-02"], mask=[0, 1]), "masked"),
    ],
)
def test_what_is_guessed_by_others_is_refused(dates, message):
    pytest.importorskip("pandas")
    refused(message, slices, dates)


def test_later_dates_are_read_in_the_order_of_the_fit(tmp_path):
    pytest.importorskip("pandas")
    days = np.arange("2021-01-01", "2021-04-01", dtype="datetime64[D]").tolist()
    texts = [f"{day:%d/%m/%Y}" for day in days]
    X = np.random.default_rng(0).random((len(days), 4))
    options = {"method": "nmf", "max_iter": 2, "tol": 0, "random_state": 0}
    model = sf.DynamicTopics(1, **options).fit(X, texts)
    sf.save(model, tmp_path / "model.npz")
    for one in (model, sf.load(tmp_path / "model.npz")):
        assert one.date_order_ == "day"
        assert one.prevalence(X[:2], ["02/01/2021", "03/01/2021"]).sizes.tolist() == [2]
        assert one.partial_fit(X[:2], ["01/04/2021", "02/04/2021"]).slice_sizes_[-1] == 2
        assert one.date_order_ == "day"
        refused("'04/13/2021', which is not a date", one.partial_fit, X[:1], ["04/13/2021"])


def test_forms_of_pandas():
    pd = pytest.importorskip("pandas")
    stamps = pd.to_datetime(["2004-12-26 00:00", "2004-12-28 00:00"])
    for times in (
        stamps,
        list(stamps),
        pd.Series(stamps),
        pd.Series(stamps, index=[7, 9]),
        stamps.tz_localize("Asia/Tokyo"),
        pd.Series(stamps.tz_localize("Asia/Tokyo")),
        pd.period_range("2004-12-26", periods=2, freq="2D"),
        [pd.Period("2004-12-26"), pd.Period("2004-12-28")],
        pd.Series(["2004-12-26", "2004-12-28"], dtype="category"),
        pd.Series(["26 Dec 2004", "28 Dec 2004"]),
        ["26-DEC-2004 00:00:00.10", "28-DEC-2004 00:00:00.10"],
        ["12/26/2004", "12/28/2004"],
        ["26/12/2004", "28/12/2004"],
    ):
        assert slices(times) == THREE_DAYS


@each(
    ("times", "message"),
    [
        (
            ["2004-01-01", "soon"],
            r"times\[1\] is 'soon', which is not a date; expected dates such as",
        ),
        (["2004-13-01"], r"times\[0\] is '2004-13-01'"),
        ([20040230], r"times\[0\] is 20040230, which is not a date"),
        ([20040101, 5], r"times\[1\] is 5, which"),
        ([2004.5], r"times\[0\] is 2004.5"),
        (["2004-01-01", None], r"times\[1\] is missing; leave out documents"),
        (["2004-01-01", ""], r"times\[1\] is missing"),
        ([20040101, float("nan")], r"times\[1\] is missing"),
        (np.array(["2004", "NaT"], dtype="datetime64[D]"), r"times\[1\] is missing"),
        (np.zeros((2, 2)), r"times has shape \(2, 2\)"),
        ([{}], "which is not a date"),
    ],
)
def test_what_is_no_date_is_named(times, message):
    refused(message, slices, times)


@pytest.mark.parametrize("times", ["2004-01-01", 5, None, np.array([True]), {"2004"}, {"2004": 1}])
def test_what_is_no_sequence_of_dates(times):
    refused("times", slices, times, error=TypeError)


def test_missing_times_of_pandas():
    pd = pytest.importorskip("pandas")
    for times in (["2004-01-01", pd.NA], pd.Series(["2004-01-01", pd.NA], dtype="string")):
        refused(r"times\[1\] is missing; leave out documents", slices, times)


def test_parts_of_a_time_beyond_int64():
    ends = np.array([-(2**62), 0, 2**62 - 1]).astype("datetime64[s]")
    starts = np.array([-(2**62), -(2**61), 0, 2**61]).astype("datetime64[s]")
    assert slices(ends, 4) == (starts.astype(str).tolist(), [1, 0, 1, 1])


def test_without_pandas(monkeypatch):
    hide("pandas", monkeypatch)
    assert slices(["2004-12-26", "2004-12-28"]) == THREE_DAYS
    with pytest.raises(sf.MissingPackageError, match=r"times\[0\] is '26 Dec.*ssnmf-fast\[cli\]"):
        slices(["26 Dec 2004", "28 Dec 2004"])


@pytest.mark.parametrize(
    ("freq", "starts", "sizes"),
    [
        ("week", ["2004-02-23", "2004-03-01"], [2, 1]),
        ("month", ["2004-02", "2004-03"], [2, 1]),
        (2, ["2004-02-23T00:00:00", "2004-02-26T12:00:00"], [1, 2]),
    ],
)
def test_slices(freq, starts, sizes):
    assert slices(["2004-02-23", "2004-02-29", "2004-03-01"], freq) == (starts, sizes)


EVENING, NIGHT = "2004-02-26 22:30", "2004-02-29 01:00"
WITH_HOURS = [
    ("hour", "2004-02-26T22", 52),
    ("6 hours", "2004-02-26T18", 10),
    ("1 hours", "2004-02-26T22", 52),
    ("5 hours", "2004-02-26T20", 11),  # which begin with the first day
    ("24 hours", "2004-02-26T00", 4),
    ("2 days", "2004-02-26", 2),
]


@pytest.mark.parametrize(("freq", "first", "count"), WITH_HOURS)
def test_slices_of_hours(freq, first, count):
    starts, sizes = slices([EVENING, NIGHT], freq)
    assert (starts[0], len(starts)) == (first, count)
    assert sizes == [1, *[0] * (count - 2), 1]


@each(
    ("freq", "starts"),
    [
        ("2 weeks", ["2004-02-23", "2004-03-08"]),  # from the Monday of the first week
        ("10 days", ["2004-02-29", "2004-03-10"]),
        ("3 months", ["2004-01", "2004-04", "2004-07", "2004-10", "2005-01"]),  # quarters
        ("2 quarters", ["2004-01", "2004-07", "2005-01"]),
        ("7 months", ["2004-02", "2004-09"]),
        ("3 quarters", ["2004-01", "2004-10"]),
        ("10 years", ["2000", "2010"]),
        ("6 years", ["1998", "2004"]),
    ],
)
def test_multiples_begin_at_borders_of_the_calendar(freq, starts):
    ends = {
        "2 weeks": "2004-03-08",
        "10 days": "2004-03-11",
        "10 years": "2010-01-01",
        "6 years": "2004-03-01",
    }
    first = "2003-12-31" if freq == "6 years" else "2004-02-29"
    assert slices([first, ends.get(freq, "2005-01-01")], freq)[0] == starts


@pytest.mark.slow
@given(
    freq=st.sampled_from(["hour", "5 hours", "10 days", "2 weeks", "7 months", "2 years"]),
    first=st.integers(-20_000, 20_000),
    later=st.lists(st.integers(0, 36_000), min_size=1, max_size=5),
    more=st.integers(-40_000, 40_000),
)
@settings(max_examples=examples(30))
def test_slices_are_even_and_go_on(freq, first, later, more):
    """Every time lies in its slice, slices are alike, and other times continue them."""
    hours = first + np.array([0, *later, 36_000])  # two slices or more
    read, X = hours.astype("datetime64[h]"), np.ones((len(hours) + 1, 2))
    model = one_topic(freq).fit(X[1:], read)
    starts = model.slices_
    steps = np.diff(starts)
    assert (steps == steps[:1]).all()
    assert starts[0] <= read.min()
    within = np.searchsorted(starts, read, side="right") - 1
    assert np.array_equal(np.bincount(within, minlength=len(starts)), model.slice_sizes_)
    one = read[:1] + np.timedelta64(more, "h")
    after = model.prevalence(X[:1], one).slices
    both = model.prevalence(X, np.concatenate([read, one])).slices
    assert np.isin(starts, both).all()
    assert after[0] in both


STEPS = {"hour": (1, "h"), "day": (1, "D"), "week": (7, "D"), "month": (1, "M")}
STEPS |= {"quarter": (3, "M"), "year": (1, "Y")}


@each(
    ("freq", "period"),
    [
        *[("hour", 24), ("6 hours", 4), ("24 hours", 365), ("day", 365), ("week", 52)],
        *[("2 weeks", 26), ("month", 12), ("2 months", 6), ("quarter", 4), ("2 quarters", 2)],
        *[("5 months", None), ("100 days", None), ("90 days", 4), ("year", None), (7, None)],
    ],
)
def test_the_period_of_slices(freq, period):
    """Two periods are needed for a periodicity, which shows how long they are."""

    def periodicity(n_slices):
        if isinstance(freq, int):
            times = np.array(["2001", "2031"], "datetime64[Y]")
        else:
            times_of, name = freq.split() if " " in freq else (1, freq)
            length, unit = STEPS[name.rstrip("s")]
            steps = [0, (n_slices - 1) * length * int(times_of)]
            times = np.datetime64("2001-01-01", unit) + np.array(steps)
        model = one_topic(freq).fit(np.ones((2, 2)), times)
        assert len(model.slices_) == (freq if isinstance(freq, int) else n_slices)
        return model.peaks()[0].periodicity

    if period is None:
        assert np.isnan(periodicity(800))
    else:
        assert np.isnan(periodicity(2 * period - 1))
        assert not np.isnan(periodicity(2 * period))


def test_a_duration_is_no_number_of_slices():
    with pytest.raises(TypeError, match=r"freq must be one of 'hour', .*such as '2 weeks'"):
        slices(["2004-01-01", "2005-01-01"], np.timedelta64(7, "D"))


@pytest.mark.parametrize("freq", ["0 days", "-1 days", "2.5 days", "2  days", "Day", ""])
def test_what_is_no_length(freq):
    with pytest.raises(ValueError, match=r"freq must be one of 'hour', .*such as '2 weeks'"):
        slices(["2004-01-01", "2005-01-01"], freq)


def test_one_slice_is_refused():
    with pytest.raises(ValueError, match="which begins at 2004-01; topics over time need two"):
        slices(["2004-02-23", "2004-02-29", "2004-03-01"], "quarter")


def test_slices_before_1970_and_with_gaps():
    weeks = ["1969-12-22", "1969-12-29", "1970-01-05"]
    assert slices(["1969-12-28", "1970-01-05"], "week") == (weeks, [1, 0, 1])
    starts, sizes = slices(["1969-02-01", "1970-05-05"], "quarter")
    assert starts[:2] == ["1969-01", "1969-04"]
    assert sizes == [1, 0, 0, 0, 0, 1]


def test_a_wrong_year_is_named():
    with pytest.raises(ValueError, match=r"times\[1\] is 0203-01-01.*Correct a wrong year"):
        slices(["2004-01-01", "0203-01-01"], "day")
    refused("lie within 2 seconds", slices, ["2004-01-01T00:00:00", "2004-01-01T00:00:01"], 3)
