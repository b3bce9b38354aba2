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
from typing import Any

import numpy as np
import pytest
from command import QUICK_MODEL, Result, run, write_lines, write_table
from helpers.absent_packages import hide

import ssnmf_fast as sf
from ssnmf_fast import cli
from ssnmf_fast.cli import main

TEXTS = ["cat dog pet", "bank stock price", "dog pet vet", "stock price market"] * 3
HEADER = ["id", "text", "kind"]


@pytest.fixture
def table() -> Path:
    rows = [[f"n{k}", text, "ab"[k % 2] if k < 8 else ""] for k, text in enumerate(TEXTS)]
    return write_table("posts.csv", [HEADER, *rows])


def fit(data: object, out: object = "out", more: str = "", **how: Any) -> Result:
    basic = f"--labels kind --rank 2 --min-df 1 {QUICK_MODEL} {more}"
    return run(f"fit {basic}", data, "--out", out, **how)


@pytest.fixture
def model(table: Path) -> Result:
    return fit(table, "model")


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
        self, model: Result, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        give(monkeypatch, table.read_text(encoding="utf-8"))
        assert fit("-", "again").read("predictions.csv") == model.read("predictions.csv")
        give(monkeypatch, "".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
        found = run("predict model - --format jsonl --out -")
        assert found.err == ""
        rows = csv.DictReader(io.StringIO(found.out))
        assert [row["prediction"] for row in rows] == ["a", "b"] * 6
        assert "\r" not in found.out

    def test_ratings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lines = [f"{u}\t{i}\t{u + i}" for u in range(6) for i in range(5) if (u * i) % 4 != 1]
        give(monkeypatch, "\n".join(["user\titem\trating", *lines]) + "\n")
        found = run("complete - --out out --rank 1 --test-size 0 --json --format tsv")
        summary = json.loads(found.out)
        assert (summary["users"], summary["ratings"]) == (6, len(lines))
        assert summary["out"] == "out"
        assert "highest_predictions.csv" in summary["files"]


class TestPredictOut:
    def read(self, path: Path) -> list[dict[str, object]]:
        text = path.read_text(encoding="utf-8" if path.suffix == ".jsonl" else "utf-8-sig")
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines()]
        return list(csv.DictReader(io.StringIO(text)))

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["csv", "jsonl", "CSV"])
    def test_endings(self, ending: str, model: Result, table: Path) -> None:
        out = run(f"predict model {table} --out deep/p.{ending}").path
        found = self.read(out.rename(out.with_suffix(f".{ending.lower()}")))
        assert list(found[0])[:4] == ["sample", "id", "text", "prediction"]
        assert list(found[0])[4:] == ["probability", "second", "probability a", "probability b"]
        assert [row["id"] for row in found] == [f"n{k}" for k in range(12)]
        assert [row["prediction"] for row in found] == ["a", "b"] * 6
        for row in found:
            scores = [row["probability a"], row["probability b"]]
            assert sum(map(float, scores)) == pytest.approx(1, abs=2e-4)
            assert not any("e" in str(score) for score in scores)

    def test_form_over_ending(self, model: Result, table: Path) -> None:
        command = f"predict model {table} --out-format jsonl --out"
        assert json.loads(run(f"{command} -").out.splitlines()[1])["prediction"] == "b"
        assert len(self.read(run(f"{command} p.txt").path.rename("p.jsonl"))) == 12

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
    def test_bad_ones(self, out: str, message: str, model: Result, table: Path) -> None:
        assert message in run(f"predict model {table} --out {out}", code=2).err
        assert not Path("-").exists()

    def test_weights(self, table: Path) -> None:
        run(f"fit {table} --text text --rank 2 --out nmf --max-iter 400 --tol 0")
        for row in run(f"predict nmf {table} --out p.csv").rows():
            for name in ("component0", "component1"):
                assert float(row[name]) == 0 or float(row[name]) > 1e-10


class TestPrinting:
    def test_json_of_fit(self, table: Path) -> None:
        found = fit(table, more="--json")
        summary = json.loads(found.out)
        assert (summary["samples"], summary["topics"]) == (12, 2)
        assert set(summary["files"]) == found.files

    def test_quiet(self, table: Path) -> None:
        with table.open("a", encoding="utf-8") as file:
            file.write("n12,!,a\n")  # which a fit that speaks would warn of
        command = f"predict out {table} --quiet --out"
        for found in (fit(table, more="--quiet"), run(f"{command} p.csv")):
            assert found.out == found.err == ""
        found = run(f"{command} -")
        assert found.out.count("\n") == 14
        assert found.err == ""
        assert "no such file" in fit("none.csv", more="--quiet", code=2).err

    def test_one_standard_output(self, model: Result, table: Path) -> None:
        refused = run(f"predict model {table} --out - --json", code=2)
        assert "both write to standard output" in refused.err

    @every_command
    def test_exit_codes(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
                shown = "Traceback" in run(command, *more, code=code).err
                assert shown == (code == 70 or (code == 2 and bool(more)))

    @every_command
    def test_debug_of_every_subcommand(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise TypeError("found within")

        real = cli.build_parser().parse_args
        read = {"parse_args": lambda argv: Namespace(**vars(real(argv)) | {"run": broken})}
        monkeypatch.setattr(cli, "build_parser", lambda: types.SimpleNamespace(**read))
        short, long = run(command, code=2).err, run(f"{command} --debug", code=2).err
        assert short == "ssnmf-fast: error: found within (--debug shows where this arises)\n"
        assert long.startswith("Traceback")
        assert "in broken" in long

    def test_debug(self, monkeypatch: pytest.MonkeyPatch) -> None:
        np.save("X.npy", -np.ones((4, 3)))
        command = "fit X.npy --rank 1 --out out"
        assert "--debug shows where" in run(command, code=2).error
        long = run(f"{command} --debug", code=2).err
        assert "Traceback (most recent call last)" in long
        assert "error: Negative values" in long

        def broken(*_: object, **__: object) -> None:
            raise AttributeError("a bug")

        monkeypatch.setattr(sf.NMF, "fit", broken)
        assert "Traceback" in run(command, code=70).err  # not taken for bad input


def test_what_standard_output_cannot_hold(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table.write_text(table.read_text("utf-8").replace(",a\n", ",ä\n"), encoding="utf-8")
    odd = Path(os.fsdecode(b"posts\xe9.csv"))  # a name that is no text
    try:
        table.rename(odd)
    except OSError:
        odd = table
    for more, found in {"--json": '"\\u00e4"', "": "\\xe4"}.items():
        fitted = fit(odd, more=more, encoding="ascii")
        assert found in fitted.out
    assert "posts" in fitted.json()["settings"]["data"]
    refused = run("predict out --out -", odd, encoding="ascii", code=2)
    assert "standard output is ascii, which has no '\\xe4'; set PYTHON" in refused.err


class TestFolder:
    def test_none_for_standard_output(self, table: Path) -> None:
        for line in (f"fit {table} --labels kind", "demo"):
            assert "--out needs a folder" in run(f"{line} --out -", code=2).error
        run(f"complete {table} --out - --rating id", code=2)
        assert not Path("-").exists()

    def test_nothing_is_left_of_a_failure(
        self, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(sf, "complete", interrupted)
        monkeypatch.setattr(sf.SSNMFClassifier, "fit", interrupted)
        ratings = write_lines("r.csv", ["user,item,rating", "a,b,1", "c,d,2", "a,d,4"])
        np.save("X.npy", [[1.0, np.nan], [2.0, 3.0]])
        before = sorted(Path().iterdir())
        fit(table, "new/deep", code=130)
        run(f"complete {ratings} --out new/deep", code=130)
        run("complete X.npy --test-size 0 --out new/deep/completed.npy", code=130)
        assert sorted(Path().iterdir()) == before
        Path("kept").mkdir()  # not ours: it stays
        fit(table, "kept", code=130)
        assert Path("kept").is_dir()


class TestClosed:
    """Standard streams that are closed, as by `>&-` of a shell, are None."""

    @pytest.mark.slow
    def test_output(self, model: Result, table: Path) -> None:
        assert "predictions.csv" in fit(table, closed="stdout").files
        assert run("show-config", closed="stdout").err == ""
        first = run(f"predict model {table} --out -", closed="stdout", code=2).error
        assert "standard output is closed, and --out - writes to it" in first
        second = fit(table, more="--json", closed="stdout", code=2).error
        assert "standard output is closed, and --json writes to it" in second

    def test_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        refused = fit("-", code=2)
        assert "standard input is closed; give a file in place of -" in refused.err
        assert not refused.path.exists()

    def test_errors(self, table: Path) -> None:
        fit(table, closed="stderr")
        assert fit("none.csv", closed="stderr", code=2).out == ""


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
