"""Labels that are probably not what the user meant, and texts that mean that there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from command import Result, run, write_lines, write_table
from labeled_texts import MONEY, PETS

import ssnmf_fast as sf

FEW = "--model ssnmf --supervision-weight 1 --rank 2 --min-df 1 --test-size 0 --max-iter 5 --tol 0"


def fit(label: Callable[[int], str], more: str = "", *, count: int = 60, code: int = 0) -> Result:
    rows = [[(PETS + MONEY)[k % 20], label(k)] for k in range(count)]
    table = write_table("a.csv", [["text", "kind"], *rows])
    return run(f"fit {table} --labels kind --out out {FEW} {more}", code=code)


def warnings(found: Result) -> str:
    """Return what was told, without that of few topics."""
    lines = found.err.splitlines()
    return "\n".join(line for line in lines if "is below the number" not in line)


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
def test_warnings(label: Callable[[int], str], message: str) -> None:
    warned = warnings(fit(label))
    assert message in warned
    assert bool(warned) == bool(message)


@pytest.mark.parametrize(
    "label", [lambda k: f"post-{k}", lambda k: "" if k % 2 else f"{k} of 30", lambda k: f"{k}; {k}"]
)
def test_a_column_of_ids_is_refused(label: Callable[[int], str]) -> None:
    found = fit(label, "--label-separator ';'", code=2)
    assert "in 'kind' have a label that no other has" in found.err
    assert not found.path.exists()


@pytest.mark.parametrize(("count", "refused"), [(100, False), (101, True)])
def test_many_labels_of_which_half_occur_once(count: int, refused: bool) -> None:
    alone = count * 3 // 5
    found = fit(lambda k: f"{min(k, alone)}", count=count, code=2 if refused else 0)
    message = f"{alone} of the {count}" if refused else "is it the column of the labels"
    assert message in " ".join(found.err.split())


@pytest.mark.parametrize(
    ("cells", "given", "classes", "labeled"),
    [
        ("a|b|NA|?|no idea", "--unlabeled 'na, no idea' --unlabeled ?", "a b", 24),
        # Numbers in any spelling.
        ("1|2|99|99.0| 099|-9|98", "--unlabeled 99,98 --unlabeled=-9,-8", "1 2", 18),
        ("a|b|-1|NON D\u00c9FINI", "--unlabeled '-1,NON DE\u0301FINI'", "a b", 30),
        # Two forms of Unicode are one label.
        ("e\u0301|b|\u00e9|e\u0301;b;\u00e9", "--label-separator ';'", "b e\u0301", 60),
    ],
)
def test_unlabeled(cells: str, given: str, classes: str, labeled: int) -> None:
    names = cells.split("|")
    found = fit(lambda k: names[k % len(names)], given)
    assert warnings(found) == ""
    assert found.json()["labeled"] == labeled
    assert found.model.classes_.tolist() == classes.split()


def test_unlabeled_needs_labels() -> None:
    write_lines("a.csv", ["text", "a b"])
    assert "give --labels too" in run("fit a.csv --rank 1 --unlabeled NA --out out", code=2).error


def test_probabilities_are_in_natural_order() -> None:
    found = fit(lambda k: ("10", "9", "1")[k % 3])
    assert warnings(found) == ""
    names = [name for name in found.rows("probabilities.csv")[0] if name.startswith("probability")]
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
