"""Tables as they come: encodings, delimiters, rows that do not fit, ids."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from absent_packages import hide
from outputs import QUICK_MODEL, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

TEXTS = ["café dog pet", "bank stock price", "dog pet vét", "stock price market"] * 3


def fit(data: Path, out: Path, *more: str, labels: str = "kind") -> int:
    basic = ["--labels", labels, "--rank", "2", "--min-df", "1", "--out", str(out)]
    return main(["fit", str(data), *basic, *QUICK_MODEL, *more])


def written(path: Path, encoding: str = "utf-8", delimiter: str = ",") -> Path:
    lines = ["text,kind", *(f"{text},{'ab'[k % 2]}" for k, text in enumerate(TEXTS))]
    content = ("\r\n".join(lines) + "\r\n").replace(",", delimiter).encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def terms(out: Path) -> set[str]:
    return {row["term"] for row in rows_of(out / "topics.csv")}


HEADS = {
    "spaces": ("text , kind\r\n", ","),
    "quotes after spaces": ('"text", "kind"\r\n', ","),
    "sep=": ("sep=;\r\ntext;kind\r\n", ";"),
    "quoted sep=": ('"sep=,"\ntext,kind\n', ","),
    "SEP= and a mark": ("\ufeffSEP=|\r\ntext| kind\r\n", "|"),
    "sep= of a tab": ("sep=\t\r\ntext\tkind\r\n", "\t"),
}


@pytest.mark.parametrize("head", HEADS)
def test_first_lines_of_spreadsheets(head: str, tmp_path: Path) -> None:
    first, mark = HEADS[head]
    rows = (f"{text}{mark} {'ab'[k % 2]}" for k, text in enumerate(TEXTS))
    (tmp_path / "a.csv").write_text(first + "\n".join(rows), encoding="utf-8", newline="")
    assert fit(tmp_path / "a.csv", tmp_path / "out") == 0
    assert {"café", "vét"} <= terms(tmp_path / "out")


NUMBERS = "f0,f1,f2,kind\n" + "".join(f"{k},{k % 5},{k % 7},{k % 2}\n" for k in range(12))


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "--rank", "2"],
        ["fit", "--labels", "kind"],
        ["fit", "--rank", "2", "--text", "f1"],
        ["choose-rank"],
        ["complete"],
        ["recommend"],
    ],
)
@pytest.mark.parametrize("content", [NUMBERS, "11,12,11,0\n" * 9], ids=["named", "no names"])
def test_tables_of_numbers_are_led_to_matrices(
    command: list[str], content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(content)
    name, *more = command
    assert main([name, str(tmp_path / "a.csv"), *more, "--out", str(tmp_path / "out")]) == 2
    assert "a matrix is read from a .npy, .npz or .mtx file" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--labels", "--features", "--time"])
@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_binary_files_in_place_of_text(
    option: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.eye(6))
    path = tmp_path / f"values.{kind}"
    if kind == "parquet":
        path.write_bytes(b"PAR1\x15\x04\x15\xff")
    else:
        (np.save if kind == "npy" else np.savez)(path, np.arange(6))
    model = ["--model", "dynamic"] if option == "--time" else []
    rank = [] if option == "--labels" else ["--rank", "2"]
    given = ["fit", str(tmp_path / "x.npy"), *rank, option, str(path), *model]
    assert main([*given, "--encoding", "latin-1", "--out", str(tmp_path / "out")]) == 2
    assert f"values.{kind} is a binary file; expected text" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("a.xlsx", b"PK\3\4\x14\0\6\0", []),
        ("a.xlsx", b"PK\3\4\x14\0\6\0", ["--format", "csv"]),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ["--format", "csv"]),
        ("a.parquet", b"PAR1\x15\x04\x15\xff", []),
        ("a.feather", b"ARROW1\0\0", ["--format", "jsonl"]),
        ("a.json", b'[{"text": "a"}]', []),
        ("a.json", b'[{"text": "a"}]', ["--format", "jsonl"]),
        ("a.jsonl", b'[\n{"text": "a"}\n]', []),
    ],
)
@pytest.mark.parametrize("command", ["fit", "complete"])
def test_other_kinds_of_files(
    command: str,
    name: str,
    content: bytes,
    more: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_bytes(content)
    given = [command, str(tmp_path / name), *more, "--out", str(tmp_path / "out")]
    assert main(given) == 2
    err = capsys.readouterr().err
    assert "save a workbook or a data frame as CSV" in err
    assert "a JSON list as JSON Lines" in err


@pytest.mark.parametrize(
    ("head", "cell", "hint"),
    [
        ("A survey", "a", "Is the first line a title?"),
        ("id,text", '"a \\"b\\", c"', "doubled, not escaped by a backslash"),
    ],
)
def test_lines_that_do_not_fit_the_header(
    head: str, cell: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{head}\nid,text\n1,{cell}\n")
    assert fit(path, tmp_path / "out") == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("cell", ['"\\ud800"', '"a\\uDFFF"', "1" * 5000])
def test_what_is_json_but_no_text_or_number(
    cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "a \\ud83d\\ude00 b"}}\n{{"text": {cell}}}\n')
    assert fit(path, tmp_path / "out") == 2
    assert "a.jsonl, line 2: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


class TestEncoding:
    @pytest.mark.parametrize(
        ("encoding", "option"),
        [
            ("utf-8", None),
            ("utf-8-sig", None),
            ("utf-8-sig", "UTF-8"),
            ("latin-1", "latin-1"),
            ("utf-16", "utf-16"),
        ],
    )
    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_known(self, encoding: str, option: str | None, name: str, tmp_path: Path) -> None:
        more = [] if option is None else ["--encoding", option]
        assert fit(written(tmp_path / name, encoding), tmp_path / "out", *more) == 0
        assert {"café", "vét"} <= terms(tmp_path / "out")

    @pytest.mark.parametrize(("encoding", "guess"), [("latin-1", "cp1252"), ("utf-16", "utf-16")])
    def test_other_is_named(
        self, encoding: str, guess: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(written(tmp_path / "a.csv", encoding), tmp_path / "out") == 2
        err = capsys.readouterr().err
        assert "is not UTF-8 text" in err
        assert f"--encoding, perhaps {guess}" in err
        assert not (tmp_path / "out").exists()

    def test_other_files_too(self, tmp_path: Path) -> None:
        table = written(tmp_path / "a.csv", "latin-1")
        words, labels = tmp_path / "words.txt", tmp_path / "labels.txt"
        words.write_bytes("café\n".encode("latin-1"))
        labels.write_bytes("\n".join("ëb"[k % 2] for k in range(12)).encode("latin-1"))
        options = ["--encoding", "latin-1", "--stop-words", str(words), "--text", "text"]
        assert fit(table, tmp_path / "out", *options, labels=str(labels)) == 0
        assert "café" not in terms(tmp_path / "out")
        assert rows_of(tmp_path / "out" / "predictions.csv")[0]["label"] == "ë"


class TestDelimiter:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "mark", "option"),
        [("a.csv", ";", ";"), ("a.csv", "\t", "tab"), ("a.csv", "\t", r"\t"), ("a.tsv", "|", "|")],
    )
    def test_given(self, name: str, mark: str, option: str, tmp_path: Path) -> None:
        table = written(tmp_path / name, delimiter=mark)
        assert fit(table, tmp_path / "out", "--delimiter", option) == 0

    @pytest.mark.slow
    def test_format_over_ending(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        table = written(tmp_path / "a.data", delimiter="\t")
        assert fit(table, tmp_path / "out", "--format", "tsv") == 0
        np.save(tmp_path / "X.npy", np.ones((3, 2)))
        assert fit(tmp_path / "X.npy", tmp_path / "out", "--format", "csv") == 2
        assert "--format is for tables" in capsys.readouterr().err
        assert fit(table, tmp_path / "out", "--format", "jsonl", "--delimiter", ";") == 2
        assert "--delimiter is only used for .csv and .tsv" in capsys.readouterr().err

    def test_hints(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        table = written(tmp_path / "a.csv", delimiter=";")
        assert fit(table, tmp_path / "out") == 2
        assert "Is ';' the delimiter? If so, give --delimiter ';'" in capsys.readouterr().err
        assert main(["fit", str(table), "--rank", "2", "--out", str(tmp_path / "out")]) == 0
        assert "name it with --delimiter" in capsys.readouterr().err
        assert main(["complete", str(table), "--out", str(tmp_path / "new")]) == 2
        assert "Is ';' the delimiter?" in capsys.readouterr().err


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
    def test_bad_ones(
        self, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        table = tmp_path / "a.csv"
        table.write_text(content, encoding="utf-8")
        assert fit(table, tmp_path / "out") == 2
        assert message in capsys.readouterr().err

    def test_blank_lines(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        one = tmp_path / "one.csv"
        one.write_text("text\n" + "\n".join([*TEXTS[:2], "", *TEXTS[2:]]) + "\n", "utf-8")
        labels = tmp_path / "labels.txt"
        labels.write_text("a\nb\n\na\nb\n" + "\n" * 8, "utf-8")
        assert fit(one, tmp_path / "out", labels=str(labels)) == 0
        assert "1 of 13 samples cannot be used (empty text 1; sample 2)" in capsys.readouterr().err
        known = [row["label"] for row in rows_of(tmp_path / "out" / "predictions.csv")]
        assert known == ["a", "b", "", "a", "b", *[""] * 8]
        two = tmp_path / "two.csv"
        two.write_text("text,kind\n\ncat dog,a\n \nstock bank,b\n\n", "utf-8")
        assert main(["predict", str(tmp_path / "out"), str(two), "--out", str(one)]) == 0
        assert [row["sample"] for row in rows_of(one)] == ["0", "1"]

    def test_texts_that_cannot_be_coded(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        odd = {"": "empty text", "n/a": "empty text", " -- ": "empty text", "[none]": "empty text"}
        odd |= {"...": "empty text", "The": "no known word", "dog pet": "", "no dog": ""}
        lines = [f'"{text}",{kind}' for text, kind in zip(odd, ["b", *[""] * 7], strict=True)]
        table, new, out = written(tmp_path / "a.csv"), tmp_path / "new.csv", tmp_path / "out"
        table.write_text(table.read_text("utf-8") + "\n".join([*lines, ""]), "utf-8")
        assert fit(table, out) == 0
        assert (
            "6 of 20 samples cannot be used (empty text 5, no known word 1; sample"
            in capsys.readouterr().err
        )
        new.write_text("\n".join(["text,kind", *lines, ""]), "utf-8")
        assert main(["predict", str(out), str(new), "--out", str(new) + ".csv"]) == 0
        err = capsys.readouterr().err
        assert "6 of 8 samples cannot be used (empty text 5, no known word 1; sample 0, 1" in err
        of_fit = rows_of(out / "predictions.csv")[-8:]
        assert of_fit[0]["label"] == "b"  # is kept
        of_new, names = rows_of(Path(f"{new}.csv")), ("prediction", "probability", "second")
        assert [row["code"] for row in of_fit[:6]] == ["b", *[""] * 5]
        for row, again, why in zip(of_fit, of_new, odd.values(), strict=True):
            for one in (row, again):
                assert one["reason"] == why
                assert [bool(one[name]) for name in names] == [not why] * 3

    @pytest.mark.slow
    def test_few_topics(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(written(tmp_path / "a.csv"), tmp_path / "out") == 0
        assert "below the number of classes" not in capsys.readouterr().err
        assert fit(written(tmp_path / "a.csv"), tmp_path / "out", "--rank", "1") == 0
        assert "--rank 1 is below the number of classes, 2" in capsys.readouterr().err

    def test_nan(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        data = tmp_path / "X.npy"
        np.save(data, np.full((4, 3), np.nan))
        out = str(tmp_path / "out")
        assert main(["fit", str(data), "--rank", "1", "--out", out]) == 2
        assert "all of its entries are NaN" in capsys.readouterr().err
        X = np.random.default_rng(0).random((6, 4))
        X[2] = np.nan
        np.save(data, X)
        assert main(["fit", str(data), "--rank", "1", "--out", out]) == 0
        capsys.readouterr()
        assert main(["predict", out, str(data), "--out", f"{out}/p.csv"]) == 0
        assert "1 of 6 samples cannot be used (no data 1; sample 2)" in capsys.readouterr().err


class TestIds:
    def with_ids(self, path: Path, name: str) -> Path:
        lines = [f"{name},text,kind", *(f"k{k},{t},{'ab'[k % 2]}" for k, t in enumerate(TEXTS))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @pytest.mark.parametrize(
        ("name", "more", "shown"),
        [
            ("id", [], "id"),
            ("key", ["--id", "key"], "key"),
            ("key", [], None),
            ("prediction", ["--id", "prediction"], "id"),
        ],
    )
    def test_kept(self, name: str, more: list[str], shown: str | None, tmp_path: Path) -> None:
        table = self.with_ids(tmp_path / "a.csv", name)
        out = tmp_path / "out"
        assert fit(table, out, "--text", "text", *more) == 0
        new = tmp_path / "p.csv"
        assert main(["predict", str(out), str(table), "--out", str(new), *more]) == 0
        for path in (out / "predictions.csv", new):
            found = rows_of(path)
            if shown is None:
                assert "key" not in found[0]
            else:
                assert [row[shown] for row in found] == [f"k{k}" for k in range(12)]
            assert [row["prediction"] for row in found] == ["a", "b"] * 6

    def test_predict_writes_those_of_the_fit(self, tmp_path: Path) -> None:
        table, out = self.with_ids(tmp_path / "a.csv", "key"), str(tmp_path / "out")
        assert fit(table, tmp_path / "out", "--text", "text", "--id", "key") == 0
        for name, wanted in {"key": True, "name": False}.items():
            new, other = str(tmp_path / "p.csv"), self.with_ids(tmp_path / "b.csv", name)
            assert main(["predict", out, str(other), "--out", new]) == 0
            assert ("key" in rows_of(Path(new))[0]) == wanted
        (tmp_path / "out" / "metrics.json").unlink()  # which the model does not need
        assert main(["predict", out, str(table), "--out", new]) == 0
        assert "key" in rows_of(Path(new))[0]

    def test_is_not_taken_for_the_text(self, tmp_path: Path) -> None:
        table = tmp_path / "a.csv"
        self.with_ids(table, "id")
        table.write_text(table.read_text("utf-8").replace("text", "body"), "utf-8")
        assert fit(table, tmp_path / "out") == 0
        assert "pet" in terms(tmp_path / "out")

    def test_errors(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(written(tmp_path / "a.csv"), tmp_path / "out", "--id", "key") == 2
        assert "no column 'key'" in capsys.readouterr().err
        np.save(tmp_path / "X.npy", np.ones((3, 2)))
        command = ["fit", str(tmp_path / "X.npy"), "--rank", "1", "--out", str(tmp_path / "out")]
        assert main([*command, "--id", "key"]) == 2
        assert "--id names a column of a table" in capsys.readouterr().err


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_json_is_refused(
    opening: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a.jsonl"
    table.write_text('{"text": "dog pet"}\n' + opening * 200_000 + "\n", encoding="utf-8")
    assert main(["fit", str(table), "--rank", "2", "--out", str(tmp_path / "out")]) == 2
    assert "a.jsonl, line 2: lists or objects too deep" in capsys.readouterr().err


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
def test_json_values_that_are_no_cells(
    row: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = [
        {"id": k, "text": text, "kind": "ab"[k % 2]} for k, text in enumerate(TEXTS)
    ]
    rows[3] |= row
    table = tmp_path / "a.jsonl"
    lines = [json.dumps(each) for each in rows]
    table.write_text("\n" + "\n".join(lines), encoding="utf-8")  # a blank line counts
    assert fit(table, tmp_path / "out") == 2
    err = capsys.readouterr().err
    assert "a.jsonl, line 5: " + message in err
    assert len(err) < 250
    assert main(["complete", str(table), "--out", str(tmp_path / "out")]) == 2


def test_without_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hide("pandas", monkeypatch)
    assert fit(written(tmp_path / "a.csv"), tmp_path / "out") == 2
    assert "pandas is missing: python -m pip install 'ssnmf-fast[all]'" in capsys.readouterr().err


@pytest.mark.slow
def test_large_tables_are_read_in_parts_and_predicted_in_blocks(tmp_path: Path) -> None:
    rng, n, m = np.random.default_rng(0), 2500, 2000
    places = np.unique(np.concatenate([rng.choice(n * m, 105_000), np.arange(n) * m + 3]))
    pairs = [(f"u{k // m}", f"i{k % m}", int(1 + k % m % 5)) for k in rng.permutation(places)]
    lines = [json.dumps(dict(zip(("user", "item", "rating"), one, strict=True))) for one in pairs]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"user": "u5", "item": "i0"}']) + "\n")
    rows = [f"{user},{item},{rating}" for user, item, rating in pairs]
    (tmp_path / "a.csv").write_text("\n".join(["user,item,rating", *rows, "u5,i0,"]) + "\n")
    for kind in ("csv", "jsonl"):
        given = ["complete", str(tmp_path / f"a.{kind}"), "--rank", "1", "--test-size", "0"]
        more = ["--top", "3", "--max-iter", "5", "--out", str(tmp_path / kind)]
        assert main([*given, *more]) == 0
    for name in ("highest_predictions.csv", "users.csv", "items.csv", "predictions.csv"):
        first, second = (tmp_path / kind / name for kind in ("csv", "jsonl"))
        assert first.read_bytes() == second.read_bytes()
    out = tmp_path / "csv"
    users, items = (
        {row[kind]: int(row["place"]) for row in rows_of(out / f"{kind}s.csv")}
        for kind in ("user", "item")
    )
    left = sf.load(out / "model.npz").to_dense()
    for user, item, _ in pairs:
        left[users[user], items[item]] = -np.inf
    best = -np.sort(-left, axis=1)[:, :3]
    found = rows_of(out / "highest_predictions.csv")
    assert [row["user"] for row in found] == [user for user in users for _ in range(3)]
    predicted = [left[users[row["user"]], items[row["item"]]] for row in found]
    np.testing.assert_allclose(predicted, best.ravel(), rtol=1e-6)


ROWS = [f"{k},{text},{'ab'[k % 2]}" for k, text in enumerate(TEXTS)]


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".csv.gz", ".tsv crlf"])
@pytest.mark.parametrize("marks", ["both", "starts", "one", "adjacent"])
def test_no_row_vanishes_between_quotation_marks(
    kind: str, marks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, last = (3, 4) if marks == "adjacent" else (3, 6)
    rows = [row.split(",") for row in ROWS]
    rows[first][1] = '"' + rows[first][1]
    if marks != "one":
        cell = 2 if marks in ("both", "adjacent") else 1
        rows[last][cell] = rows[last][cell] + '"' if cell == 2 else '"' + rows[last][cell]
    ending = kind.split()[0]
    mark, line = "\t" if ".tsv" in ending else ",", "\r\n" if "crlf" in kind else "\n"
    content = line.join([mark.join(("id", "text", "kind")), *map(mark.join, rows)]) + line
    data = tmp_path / f"texts{ending}"
    data.write_bytes(gzip.compress(content.encode()) if ending.endswith("gz") else content.encode())
    assert fit(data, tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "line 5: " in error
    assert "--quoting none" in error
    assert fit(data, tmp_path / "out", "--quoting", "none", "--test-size", "0") == 0
    assert len(rows_of(tmp_path / "out" / "predictions.csv")) == len(ROWS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a \\ud83d b", "kind": "a"}', "line 13: half of a character"),
        ('{"text": ' + "1" * 5000 + "}", "line 13: not JSON"),
    ],
)
def test_what_json_cannot_be(
    line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "texts.jsonl"
    rows = [json.dumps({"text": t, "kind": "ab"[k % 2]}) for k, t in enumerate(TEXTS)]
    data.write_text("\n".join([*rows, line]), encoding="utf-8")
    assert fit(data, tmp_path / "out") == 2
    assert message in capsys.readouterr().err


def test_whole_numbers_of_json_are_whole(tmp_path: Path) -> None:
    data, ids = tmp_path / "texts.jsonl", ["1234567.0", "1.5e+2", "1234567890123456789", "7"]
    data.write_text(
        "\n".join(
            f'{{"id": {ids[k] if k < 4 else k + 20}, "text": "{t}", "kind": {k % 2}.0}}'
            for k, t in enumerate(TEXTS)
        ),
        encoding="utf-8",
    )
    assert fit(data, tmp_path / "out", "--test-size", "0") == 0
    rows = rows_of(tmp_path / "out" / "predictions.csv")
    assert [row["id"] for row in rows[:4]] == ["1234567", "150", "1234567890123456789", "7"]
    assert {row["label"] for row in rows} == {"0", "1"}
