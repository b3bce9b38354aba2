"""Time of the public calls at two sizes, and memory beyond what the process has with its data.

The command is timed from its start to its end.  As in `kernels.py`, the package is imported in
`setup` alone: another process names the calls.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
BENCHMARKS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(BENCHMARKS))


@cache
def names() -> list[str]:
    order = [sys.executable, str(BENCHMARKS / "calls.py")]
    return subprocess.check_output(order, text=True).splitlines()


class Calls:
    """One thread; tens of milliseconds a call, and four times as long."""

    param_names = ("call", "size")
    timeout = 120

    def setup(self, name: str, size: int) -> None:
        from calls import calls

        warnings.simplefilter("ignore")  # that the limit of iterations was reached
        self.folder = tempfile.TemporaryDirectory()
        self.call = calls(Path(self.folder.name), size)[name]

    def teardown(self, name: str, size: int) -> None:
        self.folder.cleanup()


class Times(Calls):
    params = (names(), (1, 4))

    def time_call(self, name: str, size: int) -> None:
        self.call()


class Memory(Calls):
    params = (names(), (4,))

    def track_memory(self, name: str, size: int) -> float:
        """Return the most that the call needs beyond its data, without what was freed before."""
        from common import Clock

        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        with Clock() as clock:
            self.call()
        return clock.peak - clock.before

    track_memory.unit = "MB"


class Command:
    """A process of its own, from its start to its end."""

    params = ("--version", "fit --help")
    param_names = ("arguments",)

    def time_command(self, arguments: str) -> None:
        command = [sys.executable, "-m", "ssnmf_fast", *arguments.split()]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
