"""What the tests of the command read: its tables, its measures, and its one line of error."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def measures_of(folder: Path) -> dict[str, float]:
    """Return the measures of `metrics.json`."""
    content = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return dict(content["measures"])


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what standard error has, which must be one line."""
    err = capsys.readouterr().err
    assert err.startswith("ssnmf-fast: error: "), err
    assert err.count("\n") == 1, err
    return err
