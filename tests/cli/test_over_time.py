"""``ssnmf-fast fit --model dynamic``: tables, picture and report of topics over time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

MONTHS = [f"2004-{month:02d}-15" for month in range(1, 13)]
KINDS = ["cat dog pet vet", "bank stock price market"]  # one for each half of the year
ROWS = [(date, f"{KINDS[k // 6]} word{k % 3}") for k, date in enumerate(MONTHS) for _ in range(3)]


def written(path: Path, rows: list[tuple[str, str]] = ROWS) -> Path:
    if path.suffix == ".jsonl":
        lines = [json.dumps({"date": date, "body": body}) for date, body in rows]
    else:
        lines = ["date,body", *(f"{date},{body}" for date, body in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def fit(data: Path, out: Path, *more: str, time: str | None = "date") -> int:
    given = ["--model", "dynamic", "--rank", "2", "--min-df", "1", "--out", str(out)]
    return main(["fit", str(data), *given, *(["--time", time] if time else []), *more])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["news.csv", "news.jsonl"])
def test_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    # The only column beside the dates is the text.
    assert fit(written(tmp_path / name), out) == 0
    table = rows_of(out / "topics_over_time.csv")
    assert [row["slice"] for row in table] == [date[:7] for date in MONTHS]
    assert {row["documents"] for row in table} == {"3"}
    columns = list(table[0])[2:]
    pets = next(column for column in columns if "cat" in column or "dog" in column)
    early = [float(row[pets]) for row in table[:6]]
    assert min(early) > 0
    assert max(float(row[pets]) for row in table[6:]) < 0.1 * min(early)
    content = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert content["slices"] == 12
    assert sorted(peak["slice"] < "2004-07" for peak in content["peaks"]) == [False, True]
    assert content["peaks"][0]["periodicity"] is None
    assert {peak["length"] for peak in content["peaks"]} == {6}
    printed = capsys.readouterr().out
    assert "slices of time 12" in printed
    assert "\nPeaks" in printed
    assert len(rows_of(out / "topics.csv")) >= 8
    model = sf.load(out / "model.npz")
    assert isinstance(model, sf.DynamicTopics)
    assert model.freq == "month"


@pytest.mark.slow
def test_all_dates_decide_whether_the_day_is_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    for last, first in (("24", "day"), ("12", "month")):
        rows = [(f"{k:02d}/0{1 + k % 2}/2004", body) for k, (_, body) in enumerate(ROWS[:11], 1)]
        data = written(tmp_path / "news.csv", [*rows, (f"{last}/03/2004", ROWS[-1][1])])
        out = tmp_path / first
        assert fit(data, out, "--freq", "month", "--method", "nmf", "--max-iter", "5") == 0
        model = sf.load(out / "model.npz")
        assert model.date_order_ == first
        assert len(model.slices_) == (3 if first == "day" else 12)
        assert ("fit month first and day first" in capsys.readouterr().err) == (first == "month")


@pytest.mark.slow
def test_report(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert fit(written(tmp_path / "news.csv"), out) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<h2>Topics over time</h2>" in page
    assert (out / "topics_over_time.png").read_bytes().startswith(b"\x89PNG")
    # Another model in the same folder has none of it.
    given = ["--text", "body", "--rank", "2", "--min-df", "1", "--out", str(out)]
    assert main(["fit", str(tmp_path / "news.csv"), *given]) == 0
    assert not list(out.glob("topics_over_time.*"))


@pytest.mark.slow
def test_options(tmp_path: Path) -> None:
    data = written(tmp_path / "news.csv")
    given = ["--freq", "quarter", "--documents-per-slice", "4"]
    assert fit(data, tmp_path / "a", *given, "--loss", "kullback-leibler") == 0
    model = sf.load(tmp_path / "a" / "model.npz")
    assert (model.freq, model.documents_per_slice, model.loss) == ("quarter", 4, "kullback-leibler")
    assert len(rows_of(tmp_path / "a" / "topics_over_time.csv")) == 4
    assert fit(data, tmp_path / "b", "--freq", "17 weeks", "--method", "nmf") == 0
    assert len(rows_of(tmp_path / "b" / "topics_over_time.csv")) == 3
    assert sf.load(tmp_path / "b" / "model.npz").method == "nmf"


def test_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = written(tmp_path / "news.csv")
    assert fit(data, tmp_path / "out") == 0
    assert "of the variance of topics lies between slices" in capsys.readouterr().err
    new = tmp_path / "new.csv"
    assert main(["predict", str(tmp_path / "out"), str(data), "--out", str(new)]) == 0
    topics = [row["topic"] for row in rows_of(new)]
    assert len(set(topics[:18])) == len(set(topics[18:])) == 1
    assert topics[0] != topics[-1]


@pytest.mark.slow
def test_a_matrix_and_a_file_of_dates(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.kron(np.eye(2), np.ones((6, 3))))
    dates = tmp_path / "dates.txt"
    dates.write_text("\n".join(date.replace("-", "") for date in MONTHS) + "\n", encoding="utf-8")
    assert fit(tmp_path / "X.npy", tmp_path / "out", time=str(dates)) == 0
    assert len(rows_of(tmp_path / "out" / "topics_over_time.csv")) == 12
    table = written(tmp_path / "one.csv", ROWS[::3])
    assert fit(table, tmp_path / "b", "--text", "body", time=str(dates)) == 0


@pytest.mark.parametrize(
    ("more", "time", "message"),
    [
        ([], None, "--model dynamic needs --time, the column of the dates"),
        ([], "day", "has no column 'day'; its columns are: date, body"),
        ([], "body", "body[0] is 'cat dog pet vet word0', which is not a date; expected dates"),
        (["--freq", "eon"], "date", "argument --freq: must be hour, day, week, month"),
        (["--freq", "0 weeks"], "date", "or a multiple such as '2 weeks', or a number of slices"),
        (["--method", "lda"], "date", "argument --method"),
        (["--freq", "1"], "date", "argument --freq: must be hour"),
        (["--freq", "year"], "date", "all dates lie in one slice"),
        (["--documents-per-slice", "0"], "date", "argument --documents-per-slice: must be"),
        (
            ["--documents-per-slice", "2", "--method", "nmf"],
            "date",
            "is only used with --method auto, tied and tensor",
        ),
        (["--svm-c", "1"], "date", "--svm-c is not used by --model dynamic"),
        (["--model", "nmf", "--freq", "day"], None, "--freq needs --time, the column of the dates"),
        (["--model", "nmf", "--method", "nmf"], "date", "--method is not used by --model nmf"),
    ],
)
def test_errors(
    more: list[str],
    time: str | None,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = written(tmp_path / "news.csv")
    assert fit(data, tmp_path / "out", "--text", "body", *more, time=time) == 2
    assert message in error_line(capsys)
    assert not (tmp_path / "out").exists()


def test_a_row_without_a_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = written(tmp_path / "news.csv", [*ROWS[:4], ("", "cat dog"), *ROWS[4:]])
    assert fit(data, tmp_path / "out") == 2
    assert "date[4] is missing; leave out documents without a time" in error_line(capsys)
    (tmp_path / "dates.txt").write_text("2004-01-01\n", encoding="utf-8")
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    assert fit(tmp_path / "X.npy", tmp_path / "out", time=str(tmp_path / "dates.txt")) == 2
    assert "has 1 lines; expected one for each of the 3 samples" in error_line(capsys)


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
def test_slices_follow_from_the_span(
    ends: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (freq, count), out = SPANS[ends], tmp_path / "out"
    data = written(
        tmp_path / "a.csv", [(ends[k // 6], body) for k, (_, body) in enumerate(ROWS[::3])]
    )
    given = ["--text", "body", "--time", "date", "--model", "nmf", "--rank", "2", "--tol", "0.1"]
    given += ["--min-df", "1", "--out", str(out)]
    assert main(["fit", str(data), *given]) == 0
    printed, told = capsys.readouterr()
    content = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert (content["settings"]["freq"], content.get("slices", 1)) == (freq, count)
    assert (f"slices by the span of the dates: {freq}; see --freq" in printed) == (count > 1)
    left_out = "in one slice (day), which begins at 2004-01-02: topics over time are left out"
    assert (left_out in told) == (count == 1)
    assert bool([*out.glob("*over_time*")]) == (count > 1) == ("Peaks" in printed)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["nmf", "few-labels"])
def test_every_model_takes_times(model: str, tmp_path: Path) -> None:
    data, out = tmp_path / "news.csv", tmp_path / "out"
    lines = [f"{date},{body},{'pets' if 'cat' in body else 'money'}" for date, body in ROWS]
    data.write_text("\n".join(["date,body,kind", *lines]) + "\n", encoding="utf-8")
    given = ["--text", "body", "--min-df", "1", "--labels", "kind", "--out", str(out)]
    more = ["--rank", "2"] if model == "nmf" else []
    time = ["--time", "date", "--freq", "quarter"]
    assert main(["fit", str(data), *given, *more, "--model", model, *time]) == 0
    starts = ["2004-01", "2004-04", "2004-07", "2004-10"]
    table = rows_of(out / "topics_over_time.csv")
    assert [(row["slice"], row["documents"]) for row in table] == [(one, "9") for one in starts]
    for row in table:
        assert sum(float(value) for value in [*row.values()][2:]) == pytest.approx(1, abs=1e-4)
    words = rows_of(out / "words_over_time.csv")
    first = {row["term"] for row in words if (row["slice"], row["kind"]) == ("2004-01", "top")}
    assert {"cat", "dog", "pet", "vet"} <= first
    classes = rows_of(out / "classes_over_time.csv")
    assert [(row["class"], row["slice"]) for row in classes[:2]] == [
        ("money", "2004-01"),
        ("money", "2004-04"),
    ]
    assert [row["documents"] for row in classes] == ["0", "0", "9", "9", "9", "9", "0", "0"]
    content = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert content["slices"] == 4
    assert any("their words are for reading" in line for line in content["remarks"])
