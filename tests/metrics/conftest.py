"""Blocks of few entries, so that small matrices have several."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from internals import _matrices


@pytest.fixture
def block_entries(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda entries: monkeypatch.setattr(_matrices, "_BLOCK_ENTRIES", entries)
