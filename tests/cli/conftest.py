"""Data of several files of tests."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from labeled_texts import MONEY, PAGE, PETS


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """Texts of two classes, four of them unlabeled."""
    path = tmp_path / "single.csv"
    lines = ["text,kind"]
    for k, (a, b) in enumerate(zip(PETS, MONEY, strict=True)):
        lines += [f"{a},{PAGE if k < 8 else ''}", f"{b},{'money' if k < 8 else ''}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn: the picture of a report takes longer than the fit that it tells of.

    Pictures are tested in tests/plotting and tests/test_report.py.
    """

    def save(self: Any, path: Any, **options: Any) -> None:
        with nullcontext(path) if hasattr(path, "write") else open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")

    if find_spec("matplotlib"):
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)
