"""Tables of a consensus in files that users of cNMF know."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .._common.arrays import Array
from .._common.replacement import Replacement

Names = Sequence[Any]


def write_tables(
    folder: Path, name: str, threshold: float, tables: dict[str, tuple[Names, Names, Array]]
) -> list[Path]:
    """Write tables with the names of their rows and columns; return their files.

    All appear together or not at all.
    """
    rank = len(tables["spectra"][0])
    of_all = f"k_{rank}.dt_{str(float(threshold)).replace('.', '_')}"
    ends = {"spectra": ".consensus", "usages": ".consensus"}
    paths = []
    folder.mkdir(parents=True, exist_ok=True)
    with Replacement() as files:
        for kind, (rows, columns, values) in tables.items():
            path = folder / f"{name}.{kind}.{of_all}{ends.get(kind, '')}.txt"
            _write(files.path(path), rows, columns, values)
            paths.append(path)
    return paths


def _write(path: Path, rows: Names, columns: Names, values: Iterable[Array]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter="\t", lineterminator="\n")
        lines.writerow(["", *columns])
        lines.writerows([row, *line.tolist()] for row, line in zip(rows, values, strict=True))
