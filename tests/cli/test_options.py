"""Options: the texts of the parser agree with the package, and files of options."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast.cli import build_parser, main


def declared(command: str, option: str) -> list[str]:
    """Return the words that an option takes, of which some have a metavar at their end."""
    action = next(one for one in build_parser()._parsers[command]._actions if one.dest == option)
    return list(action.choices or action.metavar.split("|"))


def test_names_agree_with_the_package() -> None:
    """The parser has names of the package as text, as importing them is slow."""
    with pytest.raises(ValueError, match="method must be") as error:
        sf.complete(np.eye(3), method="other")
    assert set(re.findall("'([a-z-]+)'", str(error.value))) - {"other"} == {
        *declared("complete", "method")
    }
    with pytest.raises(ValueError, match="freq") as error:
        sf.DynamicTopics(freq="other").fit(np.eye(3), ["2001", "2002", "2003"])
    for name in declared("fit", "freq")[:-1]:
        assert name in str(error.value)


def test_most_numbers_of_topics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose-rank", "X.npy", "--ranks", "1:1001"]) == 2
    said = re.findall(r"at most (\d+)", capsys.readouterr().err)
    with pytest.raises(ValueError, match=f"at most {said[0]} ranks|{said[0]}"):
        sf.choose_rank(np.eye(3), range(1, 1002))


def test_start_loads_no_package_that_is_slow_to_import() -> None:
    code = """
import sys
from ssnmf_fast.cli import build_parser, main
build_parser().parse_args(["fit", "x.csv", "--rank", "2", "--model", "nmf"])
main(["--version"])
assert not {"scipy", "sklearn", "pandas", "matplotlib"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


CONTENT = {
    "a.json": '{"rank": 3, "max-iter": 7, "ngram": [1, 2], "by": ["x", "y"], "json": true}',
    "a.toml": 'rank = 3\nmax_iter = 7\nngram = "1,2"\nby = ["x", "y"]\njson = true\n',
    "a.yaml": "rank: 3\nmax-iter: 7\nngram: [1, 2]\nby: [x, y]\njson: true\nquiet: false\n",
}


@pytest.mark.parametrize("name", CONTENT)
def test_file_of_options(name: str, tmp_path: Path) -> None:
    pytest.importorskip({"a.toml": "tomllib", "a.yaml": "yaml"}.get(name, "json"))
    path = tmp_path / name
    path.write_text(CONTENT[name], encoding="utf-8")
    read = build_parser().parse_args
    options = read(["fit", "x.csv", "--config", str(path)])
    found = [getattr(options, one) for one in ("rank", "max_iter", "ngram", "by", "json")]
    assert found == [3, 7, (1, 2), ["x", "y"], True]
    assert {"rank", "max_iter", "by"} <= options.given
    # The command line wins.
    options = read(["fit", "x.csv", "--config", str(path), "--rank", "5", "--by", "z"])
    assert [options.rank, options.max_iter, options.by] == [5, 7, ["z"]]


@pytest.mark.parametrize(
    ("command", "content", "message"),
    [
        ("fit", {"lebels": "x"}, "there is no option 'lebels'; perhaps labels"),
        ("fit", {"data": "x"}, "there is no option 'data'"),
        ("predict", {"rank": 3}, "there is no option 'rank'"),
        ("fit", {"rank": 0}, "must be auto, or a whole number of at least 1; got '0'"),
        ("fit", [1], "expected options by name"),
        ("recommend", {"neighbors": "x"}, "--neighbors"),
    ],
)
def test_wrong_files_of_options(
    command: str, content: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    more = ["model"] if command == "predict" else []
    assert main([command, *more, "x.csv", "--config", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"--config {path}: " in err
    assert message in err


def test_unreadable_files_of_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, message in {"a.txt": "expected a .json", "b.json": "cannot be read"}.items():
        (tmp_path / name).write_text("{", encoding="utf-8")
        assert main(["fit", "x.csv", "--config", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert main(["fit", "x.csv", "--config", str(tmp_path / "none.json")]) == 2
    assert "none.json: No such file" in capsys.readouterr().err
