"""Time and peak memory of the public calls, and of the command until it is ready."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
BENCHMARKS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(BENCHMARKS))

from calls import calls  # noqa: E402


def names() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return [*calls(Path(folder))]


class PublicCalls:
    """One thread; tens of milliseconds a call."""

    param_names = ("call",)
    params = (names(),)
    timeout = 120

    def setup(self, name: str) -> None:
        warnings.simplefilter("ignore")  # that the limit of iterations was reached
        self.folder = tempfile.TemporaryDirectory()
        self.call = calls(Path(self.folder.name))[name]

    def teardown(self, name: str) -> None:
        self.folder.cleanup()

    def time_call(self, name: str) -> None:
        self.call()

    def peakmem_call(self, name: str) -> None:
        self.call()


class Command:
    """A process of its own, from its start to its end."""

    params = ("--version", "fit --help")
    param_names = ("arguments",)

    def time_command(self, arguments: str) -> None:
        command = [sys.executable, "-m", "ssnmf_fast", *arguments.split()]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
