"""The models of ``ssnmf-fast fit``: what each takes, is judged by, and writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from labeled_texts import MONEY, PAGE, PETS, fit
from outputs import error_line, measures_of, rows_of
from sklearn.datasets import load_digits

import ssnmf_fast as sf
from ssnmf_fast.cli import main

ESTIMATORS = {
    "few-labels": "FewLabelsClassifier",
    "ssnmf": "SSNMFClassifier",
    "nmf": "NMF",
    "ts-nmf": "TopicSupervisedNMF",
    "nmf-alpha": "MarginNMF",
    "cnmf": "ConstrainedNMF",
    "vbnmf": "BayesianNMF",
    "supervised-vbnmf": "SupervisedBayesianNMF",
}
GUIDED = [name for name in ESTIMATORS if name not in ("nmf", "vbnmf")]
REPORTED = ("few-labels", "nmf", "ts-nmf", "cnmf", "supervised-vbnmf")


@pytest.fixture
def digits(tmp_path: Path) -> tuple[Path, Path]:
    X, y = load_digits(n_class=4, return_X_y=True)
    np.save(tmp_path / "digits.npy", X / 16)
    text = "\n".join(str(label) for label in y) + "\n"
    (tmp_path / "digits.txt").write_text(text, encoding="utf-8")
    return tmp_path / "digits.npy", tmp_path / "digits.txt"


class TestEveryModel:
    @pytest.mark.slow
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

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_labels_with_parts_are_a_tree_in_the_report(self, tmp_path: Path) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        kinds = dict.fromkeys(PETS[:5], "all/pets") | dict.fromkeys(MONEY[:5], "all/money")
        rows = [f"{text},{kind}" for text, kind in kinds.items()]
        data = tmp_path / "data.csv"
        data.write_text("\n".join(["text,kind", *rows]) + "\n", encoding="utf-8")
        given = ("--labels", "kind", "--test-size", "0")
        assert fit(data, "ts-nmf", tmp_path / "out", *given) == 0
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        tree = page.partition('<section id="tree">')[2].partition("</section>")[0]
        assert "all 100%: " in tree
        assert "\n    all/money " in tree

    @pytest.mark.slow
    @pytest.mark.parametrize("model", ESTIMATORS)
    def test_defaults_are_those_of_the_class(
        self, model: str, single: Path, tmp_path: Path
    ) -> None:
        labels = ["--labels", "kind"] if model in GUIDED else []
        assert fit(single, model, tmp_path / "out", *labels, "--seed", "3") == 0
        fitted = sf.load(tmp_path / "out" / "model.npz")
        wanted = type(fitted)().get_params()
        wanted |= {"random_state": 3, "n_components": 2, "unlabeled": None}  # of those that it has
        wanted["dtype"] = "float32"  # of texts
        assert fitted.get_params() == {name: wanted[name] for name in fitted.get_params()}

    @pytest.mark.parametrize("model", GUIDED)
    def test_needs_labels(
        self, model: str, single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(single, model, tmp_path / "out") == 2
        assert f"--model {model} needs --labels" in error_line(capsys)

    @pytest.mark.parametrize(
        "model",
        [name for name in ESTIMATORS if name not in ("ts-nmf", "few-labels", "nmf", "vbnmf")],
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
        assert set(listed) == {*ESTIMATORS, "dynamic", "seeded"}

    @pytest.mark.slow
    def test_parameters(self, digits: tuple[Path, Path], tmp_path: Path) -> None:
        given = {
            "nmf-alpha": (["--svm-c", "2", "--supervision-weight", "3"], {"C": 2.0}),
            "ts-nmf": (["--labeled-weight", "2.5"], {"labeled_weight": 2.5}),
            "cnmf": (["--loss", "kullback-leibler"], {}),
        }
        for model, (more, wanted) in given.items():
            labels = ["--labels", str(digits[1]), "--max-iter", "3", "--tol", "0"]
            assert fit(digits[0], model, tmp_path / model, *labels, *more) == 0
            fitted = sf.load(tmp_path / model / "model.npz")
            assert {name: getattr(fitted, name) for name in wanted} == wanted
        assert sf.load(tmp_path / "nmf-alpha" / "model.npz").supervision_weight == 3
        assert fitted.loss == "kullback-leibler"

    def test_beta_divergences(
        self,
        digits: tuple[Path, Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        labels = ["--labels", str(digits[1]), "--max-iter", "3", "--tol", "0"]
        losses = ["--loss", "0.5", "--supervision-loss", "1.5"]
        assert fit(digits[0], "ssnmf", tmp_path / "out", *labels, *losses) == 0
        fitted = sf.load(tmp_path / "out" / "model.npz")
        assert (fitted.loss, fitted.supervision_loss) == (0.5, 1.5)
        capsys.readouterr()
        for given in ("3", "plastic"):
            assert fit(digits[0], "nmf", tmp_path / "no", "--loss", given) == 2
            assert "a number from 0 to 2; got" in capsys.readouterr().err


class TestOptionsOfOtherModels:
    @pytest.mark.parametrize(
        ("model", "more", "users"),
        [
            ("ssnmf", ["--svm-c", "1"], "nmf-alpha"),
            ("cnmf", ["--label-separator", ";"], "few-labels, ssnmf, ts-nmf, nmf-alpha"),
            ("cnmf", ["--supervision-weight", "1"], "ssnmf, nmf-alpha"),
            ("ts-nmf", ["--supervision-loss", "frobenius"], "ssnmf"),
            ("ts-nmf", ["--self-training", "1"], "few-labels"),
            ("ssnmf", ["--self-training", "1"], "few-labels"),
            ("few-labels", ["--supervision-weight", "1"], "ssnmf, nmf-alpha"),
            ("few-labels", ["--supervision-loss", "frobenius"], "ssnmf"),
            ("few-labels", ["--readout", "joint"], "ssnmf"),
            ("nmf", ["--readout", "joint"], "ssnmf"),
            ("nmf-alpha", ["--free-topics", "1"], "ts-nmf"),
            ("nmf-alpha", ["--labeled-weight", "1"], "ts-nmf"),
            ("nmf", ["--s-shape", "1"], "vbnmf"),
            ("vbnmf", ["--rate-shape", "1"], "supervised-vbnmf"),
            ("vbnmf", ["--loss", "frobenius"], "few-labels, ssnmf, nmf, ts-nmf"),
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
        assert f"{more[0]} is not used by --model {model} (only by {users}" in message
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        "more",
        [
            ["--svm-c", "0"],
            ["--svm-c", "x"],
            ["--s-shape", "inf"],
            ["--labeled-weight", "balanced"],
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
        assert f"argument {more[0]}: must be" in error_line(capsys)


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
        assert [*first][:4] == ["sample", "prediction", "probability", "second"]
        assert [*first][4:] == [f"probability {k}" for k in range(4)]
        assert sum(float(first[f"probability {k}"]) for k in range(4)) == pytest.approx(1, abs=3e-4)

    def test_components_of_a_model_without_labels(
        self, digits: tuple[Path, Path], tmp_path: Path
    ) -> None:
        out, new = tmp_path / "out", tmp_path / "new.csv"
        assert fit(digits[0], "nmf", out, rank="8") == 0
        assert main(["predict", str(out), str(digits[0]), "--out", str(new)]) == 0
        names = [f"component{k}" for k in range(8)]
        assert set(rows_of(new)[0]) == {"sample", "topic", "share", *names}
        model, X = sf.load(out / "model.npz"), np.load(digits[0])
        np.testing.assert_allclose(
            [[float(row[name]) for name in names] for row in rows_of(new)],
            model.transform(X),
            rtol=1e-5,
            atol=1e-8,
        )

    @pytest.mark.parametrize("kind", ["nmf", "vbnmf"])
    def test_the_topic_of_a_sample_has_its_largest_share(
        self, kind: str, digits: tuple[Path, Path], tmp_path: Path
    ) -> None:
        out, new = tmp_path / "out", tmp_path / "new.csv"
        X = np.load(digits[0])
        X[7] = 0
        np.save(digits[0], X)
        assert fit(digits[0], kind, out, rank="8") == 0
        model = sf.load(out / "model.npz")
        S, sums = model.representation_, model.components_.sum(axis=1)
        of_fit = _topics_and_shares(rows_of(out / "predictions.csv"))
        _assert_largest(*of_fit, S * sums)
        assert (S.argmax(axis=1) != (S * sums).argmax(axis=1)).mean() > 0.05

        # What explains most of a sample does not depend on the scales of the topics.
        if kind == "nmf":
            model.components_ = model.components_ * 10.0 ** np.arange(-4, 4)[:, None]
            sf.save(model, out / "model.npz")
        assert main(["predict", str(out), str(digits[0]), "--out", str(new)]) == 0
        of_predict = _topics_and_shares(rows_of(new))
        _assert_largest(*of_predict, model.topic_proportions(X))
        assert np.mean(of_fit[0] == of_predict[0]) > 0.98
        if kind == "nmf":
            assert rows_of(new)[7]["topic"] == ""
            assert rows_of(new)[7]["share"] == "0"


def _topics_and_shares(rows: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([row["topic"] for row in rows]), np.array([float(r["share"]) for r in rows])


def _assert_largest(topics: np.ndarray, shares: np.ndarray, amounts: np.ndarray) -> None:
    some = amounts.any(axis=1)
    np.testing.assert_array_equal(topics[some].astype(int), amounts[some].argmax(axis=1))
    wanted = amounts[some].max(axis=1) / amounts[some].sum(axis=1)
    np.testing.assert_allclose(shares[some], wanted, rtol=1e-5)
