"""Shared by all tests: the helpers of a folder can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("core", "estimators"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
