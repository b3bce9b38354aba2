"""The models of ``ssnmf-fast fit``: what each takes, is judged by, and writes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import Result, run, write_lines
from labeled_texts import MONEY, PAGE, PETS
from sklearn.datasets import load_digits

import ssnmf_fast as sf

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


def fit(data: object, model: str, more: str = "", *, rank: int = 2, code: int = 0) -> Result:
    size = "" if model in ("ts-nmf", "few-labels") or not rank else f"--rank {rank}"
    return run(f"fit {data} --model {model} --out out --min-df 1 {size} {more}", code=code)


@pytest.fixture
def digits() -> str:
    """Digits of four classes, and the option of their labels."""
    X, y = load_digits(n_class=4, return_X_y=True)
    np.save("digits.npy", X / 16)
    write_lines("digits.txt", y)
    return "digits.npy --labels digits.txt"


@pytest.fixture(scope="module")
def fits(single: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """Fits of every model to texts with labels, each made once."""

    @functools.cache
    def fitted(model: str) -> Result:
        out = tmp_path_factory.mktemp(model)
        return fit(single, model, f"--labels kind --tol 0 --out {out}")

    return fitted


class TestEveryModel:
    @pytest.mark.slow
    @pytest.mark.parametrize("model", ESTIMATORS)
    def test_fit_and_predict(self, model: str, single: Path, fits: Callable[[str], Result]) -> None:
        fitted = fits(model)
        assert "topic coherence (NPMI): " in fitted.out
        assert type(fitted.model).__name__ == ESTIMATORS[model]
        assert "metrics.json" in fitted.files
        for row in fitted.rows("topic_classes.csv"):
            assert float(row[PAGE]) + float(row["money"]) == pytest.approx(1, abs=1e-4)
        labels = fitted.column("label")
        assert [labels.count(name) for name in (PAGE, "money", "")] == [8, 8, 4]

        new = run(f"predict {fitted.path} {single} --out new.csv")
        guesses = new.column("prediction" if model in GUIDED else "topic")
        assert len(guesses) == 20
        for kind in (guesses[::2], guesses[1::2]):
            assert max(map(kind.count, kind)) >= 8
        assert guesses[0] != guesses[1]

    @pytest.mark.slow
    @pytest.mark.parametrize("model", REPORTED)
    def test_report(self, model: str, fits: Callable[[str], Result]) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        page = fits(model).read()
        for part in ("measures", "topics", "classes", "objective", "settings"):
            assert f'<section id="{part}">' in page
        judged = model in GUIDED
        assert ('<section id="accuracy">' in page) == judged
        assert ('<section id="confusion">' in page) == judged
        assert ("95 % interval" in page) == judged
        assert PAGE not in page
        assert ("Topic 1: money" in page) == (model == "ts-nmf")

    @pytest.mark.slow
    def test_labels_with_parts_are_a_tree_in_the_report(self) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        kinds = dict.fromkeys(PETS[:5], "all/pets") | dict.fromkeys(MONEY[:5], "all/money")
        rows = [f"{text},{kind}" for text, kind in kinds.items()]
        data = write_lines("data.csv", ["text,kind", *rows])
        page = fit(data, "ts-nmf", "--labels kind --test-size 0").read()
        tree = page.partition('<section id="tree">')[2].partition("</section>")[0]
        assert "all 100%: " in tree
        assert "\n    all/money " in tree

    @pytest.mark.slow
    @pytest.mark.parametrize("model", ESTIMATORS)
    def test_defaults_are_those_of_the_class(self, model: str, single: Path) -> None:
        labels = "--labels kind" if model in GUIDED else ""
        fitted = fit(single, model, f"{labels} --seed 3").model
        wanted = type(fitted)().get_params()
        wanted |= {"random_state": 3, "n_components": 2, "unlabeled": None}  # of those that it has
        wanted["dtype"] = "float32"  # of texts
        assert fitted.get_params() == {name: wanted[name] for name in fitted.get_params()}

    @pytest.mark.parametrize("model", GUIDED)
    def test_needs_labels(self, model: str, single: Path) -> None:
        assert f"--model {model} needs --labels" in fit(single, model, code=2).error

    @pytest.mark.parametrize("model", ["ssnmf", "nmf-alpha", "cnmf", "supervised-vbnmf"])
    def test_needs_rank(self, model: str, single: Path) -> None:
        refused = fit(single, model, "--labels kind", rank=0, code=2)
        assert "needs --rank" in refused.error

    def test_help_names_them(self) -> None:
        printed = run("fit --help").out
        listed = re.findall(r"(?m)^  ([a-z-]+) +\S", printed.partition("\nmodels:")[2])
        assert set(listed) == {*ESTIMATORS, "dynamic", "seeded"}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("model", "given", "wanted"),
        [
            ("nmf-alpha", "--svm-c 2 --supervision-weight 3", {"C": 2, "supervision_weight": 3}),
            ("ts-nmf", "--labeled-weight 2.5", {"labeled_weight": 2.5}),
            ("cnmf", "--loss kullback-leibler", {"loss": "kullback-leibler"}),
            (
                "ssnmf",
                "--loss 0.5 --supervision-loss 1.5",
                {"loss": 0.5, "supervision_loss": 1.5},
            ),
        ],
    )
    def test_parameters(
        self, model: str, given: str, wanted: dict[str, object], digits: str
    ) -> None:
        fitted = fit(digits, model, f"--max-iter 3 --tol 0 {given}").model
        assert {name: getattr(fitted, name) for name in wanted} == wanted

    @pytest.mark.parametrize("given", ["3", "plastic"])
    def test_losses_that_are_none(self, given: str, digits: str) -> None:
        refused = fit("digits.npy", "nmf", f"--loss {given}", code=2)
        assert "a number from 0 to 2; got" in refused.err


class TestOptionsOfOtherModels:
    @pytest.mark.parametrize(
        ("model", "more", "users"),
        [
            ("ssnmf", "--svm-c 1", "nmf-alpha"),
            ("cnmf", "--label-separator ';'", "few-labels, ssnmf, ts-nmf, nmf-alpha"),
            ("cnmf", "--supervision-weight 1", "ssnmf, nmf-alpha"),
            ("ts-nmf", "--supervision-loss frobenius", "ssnmf"),
            ("ts-nmf", "--self-training 1", "few-labels"),
            ("ssnmf", "--self-training 1", "few-labels"),
            ("few-labels", "--supervision-weight 1", "ssnmf, nmf-alpha"),
            ("few-labels", "--supervision-loss frobenius", "ssnmf"),
            ("few-labels", "--readout joint", "ssnmf"),
            ("nmf", "--readout joint", "ssnmf"),
            ("nmf-alpha", "--free-topics 1", "ts-nmf"),
            ("nmf-alpha", "--labeled-weight 1", "ts-nmf"),
            ("nmf", "--s-shape 1", "vbnmf"),
            ("vbnmf", "--rate-shape 1", "supervised-vbnmf"),
            ("vbnmf", "--loss frobenius", "few-labels, ssnmf, nmf, ts-nmf"),
        ],
    )
    def test_named_in_one_line(self, model: str, more: str, users: str, single: Path) -> None:
        refused = fit(single, model, f"--labels kind {more}", code=2)
        option = more.split()[0]
        assert f"{option} is not used by --model {model} (only by {users}" in refused.error
        assert not refused.path.exists()

    @pytest.mark.parametrize(
        "more",
        [
            "--svm-c 0",
            "--svm-c x",
            "--s-shape inf",
            "--labeled-weight balanced",
            "--free-topics -1",
            "--label-separator ''",
            "--self-training -1",
            "--supervision-weight heavy",
        ],
    )
    def test_values(self, more: str, single: Path) -> None:
        refused = fit(single, "ts-nmf", f"--labels kind {more}", code=2)
        assert f"argument {more.split()[0]}: must be" in refused.error


class TestDigits:
    @pytest.mark.parametrize("model", ["nmf-alpha", "cnmf"])
    def test_accuracy(self, model: str, digits: str) -> None:
        fitted = fit(digits, model, rank=8)
        found = fitted.measures
        assert set(found) == {"accuracy", "linear_svc_accuracy", "majority_accuracy"}
        assert found["accuracy"] > 0.9
        assert "LinearSVC, trained on the same labels: " in fitted.out
        first = run("predict out digits.npy --out new.csv").rows()[0]
        assert [*first][:4] == ["sample", "prediction", "probability", "second"]
        assert [*first][4:] == [f"probability {k}" for k in range(4)]
        assert sum(float(first[f"probability {k}"]) for k in range(4)) == pytest.approx(1, abs=3e-4)

    def test_components_of_a_model_without_labels(self, digits: str) -> None:
        model = fit("digits.npy", "nmf", rank=8).model
        new, names = (
            run("predict out digits.npy --out new.csv"),
            [f"component{k}" for k in range(8)],
        )
        assert set(new.rows()[0]) == {"sample", "topic", "share", *names}
        shown = np.array([new.column(name) for name in names], dtype=float).T
        X = np.load("digits.npy")
        np.testing.assert_allclose(shown, model.transform(X), rtol=1e-5, atol=1e-8)

    @pytest.mark.parametrize("kind", ["nmf", "vbnmf"])
    def test_the_topic_of_a_sample_has_its_largest_share(self, kind: str, digits: str) -> None:
        X = np.load("digits.npy")
        X[7] = 0
        np.save("digits.npy", X)
        fitted = fit("digits.npy", kind, rank=8)
        model = fitted.model
        S, sums = model.representation_, model.components_.sum(axis=1)
        of_fit = _topics_and_shares(fitted)
        _assert_largest(*of_fit, S * sums)
        assert (S.argmax(axis=1) != (S * sums).argmax(axis=1)).mean() > 0.05

        # What explains most of a sample does not depend on the scales of the topics.
        if kind == "nmf":
            model.components_ = model.components_ * 10.0 ** np.arange(-4, 4)[:, None]
            sf.save(model, "out/model.npz")
        new = run("predict out digits.npy --out new.csv")
        of_predict = _topics_and_shares(new)
        _assert_largest(*of_predict, model.topic_proportions(X))
        assert np.mean(of_fit[0] == of_predict[0]) > 0.98
        if kind == "nmf":
            assert new.column("topic")[7] == ""
            assert new.column("share")[7] == "0"


def _topics_and_shares(found: Result) -> tuple[np.ndarray, np.ndarray]:
    return np.array(found.column("topic")), np.array(found.column("share"), dtype=float)


def _assert_largest(topics: np.ndarray, shares: np.ndarray, amounts: np.ndarray) -> None:
    some = amounts.any(axis=1)
    np.testing.assert_array_equal(topics[some].astype(int), amounts[some].argmax(axis=1))
    wanted = amounts[some].max(axis=1) / amounts[some].sum(axis=1)
    np.testing.assert_allclose(shares[some], wanted, rtol=1e-5)
