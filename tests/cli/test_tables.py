"""Tables as they come: encodings, delimiters, rows that do not fit, ids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import QUICK_MODEL, Result, run, write_json, write_lines
from helpers.absent_packages import hide

TEXTS = ["café dog pet", "bank stock price", "dog pet vét", "stock price market"] * 3


ROWS = [f"{k},{text},{'ab'[k % 2]}" for k, text in enumerate(TEXTS)]


def fit(data: object, more: str = "", labels: object = "kind", code: int = 0) -> Result:
    basic = f"--labels {labels} --rank 2 --min-df 1 --out out {QUICK_MODEL}"
    return run(f"fit {data} {basic} {more}", code=code)


def written(name: str = "a.csv", encoding: str = "utf-8", delimiter: str = ",") -> Path:
    lines = ["text,kind", *(f"{text},{'ab'[k % 2]}" for k, text in enumerate(TEXTS))]
    return write_lines(name, [f"{line}\r".replace(",", delimiter) for line in lines], encoding)


def top_terms(found: Result) -> set[str]:
    return set(found.column("term", "topics.csv"))


HEADS = {
    "spaces": ("text , kind\r\n", ","),
    "quotes after spaces": ('"text", "kind"\r\n', ","),
    "sep=": ("sep=;\r\ntext;kind\r\n", ";"),
    "quoted sep=": ('"sep=,"\ntext,kind\n', ","),
    "SEP= and a mark": ("\ufeffSEP=|\r\ntext| kind\r\n", "|"),
    "sep= of a tab": ("sep=\t\r\ntext\tkind\r\n", "\t"),
}


@pytest.mark.parametrize("head", HEADS)
def test_first_lines_of_spreadsheets(head: str) -> None:
    first, mark = HEADS[head]
    rows = (f"{text}{mark} {'ab'[k % 2]}" for k, text in enumerate(TEXTS))
    Path("a.csv").write_text(first + "\n".join(rows), encoding="utf-8", newline="")
    assert {"café", "vét"} <= top_terms(fit("a.csv"))


NUMBERS = "f0,f1,f2,kind\n" + "".join(f"{k},{k % 5},{k % 7},{k % 2}\n" for k in range(12))


@pytest.mark.parametrize(
    "command",
    [
        *("fit --rank 2", "fit --labels kind", "fit --rank 2 --text f1"),
        *("choose-rank", "complete", "recommend"),
    ],
)
@pytest.mark.parametrize("content", [NUMBERS, "11,12,11,0\n" * 9], ids=["named", "no names"])
def test_tables_of_numbers_are_led_to_matrices(command: str, content: str) -> None:
    Path("a.csv").write_text(content, encoding="utf-8")
    name, _, more = command.partition(" ")
    refused = run(f"{name} a.csv {more} --out out", code=2)
    assert "a matrix is read from a .npy, .npz or .mtx file" in refused.err


@pytest.mark.parametrize("option", ["--labels", "--features", "--time"])
@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_binary_files_in_place_of_text(option: str, kind: str) -> None:
    np.save("x.npy", np.eye(6))
    path = Path(f"values.{kind}")
    if kind == "parquet":
        path.write_bytes(b"PAR1\x15\x04\x15\xff")
    else:
        (np.save if kind == "npy" else np.savez)(path, np.arange(6))
    more = {"--labels": "", "--features": "--rank 2", "--time": "--rank 2 --model dynamic"}[option]
    refused = run(f"fit x.npy {option} {path} {more} --encoding latin-1 --out out", code=2)
    assert f"values.{kind} is a binary file; expected text" in refused.err


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("a.xlsx", b"PK\3\4\x14\0\6\0", ""),
        ("a.xlsx", b"PK\3\4\x14\0\6\0", "--format csv"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "--format csv"),
        ("a.parquet", b"PAR1\x15\x04\x15\xff", ""),
        ("a.feather", b"ARROW1\0\0", "--format jsonl"),
        ("a.json", b'[{"text": "a"}]', ""),
        ("a.json", b'[{"text": "a"}]', "--format jsonl"),
        ("a.jsonl", b'[\n{"text": "a"}\n]', ""),
    ],
)
@pytest.mark.parametrize("command", ["fit", "complete"])
def test_other_kinds_of_files(command: str, name: str, content: bytes, more: str) -> None:
    Path(name).write_bytes(content)
    err = run(f"{command} {name} {more} --out out", code=2).err
    assert "save a workbook or a data frame as CSV" in err
    assert "a JSON list as JSON Lines" in err


@pytest.mark.parametrize(
    ("head", "cell", "hint"),
    [
        ("A survey", "a", "Is the first line a title?"),
        ("id,text", '"a \\"b\\", c"', "doubled, not escaped by a backslash"),
    ],
)
def test_lines_that_do_not_fit_the_header(head: str, cell: str, hint: str) -> None:
    assert hint in fit(write_lines("a.csv", [head, "id,text", f"1,{cell}"]), code=2).err


class TestEncoding:
    @pytest.mark.parametrize(
        ("encoding", "option"),
        [
            ("utf-8", ""),
            ("utf-8-sig", ""),
            ("utf-8-sig", "--encoding UTF-8"),
            ("latin-1", "--encoding latin-1"),
            ("utf-16", "--encoding utf-16"),
        ],
    )
    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_known(self, encoding: str, option: str, name: str) -> None:
        assert {"café", "vét"} <= top_terms(fit(written(name, encoding), option))

    @pytest.mark.parametrize(("encoding", "guess"), [("latin-1", "cp1252"), ("utf-16", "utf-16")])
    def test_other_is_named(self, encoding: str, guess: str) -> None:
        refused = fit(written(encoding=encoding), code=2)
        assert "is not UTF-8 text" in refused.err
        assert f"--encoding, perhaps {guess}" in refused.err
        assert not refused.path.exists()

    def test_other_files_too(self) -> None:
        table = written(encoding="latin-1")
        words = write_lines("words.txt", ["café"], "latin-1")
        labels = write_lines("labels.txt", "ëb" * 6, "latin-1")
        options = f"--encoding latin-1 --stop-words {words} --text text"
        found = fit(table, options, labels)
        assert "café" not in top_terms(found)
        assert found.column("label")[0] == "ë"


class TestDelimiter:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "mark", "option"),
        [("a.csv", ";", ";"), ("a.csv", "\t", "tab"), ("a.csv", "\t", r"\t"), ("a.tsv", "|", "|")],
    )
    def test_given(self, name: str, mark: str, option: str) -> None:
        fit(written(name, delimiter=mark), f"--delimiter '{option}'")

    @pytest.mark.slow
    def test_format_over_ending(self) -> None:
        table = written("a.data", delimiter="\t")
        fit(table, "--format tsv")
        np.save("X.npy", np.ones((3, 2)))
        assert "--format is for tables" in fit("X.npy", "--format csv", code=2).err
        refused = fit(table, "--format jsonl --delimiter ';'", code=2)
        assert "--delimiter is only used for .csv and .tsv" in refused.err

    def test_hints(self) -> None:
        table = written(delimiter=";")
        assert "Is ';' the delimiter? If so, give --delimiter ';'" in fit(table, code=2).err
        assert "name it with --delimiter" in run(f"fit {table} --rank 2 --out out").err
        assert "Is ';' the delimiter?" in run(f"complete {table} --out new", code=2).err


class TestRows:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("text;kind\ncat, dog;a\n", "names 1. Is ';' the delimiter? If so, give --delimiter"),
            ("text,kind\ncat,a\ndog\n", "line 3: 1 cell between delimiters ','; the first line"),
            ("text,kind\n\ncat,a\ndog, mat,a\n", "line 4: 3 cells"),
            ('text,kind\ncat,a\n"dog,a\ncow,b\n', "line 3: 1 cell"),
            ('text,kind\ncat,a\n"dog,a\ncow,b\n', "is a quotation mark left open?"),
            ("\ntext,kind,text\ncat,a,b\n", "line 2: two columns are called 'text'"),
        ],
    )
    def test_bad_ones(self, content: str, message: str) -> None:
        Path("a.csv").write_text(content, encoding="utf-8")
        assert message in fit("a.csv", code=2).err

    def test_blank_lines(self) -> None:
        table = write_lines("one.csv", ["text", *TEXTS[:2], "", *TEXTS[2:]])
        found = fit(table, labels=write_lines("labels.txt", ["a", "b", "", "a", "b", *[""] * 8]))
        assert "1 of 13 samples cannot be used (empty text 1; sample 2)" in found.err
        assert found.column("label") == ["a", "b", "", "a", "b", *[""] * 8]
        two = write_lines("two.csv", ["text,kind", "", "cat dog,a", " ", "stock bank,b", ""])
        assert run(f"predict out {two} --out new.csv").column("sample") == ["0", "1"]

    def test_texts_that_cannot_be_coded(self) -> None:
        odd = {"": "empty text", "n/a": "empty text", " -- ": "empty text", "[none]": "empty text"}
        odd |= {"...": "empty text", "The": "no known word", "dog pet": "", "no dog": ""}
        lines = [f'"{text}",{kind}' for text, kind in zip(odd, ["b", *[""] * 7], strict=True)]
        table = written()
        table.write_text(table.read_text("utf-8") + "\n".join([*lines, ""]), "utf-8")
        fitted = fit(table)
        what = "(empty text 5, no known word 1; sample"
        assert f"6 of 20 samples cannot be used {what}" in fitted.err
        new = run("predict --out p.csv out", write_lines("new.csv", ["text,kind", *lines]))
        assert f"6 of 8 samples cannot be used {what} 0, 1" in new.err
        of_fit, names = fitted.rows()[-8:], ("prediction", "probability", "second")
        assert of_fit[0]["label"] == "b"  # is kept
        assert [row["code"] for row in of_fit[:6]] == ["b", *[""] * 5]
        for row, again, why in zip(of_fit, new.rows(), odd.values(), strict=True):
            for one in (row, again):
                assert one["reason"] == why
                assert [bool(one[name]) for name in names] == [not why] * 3

    @pytest.mark.slow
    def test_few_topics(self) -> None:
        assert "below the number of classes" not in fit(written()).err
        assert "--rank 1 is below the number of classes, 2" in fit("a.csv", "--rank 1").err

    def test_nan(self) -> None:
        np.save("X.npy", np.full((4, 3), np.nan))
        refused = run("fit X.npy --rank 1 --out out", code=2)
        assert "all of its entries are NaN" in refused.err
        X = np.random.default_rng(0).random((6, 4))
        X[2] = np.nan
        np.save("X.npy", X)
        run("fit X.npy --rank 1 --out out")
        new = run("predict out X.npy --out out/p.csv")
        assert "1 of 6 samples cannot be used (no data 1; sample 2)" in new.err


class TestIds:
    def with_ids(self, name: str = "key", path: str = "a.csv") -> Path:
        return write_lines(path, [f"{name},text,kind", *(f"k{row}" for row in ROWS)])

    @pytest.mark.parametrize(
        ("name", "more", "shown"),
        [
            ("id", "", "id"),
            ("key", "--id key", "key"),
            ("key", "", None),
            ("prediction", "--id prediction", "id"),
        ],
    )
    def test_kept(self, name: str, more: str, shown: str | None) -> None:
        table = self.with_ids(name)
        for found in (
            fit(table, f"--text text {more}"),
            run(f"predict out {table} --out p.csv {more}"),
        ):
            if shown is None:
                assert "key" not in found.rows()[0]
            else:
                assert found.column(shown) == [f"k{k}" for k in range(12)]
            assert found.column("prediction") == ["a", "b"] * 6

    def test_predict_writes_those_of_the_fit(self) -> None:
        table = self.with_ids()
        fit(table, "--text text --id key")
        for name, wanted in {"key": True, "name": False}.items():
            new = run("predict out --out p.csv", self.with_ids(name, "b.csv"))
            assert ("key" in new.rows()[0]) == wanted
        Path("out/metrics.json").unlink()  # which the model does not need
        assert "key" in run(f"predict out {table} --out p.csv").rows()[0]

    def test_is_not_taken_for_the_text(self) -> None:
        table = self.with_ids("id")
        table.write_text(table.read_text("utf-8").replace("text", "body"), "utf-8")
        assert "pet" in top_terms(fit(table))

    def test_errors(self) -> None:
        assert "no column 'key'" in fit(written(), "--id key", code=2).err
        np.save("X.npy", np.ones((3, 2)))
        refused = run("fit X.npy --rank 1 --out out --id key", code=2)
        assert "--id names a column of a table" in refused.err


GOOD = [{"text": text, "kind": "ab"[k % 2]} for k, text in enumerate(TEXTS)]
TWO = [{"text": "a \U0001f600 b"}]


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        (TWO, '{"text": "\\ud800"}', "line 2: half of a character"),
        (TWO, '{"text": "a\\uDFFF"}', "line 2: half of a character"),
        (GOOD, '{"text": "a \\ud83d b", "kind": "a"}', "line 13: half of a character"),
        (TWO, '{"text": ' + "1" * 5000 + "}", "line 2: not JSON"),
        (GOOD, '{"text": ' + "1" * 5000 + "}", "line 13: not JSON"),
        (TWO, "[" * 200_000, "line 2: lists or objects too deep"),
        (TWO, '{"a":' * 200_000, "line 2: lists or objects too deep"),
    ],
    ids=lambda value: value[-20:] if isinstance(value, str) else len(value),
)
def test_what_is_no_json(rows: list[object], line: str, message: str) -> None:
    write_lines("a.jsonl", [*map(json.dumps, rows), line])
    refused = fit("a.jsonl", code=2)
    assert f"a.jsonl, {message}" in refused.err
    assert not refused.path.exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kind": {"x": 1}}, "column 'kind' holds an object, {\"x\": 1}; expected a text or a"),
        ({"kind": ["a", {}]}, "column 'kind' holds an object, {}; expected a text or a number, or"),
        ({"kind": ["a", ["b"]]}, "column 'kind' holds a list, [\"b\"]; expected"),
        ({"text": ["w"] * 50}, "column 'text' holds a list"),
        ({"id": {"k": 2}}, "column 'id' holds an object"),
    ],
)
def test_json_values_that_are_no_cells(row: dict[str, object], message: str) -> None:
    rows = [{"id": k, **one, **(row if k == 3 else {})} for k, one in enumerate(GOOD)]
    write_lines("a.jsonl", ["", *map(json.dumps, rows)])  # a blank line counts
    err = fit("a.jsonl", code=2).err
    assert "a.jsonl, line 5: " + message in err
    assert len(err) < 250
    run("complete a.jsonl --out out", code=2)


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    hide("pandas", monkeypatch)
    refused = fit(written(), code=2)
    assert "pandas is missing: python -m pip install 'ssnmf-fast[cli]'" in refused.err


@pytest.mark.slow
def test_large_tables_are_read_in_parts_and_predicted_in_blocks() -> None:
    rng, n, m = np.random.default_rng(0), 2500, 2000
    places = np.unique(np.concatenate([rng.choice(n * m, 105_000), np.arange(n) * m + 3]))
    heads = ("user", "item", "rating")
    pairs = [(f"u{k // m}", f"i{k % m}", int(1 + k % m % 5)) for k in rng.permutation(places)]
    rows = [*(dict(zip(heads, one, strict=True)) for one in pairs), {"user": "u5", "item": "i0"}]
    write_json("a.jsonl", rows)
    write_lines("a.csv", ["user,item,rating", *(f"{u},{i},{r}" for u, i, r in pairs), "u5,i0,"])
    given = "--rank 1 --test-size 0 --top 3 --max-iter 5"
    found, other = (run(f"complete a.{kind} {given} --out {kind}") for kind in ("csv", "jsonl"))
    for name in ("highest_predictions.csv", "users.csv", "items.csv", "predictions.csv"):
        assert (found.path / name).read_bytes() == (other.path / name).read_bytes()
    users, items = (
        {row[kind]: int(row["place"]) for row in found.rows(f"{kind}s.csv")}
        for kind in ("user", "item")
    )
    left = found.model.to_dense()
    for user, item, _ in pairs:
        left[users[user], items[item]] = -np.inf
    best = -np.sort(-left, axis=1)[:, :3]
    rows = found.rows("highest_predictions.csv")
    assert [row["user"] for row in rows] == [user for user in users for _ in range(3)]
    predicted = [left[users[row["user"]], items[row["item"]]] for row in rows]
    np.testing.assert_allclose(predicted, best.ravel(), rtol=1e-6)


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".csv.gz", ".tsv crlf"])
@pytest.mark.parametrize("marks", ["both", "starts", "one", "adjacent"])
def test_no_row_vanishes_between_quotation_marks(kind: str, marks: str) -> None:
    first, last = (3, 4) if marks == "adjacent" else (3, 6)
    rows = [row.split(",") for row in ROWS]
    rows[first][1] = '"' + rows[first][1]
    if marks != "one":
        cell = 2 if marks in ("both", "adjacent") else 1
        rows[last][cell] = rows[last][cell] + '"' if cell == 2 else '"' + rows[last][cell]
    ending = kind.split()[0]
    mark, end = "\t" if ".tsv" in ending else ",", "\r" if "crlf" in kind else ""
    lines = [mark.join(row) + end for row in (("id", "text", "kind"), *rows)]
    data = write_lines(f"texts{ending}", lines)
    error = fit(data, code=2).err
    assert "line 5: " in error
    assert "--quoting none" in error
    assert len(fit(data, "--quoting none --test-size 0").rows()) == len(ROWS)


def test_whole_numbers_of_json_are_whole() -> None:
    ids = ["1234567.0", "1.5e+2", "1234567890123456789", "7", *range(24, 32)]
    lines = [
        f'{{"id": {one}, "text": "{text}", "kind": {k % 2}.0}}'
        for k, (one, text) in enumerate(zip(ids, TEXTS, strict=True))
    ]
    found = fit(write_lines("texts.jsonl", lines), "--test-size 0")
    assert found.column("id")[:4] == ["1234567", "150", "1234567890123456789", "7"]
    assert set(found.column("label")) == {"0", "1"}
