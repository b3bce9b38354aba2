"""What the benchmarks share: questions, the records of their answers, tables of these."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import blas_threads

Record = dict[str, Any]
Options = argparse.Namespace


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * w for w in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def mean_and_deviation(values: list[float], scale: float = 1.0, digits: int = 2) -> str:
    """Return "mean (standard deviation)", both times `scale`."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{scale * np.mean(values):.{digits}f} ({scale * deviation:.{digits}f})"


def mean_of(records: list[Record], name: str, scale: float = 1.0, digits: int = 2) -> str:
    """Return "mean (standard deviation)" of an entry of records, empty without any."""
    values = [record[name] for record in records if record.get(name) is not None]
    return mean_and_deviation(values, scale, digits) if values else ""


def grouped(records: Iterable[Record], *names: str) -> dict[Any, list[Record]]:
    """Return records by the values of some entries (one: by the value), in order of occurrence."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        place = tuple(record[name] for name in names)
        groups.setdefault(place if names[1:] else place[0], []).append(record)
    return groups


def tabulate(records: Iterable[Record], **columns: str | Callable[[Record], str]) -> str:
    """Return a markdown table of records: a column is a format of entries, or a function."""

    def cell(record: Record, column: str | Callable[[Record], str]) -> str:
        try:
            return column(record) if callable(column) else column.format(**record)
        except KeyError:
            return ""

    rows = [[cell(record, column) for column in columns.values()] for record in records]
    return markdown(list(columns), rows)


def pivot(
    records: list[Record],
    rows: str | Sequence[str],
    columns: str,
    cell: Callable[[list[Record]], str],
    **more: Any,
) -> str:
    """Return a markdown table of cells, each made of the records with the same entries.

    `rows` names the entries that make a row, separated by blanks, and `columns` the one that makes
    a column; `more` are further columns between them, functions of the records of a row.
    """
    names = rows.split() if isinstance(rows, str) else rows
    places = list(grouped(records, columns))
    table = []
    for row, group in grouped([{**r, "": None} for r in records], *names, "").items():
        cells = grouped(group, columns)
        table.append([*map(_text, row[:-1]), *(function(group) for function in more.values())])
        table[-1] += [cell(cells[place]) if place in cells else "" for place in places]
    titles = [p if isinstance(p, str) else f"{columns} {_text(p)}" for p in places]
    return markdown([*names, *more, *titles], table)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_records(path: Path | None) -> list[Record]:
    """Return the records of earlier runs; a last line that was cut off is removed from the file."""
    if path is None or not path.exists():
        return []
    whole, newline, rest = path.read_text().rpartition("\n")
    if rest:
        path.write_text(whole + newline)
    return [json.loads(line) for line in whole.splitlines()]


class Question(NamedTuple):
    """A question that measurements answer: `run.py` measures what is missing, and reports.

    The records of all cases are in DIR/NAME.jsonl, a line each, written at once: a later run goes
    on where an earlier one was stopped, or adds cases.  Remove the file to measure anew.
    """

    key: str  # names of the parts of a case, separated by blanks
    # A function, or the names of the options whose product they are; a number counts from 0.
    cases: str | Callable[[Options], Iterable[tuple[Any, ...]]]
    measure: Callable[..., Record]  # of the options and the parts of a case
    report: Callable[[list[Record], Options], str]
    draw: Callable[[list[Record], Path], None] | None = None  # pictures, whose names begin so
    threads: int | None = 1  # of BLAS; None leaves it alone

    def all_cases(self, options: Options) -> Iterable[tuple[Any, ...]]:
        if callable(self.cases):
            return self.cases(options)
        values = (getattr(options, name) for name in self.cases.split())
        return product(*(range(v) if isinstance(v, int) else v for v in values))

    def ask(self, options: Options, path: Path | None) -> list[Record]:
        from joblib import Parallel, delayed

        def frozen(part: Any) -> Any:
            return tuple(map(frozen, part)) if isinstance(part, (list, tuple)) else part

        names = self.key.split()
        done = {frozen([r[name] for name in names]): r for r in read_records(path)}
        cases = list(done if options.only_report else map(frozen, self.all_cases(options)))
        todo = [case for case in cases if case not in done]
        begin = last = perf_counter()
        jobs = Parallel(n_jobs=getattr(options, "jobs", 1), return_as="generator")
        with blas_threads(self.threads):
            results = jobs(delayed(self.measure)(options, *case) for case in todo)
            for number, (case, result) in enumerate(zip(todo, results, strict=True), 1):
                done[case] = dict(zip(names, case, strict=True)) | result
                if path is not None:
                    with path.open("a") as file:
                        file.write(json.dumps(done[case]) + "\n")
                if perf_counter() - last > 20 or number == len(todo):
                    last = perf_counter()
                    left = (last - begin) * (len(todo) / number - 1)
                    say(f"{number} of {len(todo)}, {last - begin:.0f} s, {left:.0f} s left")
        return [done[case] for case in cases]
