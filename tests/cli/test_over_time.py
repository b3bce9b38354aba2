"""``ssnmf-fast fit --model dynamic``: tables, picture and report of topics over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import Result, run, write_json, write_lines

import ssnmf_fast as sf

MONTHS = [f"2004-{month:02d}-15" for month in range(1, 13)]
KINDS = ["cat dog pet vet", "bank stock price market"]  # one for each half of the year
ROWS = [(date, f"{KINDS[k // 6]} word{k % 3}") for k, date in enumerate(MONTHS) for _ in range(3)]


def written(rows: list[tuple[str, str]] = ROWS, name: str = "news.csv") -> Path:
    if name.endswith(".jsonl"):
        return write_json(name, [{"date": date, "body": body} for date, body in rows])
    return write_lines(name, ["date,body", *(f"{date},{body}" for date, body in rows)])


def fit(data: object, more: str = "", time: str | None = "date", code: int = 0) -> Result:
    given = f"--model dynamic --rank 2 --min-df 1 --out out {f'--time {time}' if time else ''}"
    return run(f"fit {data} {given} {more}", code=code)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["news.csv", "news.jsonl"])
def test_files(name: str) -> None:
    # The only column beside the dates is the text.
    found = fit(written(name=name))
    table = found.rows("topics_over_time.csv")
    assert [row["slice"] for row in table] == [date[:7] for date in MONTHS]
    assert {row["documents"] for row in table} == {"3"}
    columns = list(table[0])[2:]
    pets = next(column for column in columns if "cat" in column or "dog" in column)
    early = [float(row[pets]) for row in table[:6]]
    assert min(early) > 0
    assert max(float(row[pets]) for row in table[6:]) < 0.1 * min(early)
    content = found.json()
    assert content["slices"] == 12
    assert sorted(peak["slice"] < "2004-07" for peak in content["peaks"]) == [False, True]
    assert content["peaks"][0]["periodicity"] is None
    assert {peak["length"] for peak in content["peaks"]} == {6}
    assert "slices of time 12" in found.out
    assert "\nPeaks" in found.out
    assert len(found.rows("topics.csv")) >= 8
    assert isinstance(found.model, sf.DynamicTopics)
    assert found.model.freq == "month"
    assert "more than by chance" in found.err

    topics = run(f"predict out {name} --out new.csv").column("topic")
    assert len(set(topics[:18])) == len(set(topics[18:])) == 1
    assert topics[0] != topics[-1]

    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    assert "<h2>Topics over time</h2>" in found.read()
    assert (found.path / "topics_over_time.png").read_bytes().startswith(b"\x89PNG")
    # Another model in the same folder has none of it.
    run(f"fit {name} --text body --rank 2 --min-df 1 --out out")
    assert not list(found.path.glob("topics_over_time.*"))


@pytest.mark.slow
def test_all_dates_decide_whether_the_day_is_first() -> None:
    pytest.importorskip("pandas")
    for last, first in (("24", "day"), ("12", "month")):
        rows = [(f"{k:02d}/0{1 + k % 2}/2004", body) for k, (_, body) in enumerate(ROWS[:11], 1)]
        data = written([*rows, (f"{last}/03/2004", ROWS[-1][1])])
        found = fit(data, "--freq month --method nmf --max-iter 5")
        assert found.model.date_order_ == first
        assert len(found.model.slices_) == (3 if first == "day" else 12)
        assert ("fit month first and day first" in found.err) == (first == "month")


@pytest.mark.slow
def test_options() -> None:
    given = "--freq quarter --documents-per-slice 4 --loss kullback-leibler"
    found = fit(written(), given)
    model = found.model
    assert (model.freq, model.documents_per_slice, model.loss) == ("quarter", 4, "kullback-leibler")
    assert len(found.rows("topics_over_time.csv")) == 4
    found = fit("news.csv", "--freq '17 weeks' --method nmf")
    assert len(found.rows("topics_over_time.csv")) == 3
    assert found.model.method == "nmf"


@pytest.mark.slow
def test_a_matrix_and_a_file_of_dates() -> None:
    np.save("X.npy", np.kron(np.eye(2), np.ones((6, 3))))
    dates = write_lines("dates.txt", [date.replace("-", "") for date in MONTHS])
    assert len(fit("X.npy", time=str(dates)).rows("topics_over_time.csv")) == 12
    fit(written(ROWS[::3]), "--text body", time=str(dates))


@pytest.mark.parametrize(
    ("more", "time", "message"),
    [
        ("", None, "--model dynamic needs --time, the column of the dates"),
        ("", "day", "has no column 'day'; its columns are: date, body"),
        ("", "body", "body[0] is 'cat dog pet vet word0', which is not a date; expected dates"),
        ("--freq eon", "date", "argument --freq: must be hour, day, week, month"),
        ("--freq '0 weeks'", "date", "or a multiple such as '2 weeks', or a number of slices"),
        ("--method lda", "date", "argument --method"),
        ("--freq 1", "date", "argument --freq: must be hour"),
        ("--freq year", "date", "all dates lie in one slice"),
        ("--documents-per-slice 0", "date", "argument --documents-per-slice: must be"),
        (
            "--documents-per-slice 2 --method nmf",
            "date",
            "is only used with --method auto, tied and tensor",
        ),
        ("--svm-c 1", "date", "--svm-c is not used by --model dynamic"),
        ("--model nmf --freq day", None, "--freq needs --time, the column of the dates"),
        ("--model nmf --method nmf", "date", "--method is not used by --model nmf"),
    ],
)
def test_errors(more: str, time: str | None, message: str) -> None:
    refused = fit(written(), f"--text body {more}", time, code=2)
    assert message in refused.error
    assert not refused.path.exists()


def test_a_row_without_a_date() -> None:
    refused = fit(written([*ROWS[:4], ("", "cat dog"), *ROWS[4:]]), code=2)
    assert "date[4] is missing; leave out documents without a time" in refused.error
    write_lines("dates.txt", ["2004-01-01"])
    np.save("X.npy", np.ones((3, 2)))
    refused = fit("X.npy", time="dates.txt", code=2)
    assert "has 1 lines; expected one for each of the 3 samples" in refused.error


SPANS = {  # of dates, by the first and the last: length of the slices, and their number
    ("2004-01-02", "2004-01-20"): ("day", 19),
    ("2004-01-02", "2004-03-09"): ("2 days", 34),
    ("2004-01-02", "2004-04-30"): ("week", 18),
    ("2004-01-02", "2005-06-30"): ("month", 18),
    ("2004-01-02", "2009-01-01"): ("quarter", 21),
    ("2004-01-02", "2020-05-05"): ("year", 17),
    ("2004-01-01T00:00", "2004-01-09T20:00"): ("12 hours", 18),
    ("2004-01-01T00:00", "2004-01-02T04:00"): ("hour", 29),
    ("2004-01", "2004-12"): ("month", 12),
    ("2004", "2010"): ("year", 7),
    ("2004-01-02", "2004-01-02"): ("day", 1),
}


@pytest.mark.parametrize("ends", SPANS)
def test_slices_follow_from_the_span(ends: tuple[str, str]) -> None:
    freq, count = SPANS[ends]
    data = written([(ends[k // 6], body) for k, (_, body) in enumerate(ROWS[::3])])
    found = fit(data, "--text body --model nmf --tol 0.1")
    content = found.json()
    assert (content["settings"]["freq"], content.get("slices", 1)) == (freq, count)
    told = f"slices by the span of the dates: {freq}; see --freq" in found.out
    assert told == (count > 1)
    left_out = "in one slice (day), which begins at 2004-01-02: topics over time are left out"
    assert (left_out in found.err) == (count == 1)
    assert bool([*found.path.glob("*over_time*")]) == (count > 1) == ("Peaks" in found.out)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["nmf --rank 2", "few-labels"])
def test_every_model_takes_times(model: str) -> None:
    lines = [f"{date},{body},{'pets' if 'cat' in body else 'money'}" for date, body in ROWS]
    data = write_lines("news.csv", ["date,body,kind", *lines])
    given = "--text body --min-df 1 --labels kind --time date --freq quarter --out out"
    found = run(f"fit {data} {given} --model {model}")
    starts = ["2004-01", "2004-04", "2004-07", "2004-10"]
    table = found.rows("topics_over_time.csv")
    assert [(row["slice"], row["documents"]) for row in table] == [(one, "9") for one in starts]
    for row in table:
        assert sum(float(value) for value in [*row.values()][2:]) == pytest.approx(1, abs=1e-4)
    words = found.rows("words_over_time.csv")
    first = {row["term"] for row in words if (row["slice"], row["kind"]) == ("2004-01", "top")}
    assert {"cat", "dog", "pet", "vet"} <= first
    classes = found.rows("classes_over_time.csv")
    two = [(row["class"], row["slice"]) for row in classes[:2]]
    assert two == [("money", "2004-01"), ("money", "2004-04")]
    assert [row["documents"] for row in classes] == ["0", "0", "9", "9", "9", "9", "0", "0"]
    content = found.json()
    assert content["slices"] == 4
    assert any("their words are for reading" in line for line in content["remarks"])
