"""Is a version of the package slower than another?

    python benchmarks/compare_commits.py v1.0 HEAD
    python benchmarks/compare_commits.py /path/to/old/python python --limit 1.05
    python benchmarks/compare_commits.py /path/to/old/python python --kernels --limit 1.3

Each version is a folder that contains `ssnmf_fast` with its compiled modules, or a commit, which is
unpacked to a temporary folder and given those of the installed package: kernels are compared by
folders alone.  Every round times all calls in a fresh process for each version, in turn; a figure
is the least of all rounds, since noise only ever adds.  Calls that seem too slow get more rounds.
The exit status is 1 if one of them stays above the limit.  --kernels times the kernels of
`asv/suite/kernels.py` in place of public calls; what one of the versions lacks is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from shutil import copy

import numpy as np
from calls import calls
from common import ROOT, best, load_average
from records import markdown, say

Times = dict[str, float]
sys.path.append(str(ROOT / "benchmarks" / "asv" / "suite"))


def kernel_times(only: list[str]) -> Times:
    """Time kernels, by the clock of the process: it stops while another one has the core."""
    import kernels

    times = {}
    for name, call in kernels.calls():
        if not only or name in only:
            try:
                times[name] = best(call(), 0.2 if only else 0.02, clock=time.process_time)
            except (AttributeError, TypeError) as error:  # another signature
                say(f"{name}: {error}")
    return times


def call_times(only: list[str]) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        chosen = {k: call for k, call in calls(Path(folder)).items() if not only or k in only}
        return {name: best(call, budget=0.2) for name, call in chosen.items()}


def measure(times: Callable[[list[str]], Times], only: list[str]) -> None:
    """Print the least times of the calls (all, or those named) as JSON; in a process of its own."""
    import warnings

    import ssnmf_fast as sf

    warnings.simplefilter("ignore")  # that the limit of iterations was reached
    found, root = Path(sf.__file__).resolve().parents[1], Path(os.environ["PYTHONPATH"])
    if found != root:
        raise SystemExit(f"{found} is imported in place of {root}; is an editable install active?")
    print(json.dumps(times(only)))


def version(given: str, folder: Path) -> Path:
    """Return the folder that contains `ssnmf_fast`: the one given, or that of a commit."""
    found = Path(given).resolve()
    if not (found / "ssnmf_fast").is_dir():
        archive = ["git", "-C", str(ROOT), "archive", given, "python"]
        with tarfile.open(fileobj=BytesIO(subprocess.check_output(archive))) as files:
            files.extractall(folder)
        found = folder.resolve() / "python"
        installed = find_spec("ssnmf_fast")
        if installed is None:
            raise SystemExit("install ssnmf_fast first: a commit needs its compiled modules")
        for package in installed.submodule_search_locations or ():
            for compiled in Path(package).glob("*.so"):
                copy(compiled, found / "ssnmf_fast")
    return found


def timed(root: Path, what: str, only: list[str]) -> Times:
    environment = {**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), what, *only]
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    if child.returncode:
        raise SystemExit(f"{root} could not be timed, see above")
    times: Times = json.loads(child.stdout)
    return times


def least_times(
    roots: list[Path], rounds: int, limit: float, extra: int, what: str, only: list[str]
) -> list[Times]:
    """Return the least times of both versions; what is above the limit is timed `extra` rounds."""
    least: list[Times] = [{}, {}]
    for number in range(rounds + extra):
        if number >= rounds:
            only = [k for k, old in least[0].items() if least[1].get(k, 0) > limit * old]
            if not only:
                break
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            for name, seconds in timed(roots[which], what, only).items():
                least[which][name] = min(seconds, least[which].get(name, np.inf))
        say(f"round {number + 1}, load {load_average()}")
    return least


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", help="folder that contains ssnmf_fast, or a commit")
    parser.add_argument("new", help="the same of the version that must not be slower")
    parser.add_argument("--limit", type=float, default=1.03, help="largest ratio, new to old")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--extra", type=int, default=10, help="rounds for calls above the limit")
    parser.add_argument("--only", nargs="+", default=[], help="names of calls, as in the table")
    parser.add_argument("--kernels", action="store_true", help="kernels in place of public calls")
    options = parser.parse_args(arguments)
    what = "--measure-kernels" if options.kernels else "--measure-calls"
    with tempfile.TemporaryDirectory() as folder:
        roots = [
            version(given, Path(folder) / side)
            for given, side in ((options.old, "old"), (options.new, "new"))
        ]
        settings = options.rounds, options.limit, options.extra, what, options.only
        old, new = least_times(roots, *settings)
    ratios = {name: new[name] / old[name] for name in old if name in new}
    rows = [
        [name, f"{old[name] * 1e3:.3f}", f"{new[name] * 1e3:.3f}", f"{ratio:.3f}"]
        for name, ratio in sorted(ratios.items(), key=lambda pair: -pair[1])
    ]
    print(markdown(["call", "old, ms", "new, ms", "new / old"], rows))
    return int(max(ratios.values(), default=0) > options.limit)


if __name__ == "__main__":
    ways = {"--measure-calls": call_times, "--measure-kernels": kernel_times}
    if sys.argv[1:2] and sys.argv[1] in ways:
        measure(ways[sys.argv[1]], sys.argv[2:])
    else:
        sys.exit(main())
