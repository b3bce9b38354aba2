"""Random calls of functions and estimators: nothing may crash, hang or be silently wrong.

    python benchmarks/run.py fuzz --cases 100000 --workers 2
    python benchmarks/run.py fuzz --seconds 60
    python benchmarks/run.py fuzz --seed 0 --case 1234

It needs ``python -m pip install 'ssnmf-fast[test,dask]'``.  Legal calls are checked against dense
NumPy and SciPy, and forms of labels against plain ones; illegal calls must raise ValueError or
TypeError.  Batches run in processes of their own: a signal, or a batch that takes too long, is a
failure of the case it was at.  The exit status is 1 if there is any failure.
"""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import time
import traceback
from collections import Counter
from typing import Any

import numpy as np
from records import Options
from run import command

BATCH = 250
PATIENCE = 300.0  # seconds for a batch that takes a few


def judge(seed: int, case: int) -> tuple[str, str]:
    import random_calls

    call = random_calls.make(seed, case)
    touched = watch_padding()
    touched.clear()
    what = f"{call.name}{f', illegal {call.illegal}' if call.illegal else ''}"
    try:
        results = call.compute(call.arguments, 1 + case % 2)
    except (ValueError, TypeError) as error:
        if call.illegal:
            if len(str(error)) > 15:
                return "refused", ""
            return "FAILED", f"{what}: refused without a reason: {error!r}"
        return "FAILED", f"{what}: refused though legal: {error!r}"
    except Exception:
        return "FAILED", f"{what}: {traceback.format_exc(limit=-3)}"
    if call.illegal:
        return "FAILED", f"{what}: accepted {call.arguments[call.illegal]!r}"
    found = call.complaints(results) + sorted(set(touched))
    return ("FAILED", f"{what}: {'; '.join(found)}") if found else ("right", "")


@functools.cache
def watch_padding() -> list[str]:
    """Return what will tell of updates that touch padding: what all factors begin without."""
    from ssnmf_fast._solver.problem import Problem

    found: list[str] = []
    begin, apply = Problem.__init__, Problem.apply

    def begin_watched(self: Any, factors: Any, *rest: Any, **more: Any) -> None:
        begin(self, factors, *rest, **more)
        self.unused = ~np.any([F.any(axis=0) for F in factors.values()], axis=0)

    def apply_watched(self: Any, name: str, *rest: Any) -> None:
        apply(self, name, *rest)
        if self.factors[name][:, self.unused].any():
            found.append(f"the padding of {name} is not zero")

    Problem.__init__, Problem.apply = begin_watched, apply_watched  # type: ignore[method-assign]
    return found


def child(seed: int, first: int, last: int) -> None:
    """Judge some cases; the number of each is printed before it begins."""
    for case in range(first, last):
        print(f"case {case}", flush=True)
        outcome, text = judge(seed, case)
        print(f"{outcome} {text!r}", flush=True)


def batch(seed: int, first: int, last: int) -> subprocess.Popen[str]:
    order = command("fuzz", "--seed", seed, "--child", first, last)
    # Small problems gain nothing by threads of BLAS, which would fight with those of other batches.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        order, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def finish(process: subprocess.Popen[str], seed: int, left: float) -> Counter[str]:
    counts: Counter[str] = Counter()
    case = ""
    try:
        out, err = process.communicate(timeout=left)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err = f"took longer than {PATIENCE:.0f} s"
    for line in out.splitlines():
        if line.startswith("case "):
            case = line
        outcome, _, text = line.partition(" ")
        if outcome not in ("right", "refused", "FAILED"):
            continue
        counts[outcome] += 1
        if outcome == "FAILED":
            print(f"seed {seed}, {case}: {text}", flush=True)
    if process.returncode:
        counts["FAILED"] += 1
        print(f"seed {seed}, {case}: status {process.returncode}, {err[-500:]}", flush=True)
    return counts


def run(seed: int, cases: int | None, seconds: float, workers: int) -> Counter[str]:
    """Run cases in batches, until there are enough or the time is over."""
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    starts = itertools.count(0, BATCH) if cases is None else iter(range(0, cases, BATCH))
    running: list[tuple[subprocess.Popen[str], float]] = []
    while True:
        while len(running) < workers and time.monotonic() - begin < seconds:
            first = next(starts, None)
            if first is None:
                break
            last = first + BATCH if cases is None else min(first + BATCH, cases)
            running.append((batch(seed, first, last), time.monotonic()))
        if not running:
            return counts
        process, started = running.pop(0)
        counts += finish(process, seed, PATIENCE - (time.monotonic() - started))


OPTIONS = {
    "cases": (int, "how many (default: until the time is over)"),
    "seconds": (float("inf"), "when to begin no more"),
    "workers": (2, "default: %(default)s"),
    "seed": 0,
    "case": (int, "only this one, with what it says"),
    "child": ([int], None),
}


def main(options: Options) -> int:
    np.seterr(all="ignore")
    if options.child:
        child(options.seed, *options.child)
        return 0
    if options.case is not None:
        print(*judge(options.seed, options.case))
        return 0
    if options.cases is None and options.seconds == float("inf"):
        raise SystemExit("give --cases or --seconds")
    counts = run(options.seed, options.cases, options.seconds, options.workers)
    print(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    return int(counts["FAILED"] > 0)
