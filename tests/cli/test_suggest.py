"""``ssnmf-fast suggest``, and the way of its table back into ``fit``."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Result, rows_of, run, write_lines, write_table

import ssnmf_fast as sf

WORDS = {
    "pets": ["cat", "dog", "vet", "fur", "leash", "puppy", "kitten", "bark"],
    "money": ["bank", "stock", "price", "market", "loan", "rate", "fund", "broker"],
    "sport": ["goal", "team", "match", "coach", "league", "ball", "win", "player"],
}
KINDS = [*WORDS]
N, LABELED = 60, 15
GIVEN = "a.csv --text body --labels kind --min-df 1"


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


def fill(path: str, column: str, **how: Any) -> list[dict[str, str]]:
    """Fill in the true kinds; return the rows."""
    rows = rows_of(path, marked=False)
    for row in rows:
        row[column] = KINDS[int(row["sample"]) % 3]
    write_table(path, [[*rows[0]], *([*row.values()] for row in rows)], **how)
    return rows


def labeled(found: Result) -> int:
    return int(found.json()["labeled"])


def test_the_page_says_what_to_do_next(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = texts("kind of text", id=[f"p{k}" for k in range(N)])
    for row in rows[3 : LABELED + 1 : 3]:  # of sport only the first is left
        row[-1] = "sport" if row is rows[3] else "?"
    write_table("my a.csv", rows)
    given = "'my a.csv' --text body --labels 'kind of text' --unlabeled ? --min-df 1 --out out"
    found = run(f"fit {given} --terms 3")
    topics = found.out.partition("\nTopics\n")[2].partition("\nFiles")[0]
    assert "pets" in topics
    assert "sport" not in topics  # no prediction of it is right
    page = found.json("page.json")
    (check, _), (why, (suggest, fit)) = page["steps"]
    assert check == "Check the least sure predictions by hand: see below, and predictions.csv."
    assert why.startswith("For a higher accuracy, label")
    assert fit == "ssnmf-fast fit 'my a.csv' ... --more-labels 'my a-to-label.csv'"
    run(suggest.removeprefix("ssnmf-fast "))
    assert len(fill("my a-to-label.csv", "kind of text")) == 20
    ((title, note, _, least),) = page["tables"]
    assert (title, len(least)) == ("Check by hand", 20)
    assert note == "The 20 least sure of 49 predictions; all are in predictions.csv."
    assert [row[3] for row in least] == sorted(row[3] for row in least)
    assert {row[0] for row in least} <= {f"p{k}" for k in range(N)}

    more = "--more-labels 'my a-to-label.csv' --target-accuracy 0.99"
    monkeypatch.setattr(sys, "platform", "win32")  # whose shell knows double quotes alone
    page = run(f"fit {given} {more}").json("page.json")
    assert "'" not in "".join(page["steps"][-1][1])
    assert re.match(r"Check the \d+ least sure", page["steps"][-2][0])
    again = shlex.split(page["steps"][-1][1][0])
    assert again[again.index("--more-labels") + 1] == "my a-to-label.csv"
    assert again[-1] == "my a-to-label2.csv"


@pytest.mark.slow
class TestRoundTrip:
    def test_by_id(self) -> None:
        ids = [f"p{k}" for k in range(N)]
        header, *lines = texts("kind", id=ids)
        write_table("a.csv", [header, *lines])
        printed = run(f"suggest {GIVEN} -n 6 --out todo.csv").out
        assert "accuracy by validation on 15 labeled samples: " in printed
        assert "6 samples to label are in todo.csv: fill in its column 'kind'" in printed
        rows = fill("todo.csv", "kind", delimiter=";", encoding="utf-8-sig")  # as programs save it
        assert [*rows[0]] == ["sample", "id", "body", "prediction", "probability", "kind"]
        samples = [int(row["sample"]) for row in rows]
        assert min(samples) >= LABELED
        assert len(set(samples)) == 6
        assert [row["id"] for row in rows] == [f"p{k}" for k in samples]
        assert all(1 / 3 <= float(row["probability"]) <= 1 for row in rows)

        # The rows of the data may have another order: ids tell.
        write_table("a.csv", [header, *lines[::-1]])
        found = run(f"fit {GIVEN} --more-labels todo.csv --out out")
        assert labeled(found) == LABELED + 6
        known = {row["id"]: row["label"] for row in found.rows()}
        assert [known[f"p{k}"] for k in samples] == [KINDS[k % 3] for k in samples]

        # And again, to a second table.
        again = run(f"suggest {GIVEN} --more-labels todo.csv -n 5 --json --out more.jsonl")
        summary = json.loads(again.out)
        assert (summary["suggested"], summary["labeled"]) == (5, LABELED + 6)
        suggested = again.path.read_text(encoding="utf-8").splitlines()
        assert not {json.loads(line)["id"] for line in suggested} & {row["id"] for row in rows}

    def test_the_best_are_those_of_python(self) -> None:
        write_table("a.csv", texts("kind"))
        todo = run(f"suggest {GIVEN} --count 8 --out todo.csv --quiet")
        model = run(f"fit {GIVEN} --out out --quiet").model
        bodies = [row["body"] for row in rows_of("a.csv", marked=False)][LABELED:]
        X = sf.io.load_vectorizer("out").transform(bodies)
        chosen = model.suggest(X, 8) + LABELED
        assert [int(sample) for sample in todo.column("sample")] == chosen.tolist()

    def test_several_labels(self) -> None:
        header, *rows = texts("kinds")
        for row in rows[:LABELED:2]:
            row[-1] += "|all"
        write_table("a.csv", [header, *rows])
        given = "a.csv --text body --labels kinds --label-separator '|' --min-df 1"
        for row in run(f"suggest {given} -n 4 --out todo.csv").rows():
            names, chances = (row[name].split("|") for name in ("prediction", "probability"))
            assert len(names) == len(chances)
        fill("todo.csv", "kinds")
        assert labeled(run(f"fit {given} --more-labels todo.csv --out out")) == LABELED + 4

    def test_as_spreadsheet_programs_write_it(self) -> None:
        header, *rows = texts("kind")
        write_table(
            "a.csv", [header, *([f"{body} \u00a37 caf\u00e9", kind] for body, kind in rows)]
        )
        todo = run(f"suggest {GIVEN} --quiet -n 4 --out todo.csv").path
        assert todo.read_bytes().startswith(b"\xef\xbb\xbf")  # by which Excel knows UTF-8
        for encoding, how in {"cp1252": ";", "utf-8-sig": ","}.items():
            copy = f"{encoding}.csv"
            Path(copy).write_text(todo.read_text(encoding="utf-8-sig"), encoding="utf-8")
            fill(copy, "kind", delimiter=how, encoding=encoding)
            found = run(f"fit {GIVEN} --more-labels {copy} --out out")
            warned = "not utf-8; it is read as cp1252" in found.err
            assert warned == (encoding == "cp1252")
            assert labeled(found) == LABELED + 4

    def test_a_matrix_with_labels_in_a_file(self) -> None:
        rng = np.random.default_rng(0)
        np.save("X.npy", rng.random((N, 6)) + 2 * np.eye(6)[np.arange(N) % 3])
        write_lines("y.txt", [KINDS[k % 3] if k < LABELED else "" for k in range(N)])
        run("suggest X.npy --labels y.txt -n 4 --out todo.csv")
        (first, *_) = fill("todo.csv", "label")
        assert [*first] == ["sample", "prediction", "probability", "label"]
        found = run("fit X.npy --labels y.txt --more-labels todo.csv --out out")
        assert labeled(found) == LABELED + 4


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["a", "a", "c"], None])
def test_ids_that_repeat_name_no_sample(ids: list[str] | None) -> None:
    names = ["text", "kind"] if ids is None else ["id", "text", "kind"]
    rows = [[*((ids[k],) if ids else ()), f"text {k}", "old"] for k in range(3)]
    write_table("a.csv", [names, *rows])
    filled = [["id", "sample", "kind"], ["c", 1, " new "], ["a", 0, ""]]
    write_table("todo.csv", filled, delimiter="\t")
    given = "--labels kind --more-labels todo.csv --min-df 1 --max-df 1 --model ssnmf"
    quick = "--supervision-weight 1 --rank 1 --test-size 0 --max-iter 2"
    found = run(f"fit a.csv {given} {quick} --out out").column("label")
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
    def test_filled_tables(self, filled: list[list[Any]], message: str) -> None:
        columns = {"id": [f"p{k}" for k in range(N)]} if filled[0][0] == "id" else {}
        write_table("a.csv", texts("kind", **columns))
        write_table("todo.csv", filled)
        refused = run(f"fit {GIVEN} --more-labels todo.csv --out out", code=2)
        assert message in refused.error
        assert len(refused.error) < 1000  # of which paths are a part, and no table
        assert not refused.path.exists()

    def test_two_tables_contradict_each_other(self) -> None:
        write_table("a.csv", texts("kind"))
        write_table("1.csv", [["sample", "kind"], [20, "pets;caf\u00e9"], [21, "pets"]])
        write_table("2.csv", [["sample", "kind"], [20, "cafe\u0301; pets"], [21, ""]])
        write_table("3.csv", [["sample", "kind"], [21, "money"]])
        given = f"fit {GIVEN} --label-separator ';' --more-labels 1.csv --more-labels 2.csv"
        run(f"{given} --model ssnmf --rank 2 --max-iter 2 --quiet --out out")
        refused = run(f"{given} --more-labels 3.csv --out no", code=2)
        assert "'pets' in 1.csv, line 3" in refused.error

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("suggest a.csv --text body", "suggest needs --labels"),
            ("suggest a.csv --text body --labels kind --out todo.csv", "exists, and may hold lab"),
            (
                "fit a.csv --text body --rank 2 --more-labels a.csv",
                "--more-labels is for labels; give --labels too",
            ),
            (
                "suggest b.csv --text body --labels prediction --min-df 1 --out new.csv",
                "already has a column 'prediction'",
            ),
            (
                "suggest c.csv --text body --labels kind --min-df 1 --out new.csv",
                "every sample has a label",
            ),
        ],
    )
    def test_places(self, line: str, message: str) -> None:
        write_table("a.csv", texts("kind"))
        write_table("b.csv", texts("prediction"))
        write_table("c.csv", texts("kind")[: LABELED + 1])  # nothing to label
        write_lines("todo.csv", ["here"])
        assert message in run(line, code=2).error

    @pytest.mark.slow
    def test_what_was_left_empty_is_not_suggested_again(self) -> None:
        write_table("a.csv", texts("kind")[: LABELED + 5])
        left = [[LABELED, "pets"], *([LABELED + k, ""] for k in (1, 2)), ["", ""]]
        write_table("todo.csv", [["sample", "kind"], *left])
        found = run(f"suggest {GIVEN} --more-labels todo.csv --out -")
        rows = csv.DictReader(found.out.splitlines())
        assert [row["sample"] for row in rows] == [str(LABELED + 3)]


@pytest.mark.slow
def test_too_few_labels_to_tell() -> None:
    header, *rows = texts("kind")
    for row in rows[6:]:
        row[-1] = ""
    write_table("a.csv", [header, *rows])
    printed = run(f"suggest {GIVEN} --out todo.csv").out
    assert "the accuracy cannot be estimated from too few labels" in printed
    assert "more labels" not in printed.replace("--more-labels", "")
