"""Times are read in the forms in which people write them; slices have no gaps."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest

from ssnmf_fast._common.optional import MissingPackageError
from ssnmf_fast._data.times import cut, read_times

DAY = np.datetime64("2004-12-26", "s")
EAST = timezone(timedelta(hours=9))


@pytest.mark.parametrize(
    "times",
    [
        ["2004-12-26"],
        [" 20041226 "],
        ["2004-12-26T00:00:00Z"],
        ["2004-12-26 00:00+09:00"],
        [20041226],
        [20041226.0],
        np.array([20041226], dtype=np.int32),
        np.array(["2004-12-26"]),
        np.array(["2004-12-26"], dtype="datetime64[ns]"),
        [date(2004, 12, 26)],
        [datetime(2004, 12, 26, tzinfo=EAST)],
        (np.datetime64("2004-12-26"),),
    ],
    ids=str,
)
def test_forms(times):
    read = read_times(times)
    assert read.dtype == np.dtype("datetime64[s]")
    assert read.tolist() == [DAY.item()]


def test_forms_may_be_mixed():
    read = read_times(["2004", 2005, "2006-02", date(2007, 1, 1), "20080229"])
    assert read.astype("datetime64[D]").astype(str).tolist() == [
        "2004-01-01",
        "2005-01-01",
        "2006-02-01",
        "2007-01-01",
        "2008-02-29",
    ]


def test_forms_of_pandas():
    pd = pytest.importorskip("pandas")
    stamps = pd.to_datetime(["2004-12-26 00:00"])
    for times in (
        stamps,
        pd.Series(stamps),
        pd.Series(stamps, index=[7]),
        stamps.tz_localize("Asia/Tokyo"),
        pd.Series(stamps.tz_localize("Asia/Tokyo")),
        pd.period_range("2004-12-26", periods=1, freq="D"),
        pd.Series(["2004-12-26"], dtype="category"),
        pd.Series(["26 Dec 2004"]),
        ["26-DEC-2004 00:00:00.10"],
        ["12/26/2004"],
    ):
        assert read_times(times).tolist() == [DAY.item()]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["2004-01-01", "soon"], r"times\[1\] is 'soon', which is no date; expected dates such as"),
        (["2004-13-01"], r"times\[0\] is '2004-13-01'"),
        ([20040230], r"times\[0\] is 20040230, which is no date"),
        ([20040101, 5], r"times\[1\] is 5, which"),
        ([2004.5], r"times\[0\] is 2004.5"),
        (["2004-01-01", None], r"times\[1\] is missing; leave out documents"),
        (["2004-01-01", ""], r"times\[1\] is missing"),
        ([20040101, float("nan")], r"times\[1\] is missing"),
        (np.array(["2004", "NaT"], dtype="datetime64[D]"), r"times\[1\] is missing"),
        (np.zeros((2, 2)), r"times has shape \(2, 2\)"),
        ([{}], "which is no date"),
    ],
)
def test_what_is_no_date_is_named(times, message):
    with pytest.raises(ValueError, match=message):
        read_times(times)


@pytest.mark.parametrize("times", ["2004-01-01", 5, None, np.array([True]), {"2004"}, {"2004": 1}])
def test_what_is_no_sequence_of_dates(times):
    with pytest.raises(TypeError, match="times"):
        read_times(times)


def test_missing_times_of_pandas():
    pd = pytest.importorskip("pandas")
    for times in (["2004-01-01", pd.NA], pd.Series(["2004-01-01", pd.NA], dtype="string")):
        with pytest.raises(ValueError, match=r"times\[1\] is missing; leave out documents"):
            read_times(times)


def test_parts_of_a_time_beyond_int64():
    ends = np.array([-(2**62), 0, 2**62 - 1]).astype("datetime64[s]")
    slices = cut(ends, 4)
    assert slices.of.tolist() == [0, 2, 3]
    assert slices.starts.astype(int).tolist() == [-(2**62), -(2**61), 0, 2**61]


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert read_times(["2004-12-26"]).tolist() == [DAY.item()]
    with pytest.raises(MissingPackageError, match=r"times\[1\] is '26 Dec.*ssnmf-fast\[all\]"):
        read_times(["2004-12-26", "26 Dec 2004"])


@pytest.mark.parametrize(
    ("freq", "starts", "of"),
    [
        ("week", ["2004-02-23", "2004-03-01"], [0, 0, 1]),
        ("month", ["2004-02", "2004-03"], [0, 0, 1]),
        ("quarter", None, None),
        (2, ["2004-02-23T00:00:00", "2004-02-26T12:00:00"], [0, 1, 1]),
    ],
)
def test_slices(freq, starts, of):
    times = read_times(["2004-02-23", "2004-02-29", "2004-03-01"])
    if starts is None:
        with pytest.raises(ValueError, match="which begins at 2004-01; topics over time need two"):
            cut(times, freq)
        return
    slices = cut(times, freq)
    assert slices.starts.astype(str).tolist() == starts
    assert slices.of.tolist() == of
    assert slices.sizes.sum() == 3


def test_slices_before_1970_and_with_gaps():
    slices = cut(read_times(["1969-12-28", "1970-01-05"]), "week")
    assert slices.starts.astype(str).tolist() == ["1969-12-22", "1969-12-29", "1970-01-05"]
    assert slices.sizes.tolist() == [1, 0, 1]
    slices = cut(read_times(["1969-02-01", "1970-05-05"]), "quarter")
    assert slices.starts.astype(str).tolist()[:2] == ["1969-01", "1969-04"]
    assert slices.of.tolist() == [0, 5]


def test_a_wrong_year_is_named():
    with pytest.raises(ValueError, match=r"times\[1\] is 0203-01-01.*Is a year wrong"):
        cut(read_times(["2004-01-01", "0203-01-01"]), "day")
    with pytest.raises(ValueError, match="lie within 2 seconds"):
        cut(read_times(["2004-01-01T00:00:00", "2004-01-01T00:00:01"]), 3)
