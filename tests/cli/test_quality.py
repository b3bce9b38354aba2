"""What ``ssnmf-fast fit`` tells of how good the predictions are, with settings that it chooses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import rows_of
from scipy.stats import binomtest
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

import ssnmf_fast as sf
from ssnmf_fast.cli import build_parser, for_json, main
from ssnmf_fast.report.evaluation import Evaluation, Measure, Score, predict_simply

MODEL, SVC, LARGEST = "model", "LinearSVC", "largest class"


def metrics_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "metrics.json").read_text(encoding="utf-8")))


def files(folder: Path, per_class: int) -> list[str]:
    """Write digits of four classes, some of each labeled; return the arguments of `fit`."""
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:300], y[:300]
    left = dict.fromkeys(range(4), per_class)
    lines = []
    for label in y.tolist():
        left[label] -= 1
        lines.append(f"digit {label}" if left[label] >= 0 else "")
    np.save(folder / "X.npy", X)
    (folder / "y.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = str(folder / "out")
    return ["fit", str(folder / "X.npy"), "--labels", str(folder / "y.txt"), "--out", out]


class TestDefault:
    @pytest.mark.slow
    def test_without_rank_and_model(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(files(tmp_path, 10)) == 0
        printed = capsys.readouterr().out
        found, model = metrics_of(tmp_path / "out"), sf.load(tmp_path / "out" / "model.npz")
        assert found["model"] == "few-labels"
        assert type(model) is sf.FewLabelsClassifier
        assert (model.n_components_, model.max_iter) == (4, 200)
        assert model.n_labeled_ == 40  # none is lost
        assert (found["held_out"], found["judged_by"], found["judged_samples"]) == (
            *(0, "validation"),
            int((model.validation_folds_ >= 0).sum()),
        )
        assert found["measures"]["accuracy"] == pytest.approx(model.validation_accuracy_)
        assert found["intervals"]["accuracy"] == pytest.approx(model.validation_interval_)
        assert "accuracy by validation on 40 labeled samples: " in printed
        assert "LinearSVC, trained on the same labels: " in printed
        # Four classes of equal size: which is the largest outside of a fold depends on the folds.
        largest = re.search(r"always the largest class: ([\d.]+)% \(95% interval ", printed)
        assert largest is not None
        assert 15 <= float(largest[1]) <= 25

        used = [row["source"] for row in rows_of(tmp_path / "out" / "predictions.csv")]
        assert [used.count(name) for name in ("given", "held out")] == [40, 0]
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert "By validation on 40 labeled samples" in page
        assert "chosen by validation" not in page
        assert "weights of the classifiers, found by validation" in page
        new = r"accuracy by .*: [\d.]+% \(95% interval for new samples "
        assert re.search(new, printed)
        for words in ("three quarters", "the upper end is raised"):
            assert words in page

    @pytest.mark.slow
    def test_too_few_labels(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(files(tmp_path, 2)) == 0
        found = metrics_of(tmp_path / "out")
        said = "the accuracy cannot be estimated from too few labels, 8 of 4 classes"
        assert said in capsys.readouterr().out
        assert said in found["remarks"][0]
        assert "expected about 12" in found["remarks"][0]
        assert "accuracy" not in found["measures"]
        assert found["judged_by"] is None
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert "The accuracy cannot be estimated" in page
        assert '<section id="accuracy">' not in page

    @pytest.mark.slow
    def test_held_out_samples_where_asked_for(self, tmp_path: Path) -> None:
        assert main([*files(tmp_path, 15), "--test-size", "0.4"]) == 0
        found = metrics_of(tmp_path / "out")
        assert (found["judged_by"], found["held_out"]) == ("held-out samples", 24)
        rows = rows_of(tmp_path / "out" / "predictions.csv")
        hidden = [row for row in rows if row["source"] == "held out"]
        right = sum(row["label"] == row["prediction"] for row in hidden)
        assert found["measures"]["accuracy"] == right / 24
        low, high = found["intervals"]["accuracy"]
        ends = binomtest(right, 24).proportion_ci(0.95, method="wilson")
        assert (low, high) == pytest.approx((ends.low, ends.high))

    def test_given_settings_leave_nothing_to_validate(self, tmp_path: Path) -> None:
        given = ["--rank", "5", "--supervision-weight", "inf", "--readout", "refit"]
        assert main([*files(tmp_path, 10), *given, "--model", "ssnmf"]) == 0
        assert metrics_of(tmp_path / "out")["judged_by"] == "held-out samples"
        model = sf.load(tmp_path / "out" / "model.npz")
        assert (model.n_components, model.readout) == (5, "refit")
        assert model.supervision_weight == float("inf")

    def test_options_of_the_papers_model_are_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The default does not become another model because a rank is given."""
        assert main([*files(tmp_path, 10), "--rank", "5"]) == 2
        assert "takes no --rank" in capsys.readouterr().err
        assert main([*files(tmp_path, 10), "--readout", "refit"]) == 2
        error = capsys.readouterr().err
        assert "--readout is not used by --model few-labels (only by ssnmf)" in error
        more = ["--model", "ssnmf", "--rank", "5", "--supervision-weight", "auto"]
        assert main([*files(tmp_path, 10), *more]) == 2
        assert "--model ssnmf takes no --supervision-weight auto" in capsys.readouterr().err

    @pytest.mark.slow
    def test_large_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ssnmf_fast.report.evaluation._MOST_ENTRIES", 10)
        assert main(files(tmp_path, 10)) == 0
        found = metrics_of(tmp_path / "out")
        assert set(found["measures"]) == {"accuracy", "majority_accuracy"}
        assert found["remarks"] == ["not compared with a simple classifier: the data are too large"]

    def test_nothing_is_known(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        more = ["--model", "cnmf", "--rank", "4", "--test-size", "0", "--max-iter", "5"]
        assert main([*files(tmp_path, 10), *more, "--tol", "0"]) == 0
        assert "the accuracy is not known because no labeled sample was held out" in (
            capsys.readouterr().out
        )

    def test_rank_is_needed_without_labels(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = files(tmp_path, 2)
        np.save(tmp_path / "X.npy", np.ones((4, 3)))
        assert main(["fit", str(tmp_path / "X.npy")]) == 2
        assert "--model nmf needs --rank, the number of topics" in capsys.readouterr().err
        assert main([*command, "--model", "cnmf"]) == 2
        assert "few-labels has topics for each class" in capsys.readouterr().err
        more = ["--model", "nmf-alpha", "--rank", "4", "--supervision-weight", "inf"]
        assert main([*command, *more]) == 2
        assert "--model nmf-alpha takes no --supervision-weight inf" in capsys.readouterr().err


class TestWarnings:
    @pytest.mark.slow
    def test_noise(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        command = files(tmp_path, 0)
        rows = np.repeat(np.random.default_rng(0).random((150, 64)), 2, axis=0)
        np.save(tmp_path / "X.npy", rows)
        # Of every labeled sample there is a copy of another class.
        labels = ["one", "other"] * 50 + ["one"] * 40 + [""] * 160
        (tmp_path / "y.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
        assert main(command) == 0
        found = metrics_of(tmp_path / "out")
        below = [
            name
            for name, key in (("LinearSVC", "linear_svc"), ("largest class", "majority"))
            if found["measures"]["accuracy"] < found["measures"][f"{key}_accuracy"]
        ]
        assert found["measures"]["majority_accuracy"] == pytest.approx(0.64, abs=0.05)
        _, *worse = found["warnings"]  # the first names a class that is never predicted
        assert len(worse) == len(below) > 0
        err = capsys.readouterr().err
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        for name, line in zip(below, worse, strict=True):
            assert name in line
            assert f"warning: {line}" in err
            assert f"Warning: {line}." in page

    def test_words(self) -> None:
        truth = np.array(["a"] * 60 + ["b"] * 40)
        own = np.array(["a"] * 30 + ["b"] * 70)  # 70 right
        svc = np.where(np.arange(100) < 29, "b", truth)  # 71 right
        guesses = {MODEL: own, SVC: svc, LARGEST: np.full(100, "a")}
        (line,) = Evaluation(truth, guesses, ["a", "b"], False).shortfalls()
        assert line == (
            "the accuracy of the model, 70.0%, is below the 71.0% of LinearSVC, trained on the "
            "same labels: on 100 samples such a small difference may be chance"
        )
        (line,) = Evaluation(truth, {**guesses, SVC: truth}, ["a", "b"], False).shortfalls()
        assert line.endswith("more labels may do better")
        said = {"by_validation": True, "expected": Score(0.6, 0.5, 0.7)}  # an estimate
        assert not Evaluation(truth, {MODEL: svc, SVC: svc}, ["a", "b"], **said).shortfalls()
        worst = {MODEL: truth[::-1], LARGEST: guesses[LARGEST]}
        missed, line = Evaluation(truth, worst, ["a", "b"], True).shortfalls()
        assert missed == (
            "classes never predicted correctly by validation on 100 labeled samples: 'b' (0 of 40 "
            "samples); label more samples of them"
        )
        assert "always predicting the largest class: check that the data separate" in line


def scores(truth: Any, guess: Any) -> dict[str, Measure]:
    """Return the measures of predictions by their keys."""
    truth, guess = np.asarray(truth), np.asarray(guess)
    found = Evaluation(truth, {MODEL: guess}, ["a", "b"], False).measures()
    return {one.key: one for one in found}


class TestSettingsThatTheFitSets:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("per_class", "wanted"), [(10, "found by validation"), (2, "not validated")]
    )
    def test_classifier(self, per_class: int, wanted: str, tmp_path: Path) -> None:
        assert main([*files(tmp_path, per_class), "--max-iter", "5", "--test-size", "0"]) == 0
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        model = sf.load(tmp_path / "out" / "model.npz")
        assert re.search(rf">self-training, [^<]*</[^<]*>\s*<[^<]*>{model.self_training_}", page)
        assert wanted in page
        assert "weights of the classifiers" in page

    @pytest.mark.slow
    def test_of_other_models(self, tmp_path: Path) -> None:
        given = ["--model", "nmf-alpha", "--rank", "3", "--max-iter", "2", "--tol", "1"]
        assert main([*files(tmp_path, 10), *given]) == 0
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert "supervision weight, set by the fit" in page

    def test_help_has_the_defaults_of_the_estimators(self) -> None:
        helps = " ".join(build_parser().format_help().split())
        assert "chosen by validation" not in helps
        texts = {}
        for command in ("fit", "choose-rank"):
            actions = build_parser()._subparsers._group_actions[0].choices[command]._actions
            texts[command] = {action.dest: action.help for action in actions}
        defaults = sf.NMF().get_params()
        assert f"(default: {defaults['max_iter']})" in texts["fit"]["max_iter"]
        assert f"for bound {sf.BayesianNMF().max_iter})" in texts["choose-rank"]["max_iter"]


class TestShares:
    """As many labels of each of two classes, of which one is ten times as frequent."""

    @pytest.fixture
    def fit(self, tmp_path: Path) -> list[str]:
        X, y = load_digits(n_class=2, return_X_y=True)
        rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]]
        np.save(tmp_path / "X.npy", np.vstack([X[rows], X[rows[:150]] / 2]))
        labels = np.where(y[rows] == 0, "a=b", "c,d")
        labels[12:-12] = ""
        (tmp_path / "y.txt").write_text("\n".join([*labels, *[""] * 151]), encoding="utf-8")
        given = ["--labels", str(tmp_path / "y.txt"), "--out", str(tmp_path / "out")]
        return ["fit", str(tmp_path / "X.npy"), *given, "--max-iter", "20", "--tol", "0"]

    @pytest.mark.slow
    def test_estimated(self, fit: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(fit) == 0
        assert "classes have other shares among all samples" in capsys.readouterr().out
        assert sf.load(Path(fit[5]) / "model.npz").class_prior_[0] > 0.85
        assert metrics_of(Path(fit[5]))["remarks"][0].endswith("see --class-prior")

    def test_given(self, fit: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        for given, share in (("a=b=9,c,d=1", 0.9), ("labels", 0.5)):
            assert main([*fit, "--class-prior", given]) == 0
            assert "other shares" not in capsys.readouterr().out
            found = sf.load(Path(fit[5]) / "model.npz").class_prior_
            np.testing.assert_allclose(found, [share, 1 - share])
        for wrong in ("even", "a=b", "a=b=x", "a=1,a=2", "a=-1", "=1"):
            assert main([*fit, "--class-prior", wrong]) == 2
            assert "must be labels, or the share of every class" in capsys.readouterr().err
        assert main([*fit, "--class-prior", "a=b=1"]) == 2
        assert "numbers for all of ['a=b', 'c,d']" in capsys.readouterr().err


class TestScores:
    def test_classes_count_by_their_shares(self) -> None:
        """Of labels that are more even than the classes, for every method."""
        truth = np.array(["a", "a", "b", "b"])
        guesses = {MODEL: np.array(["a", "a", "b", "a"]), LARGEST: np.array(["b"] * 4)}
        weights = np.array([0.4, 0.4, 0.1, 0.1])
        judged = Evaluation(truth, guesses, ["a", "b"], True, weights=weights)
        found = {one.key: one for one in judged.measures()}
        assert found["accuracy"].value == pytest.approx(0.9)
        assert found["majority_accuracy"].value == pytest.approx(0.2)
        assert "by its share of all samples" in found["accuracy"].meaning
        assert "by its share of all" not in replace(judged, weights=None).measures()[0].meaning

    def test_the_note_tells_of_labels_that_were_never_hidden(self) -> None:
        truth = np.array(["a", "b"])
        judged = Evaluation(truth, {MODEL: truth}, ["a", "b"], True, labeled=2)
        assert "never hidden" not in judged.note
        assert "The labels of the others were never hidden" in replace(judged, labeled=3).note

    def test_accuracy(self) -> None:
        score = scores([1, 1, 0, 0], [1, 1, 1, 0])["accuracy"]
        ends = binomtest(3, 4).proportion_ci(0.95, method="wilson")
        assert (score.value, score.interval) == (0.75, (ends.low, ends.high))
        assert score.text == "75.0% (95% interval 30.1% to 95.4%)"

    @pytest.mark.parametrize("average", ["micro", "macro"])
    def test_f_scores(self, average: str) -> None:
        rng = np.random.default_rng(0)
        truth = (rng.random((80, 4)) < 0.3).astype(int)
        guess = np.where(rng.random(truth.shape) < 0.2, 1 - truth, truth)
        ends = binomtest(80, 80).proportion_ci(0.95, method="wilson")
        key = f"{average}_f"
        score, perfect, never = (scores(truth, g)[key] for g in (guess, truth, 1 - truth))
        low, high = score.interval or (0, 0)
        assert score.value == pytest.approx(f1_score(truth, guess, average=average))
        assert low < score.value < high < low + 0.3
        assert perfect.value == 1
        assert perfect.interval == pytest.approx((ends.low, 1), abs=1e-4)
        assert never.value == 0
        assert never.interval == pytest.approx((0, 1 - ends.low), abs=1e-4)

    def test_measures_of_several_labels(self) -> None:
        truth = np.array([[1, 0], [1, 1], [0, 1]])
        judged = Evaluation(truth, {MODEL: truth, "logistic regression": truth}, ["a", "b"], True)
        found = {one.key: one for one in judged.measures()}
        assert list(found) == [
            *("micro_f", "macro_f", "logistic_regression_micro_f", "logistic_regression_macro_f"),
        ]
        assert found["micro_f"].value == found["macro_f"].value == 1
        worse = np.array([[1, 0], [1, 0], [0, 1]])
        lines = replace(judged, predictions={**judged.predictions, MODEL: worse}).shortfalls()
        assert [line.split(" of the model")[0] for line in lines] == ["the micro F", "the macro F"]
        assert found["micro_f"].name == "micro F by validation on 3 labeled samples"
        assert replace(judged, labeled=9).where == "by validation on 3 of 9 labeled samples"


class TestClasses:
    def test_one_label(self) -> None:
        truth = np.array(["a", "a", "b", "10"])
        found = Evaluation(truth, {MODEL: np.array(["a", "b", "b", "b"])}, ["a", "b", "c"], True)
        scores = {one.name: one[1:] for one in found.class_scores}
        assert list(scores) == ["10", "a", "b", "c"]  # in natural order, with the unknown one
        assert scores["a"] == (1, 0.5, pytest.approx(2 / 3), 2)
        assert scores["b"] == (pytest.approx(1 / 3), 1, 0.5, 1)
        assert scores["10"][1:] == (0, 0, 1)
        assert np.isnan(scores["10"][0])  # never predicted
        assert np.isnan(scores["c"][:3]).all()
        assert for_json(found.class_scores)[0] == ["10", None, 0.0, 0.0, 1]

    def test_several_labels(self) -> None:
        rng = np.random.default_rng(0)
        truth, guess = (rng.integers(2, size=(50, 3)) for _ in range(2))
        found = Evaluation(truth, {MODEL: guess}, ["z", "2", "10"], True).class_scores
        wanted = f1_score(truth, guess, average=None)
        assert [one.name for one in found] == ["2", "10", "z"]
        assert [one.f for one in found] == pytest.approx(wanted[[1, 2, 0]].tolist())
        assert [one.samples for one in found] == truth.sum(axis=0)[[1, 2, 0]].tolist()

    @pytest.mark.slow
    def test_the_largest_of_many_are_printed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kinds = np.repeat(np.arange(30), [8 if k % 2 else 4 for k in range(30)])
        np.save(tmp_path / "X.npy", np.eye(30)[kinds] + 0.1)
        labels = "\n".join(f"class {k}" for k in kinds)
        (tmp_path / "y.txt").write_text(labels + "\n", encoding="utf-8")
        command = ["fit", str(tmp_path / "X.npy"), "--labels", str(tmp_path / "y.txt")]
        command += ["--model", "ssnmf", "--supervision-weight", "1", "--rank", "30"]
        command += ["--readout", "joint", "--max-iter", "5", "--tol", "0", "--test-size", "0.5"]
        assert main([*command, "--out", str(tmp_path / "out")]) == 0
        printed = capsys.readouterr().out
        lines = printed[printed.index("\nClasses ") :].splitlines()[2:23]
        shown = "\n".join(lines)
        assert all(line.startswith("  class ") for line in lines[:20])
        assert all(f"  class {k} " in shown for k in range(30) if k % 2)
        assert lines[-1] == "  and 10 smaller classes; see report.html"

    @pytest.mark.slow
    def test_where_they_are_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*files(tmp_path, 15), "--test-size", "0.4"]) == 0
        rows = rows_of(tmp_path / "out" / "predictions.csv")
        hidden = [row for row in rows if row["source"] == "held out" and row["label"] == "digit 3"]
        right = sum(row["prediction"] == "digit 3" for row in hidden)
        scores = metrics_of(tmp_path / "out")["classes"]["digit 3"]
        assert (scores["recall"], scores["samples"]) == (right / len(hidden), len(hidden))
        assert re.search(rf"digit 3 .*{right / len(hidden):.2f}", capsys.readouterr().out)
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert f"<td>digit 3</td><td>{len(hidden)}</td>" in page


class TestSimpleGuesses:
    def test_each_fold_is_predicted_from_the_labels_outside_of_it(self) -> None:
        rng = np.random.default_rng(0)
        labels = np.array(["a", "bb", "bb"] * 20)
        X = rng.random((60, 3)) + (labels == "a")[:, None] * [0.4, 0, 0]
        known = np.arange(60) < 50
        folds = np.where(known, np.arange(60) % 3, -1)
        folds[:6] = -1  # never hidden
        found = predict_simply(X, labels, known, folds)
        assert set(found) == {SVC, LARGEST}
        assert set(found[LARGEST]) == {"bb"}
        wanted = np.full(60, "--")
        for fold in range(3):
            test = folds == fold
            machine = LinearSVC(random_state=0).fit(X[known & ~test], labels[known & ~test])
            wanted[test] = machine.predict(X[test])
        assert (found[SVC] == wanted[folds >= 0]).all()

    def test_one_class_and_several_labels(self) -> None:
        X, hidden = np.eye(4), np.array([-1, -1, 0, 0])
        one = predict_simply(X, np.array(["a", "a", "a", "b"]), hidden < 0, hidden)
        assert one[SVC].tolist() == one[LARGEST].tolist() == ["a", "a"]
        Y = np.array([[1, 0], [0, 1], [1, 1], [1, 0]])
        (name,) = several = predict_simply(X, Y, hidden < 0, hidden)
        assert name == "logistic regression"
        assert several[name].shape == (2, 2)


@pytest.mark.slow
def test_progress_is_that_of_the_last_fit() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    labels = [int(one) if k < 40 else None for k, one in enumerate(y)]
    seen: list[int] = []
    model = sf.FewLabelsClassifier(
        random_state=0, callback=lambda state: seen.append(state.iteration)
    )
    model.fit(X, labels)
    assert model.self_training_ >= 1
    assert seen == sorted(set(seen))


def test_warnings_and_odd_texts_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["the cat and dog", "a dog and cat", "stock price", "price of stock", "", "n/a"] * 4
    table, out = tmp_path / "a.csv", tmp_path / "out"
    table.write_text("text\n" + "".join(f'"{text}"\n' for text in texts), encoding="utf-8")
    given = ["fit", str(table), "--rank", "2", "--max-df", "1", "--tol", "1e-3"]
    assert main([*given, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    found = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert found["odd_texts"] == {"empty text": 8, "no known word": 0, "repeated texts": 12}
    assert any("8 of 24 samples cannot be used" in line for line in found["warnings"])
    assert captured.err.count("cannot be used") == 1
    assert "empty text 8, repeated texts 12, iterations" in captured.out
    pytest.importorskip("matplotlib")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Warning: 8 of 24 samples cannot be used (empty text 8; sample" in page
    first, _, rest = page.partition("Other settings and versions")
    assert ">tol<" in first
    assert ">seed<" in rest
