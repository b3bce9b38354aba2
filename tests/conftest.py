"""Shared by all tests: the helpers of a folder can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

# The same examples in every run; times depend on the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

for folder in ("cli", "core", "estimators", "kernels"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
