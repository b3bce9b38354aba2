"""Judges random calls, in batches that run in processes of their own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from helpers.padding import watched_steps

from random_calls import doors, functions, same_bits

BATCH = 250
PATIENCE = 300.0  # seconds for a batch that takes a few
OUTCOMES = ("right", "refused", "FAILED")


def judge(seed: int, case: int) -> tuple[str, str]:
    call = functions.make(seed, case)
    what = f"{call.name}{f', illegal {call.illegal}' if call.illegal else ''}"
    try:
        with watched_steps() as (touched, _):
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


# How a case is judged: random calls and their bits by seed and number, or every n-th form.
WAYS = {"calls": judge, "bits": same_bits.judge, "forms": doors.judge}


def child(way: str, seed: int, first: int, last: int) -> None:
    """Judge some cases; the number of each is printed before it begins."""
    np.seterr(all="ignore")
    for case in range(first, last):
        print(f"case {case}", flush=True)
        outcome, text = WAYS[way](seed, case)
        print(f"{outcome} {text!r}", flush=True)


def batch(way: str, seed: int, first: int, last: int) -> subprocess.Popen[str]:
    given = (way, "--seed", seed, "--child", first, last)
    order = [sys.executable, "-m", "random_calls", *map(str, given)]
    # Small problems gain nothing by threads of BLAS, which would fight with those of other batches.
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    more = {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONPATH": path}
    return subprocess.Popen(
        order, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | more
    )


def finish(process: subprocess.Popen[str], left: float) -> tuple[Counter[str], list[str]]:
    """Return how often each outcome was, and what failed."""
    counts, failed, case = Counter[str](), [], ""
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
        counts[outcome] += outcome in OUTCOMES
        failed += [f"{case}: {text}"] * (outcome == "FAILED")
    if process.returncode:
        failed.append(f"{case}: status {process.returncode}, {err[-500:]}")
        counts["FAILED"] += 1
    return +counts, failed


def run(
    way: str, seed: int, cases: int | None, seconds: float = np.inf, workers: int = 1
) -> tuple[Counter[str], list[str]]:
    """Run cases in batches, until there are enough or the time is over; print what fails."""
    counts, every = Counter[str](), []
    begin = time.monotonic()
    starts = itertools.count(0, BATCH) if cases is None else iter(range(0, cases, BATCH))
    running: list[tuple[subprocess.Popen[str], float]] = []
    while True:
        while len(running) < workers and time.monotonic() - begin < seconds:
            first = next(starts, None)
            if first is None:
                break
            last = first + BATCH if cases is None else min(first + BATCH, cases)
            running.append((batch(way, seed, first, last), time.monotonic()))
        if not running:
            return counts, every
        process, started = running.pop(0)
        found, failed = finish(process, PATIENCE - (time.monotonic() - started))
        for line in failed:
            print(f"{way}, seed {seed}, {line}", flush=True)
        counts, every = counts + found, every + failed
