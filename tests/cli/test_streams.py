"""Standard input and output, how much is printed, and what is left after a failure."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import types
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from absent_packages import hide
from outputs import QUICK_MODEL

import ssnmf_fast as sf
from ssnmf_fast import cli
from ssnmf_fast.cli import main

TEXTS = ["cat dog pet", "bank stock price", "dog pet vet", "stock price market"] * 3
HEADER = ["id", "text", "kind"]


def rows() -> list[list[str]]:
    return [[f"n{k}", text, "ab"[k % 2] if k < 8 else ""] for k, text in enumerate(TEXTS)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "posts.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows()])
    return path


def fit(data: Path | str, out: Path | str, *more: str) -> int:
    basic = ["--labels", "kind", "--rank", "2", "--min-df", "1", "--out", str(out)]
    return main(["fit", str(data), *basic, *QUICK_MODEL, *more])


@pytest.fixture
def model(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert fit(table, tmp_path / "model") == 0
    capsys.readouterr()
    return tmp_path / "model"


def give(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """Put bytes on standard input."""
    stream = io.TextIOWrapper(io.BytesIO(content.encode("utf-8")), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stream)


every_command = pytest.mark.parametrize(
    "command",
    [
        "demo",
        "show-config",
        "fit X.npy --out out",
        "predict model.npz X.npy --out Y.csv",
        "complete X.npy --out Y.npy",
    ],
)


class TestStandardInput:
    @pytest.mark.slow
    def test_fit_and_predict(
        self,
        model: Path,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        give(monkeypatch, table.read_text(encoding="utf-8"))
        assert fit("-", tmp_path / "again") == 0
        first, second = (
            (folder / "predictions.csv").read_text() for folder in (model, tmp_path / "again")
        )
        assert first == second
        capsys.readouterr()
        lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
        give(monkeypatch, lines)
        assert main(["predict", str(model), "-", "--format", "jsonl", "--out", "-"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        found = list(csv.DictReader(io.StringIO(captured.out)))
        assert [row["prediction"] for row in found] == ["a", "b"] * 6
        assert "\r" not in captured.out

    def test_ratings(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lines = [f"{u}\t{i}\t{u + i}" for u in range(6) for i in range(5) if (u * i) % 4 != 1]
        give(monkeypatch, "\n".join(["user\titem\trating", *lines]) + "\n")
        quick = ["--rank", "1", "--test-size", "0", "--json", "--format", "tsv"]
        assert main(["complete", "-", "--out", str(tmp_path / "out"), *quick]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert (summary["users"], summary["ratings"]) == (6, len(lines))
        assert summary["out"] == str(tmp_path / "out")
        assert "highest_predictions.csv" in summary["files"]


class TestPredictOut:
    def read(self, path: Path) -> list[dict[str, object]]:
        text = path.read_text(encoding="utf-8" if path.suffix == ".jsonl" else "utf-8-sig")
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines()]
        return list(csv.DictReader(io.StringIO(text)))

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["csv", "jsonl", "CSV"])
    def test_endings(self, ending: str, model: Path, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "deep" / f"p.{ending}"
        assert main(["predict", str(model), str(table), "--out", str(out)]) == 0
        found = self.read(out.rename(out.with_suffix(f".{ending.lower()}")))
        assert list(found[0])[:4] == ["sample", "id", "text", "prediction"]
        assert list(found[0])[4:] == ["probability", "second", "probability a", "probability b"]
        assert [row["id"] for row in found] == [f"n{k}" for k in range(12)]
        assert [row["prediction"] for row in found] == ["a", "b"] * 6
        for row in found:
            scores = [row["probability a"], row["probability b"]]
            assert sum(map(float, scores)) == pytest.approx(1, abs=2e-4)
            assert not any("e" in str(score) for score in scores)

    def test_form_over_ending(
        self, model: Path, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = ["predict", str(model), str(table), "--out-format", "jsonl", "--out"]
        assert main([*command, "-"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[1])["prediction"] == "b"
        assert main([*command, str(tmp_path / "p.txt")]) == 0
        assert len(self.read((tmp_path / "p.txt").rename(tmp_path / "p.jsonl"))) == 12

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("out", "message"),
        [
            ("p.xlsx", "unknown ending '.xlsx'; known are .csv, .jsonl"),
            ("p", "unknown ending ''"),
            (".", "is a folder; expected a file"),
            ("posts.csv", "would replace"),
        ],
    )
    def test_bad_ones(
        self,
        out: str,
        message: str,
        model: Path,
        table: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(table.parent)
        assert main(["predict", str(model), str(table), "--out", out]) == 2
        assert message in capsys.readouterr().err
        assert not Path("-").exists()

    def test_weights(self, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "nmf"
        quick = ["--text", "text", "--rank", "2", "--out", str(out), "--max-iter", "400"]
        assert main(["fit", str(table), *quick, "--tol", "0"]) == 0
        new = tmp_path / "p.csv"
        assert main(["predict", str(out), str(table), "--out", str(new)]) == 0
        for row in self.read(new):
            for name in ("component0", "component1"):
                assert float(str(row[name])) == 0 or float(str(row[name])) > 1e-10


class TestPrinting:
    def test_json_of_fit(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(table, tmp_path / "out", "--json") == 0
        summary = json.loads(capsys.readouterr().out)
        assert (summary["samples"], summary["topics"]) == (12, 2)
        assert set(summary["files"]) == {p.name for p in (tmp_path / "out").iterdir()}

    def test_quiet(self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with table.open("a") as file:
            file.write("n12,!,a\n")  # which a fit that speaks would warn of
        assert fit(table, tmp_path / "out", "--quiet") == 0
        command = ["predict", str(tmp_path / "out"), str(table), "--quiet", "--out"]
        assert main([*command, str(tmp_path / "p.csv")]) == 0
        captured = capsys.readouterr()
        assert captured.out == captured.err == ""
        assert main([*command, "-"]) == 0
        captured = capsys.readouterr()
        assert captured.out.count("\n") == 14
        assert captured.err == ""
        assert fit("none.csv", tmp_path / "out", "--quiet") == 2
        assert "no such file" in capsys.readouterr().err

    def test_one_standard_output(
        self, model: Path, table: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["predict", str(model), str(table), "--out", "-", "--json"]) == 2
        assert "both write to standard output" in capsys.readouterr().err

    @every_command
    def test_exit_codes(
        self, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bugs = KeyError("x"), AssertionError(), ZeroDivisionError("x"), RuntimeError("x")
        bugs += ImportError("x"), RecursionError("x")
        codes: dict[BaseException, int] = dict.fromkeys(bugs, 70)
        codes |= dict.fromkeys((ValueError("x"), OSError("x"), MemoryError()), 2)
        codes |= {KeyboardInterrupt(): 130, BrokenPipeError(): 0}
        real = cli.build_parser().parse_args
        for error, code in codes.items():

            def broken(*_: object, error: BaseException = error) -> None:
                raise error

            def parse(argv: list[str], run: object = broken) -> Namespace:
                return Namespace(**vars(real(argv)) | {"run": run})

            parser = types.SimpleNamespace(parse_args=parse)
            monkeypatch.setattr(cli, "build_parser", lambda parser=parser: parser)
            for more in ([], ["--debug"]):
                assert main([*command.split(), *more]) == code
                shown = "Traceback" in capsys.readouterr().err
                assert shown == (code == 70 or (code == 2 and bool(more)))

    @every_command
    def test_debug_of_every_subcommand(
        self, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def broken(*_: object) -> None:
            raise TypeError("found within")

        real = cli.build_parser().parse_args
        read = {"parse_args": lambda argv: Namespace(**vars(real(argv)) | {"run": broken})}
        monkeypatch.setattr(cli, "build_parser", lambda: types.SimpleNamespace(**read))
        assert main(command.split()) == 2
        short = capsys.readouterr().err
        assert short == "ssnmf-fast: error: found within (--debug shows where this arises)\n"
        assert main([*command.split(), "--debug"]) == 2
        long = capsys.readouterr().err
        assert long.startswith("Traceback")
        assert "in broken" in long

    def test_debug(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        np.save(tmp_path / "X.npy", -np.ones((4, 3)))
        command = ["fit", str(tmp_path / "X.npy"), "--rank", "1", "--out", str(tmp_path / "out")]
        assert main(command) == 2
        short = capsys.readouterr().err
        assert short.count("\n") == 1
        assert "--debug shows where" in short
        assert main([*command, "--debug"]) == 2
        long = capsys.readouterr().err
        assert "Traceback (most recent call last)" in long
        assert "error: Negative values" in long

        def broken(*_: object, **__: object) -> None:
            raise AttributeError("a bug")

        monkeypatch.setattr(sf.NMF, "fit", broken)
        assert main(command) == 70  # not taken for bad input
        assert "Traceback" in capsys.readouterr().err


def test_what_standard_output_cannot_hold(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text(table.read_text("utf-8").replace(",a\n", ",ä\n"), encoding="utf-8")
    odd, out = tmp_path / os.fsdecode(b"posts\xe9.csv"), tmp_path / "out"  # a name that is no text
    try:
        table.rename(odd)
    except OSError:
        odd = table
    for more, found in {("--json",): '"\\u00e4"', (): "\\xe4"}.items():
        stream = io.TextIOWrapper(io.BytesIO(), "ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        assert fit(odd, out, *more) == 0
        assert found in stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert "posts" in json.loads((out / "metrics.json").read_text("utf-8"))["settings"]["data"]
    assert main(["predict", str(out), str(odd), "--out", "-"]) == 2
    assert "standard output is ascii, which has no '\\xe4'; set PYTHON" in capsys.readouterr().err


class TestFolder:
    def test_none_for_standard_output(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(table, "-") == 2
        assert main(["complete", str(table), "--out", "-", "--rating", "id"]) == 2
        assert main(["demo", "--out", "-"]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert "--out needs a folder" in lines[0]
        assert "--out needs a folder" in lines[2]
        assert not Path("-").exists()

    def test_nothing_is_left_of_a_failure(
        self, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(sf, "complete", interrupted)
        monkeypatch.setattr(sf.SSNMFClassifier, "fit", interrupted)
        ratings = tmp_path / "r.csv"
        ratings.write_text("user,item,rating\na,b,1\nc,d,2\na,d,4\n", encoding="utf-8")
        np.save(tmp_path / "X.npy", [[1.0, np.nan], [2.0, 3.0]])
        before = sorted(tmp_path.iterdir())
        deep = str(tmp_path / "new" / "deep")
        assert fit(table, deep) == 130
        assert main(["complete", str(ratings), "--out", deep]) == 130
        matrix = ["complete", str(tmp_path / "X.npy"), "--test-size", "0"]
        assert main([*matrix, "--out", f"{deep}/completed.npy"]) == 130
        assert sorted(tmp_path.iterdir()) == before
        (tmp_path / "kept").mkdir()  # not ours: it stays
        assert fit(table, tmp_path / "kept") == 130
        assert (tmp_path / "kept").is_dir()


class TestClosed:
    """Standard streams that are closed, as by `>&-` of a shell, are None."""

    @pytest.mark.slow
    def test_output(
        self,
        model: Path,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        assert fit(table, tmp_path / "out") == 0
        assert (tmp_path / "out" / "predictions.csv").is_file()
        assert main(["show-config"]) == 0
        assert capsys.readouterr().err == ""
        assert main(["predict", str(model), str(table), "--out", "-"]) == 2
        assert fit(table, tmp_path / "out", "--json") == 2
        assert sys.stdout is None
        first, second = capsys.readouterr().err.splitlines()
        assert "standard output is closed, and --out - writes to it" in first
        assert "standard output is closed, and --json writes to it" in second

    def test_input(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert fit("-", tmp_path / "out") == 2
        assert "standard input is closed; give a file in place of -" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    def test_errors(
        self,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(sys, "stderr", None)
        assert fit(table, tmp_path / "out") == 0
        capsys.readouterr()
        assert fit("none.csv", tmp_path / "out") == 2
        assert capsys.readouterr().out == ""


def test_shell_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    stub = types.ModuleType("argcomplete")
    monkeypatch.setattr(stub, "autocomplete", seen.append, raising=False)
    monkeypatch.setitem(sys.modules, "argcomplete", stub)
    monkeypatch.delenv("_ARGCOMPLETE", raising=False)
    assert main(["--version"]) == 0
    assert not seen
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert main(["--version"]) == 0
    assert [parser.prog for parser in seen] == ["ssnmf-fast"]
    hide("argcomplete", monkeypatch)
    assert cli.main(["--version"]) == 0
