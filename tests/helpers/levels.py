"""The kernels and their reference, which tests compare: private, and imported here alone."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ssnmf_fast._backend import dispatch, reference

__all__ = [
    "AVAILABLE",
    "IS_REFERENCE",
    "WITH_OPENMP",
    "bits_of",
    "environment",
    "kernels_in_use",
    "kernels_of",
    "reference",
    "run_python",
]

AVAILABLE = dispatch.available_levels()
IS_REFERENCE = dispatch.level == "reference"
WITH_OPENMP = os.environ.get("SSNMF_FAST_THREADS") == "openmp"
kernels_in_use: Any = dispatch.kernels


def bits_of(mask: Any) -> Any:
    """Return the bits of a mask, uint8, (n x ceil(r / 8)), as the kernels take them."""
    return np.packbits(mask, axis=1, bitorder="little")


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that imports this module."""
    paths = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def run_python(code: str, *arguments: str, timeout: float = 120, **variables: str) -> Any:
    """Run code in a process of its own, with further variables in its environment."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def kernels_of(level: str) -> Any:
    """Return the module of an instruction-set level."""
    module = importlib.import_module(f"ssnmf_fast._kernels_{level}")
    module.use_team(dispatch.team_of("openmp" if WITH_OPENMP else "pool", ""))
    return module
