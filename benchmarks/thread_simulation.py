"""How would an iteration scale on many cores?  A simulation from times that were measured on one.

The kernels tell what each of their loops was: its blocks and how long each took on one thread.  The
simulation deals them out as the kernels do: a thread has a range of its own and then takes from the
others, and a place of a panel waits for the panel before.  To take a block costs `--price`
nanoseconds, which those who take from the same range pay one after the other.  To wake a thread
takes whoever wakes it `--wake` microseconds; the caller wakes two before it takes blocks itself,
and so does each that is woken.  What is between two loops, Python's part too, is serial.

An iteration takes at least the time in which a memory of `--bandwidth` gives the data and the
factors.  Both bounds say "at most": caches that are shared, remote memory and clocks that fall with
the number of busy cores are not in them.
"""

from __future__ import annotations

import heapq
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import panels
from records import Options, markdown, say
from scale import plain_fit, skewed

from ssnmf_fast._backend.dispatch import kernels

THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
WOKEN_BY_EACH = 2


@dataclass
class Loop:
    """The seconds of its blocks, stage by stage of the same places; threads that are of use."""

    seconds: Any
    places: int
    threads: int


@dataclass
class Call:
    """A kernel call: seconds since the one before, its own, and its loops if they were recorded."""

    name: str
    before: float
    seconds: float
    loops: list[Loop] = field(default_factory=list)
    times: int = 1  # so often in some iterations


class Recorder:
    """Times every kernel call while it is open, and their loops if `loops`."""

    def __init__(self, loops: bool) -> None:
        self.calls: list[Call] = []
        self._end = time.perf_counter()
        self._loops, self._originals = loops, dict[str, Callable[..., Any]]()

    def __enter__(self) -> Recorder:
        for name in dir(kernels):
            original = getattr(kernels, name)
            if callable(original) and not name.startswith("_") and name[0].islower():
                self._originals[name] = original
                setattr(kernels, name, self._timed(name, original))
        return self

    def __exit__(self, *error: object) -> None:
        for name, original in self._originals.items():
            setattr(kernels, name, original)

    def _timed(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            call, loops = Call(name, time.perf_counter() - self._end, 0.0), list[Any]()

            def timed() -> Any:
                begin = time.perf_counter()
                result = original(*given)
                call.seconds = time.perf_counter() - begin
                return result

            if self._loops:
                result, loops = kernels._record_loops(timed)
            else:
                result = timed()
            for _, places, threads, times in loops:
                call.loops.append(Loop(np.diff(times), places, threads))
            self.calls.append(call)
            self._end = time.perf_counter()
            return result

        return run


def begins(team: int, wake: float) -> list[float]:
    waiting, found = [0.0], list[float]()
    while len(found) < team:
        woken = heapq.heappop(waiting)  # the next to come wakes others, one after the other
        for _ in range(min(WOKEN_BY_EACH, team - len(found) - len(waiting) - 1)):
            woken += wake
            heapq.heappush(waiting, woken)
        found.append(woken)
    return sorted(found)


def simulated(loop: Loop, threads: int, wake: float, price: float) -> float:
    """Return the seconds of a loop on a number of threads."""
    team = min(threads, loop.threads)
    if team < 2:
        return float(loop.seconds.sum())
    cuts = [loop.places * thread // team for thread in range(team + 1)]
    stages = len(loop.seconds) // loop.places
    taken, door = [0] * team, [0.0] * team  # of each range; when it has given its last block
    done: dict[int, float] = defaultdict(float)
    free = [(begin, thread, thread) for thread, begin in enumerate(begins(team, wake))]
    end = 0.0
    while free:
        now, thread, at = heapq.heappop(free)
        end = max(end, now)
        for here in (*range(at, team), *range(at)):
            width = cuts[here + 1] - cuts[here]
            if taken[here] < width * stages:
                stage, place = divmod(taken[here], width)
                place += cuts[here]
                taken[here] += 1
                door[here] = max(now, door[here]) + price
                begin = max(door[here], done[place])
                done[place] = begin + float(loop.seconds[stage * loop.places + place])
                heapq.heappush(free, (done[place], thread, here))
                break
    return end


def total(calls: list[Call], threads: int, wake: float, price: float) -> float:
    """Return the seconds of kernel calls on a number of threads."""
    seconds = 0.0
    for call in calls:
        serial = call.seconds - sum(float(loop.seconds.sum()) for loop in call.loops)
        parallel = sum(simulated(loop, threads, wake, price) for loop in call.loops)
        seconds += call.times * (call.before + serial + parallel)
    return seconds


def least(calls: list[Call]) -> Call:
    """Return one of some calls that are alike as it is where nothing disturbs."""
    serial = min(c.seconds - sum(float(x.seconds.sum()) for x in c.loops) for c in calls)
    for loops in zip(*(c.loops for c in calls), strict=True):
        loops[0].seconds = np.min([loop.seconds for loop in loops], axis=0)
    before = min(call.before for call in calls)
    seconds = serial + sum(float(loop.seconds.sum()) for loop in calls[0].loops)
    return Call(calls[0].name, before, seconds, calls[0].loops)


def record(X: Any, loss: str, rank: int, iterations: int) -> list[Call]:
    """Return the calls of some iterations, those that are alike as one."""

    def run(count: int, loops: bool) -> dict[Any, list[Call]]:
        alike: dict[Any, list[Call]] = defaultdict(list)
        with Recorder(loops) as recorder:
            plain_fit(X, rank, loss, THREADS[-1] if loops else 1, count)
        previous = ""
        for call in recorder.calls:
            sizes = ((len(loop.seconds), loop.places) for loop in call.loops)
            alike[(call.name, *(sizes if loops else [previous]))].append(call)
            previous = call.name
        return alike

    def of_iterations(loops: bool) -> list[Call]:
        first, whole = run(1, loops), run(1 + iterations, loops)
        found = []
        for kind, calls in whole.items():
            times = len(calls) - len(first.get(kind, []))
            if times > (0 if loops else iterations // 2):  # not what was once between two calls
                found.append(least(calls))
                found[-1].times = times
        return found

    # What is between two calls without the time that recording takes.
    between = [Call("between", call.before, 0.0, [], call.times) for call in of_iterations(False)]
    calls = of_iterations(True)
    for call in calls:
        call.before = 0.0
    return between + calls


def bytes_read(X: Any, rank: int) -> float:
    """Return what an iteration reads at least: the data for each factor, and both factors."""
    stored = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    return 2.0 * (stored + 8 * rank * sum(X.shape))


def cases(quick: bool) -> dict[str, tuple[Any, str]]:
    rng = np.random.default_rng(0)
    size = (2000, 500, 20) if quick else (100_000, 20_000, 100)
    X = skewed(*size, float)
    n = 200 if quick else 4000
    return {
        f"Kullback-Leibler, {X.nnz:,} nonzeros": (X, "kullback-leibler"),
        f"Frobenius, {X.nnz:,} nonzeros": (X, "frobenius"),
        f"Frobenius, dense {n} x {n}": (rng.random((n, n)), "frobenius"),
    }


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    folder = Path(__file__).parent
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.strip()


def picture(path: str, curves: dict[str, list[float]], limits: dict[str, float]) -> None:
    figure, ((axes,),) = panels(6, 4)
    axes.plot(THREADS, THREADS, color="0.7", linestyle=":", label="as many times as threads")
    for name, values in curves.items():
        (line,) = axes.plot(THREADS, values, marker="o", label=name)
        if limits[name] < THREADS[-1]:
            axes.axhline(limits[name], color=line.get_color(), linestyle="--", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ticks = [str(number) for number in THREADS]
    axes.set_xticks(THREADS, ticks)
    axes.set_yticks(THREADS, ticks)
    axes.set(xlabel="threads", ylabel="largest possible speedup of an iteration")
    axes.set_title(f"commit {commit()}; dashed: memory", fontsize="small")
    axes.legend()
    figure.savefig(path, dpi=150)


OPTIONS = {
    "rank": 32,
    "iterations": 10,
    "wake": (2.0, "microseconds to wake a thread"),
    "price": (100.0, "nanoseconds to take a block"),
    "bandwidth": (150.0, "GB/s that memory gives"),
    "picture": (str, "file of the picture"),
}
QUICK = {"rank": 5, "iterations": 2}


def main(options: Options) -> Any:
    wake, price = options.wake * 1e-6, options.price * 1e-9
    curves, limits, table, passes = {}, {}, [], []
    for name, (X, loss) in cases(options.quick).items():
        calls = record(X, loss, options.rank, options.iterations)
        totals = [total(calls, t, wake, price) for t in THREADS]
        memory = options.iterations * bytes_read(X, options.rank) / (options.bandwidth * 1e9)
        curves[name] = [totals[0] / max(seconds, memory) for seconds in totals]
        limits[name] = totals[0] / memory
        alone = f"{totals[0] / options.iterations * 1e3:.1f}"
        say(f"{name}: {alone} ms an iteration")
        table.append([name, alone, *(f"{faster:.1f}" for faster in curves[name][1:])])
        table[-1].append(f"{limits[name]:.0f}")
        by_name: dict[str, list[Call]] = defaultdict(list)
        for call in calls:
            by_name[call.name].append(call)
        for kernel, some in by_name.items():
            seconds = total(some, 1, wake, price)
            if seconds > 0.01 * totals[0]:
                faster = seconds / total(some, 64, wake, price)
                passes.append([name, kernel, f"{seconds / totals[0]:.1%}", f"{faster:.0f}"])
    print(f"float64, rank {options.rank}, commit {commit()}, {options.bandwidth:g} GB/s\n")
    header = ["fit", "1 thread, ms", *(f"{number} threads" for number in THREADS[1:]), "memory"]
    print(markdown(header, table), end="\n\n")
    print(markdown(["fit", "pass", "share of the time", "faster with 64 threads"], passes))
    if options.picture:
        picture(options.picture, curves, limits)
