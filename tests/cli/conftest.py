"""Data of several files of tests."""

from __future__ import annotations

from pathlib import Path

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
