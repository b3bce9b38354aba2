"""``ssnmf-fast suggest``, and the way of its table back into ``fit``."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

WORDS = {
    "pets": ["cat", "dog", "vet", "fur", "leash", "puppy", "kitten", "bark"],
    "money": ["bank", "stock", "price", "market", "loan", "rate", "fund", "broker"],
    "sport": ["goal", "team", "match", "coach", "league", "ball", "win", "player"],
}
KINDS = [*WORDS]
N, LABELED = 60, 15


def texts(name: str, **columns: list[Any]) -> list[list[Any]]:
    """Return header and rows of 60 texts of three kinds, the first 15 labeled."""
    rng = np.random.default_rng(0)
    header, rows = [*columns, "body", name], []
    for k in range(N):
        own, other = WORDS[KINDS[k % 3]], WORDS[KINDS[(k + 1) % 3]]
        words = [*rng.choice(own, 5), *rng.choice(other, k % 4)]
        given = [column[k] for column in columns.values()]
        rows.append([*given, f"<b>{' '.join(words)}</b>, {k}", KINDS[k % 3] if k < LABELED else ""])
    return [header, *rows]


def write(path: Path, rows: list[list[Any]], **how: Any) -> str:
    with path.open("w", encoding=how.pop("encoding", "utf-8"), newline="") as file:
        csv.writer(file, **how).writerows(rows)
    return str(path)


def fill(path: Path, column: str, **how: Any) -> list[dict[str, str]]:
    """Fill in the true kinds; return the rows."""
    rows = rows_of(path, marked=False)
    for row in rows:
        row[column] = KINDS[int(row["sample"]) % 3]
    write(path, [[*rows[0]], *([*row.values()] for row in rows)], **how)
    return rows


def metrics(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "metrics.json").read_text(encoding="utf-8")))


def test_the_page_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = texts("kind of text", id=[f"p{k}" for k in range(N)])
    for row in rows[3 : LABELED + 1 : 3]:  # of sport only the first is left
        row[-1] = "sport" if row is rows[3] else "?"
    write(tmp_path / "my a.csv", rows)
    given = ["--text", "body", "--labels", "kind of text", "--unlabeled", "?", "--min-df", "1"]
    assert main(["fit", "my a.csv", *given, "--terms", "3", "--out", "out"]) == 0
    topics = capsys.readouterr().out.partition("\nTopics\n")[2].partition("\nFiles")[0]
    assert "pets" in topics
    assert "sport" not in topics  # no prediction of it is right
    page = json.loads((tmp_path / "out" / "page.json").read_text(encoding="utf-8"))
    (check, _), (why, (suggest, fit)) = page["steps"]
    assert check == "Check the least sure predictions by hand: see below, and predictions.csv."
    assert why.startswith("For a higher accuracy, label")
    assert fit == "ssnmf-fast fit 'my a.csv' ... --more-labels 'my a-to-label.csv'"
    assert main(shlex.split(suggest)[1:]) == 0
    assert len(fill(tmp_path / "my a-to-label.csv", "kind of text")) == 20
    ((title, note, _, least),) = page["tables"]
    assert (title, len(least)) == ("Check by hand", 20)
    assert note == "The 20 least sure of 49 predictions; all are in predictions.csv."
    assert [row[3] for row in least] == sorted(row[3] for row in least)
    assert {row[0] for row in least} <= {f"p{k}" for k in range(N)}

    more = ["--more-labels", "my a-to-label.csv", "--target-accuracy", "0.99"]
    assert main(["fit", "my a.csv", *given, *more, "--out", "out"]) == 0
    page = json.loads((tmp_path / "out" / "page.json").read_text(encoding="utf-8"))
    assert re.match(r"Check the \d+ least sure", page["steps"][-2][0])
    again = shlex.split(page["steps"][-1][1][0])
    assert again[again.index("--more-labels") + 1] == "my a-to-label.csv"
    assert again[-1] == "my a-to-label2.csv"


@pytest.mark.slow
class TestRoundTrip:
    def test_by_id(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        ids = [f"p{k}" for k in range(N)]
        data, todo = write(tmp_path / "a.csv", texts("kind", id=ids)), tmp_path / "todo.csv"
        given = [data, "--text", "body", "--labels", "kind", "--min-df", "1"]
        assert main(["suggest", *given, "-n", "6", "--out", str(todo)]) == 0
        printed = capsys.readouterr().out
        assert "accuracy by validation on 15 labeled samples: " in printed
        assert f"6 samples to label are in {todo}: fill in its column 'kind'" in printed
        rows = fill(todo, "kind", delimiter=";", encoding="utf-8-sig")  # as programs save it
        assert [*rows[0]] == ["sample", "id", "body", "prediction", "probability", "kind"]
        samples = [int(row["sample"]) for row in rows]
        assert min(samples) >= LABELED
        assert len(set(samples)) == 6
        assert [row["id"] for row in rows] == [f"p{k}" for k in samples]
        assert all(1 / 3 <= float(row["probability"]) <= 1 for row in rows)

        # The rows of the data may have another order: ids tell.
        header, *lines = texts("kind", id=ids)
        data = write(tmp_path / "b.csv", [header, *lines[::-1]])
        more, out = ["--more-labels", str(todo)], tmp_path / "out"
        assert main(["fit", data, *given[1:], *more, "--out", str(out)]) == 0
        assert metrics(out)["labeled"] == LABELED + 6
        assert any("harder than average" in line for line in metrics(out)["remarks"])
        known = {row["id"]: row["label"] for row in rows_of(out / "predictions.csv")}
        assert [known[f"p{k}"] for k in samples] == [KINDS[k % 3] for k in samples]

        # And again, to a second table.
        capsys.readouterr()
        again = ["suggest", data, *given[1:], *more, "-n", "5", "--json"]
        assert main([*again, "--out", str(tmp_path / "more.jsonl")]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert (summary["suggested"], summary["labeled"]) == (5, LABELED + 6)
        found = (tmp_path / "more.jsonl").read_text(encoding="utf-8").splitlines()
        assert not {json.loads(line)["id"] for line in found} & {row["id"] for row in rows}

    def test_the_best_are_those_of_python(self, tmp_path: Path) -> None:
        data, todo = write(tmp_path / "a.csv", texts("kind")), tmp_path / "todo.csv"
        given = [data, "--text", "body", "--labels", "kind", "--min-df", "1"]
        assert main(["suggest", *given, "--count", "8", "--out", str(todo), "--quiet"]) == 0
        assert main(["fit", *given, "--out", str(tmp_path / "out"), "--quiet"]) == 0
        model, vectorizer = sf.load(tmp_path / "out"), sf.io.load_vectorizer(tmp_path / "out")
        bodies = [row["body"] for row in rows_of(tmp_path / "a.csv", marked=False)][LABELED:]
        chosen = model.suggest(vectorizer.transform(bodies), 8) + LABELED
        assert [int(row["sample"]) for row in rows_of(todo)] == chosen.tolist()

    def test_several_labels(self, tmp_path: Path) -> None:
        header, *rows = texts("kinds")
        for row in rows[:LABELED:2]:
            row[-1] += "|all"
        data, todo = write(tmp_path / "a.csv", [header, *rows]), tmp_path / "todo.csv"
        given = [data, "--text", "body", "--labels", "kinds", "--label-separator", "|"]
        given += ["--min-df", "1"]
        assert main(["suggest", *given, "-n", "4", "--out", str(todo)]) == 0
        for row in rows_of(todo):
            names, chances = (row[name].split("|") for name in ("prediction", "probability"))
            assert len(names) == len(chances)
        fill(todo, "kinds")
        out = tmp_path / "out"
        assert main(["fit", *given, "--more-labels", str(todo), "--out", str(out)]) == 0
        assert metrics(out)["labeled"] == LABELED + 4

    def test_as_spreadsheet_programs_write_it(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        header, *rows = texts("kind")
        rows = [[f"{body} \u00a37 caf\u00e9", kind] for body, kind in rows]
        data, todo = write(tmp_path / "a.csv", [header, *rows]), tmp_path / "todo.csv"
        given = [data, "--text", "body", "--labels", "kind", "--min-df", "1", "--quiet"]
        assert main(["suggest", *given, "-n", "4", "--out", str(todo)]) == 0
        assert todo.read_bytes().startswith(b"\xef\xbb\xbf")  # by which Excel knows UTF-8
        out = tmp_path / "out"
        for encoding, how in {"cp1252": ";", "utf-8-sig": ","}.items():
            table = todo.read_text(encoding="utf-8-sig")
            copy = tmp_path / f"{encoding}.csv"
            copy.write_text(table, encoding="utf-8")
            fill(copy, "kind", delimiter=how, encoding=encoding)
            more = ["--more-labels", str(copy), "--out", str(out)]
            assert main(["fit", *given[:-1], *more]) == 0
            warned = "not utf-8; it is read as cp1252" in capsys.readouterr().err
            assert warned == (encoding == "cp1252")
            assert metrics(out)["labeled"] == LABELED + 4

    def test_a_matrix_with_labels_in_a_file(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        X = rng.random((N, 6)) + 2 * np.eye(6)[np.arange(N) % 3]
        np.save(tmp_path / "X.npy", X)
        labels = [KINDS[k % 3] if k < LABELED else "" for k in range(N)]
        (tmp_path / "y.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
        given = [str(tmp_path / "X.npy"), "--labels", str(tmp_path / "y.txt")]
        todo, out = tmp_path / "todo.csv", tmp_path / "out"
        assert main(["suggest", *given, "-n", "4", "--out", str(todo)]) == 0
        (first, *_) = fill(todo, "label")
        assert [*first] == ["sample", "prediction", "probability", "label"]
        assert main(["fit", *given, "--more-labels", str(todo), "--out", str(out)]) == 0
        assert metrics(out)["labeled"] == LABELED + 4


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["a", "a", "c"], None])
def test_ids_that_repeat_name_no_sample(ids: list[str] | None, tmp_path: Path) -> None:
    names = ["text", "kind"] if ids is None else ["id", "text", "kind"]
    rows = [[*((ids[k],) if ids else ()), f"text {k}", "old"] for k in range(3)]
    data = write(tmp_path / "a.csv", [names, *rows])
    filled = [["id", "sample", "kind"], ["c", 1, " new "], ["a", 0, ""]]
    more = write(tmp_path / "todo.csv", filled, delimiter="\t")
    given = ["fit", data, "--labels", "kind", "--more-labels", more, "--min-df", "1"]
    given += ["--max-df", "1", "--model", "ssnmf", "--supervision-weight", "1", "--rank", "1"]
    out = tmp_path / "out"
    assert main([*given, "--test-size", "0", "--max-iter", "2", "--out", str(out)]) == 0
    with (out / "predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        found = [row["label"] for row in csv.DictReader(file)]
    unique = ids is not None and len(set(ids)) == 3
    assert found == (["old", "old", "new"] if unique else ["old", "new", "old"])


class TestErrors:
    @pytest.mark.parametrize(
        ("filled", "message"),
        [
            ([["sample", "kind"], [20, ""]], "no cell of column 'kind' is filled in"),
            ([["sample", "label"], [20, "pets"]], "has no column 'kind'"),
            ([["sample", "kind"], [60, "pets"]], "no sample whose sample is '60'"),
            ([["sample", "kind"], ["x", "pets"]], "no sample whose sample is 'x'"),
            ([["id", "kind"], ["x", "pets"]], "no sample whose id is 'x'"),
            ([["sample", "body", "kind"], [20, "other", "pets"]], "the text is not that of sample"),
            (
                [["sample", "kind"], [20, "pets"], [21, ""], [20, "money"]],
                "line 4: sample 20 has the label 'money', and 'pets' in",
            ),
            ([["sample", "kind"], ["x" * 5000, "pets"]], "no sample whose sample is 'xxx"),
        ],
    )
    def test_filled_tables(
        self,
        filled: list[list[Any]],
        message: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        columns = {"id": [f"p{k}" for k in range(N)]} if filled[0][0] == "id" else {}
        data = write(tmp_path / "a.csv", texts("kind", **columns))
        more = write(tmp_path / "todo.csv", filled)
        given = [data, "--text", "body", "--labels", "kind", "--more-labels", more]
        assert main(["fit", *given, "--out", str(tmp_path / "out")]) == 2
        line = error_line(capsys)
        assert message in line
        assert len(line) < 1000  # of which paths are a part, and no table
        assert not (tmp_path / "out").exists()

    def test_two_tables_contradict_each_other(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = write(tmp_path / "a.csv", texts("kind"))
        given = ["fit", data, "--text", "body", "--labels", "kind", "--label-separator", ";"]
        first = write(
            tmp_path / "1.csv", [["sample", "kind"], [20, "pets;caf\u00e9"], [21, "pets"]]
        )
        same = write(tmp_path / "2.csv", [["sample", "kind"], [20, "cafe\u0301; pets"], [21, ""]])
        other = write(tmp_path / "3.csv", [["sample", "kind"], [21, "money"]])
        quick = ["--model", "ssnmf", "--rank", "2", "--max-iter", "2", "--quiet"]
        more = ["--more-labels", first, "--more-labels", same]
        assert main([*given, *quick, *more, "--out", str(tmp_path / "out")]) == 0
        assert main([*given, *more, "--more-labels", other, "--out", str(tmp_path / "no")]) == 2
        assert f"'pets' in {first}, line 3" in error_line(capsys)

    def test_places(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        data = write(tmp_path / "a.csv", texts("kind"))
        given = ["suggest", data, "--text", "body"]
        assert main(given) == 2
        assert "suggest needs --labels" in error_line(capsys)
        (tmp_path / "todo.csv").write_text("here\n", encoding="utf-8")
        out = ["--out", str(tmp_path / "todo.csv")]
        assert main([*given, "--labels", "kind", *out]) == 2
        assert "exists, and may hold labels" in error_line(capsys)
        assert main(["fit", data, "--text", "body", "--rank", "2", "--more-labels", data]) == 2
        assert "--more-labels is for labels; give --labels too" in error_line(capsys)

    def test_names_of_its_own(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        header, *rows = texts("prediction")
        data = write(tmp_path / "a.csv", [header, *rows])
        given = ["suggest", data, "--text", "body", "--labels", "prediction", "--min-df", "1"]
        assert main([*given, "--out", str(tmp_path / "todo.csv")]) == 2
        assert "already has a column 'prediction'" in error_line(capsys)

    def test_nothing_to_label(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        data = write(tmp_path / "a.csv", texts("kind")[: LABELED + 1])
        given = ["suggest", data, "--text", "body", "--labels", "kind", "--min-df", "1"]
        assert main([*given, "--out", str(tmp_path / "todo.csv")]) == 2
        assert "every sample has a label" in error_line(capsys)

    @pytest.mark.slow
    def test_what_was_left_empty_is_not_suggested_again(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = write(tmp_path / "a.csv", texts("kind")[: LABELED + 5])
        left = [[LABELED, "pets"], *([LABELED + k, ""] for k in (1, 2)), ["", ""]]
        more = write(tmp_path / "todo.csv", [["sample", "kind"], *left])
        given = ["suggest", data, "--text", "body", "--labels", "kind", "--min-df", "1"]
        assert main([*given, "--more-labels", more, "--out", "-"]) == 0
        found = csv.DictReader(capsys.readouterr().out.splitlines())
        assert [row["sample"] for row in found] == [str(LABELED + 3)]


class TestLearning:
    @pytest.mark.slow
    def test_too_few_labels_to_tell(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        header, *rows = texts("kind")
        for row in rows[6:]:
            row[-1] = ""
        data = write(tmp_path / "a.csv", [header, *rows])
        given = ["suggest", data, "--text", "body", "--labels", "kind", "--min-df", "1"]
        assert main([*given, "--out", str(tmp_path / "todo.csv")]) == 0
        printed = capsys.readouterr().out
        assert "the accuracy cannot be estimated from too few labels" in printed
        assert "more labels" not in printed.replace("--more-labels", "")
