"""What the tests of the command share: a quick model, and readers of tables, measures, errors."""

from __future__ import annotations

import codecs
import csv
import json
from pathlib import Path

import pytest

# Options of a quick model with labels, for tests of what is read and written.
_QUICK = "--model ssnmf --supervision-weight 1 --readout joint --max-iter 50 --tol 0"
QUICK_MODEL = _QUICK.split()


def rows_of(path: Path, *, marked: bool = True) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column; those of the command have a byte order mark."""
    assert path.read_bytes().startswith(codecs.BOM_UTF8) or not marked
    with path.open(encoding="utf-8-sig", newline="") as file:
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
