"""The option ``--explain`` of ``ssnmf-fast predict``: terms that speak for a prediction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labeled_texts import MONEY, PAGE, PETS, fit
from outputs import error_line, rows_of

from ssnmf_fast.cli import main

WORDS = {PAGE: set(" ".join(PETS).split()), "money": set(" ".join(MONEY).split())}


@pytest.fixture
def new(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    path.write_text("text\na cat and a dog\nthe bank and its stock price\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_terms_of_the_predicted_class(single: Path, new: Path, tmp_path: Path) -> None:
    assert fit(single, "ssnmf", tmp_path / "out", "--labels", "kind") == 0
    for ending in (".csv", ".jsonl"):
        result = tmp_path / f"result{ending}"
        asked = ["predict", str(tmp_path / "out"), str(new), "--out", str(result)]
        assert main([*asked, "--explain"]) == 0
        if ending == ".csv":
            rows = rows_of(result)
        else:
            rows = [json.loads(line) for line in result.read_text("utf-8").splitlines()]
        assert [row["prediction"] for row in rows] == [PAGE, "money"]
        for row, count in zip(rows, (2, 3), strict=True):
            terms = row["terms"].split(", ")
            assert len(terms) == count
            assert set(terms) <= WORDS[row["prediction"]]
    assert main(asked) == 0
    assert "terms" not in json.loads(result.read_text("utf-8").splitlines()[0])


def test_a_model_of_topics_alone(
    single: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(single, "ssnmf", tmp_path / "out", "--labels", "kind", "--readout", "refit") == 0
    asked = ["predict", str(tmp_path / "out"), str(new), "--out", str(tmp_path / "result.csv")]
    assert main([*asked, "--explain"]) == 0
    assert "no term supports a prediction" in capsys.readouterr().err
    assert [row["terms"] for row in rows_of(tmp_path / "result.csv")] == ["", ""]


def test_a_model_without_labels(
    single: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(single, "nmf", tmp_path / "out") == 0
    assert main(["predict", str(tmp_path / "out"), str(new), "--explain"]) == 2
    assert "--explain needs a model that predicts labels" in error_line(capsys)
