"""Labels that are probably not what the user meant, and texts that mean that there is none."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from labeled_texts import MONEY, PETS
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

FEW = (
    "--model",
    "ssnmf",
    "--supervision-weight",
    "1",
    "--rank",
    "2",
    "--min-df",
    "1",
    "--test-size",
    "0",
    "--max-iter",
    "5",
)


def fit(
    folder: Path,
    label: Callable[[int], str],
    *more: str,
    capsys: pytest.CaptureFixture[str],
    count: int = 60,
) -> tuple[int, str]:
    """Fit some texts; return the exit code and the warnings, without that of few topics."""
    path = folder / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [[(PETS + MONEY)[k % 20], label(k)] for k in range(count)]
        csv.writer(file).writerows([["text", "kind"], *rows])
    out = str(folder / "out")
    code = main(["fit", str(path), "--labels", "kind", "--out", out, *FEW, "--tol", "0", *more])
    lines = capsys.readouterr().err.splitlines()
    return code, "\n".join(line for line in lines if "is below the number" not in line)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (lambda k: f"post-{k}" if k % 5 else "a", "48 of the 60 labeled samples in 'kind' have"),
        (lambda k: f"post-{k}" if k < 10 else "", ""),  # ten labels may be ten classes
        (lambda k: ("a; b", "b; c", "a")[k % 3], "give --label-separator ';'"),
        (lambda k: ("a|b", "b")[k % 2], "give --label-separator '|'"),
        (lambda k: ("Arts, Letters", "R&amp;D", "x")[k % 3], ""),
        (lambda k: ("a", "b", "NA")[k % 3], "give --unlabeled NA"),
        (lambda k: ("a", "b", "?")[k % 3], "give --unlabeled '?'"),
        (lambda k: ("a", "b", "-1")[k % 3], "of the class '-1', which looks like a missing label"),
        (lambda k: ("1", "-1", "-1.0")[k % 3], "give --unlabeled=-1"),
        (
            lambda k: "99" if k % 5 else str(k % 8),
            "class '99', which looks like a missing label, as most",
        ),
        (lambda k: "-9" if k % 5 else f"{k % 3}", "give --unlabeled=-9"),
        (lambda k: "0" if k % 5 else str(1 + k % 8), "give --unlabeled 0"),
        (lambda k: "0" if k % 5 else "1", ""),
        (lambda k: "5" if k % 5 else str(k % 8), ""),
        (lambda k: ("a", "b", "\\N")[k % 3], "give --unlabeled '\\N'"),
        (lambda k: ("True", "False", "TRUE")[k % 3], "'True' (20 samples) and 'TRUE' (20 samples)"),
        (lambda k: ("a#n", "b#n", "n")[k % 3], "give --label-separator '#'"),
        (lambda k: ('["a", "b"]', "['b']", "[]")[k % 3], ""),
        (lambda k: ('{"choices": ["a"]}', "b")[k % 2], "looks like a list"),
        (lambda k: ("a", "b", "")[k % 3], ""),
    ],
)
def test_warnings(
    label: Callable[[int], str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, warned = fit(tmp_path, label, capsys=capsys)
    assert code == 0
    assert message in warned
    assert bool(warned) == bool(message)


@pytest.mark.parametrize(
    "label", [lambda k: f"post-{k}", lambda k: "" if k % 2 else f"{k} of 30", lambda k: f"{k}; {k}"]
)
def test_a_column_of_ids_is_refused(
    label: Callable[[int], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = fit(tmp_path, label, "--label-separator", ";", capsys=capsys)
    assert code == 2
    assert "in 'kind' have a label that no other has" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("count", "refused"), [(100, False), (101, True)])
def test_many_labels_of_which_half_occur_once(
    count: int, refused: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = count * 3 // 5
    code, error = fit(tmp_path, lambda k: f"{min(k, alone)}", count=count, capsys=capsys)
    assert code == (2 if refused else 0)
    message = f"{alone} of the {count}" if refused else "is it the column of the labels"
    assert message in " ".join(error.split())


def test_unlabeled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def label(k: int) -> str:
        return ("a", "b", "NA", "?", "no idea")[k % 5]

    given = ("--unlabeled", "na, no idea", "--unlabeled", "?")
    assert fit(tmp_path, label, *given, capsys=capsys) == (0, "")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["labeled"] == 24
    assert sf.load(tmp_path / "out" / "model.npz").classes_.tolist() == ["a", "b"]


def test_unlabeled_in_any_spelling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = ("1", "2", "99", "99.0", " 099", "-9", "98").__getitem__
    given = ("--unlabeled", "99,98", "--unlabeled=-9,-8")
    assert fit(tmp_path, lambda k: label(k % 7), *given, capsys=capsys) == (0, "")
    assert sf.load(tmp_path / "out" / "model.npz").classes_.tolist() == ["1", "2"]


def test_minus_one_may_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--unlabeled", "-1,NON DE\u0301FINI")
    label = ("a", "b", "-1", "NON D\u00c9FINI").__getitem__
    assert fit(tmp_path, lambda k: label(k % 4), *given, capsys=capsys) == (0, "")
    assert sf.load(tmp_path / "out" / "model.npz").classes_.tolist() == ["a", "b"]


def test_two_forms_of_unicode_are_one_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = ("e\u0301", "b", "\u00e9", "e\u0301;b;\u00e9").__getitem__
    given = ("--label-separator", ";")
    assert fit(tmp_path, lambda k: label(k % 4), *given, capsys=capsys) == (0, "")
    assert sf.load(tmp_path / "out" / "model.npz").classes_.tolist() == ["b", "e\u0301"]


def test_unlabeled_needs_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("text\na b\n", encoding="utf-8")
    given = ["--rank", "1", "--unlabeled", "NA", "--out", str(tmp_path / "out")]
    assert main(["fit", str(tmp_path / "a.csv"), *given]) == 2
    assert "give --labels too" in error_line(capsys)


def test_probabilities_are_in_natural_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(tmp_path, lambda k: ("10", "9", "1")[k % 3], capsys=capsys) == (0, "")
    (row, *_) = rows_of(tmp_path / "out" / "probabilities.csv")
    names = [name for name in row if name.startswith("probability")]
    assert names == ["probability 1", "probability 9", "probability 10"]


class TestPython:
    X = np.random.default_rng(0).random((9, 4))
    model = sf.SSNMFClassifier(n_components=2, supervision_weight=1.0, readout="refit")

    @pytest.mark.parametrize("word", ["nan", "", "NA", "?"])
    def test_a_class_that_looks_like_none(self, word: str) -> None:
        with pytest.warns(UserWarning, match="looks like a missing label"):
            self.model.fit(self.X, ["a", "b", word] * 3)

    @pytest.mark.parametrize("unlabeled", [None, "nan"])
    def test_settled_by_the_caller(self, unlabeled: str | None) -> None:
        model = sf.papers.ConstrainedNMF(n_components=2, unlabeled=unlabeled)
        classes = model.fit(self.X, ["a", "b", "nan"] * 3).classes_.tolist()
        assert classes == ["a", "b"] + ["nan"] * (unlabeled is None)
