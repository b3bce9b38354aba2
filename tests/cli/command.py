"""The command, run in this process: what it prints, and what it writes; and files to give it."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import ssnmf_fast as sf
from ssnmf_fast.cli import main

# Options of a quick model with labels, for tests of what is read and written.
QUICK_MODEL = "--model ssnmf --supervision-weight 1 --readout joint --max-iter 50 --tol 0"


@dataclass(frozen=True)
class Result:
    """What a run has printed, and ``path``, the folder or file that ``--out`` names."""

    out: str
    err: str
    path: Path

    @property
    def error(self) -> str:
        """Standard error, which must be one line."""
        assert self.err.startswith("ssnmf-fast: error: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}

    def rows(self, name: str = "predictions.csv") -> list[dict[str, str]]:
        """Rows of a table in the folder, or of the file, by column."""
        return rows_of(self.path / name if self.path.is_dir() else self.path)

    def column(self, head: str, name: str = "predictions.csv") -> list[str]:
        return [row[head] for row in self.rows(name)]

    def read(self, name: str = "report.html") -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def json(self, name: str = "metrics.json") -> Any:
        return json.loads(self.read(name))

    @property
    def measures(self) -> dict[str, float]:
        return dict(self.json()["measures"])

    @property
    def terms(self) -> set[str]:
        """All terms of the vectorizer, each of which is there once."""
        terms = self.json("vectorizer.json")["terms"]
        assert len(set(terms)) == len(terms)
        return set(terms)

    @property
    def model(self) -> Any:
        return sf.load(self.path)


def run(
    line: str, *more: object, code: int = 0, encoding: str = "utf-8", closed: str = ""
) -> Result:
    """Run a line of the command, and more arguments, which must return the code.

    Standard output and error have an encoding, and one of them may be closed.
    """
    arguments = [*shlex.split(line), *map(str, more)]
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding) for name in ("stdout", "stderr")}
    given = {name: None if name == closed else stream for name, stream in streams.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in given.items():
            patch.setattr(sys, name, stream)
        found = main(arguments)
        assert {name: getattr(sys, name) for name in given} == given  # are left as they were
    printed = []
    for stream in streams.values():
        stream.flush()
        printed.append(stream.buffer.getvalue().decode(encoding))  # type: ignore[attr-defined]
    assert found == code, printed[1]
    named = [after for option, after in pairwise(arguments) if option == "--out"]
    return Result(*printed, Path(named[-1] if named else "."))


def rows_of(path: str | Path, *, marked: bool = True) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column; those of the command have a byte order mark."""
    path = Path(path)
    assert path.read_bytes().startswith(codecs.BOM_UTF8) or not marked
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write_lines(path: str | Path, lines: Iterable[object], encoding: str = "utf-8") -> Path:
    """Write lines, compressed if the path ends with ``.gz``."""
    content = "".join(f"{line}\n" for line in lines).encode(encoding)
    path = Path(path)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_json(path: str | Path, rows: Iterable[object]) -> Path:
    """Write JSON lines."""
    return write_lines(path, map(json.dumps, rows))


def write_table(
    path: str | Path, rows: Iterable[Iterable[object]], encoding: str = "utf-8", **how: Any
) -> Path:
    """Write a CSV file."""
    with Path(path).open("w", encoding=encoding, newline="") as file:
        csv.writer(file, **how).writerows(rows)
    return Path(path)


def contents(folder: str | Path = ".") -> dict[str, bytes]:
    """Return every file under a folder."""
    paths = Path(folder).rglob("*")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


@contextmanager
def empty_pictures() -> Iterator[None]:
    """Draw nothing: the picture of a report takes longer than the fit that it tells of."""

    def save(self: Any, path: Any, **options: Any) -> None:
        with nullcontext(path) if hasattr(path, "write") else open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")

    with pytest.MonkeyPatch.context() as patch:
        if find_spec("matplotlib"):
            patch.setattr("matplotlib.figure.Figure.savefig", save)
        yield
