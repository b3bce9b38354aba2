"""The models of ``ssnmf-fast fit``: what each takes, is judged by, and writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from labelled_texts import PAGE, fit
from outputs import error_line, measures_of, rows_of
from sklearn.datasets import load_digits

import ssnmf_fast as sf
from ssnmf_fast.cli import main

CHOOSING = ["ssnmf", "ff", "fd", "df", "dd"]  # by validation
ESTIMATORS = {
    **dict.fromkeys(CHOOSING, "SSNMFClassifier"),
    "nmf": "NMF",
    "ts-nmf": "TopicSupervisedNMF",
    "nmf-alpha": "MarginNMF",
    "cnmf": "ConstrainedNMF",
    "vbnmf": "BayesianNMF",
    "supervised-vbnmf": "SupervisedBayesianNMF",
}
GUIDED = [name for name in ESTIMATORS if name not in ("nmf", "vbnmf")]
REPORTED = ("ssnmf", "dd", "nmf", "ts-nmf", "cnmf", "supervised-vbnmf")


@pytest.fixture
def digits(tmp_path: Path) -> tuple[Path, Path]:
    X, y = load_digits(n_class=4, return_X_y=True)
    np.save(tmp_path / "digits.npy", X / 16)
    text = "\n".join(str(label) for label in y) + "\n"
    (tmp_path / "digits.txt").write_text(text, encoding="utf-8")
    return tmp_path / "digits.npy", tmp_path / "digits.txt"


class TestEveryModel:
    @pytest.mark.parametrize("model", ESTIMATORS)
    def test_fit_and_predict(
        self, model: str, single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out"
        assert fit(single, model, out, "--labels", "kind", "--tol", "0") == 0
        printed = capsys.readouterr().out
        assert "topic coherence (NPMI): " in printed
        assert type(sf.load(out / "model.npz")).__name__ == ESTIMATORS[model]
        assert (out / "metrics.json").exists()
        for row in rows_of(out / "topic_classes.csv"):
            assert float(row[PAGE]) + float(row["money"]) == pytest.approx(1, abs=1e-4)
        labels = [row["label"] for row in rows_of(out / "predictions.csv")]
        assert [labels.count(name) for name in (PAGE, "money", "")] == [8, 8, 4]

        new = tmp_path / "new.csv"
        assert main(["predict", str(out), str(single), "--out", str(new)]) == 0
        column = "prediction" if model in GUIDED else "topic"
        guesses = [row[column] for row in rows_of(new)]
        assert len(guesses) == 20
        for kind in (guesses[::2], guesses[1::2]):
            assert max(map(kind.count, kind)) >= 8
        assert guesses[0] != guesses[1]

    @pytest.mark.parametrize("model", REPORTED)
    def test_report(self, model: str, single: Path, tmp_path: Path) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        assert fit(single, model, tmp_path / "out", "--labels", "kind", "--tol", "0") == 0
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        for part in ("measures", "topics", "classes", "objective", "settings"):
            assert f'<section id="{part}">' in page
        judged = model in GUIDED
        assert ('<section id="accuracy">' in page) == judged
        assert ('<section id="confusion">' in page) == judged
        assert ("95 % interval" in page) == judged
        assert PAGE not in page
        assert ("Topic 1: money" in page) == (model == "ts-nmf")

    @pytest.mark.parametrize("model", GUIDED)
    def test_needs_labels(
        self, model: str, single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(single, model, tmp_path / "out") == 2
        assert f"--model {model} needs --labels" in error_line(capsys)

    @pytest.mark.parametrize(
        "model", [name for name in ESTIMATORS if name not in ("ts-nmf", *CHOOSING)]
    )
    def test_needs_rank(
        self, model: str, single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(single, model, tmp_path / "out", "--labels", "kind", rank=None) == 2
        assert "needs --rank" in error_line(capsys)

    def test_help_names_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["fit", "--help"]) == 0
        printed = capsys.readouterr().out
        listed = re.findall(r"(?m)^  ([a-z-]+) +\S", printed.partition("\nmodels:")[2])
        assert set(listed) == {*ESTIMATORS, "dynamic"}

    def test_parameters(self, digits: tuple[Path, Path], tmp_path: Path) -> None:
        given = {
            "nmf-alpha": (["--svm-c", "2", "--supervision-weight", "3"], {"C": 2.0}),
            "ts-nmf": (["--labelled-weight", "2.5"], {"labelled_weight": 2.5}),
            "cnmf": (["--reconstruction", "kullback-leibler"], {}),
        }
        for model, (more, wanted) in given.items():
            labels = ["--labels", str(digits[1]), "--max-iter", "3", "--tol", "0"]
            assert fit(digits[0], model, tmp_path / model, *labels, *more) == 0
            fitted = sf.load(tmp_path / model / "model.npz")
            assert {name: getattr(fitted, name) for name in wanted} == wanted
        assert sf.load(tmp_path / "nmf-alpha" / "model.npz").supervision_weight == 3
        assert fitted.reconstruction == "kullback-leibler"

    def test_beta_divergences(
        self,
        digits: tuple[Path, Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        labels = ["--labels", str(digits[1]), "--max-iter", "3", "--tol", "0"]
        losses = ["--reconstruction", "0.5", "--supervision", "1.5"]
        assert fit(digits[0], "ff", tmp_path / "ff", *labels, *losses) == 0
        fitted = sf.load(tmp_path / "ff" / "model.npz")
        assert (fitted.reconstruction, fitted.supervision) == (0.5, 1.5)
        capsys.readouterr()
        for given in ("3", "plastic"):
            assert fit(digits[0], "nmf", tmp_path / "no", "--reconstruction", given) == 2
            assert "a number from 0 to 2; got" in capsys.readouterr().err


class TestOptionsOfOtherModels:
    @pytest.mark.parametrize(
        ("model", "more", "users"),
        [
            ("dd", ["--svm-c", "1"], "nmf-alpha"),
            ("cnmf", ["--label-separator", ";"], "ssnmf, ff, fd, df, dd, ts-nmf, nmf-alpha"),
            ("cnmf", ["--supervision-weight", "1"], "ssnmf, ff, fd, df, dd, nmf-alpha"),
            ("ts-nmf", ["--supervision", "frobenius"], "ssnmf, ff, fd, df, dd"),
            ("ts-nmf", ["--self-training", "1"], "ssnmf, ff, fd, df, dd"),
            ("nmf", ["--readout", "joint"], "ssnmf, ff, fd, df, dd"),
            ("nmf-alpha", ["--free-topics", "1"], "ts-nmf"),
            ("nmf-alpha", ["--labelled-weight", "1"], "ts-nmf"),
            ("nmf", ["--a-s", "1"], "vbnmf"),
            ("vbnmf", ["--a-lambda", "1"], "supervised-vbnmf"),
            ("vbnmf", ["--reconstruction", "frobenius"], "ssnmf, ff, fd, df, dd, nmf, ts-nmf"),
        ],
    )
    def test_named_in_one_line(
        self,
        model: str,
        more: list[str],
        users: str,
        single: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert fit(single, model, tmp_path / "out", "--labels", "kind", *more) == 2
        message = error_line(capsys)
        assert f"--model {model} has no use for {more[0]}; it is for {users}" in message
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        "more",
        [
            ["--svm-c", "0"],
            ["--svm-c", "x"],
            ["--a-s", "inf"],
            ["--labelled-weight", "balanced"],
            ["--free-topics", "-1"],
            ["--label-separator", ""],
            ["--self-training", "-1"],
            ["--supervision-weight", "heavy"],
        ],
    )
    def test_values(
        self, more: list[str], single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(single, "ts-nmf", tmp_path / "out", "--labels", "kind", *more) == 2
        assert f"argument {more[0]}: expected" in error_line(capsys)


class TestDigits:
    @pytest.mark.parametrize("model", ["nmf-alpha", "cnmf"])
    def test_accuracy(
        self,
        model: str,
        digits: tuple[Path, Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        out, more = tmp_path / "out", ["--labels", str(digits[1])]
        assert fit(digits[0], model, out, *more, rank="8") == 0
        found = measures_of(out)
        assert set(found) == {"accuracy", "linear_svc_accuracy", "majority_accuracy"}
        assert found["accuracy"] > 0.9
        assert "LinearSVC, trained on the same labels: " in capsys.readouterr().out
        new = tmp_path / "new.csv"
        assert main(["predict", str(out), str(digits[0]), "--out", str(new)]) == 0
        first = rows_of(new)[0]
        assert set(first) == {"sample", "prediction", *(f"probability {k}" for k in range(4))}
        assert sum(float(first[f"probability {k}"]) for k in range(4)) == pytest.approx(1, abs=1e-4)

    def test_components_of_a_model_without_labels(
        self, digits: tuple[Path, Path], tmp_path: Path
    ) -> None:
        out, new = tmp_path / "out", tmp_path / "new.csv"
        assert fit(digits[0], "nmf", out, rank="8") == 0
        assert main(["predict", str(out), str(digits[0]), "--out", str(new)]) == 0
        first = rows_of(new)[0]
        assert set(first) == {"sample", "topic", "weight", *(f"component{k}" for k in range(8))}
        assert float(first["weight"]) == float(first[f"component{first['topic']}"]) > 0
