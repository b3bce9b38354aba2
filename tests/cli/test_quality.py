"""What ``ssnmf-fast fit`` tells of how good the predictions are, with settings that it chooses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from command import Result, run, write_lines
from scipy.stats import binomtest
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

import ssnmf_fast as sf
from ssnmf_fast.cli import build_parser, for_json
from ssnmf_fast.report.evaluation import Evaluation, Measure, Score, predict_simply

MODEL, SVC, LARGEST = "model", "LinearSVC", "largest class"


def fit(per_class: int, more: str = "", code: int = 0) -> Result:
    """Fit digits of four classes, some of each labeled."""
    X, y = load_digits(n_class=4, return_X_y=True)
    left, lines = dict.fromkeys(range(4), per_class), []
    for label in y[:300].tolist():
        left[label] -= 1
        lines.append(f"digit {label}" if left[label] >= 0 else "")
    np.save("X.npy", X[:300])
    write_lines("y.txt", lines)
    return run(f"fit X.npy --labels y.txt --out out {more}", code=code)


class TestDefault:
    @pytest.mark.slow
    def test_without_rank_and_model(self) -> None:
        fitted = fit(10)
        printed, found, model, page = fitted.out, fitted.json(), fitted.model, fitted.read()
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

        used = fitted.column("source")
        assert [used.count(name) for name in ("given", "held out")] == [40, 0]
        assert "By validation on 40 labeled samples" in page
        assert "chosen by validation" not in page
        assert "weights of the classifiers, found by validation" in page
        new = r"accuracy by .*: [\d.]+% \(95% interval for new samples "
        assert re.search(new, printed)
        for words in ("three quarters", "the upper end is raised"):
            assert words in page
        setting = rf">self-training, [^<]*</[^<]*>\s*<[^<]*>{model.self_training_}"
        assert re.search(setting, page)

    @pytest.mark.slow
    def test_too_few_labels(self) -> None:
        fitted = fit(2)
        found, page = fitted.json(), fitted.read()
        said = "the accuracy cannot be estimated from too few labels, 8 of 4 classes"
        assert said in fitted.out
        assert said in found["remarks"][0]
        assert "expected about 12" in found["remarks"][0]
        assert "accuracy" not in found["measures"]
        assert found["judged_by"] is None
        assert "The accuracy cannot be estimated" in page
        assert '<section id="accuracy">' not in page
        assert "weights of the classifiers, not validated" in page

    @pytest.mark.slow
    def test_held_out_samples_where_asked_for(self) -> None:
        fitted = fit(15, "--test-size 0.4")
        found, page = fitted.json(), fitted.read()
        assert (found["judged_by"], found["held_out"]) == ("held-out samples", 24)
        hidden = [row for row in fitted.rows() if row["source"] == "held out"]
        right = sum(row["label"] == row["prediction"] for row in hidden)
        assert found["measures"]["accuracy"] == right / 24
        low, high = found["intervals"]["accuracy"]
        ends = binomtest(right, 24).proportion_ci(0.95, method="wilson")
        assert (low, high) == pytest.approx((ends.low, ends.high))

        # Measures of the classes.
        hidden = [row for row in hidden if row["label"] == "digit 3"]
        right = sum(row["prediction"] == "digit 3" for row in hidden)
        scores = found["classes"]["digit 3"]
        assert (scores["recall"], scores["samples"]) == (right / len(hidden), len(hidden))
        assert re.search(rf"digit 3 .*{right / len(hidden):.2f}", fitted.out)
        assert f"<td>digit 3</td><td>{len(hidden)}</td>" in page

    def test_given_settings_leave_nothing_to_validate(self) -> None:
        given = "--rank 5 --supervision-weight inf --readout refit"
        found = fit(10, f"{given} --model ssnmf")
        assert found.json()["judged_by"] == "held-out samples"
        assert (found.model.n_components, found.model.readout) == (5, "refit")
        assert found.model.supervision_weight == float("inf")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            # The default does not become another model because a rank is given.
            ("--rank 5", "takes no --rank"),
            ("--readout refit", "--readout is not used by --model few-labels (only by ssnmf)"),
            (
                "--model ssnmf --rank 5 --supervision-weight auto",
                "--model ssnmf takes no --supervision-weight auto",
            ),
            ("--model cnmf", "few-labels has topics for each class"),
            (
                "--model nmf-alpha --rank 4 --supervision-weight inf",
                "--model nmf-alpha takes no --supervision-weight inf",
            ),
        ],
    )
    def test_options_of_other_models_are_refused(self, given: str, message: str) -> None:
        assert message in fit(2, given, code=2).err

    def test_rank_is_needed_without_labels(self) -> None:
        np.save("X.npy", np.ones((4, 3)))
        refused = run("fit X.npy", code=2)
        assert "--model nmf needs --rank, the number of topics" in refused.err

    @pytest.mark.slow
    def test_large_data(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ssnmf_fast.report.evaluation._MOST_ENTRIES", 10)
        found = fit(10).json()
        assert set(found["measures"]) == {"accuracy", "majority_accuracy"}
        assert found["remarks"] == ["not compared with a simple classifier: the data are too large"]

    def test_nothing_is_known(self) -> None:
        found = fit(10, "--model cnmf --rank 4 --test-size 0 --max-iter 5 --tol 0")
        assert "the accuracy is not known because no labeled sample was held out" in found.out


class TestWarnings:
    @pytest.mark.slow
    def test_noise(self) -> None:
        np.save("X.npy", np.repeat(np.random.default_rng(0).random((150, 64)), 2, axis=0))
        # Of every labeled sample there is a copy of another class.
        write_lines("y.txt", ["one", "other"] * 50 + ["one"] * 40 + [""] * 160)
        fitted = run("fit X.npy --labels y.txt --out out")
        found = fitted.json()
        below = [
            name
            for name, key in (("LinearSVC", "linear_svc"), ("largest class", "majority"))
            if found["measures"]["accuracy"] < found["measures"][f"{key}_accuracy"]
        ]
        assert found["measures"]["majority_accuracy"] == pytest.approx(0.64, abs=0.05)
        _, *worse = found["warnings"]  # the first names a class that is never predicted
        assert len(worse) == len(below) > 0
        for name, line in zip(below, worse, strict=True):
            assert name in line
            assert f"warning: {line}" in fitted.err
            assert f"Warning: {line}." in fitted.read()

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
    def test_of_other_models(self) -> None:
        page = fit(10, "--model nmf-alpha --rank 3 --max-iter 2 --tol 1").read()
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

    def fit(self, more: str = "", code: int = 0) -> Result:
        X, y = load_digits(n_class=2, return_X_y=True)
        rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]]
        np.save("X.npy", np.vstack([X[rows], X[rows[:150]] / 2]))
        labels = np.where(y[rows] == 0, "a=b", "c,d")
        labels[12:-12] = ""
        write_lines("y.txt", [*labels, *[""] * 150])
        given = f"--labels y.txt --out out --max-iter 20 --tol 0 {more}"
        return run(f"fit X.npy {given}", code=code)

    @pytest.mark.slow
    def test_estimated(self) -> None:
        found = self.fit()
        assert "classes have other shares among all samples" in found.out
        assert found.model.class_prior_[0] > 0.85
        assert found.json()["remarks"][0].endswith("see --class-prior")

    def test_given(self) -> None:
        for given, share in (("a=b=9,c,d=1", 0.9), ("labels", 0.5)):
            found = self.fit(f"--class-prior {given}")
            assert "other shares" not in found.out
            np.testing.assert_allclose(found.model.class_prior_, [share, 1 - share])
        for wrong in ("even", "a=b", "a=b=x", "a=1,a=2", "a=-1", "=1"):
            refused = self.fit(f"--class-prior {wrong}", code=2)
            assert "must be labels, or the share of every class" in refused.err
        refused = self.fit("--class-prior a=b=1", code=2)
        assert "numbers for all of ['a=b', 'c,d']" in refused.err


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
    def test_the_largest_of_many_are_printed(self) -> None:
        kinds = np.repeat(np.arange(30), [8 if k % 2 else 4 for k in range(30)])
        np.save("X.npy", np.eye(30)[kinds] + 0.1)
        write_lines("y.txt", [f"class {k}" for k in kinds])
        given = "--model ssnmf --supervision-weight 1 --rank 30 --readout joint --max-iter 5"
        printed = run(f"fit X.npy --labels y.txt {given} --tol 0 --test-size 0.5 --out out").out
        lines = printed[printed.index("\nClasses ") :].splitlines()[2:23]
        shown = "\n".join(lines)
        assert all(line.startswith("  class ") for line in lines[:20])
        assert all(f"  class {k} " in shown for k in range(30) if k % 2)
        assert lines[-1] == "  and 10 smaller classes; see report.html"


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


def test_warnings_and_odd_texts_are_kept() -> None:
    texts = ["the cat and dog", "a dog and cat", "stock price", "price of stock", "", "n/a"] * 4
    write_lines("a.csv", ["text", *(f'"{text}"' for text in texts)])
    fitted = run("fit a.csv --rank 2 --max-df 1 --tol 1e-3 --out out")
    found = fitted.json()
    assert found["odd_texts"] == {"empty text": 8, "no known word": 0, "repeated texts": 12}
    assert any("8 of 24 samples cannot be used" in line for line in found["warnings"])
    assert fitted.err.count("cannot be used") == 1
    assert "empty text 8, repeated texts 12, iterations" in fitted.out
    pytest.importorskip("matplotlib")
    page = fitted.read()
    assert "Warning: 8 of 24 samples cannot be used (empty text 8; sample" in page
    first, _, rest = page.partition("Other settings and versions")
    assert ">tol<" in first
    assert ">seed<" in rest
