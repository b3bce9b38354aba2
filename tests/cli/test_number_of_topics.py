"""``ssnmf-fast choose-rank``: the choice, its files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import error_line, rows_of
from planted_ranks import RANK, counts
from test_suggest import texts, write

from ssnmf_fast.cli import build_parser, main

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
        *("ranks.csv", "ranks.png", "metrics.json", "report.html")
    }


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["bound", "stability"])
def test_criteria(
    criterion: str, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--criterion", criterion, "--ranks", "2,3", "--max-iter", "20", "--json"]
    starts = [*QUICK, "--starts", "2", "--tol", "0"]
    assert main(["choose-rank", data, *given, *starts, "--out", str(tmp_path / "o")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["criterion"] == criterion
    assert [row["rank"] for row in content["ranks"]] == [2, 3]


def test_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "posts.csv", texts("kind"))
    given = ["--text", "body", "--ranks", "2:3", "--min-df", "1"]
    assert main(["choose-rank", table, *given, *QUICK]) == 0
    assert (tmp_path / "posts-ranks" / "ranks.csv").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--criterion", "bound", "--loss", "frobenius"], "--loss is not used by --criterion"),
        (["--criterion", "stability", "--ranks", "1:3"], "ranks and n_starts of at least 2"),
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
    assert "must be numbers of topics as 5,10,20" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["0", "1", "x"])
def test_shares(share: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose-rank", "X.npy", "--validation-fraction", share]) == 2
    assert "must be a number above 0 and below 1" in capsys.readouterr().err
