"""``ssnmf-fast choose-rank``: the choice, its files, and what is refused."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import error_line, rows_of
from planted_ranks import RANK, counts
from test_suggest import texts, write
from test_words import texts as texts_of_topics

import ssnmf_fast as sf
from ssnmf_fast.cli import build_parser, main


def decoded_images(page: str) -> list[bytes]:
    return [b64decode(one) for one in re.findall(r"data:image/png;base64,([^\"]+)", page)]


QUICK = ["--starts", "1", "--splits", "2", "--threads", "1"]


@pytest.fixture
def data(tmp_path: Path) -> str:
    np.save(tmp_path / "X.npy", counts())
    return str(tmp_path / "X.npy")


def test_a_matrix(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ranks"
    given = ["--ranks", "2:4", "--loss", "kullback-leibler", "--out", str(out)]
    assert main(["choose-rank", data, *given, *QUICK]) == 0
    printed = capsys.readouterr().out
    assert f"{RANK} topics" in printed
    assert str(out / "report.html") in printed
    rows = rows_of(out / "ranks.csv")
    assert [row["rank"] for row in rows] == ["2", "3", "4"]
    assert float(rows[1]["mean"]) < float(rows[0]["mean"])
    assert float(rows[1]["perplexity"]) > 1
    content = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert content["rank"] == RANK
    assert content["settings"]["ranks"] == "2,3,4"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Number of topics" in page
    assert page.count("data:image/png") == 1  # no objective is shown
    assert {path.name for path in out.iterdir()} == {
        *("ranks.csv", "ranks.png", "metrics.json", "page.json", "report.html")
    }


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["bound", "stability"])
def test_criteria(
    criterion: str, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--criterion", criterion, "--ranks", "2,3", "--max-iter", "20", "--json"]
    starts = ["--threads", "1", "--starts", "2", "--tol", "0"]
    assert main(["choose-rank", data, *given, *starts, "--out", str(tmp_path / "o")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["criterion"] == criterion
    assert [row["rank"] for row in content["ranks"]] == [2, 3]


def test_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "posts.csv", texts("kind"))
    given = ["--text", "body", "--ranks", "2:3", "--min-df", "1", "--criterion", "held-out"]
    assert main(["choose-rank", table, *given, *QUICK]) == 0
    assert (tmp_path / "posts-ranks" / "ranks.csv").exists()


@pytest.fixture
def planted(tmp_path: Path) -> str:
    """A table of texts of three topics."""
    X = texts_of_topics(3, n=200).toarray()
    lines = [" ".join(f"word{j}" for j in np.flatnonzero(row)) for row in X]
    return write(tmp_path / "planted.csv", [["body"], *([line] for line in lines)])


def test_words_of_texts(planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ranks"
    assert main(["choose-rank", planted, "--text", "body", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert re.match(r"3 topics; \d to \d would do\n", printed.out)
    assert re.search(r"choose_rank: topic 1/\d+, gain 0, \S+ s, about \d+ s left", printed.err)
    content = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert (content["criterion"], content["rank"]) == ("words", 3)
    assert content["low"] <= 3 <= content["high"]
    assert content["settings"]["ranks"].startswith("1,2,3,4")
    assert rows_of(out / "ranks.csv")[0]["rank"] == "1"
    assert "would do" in (out / "report.html").read_text(encoding="utf-8")
    again = ["--ranks", "2:4", "--criterion", "words", "--splits", "1", "--json"]
    assert main(["choose-rank", planted, "--text", "body", "--out", str(out), *again]) == 0
    assert [row["rank"] for row in json.loads(capsys.readouterr().out)["ranks"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("model", ["nmf", "vbnmf"])
def test_fit_finds_the_number_of_topics(
    model: str, planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--text", "body", "--model", model, "--out", str(tmp_path / "o")]
    assert main(["fit", planted, *given]) == 0
    printed = capsys.readouterr()
    assert re.search(r"(?m)^3 topics, \d to \d would do; --rank sets it$", printed.out)
    assert re.search(r"choose_rank: topic 1/\d+, gain 0, \S+ s, about \d+ s left", printed.err)
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "any number in the shaded range will do. Larger is better." in page
    assert (tmp_path / "o" / "ranks.png").read_bytes() in decoded_images(page)
    settings = json.loads((tmp_path / "o" / "metrics.json").read_text("utf-8"))["settings"]
    assert settings["rank"] == "auto"
    assert settings["rank, set by the fit"].startswith("3 topics; ")
    assert sf.load(tmp_path / "o").n_components_ == 3
    first = (tmp_path / "o" / "topics.csv").read_text(encoding="utf-8")
    assert main(["fit", planted, *given, "--rank", "auto", "--quiet"]) == 0
    assert (tmp_path / "o" / "topics.csv").read_text(encoding="utf-8") == first
    assert capsys.readouterr() == ("", "")
    assert main(["fit", planted, *given, "--rank", "2"]) == 0
    assert "--rank sets it" not in capsys.readouterr().out
    assert not (tmp_path / "o" / "ranks.png").exists()


@pytest.mark.slow
def test_rank_of_dated_texts(
    planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dates = tmp_path / "dates.txt"
    dates.write_text("\n".join(f"20{k // 40:02d}" for k in range(200)) + "\n", encoding="utf-8")
    given = ["--model", "dynamic", "--rank", "auto", "--time", str(dates), "--freq", "year"]
    assert main(["fit", planted, "--text", "body", *given, "--out", str(tmp_path / "o")]) == 0
    assert sf.load(tmp_path / "o").n_components_ == 3
    assert capsys.readouterr().err.count("of the variance of topics lies between slices") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--model", "ssnmf"], "--model ssnmf takes no --rank auto: give the number of topics"),
        (["--model", "ts-nmf"], "give the number of topics, or leave --rank out"),
        ([], r"in a sparse matrix; got ndarray"),
    ],
)
def test_rank_auto_is_refused(
    given: list[str], message: str, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "y.txt").write_text("a\nb\n", encoding="utf-8")
    labels = ["--labels", str(tmp_path / "y.txt")] if given else []
    out = ["--out", str(tmp_path / "o")]
    assert main(["fit", data, "--rank", "auto", *given, *labels, *out]) == 2
    assert message in error_line(capsys)


@pytest.mark.parametrize(
    "given",
    [["--loss", "frobenius"], ["--only-nonzeros"], ["--starts", "1"], ["--tol", "0"]],
    ids=lambda given: given[0],
)
def test_what_words_do_not_use(
    given: list[str], planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["choose-rank", planted, "--text", "body", *given, "--out", str(tmp_path)]) == 2
    assert f"{given[0]} is not used by --criterion words; leave it out" in error_line(capsys)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--criterion", "bound", "--loss", "frobenius"], "--loss is not used by --criterion"),
        (["--criterion", "stability", "--splits", "3"], "--splits is not used by --criterion"),
        (["--criterion", "bound", "--validation-fraction", "0.2"], "not take validation_fraction"),
        (["--criterion", "stability", "--ranks", "1:3"], "ranks and n_starts of at least 2"),
        (["--criterion", "words"], r"choose_rank(X, ranks)"),
    ],
)
def test_bad_options(
    given: list[str], message: str, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["choose-rank", data, *given, "--out", f"{data}-ranks"]) == 2
    assert message in error_line(capsys)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("5", (5,)),
        ("2:4", (2, 3, 4)),
        ("2:7:2", (2, 4, 6)),
        ("10,2:3", (2, 3, 10)),
        ("4:2", None),
        ("0:2", None),
        ("1:2:3:4", None),
        ("a", None),
        ("", None),
    ],
)
def test_ranks(text: str, ranks: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["choose-rank", "X.npy", "--ranks", text]
    if ranks is not None:
        assert build_parser().parse_args(arguments).ranks == ranks
        return
    assert main(arguments) == 2
    assert "must be numbers of topics such as 5,10,20" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["0", "1", "x"])
def test_shares(share: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose-rank", "X.npy", "--validation-fraction", share]) == 2
    assert "must be a number above 0 and below 1" in capsys.readouterr().err
