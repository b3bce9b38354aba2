"""How would an iteration scale on many cores?  A simulation from times that were measured on one.

Every kernel call of some iterations is timed with one thread and cut into the blocks that its loop
hands out, in the same order, by the work in each.  The simulation gives each block to the first
thread that is free, and a block of a panel waits for the same columns of the panel before.  What
Python does between two calls is serial.  To wake a thread takes whoever wakes it `--wake`
microseconds; the caller wakes two before it takes blocks itself, and so does each that is woken.

It knows nothing of memory: where a pass waits for it, cores that share a memory gain less than
this.  It shows what the cut into blocks allows.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import panels
from records import Options, markdown, say
from scale import plain_fit, skewed

from ssnmf_fast._backend.dispatch import kernels

THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
# Of the kernels: entries or rows of a block, and the work that is worth a thread.
ENTRIES, ROWS, DESCENT_ROWS, WORK_PER_THREAD = 4096, 256, 32, 131072
WOKEN_BY_EACH = 2
# Of dense passes: rows of a block and columns of a tile, by rows and by columns; the longest column
# that is read as a whole; blocks that are enough, the shortest stretch of columns, and the values
# of sums that are kept apart.
TILE, WHOLE_COLUMN = ((96, 256), (144, 64)), 1024
BLOCKS, SHORTEST, PARTIALS = 256, 256, 1 << 20


@dataclass
class Call:
    """A kernel call: seconds, the share of each block, the chain that each belongs to, its work."""

    name: str
    seconds: float
    shares: Any
    chains: Any
    work: float


def even(rows: int, step: int) -> Any:
    return np.diff(np.append(np.arange(0, rows, step), rows)).astype(float)


def sparse_blocks(indptr: Any) -> tuple[Any, Any]:
    """Return the work of blocks of about as many entries, and rows, each."""
    before = indptr + np.arange(len(indptr))
    ends = np.searchsorted(before, np.arange(ENTRIES, before[-1] + ENTRIES, ENTRIES))
    cuts = np.unique(np.clip(np.append(0, ends), 0, len(indptr) - 1))
    return np.diff(before[cuts]).astype(float), None


def panel_blocks(indptr: Any, bounds: Any) -> tuple[Any, Any]:
    """Return the work of the columns' ranges in all panels, and the range that each belongs to."""
    columns = int(bounds[-1])
    panels = (len(indptr) - 1) // columns
    starts = (np.arange(panels)[:, None] * columns + bounds).astype(int)
    work = np.diff(indptr[starts], axis=1) + np.diff(bounds)
    return work.ravel().astype(float), np.tile(np.arange(len(bounds) - 1), panels)


def dense_blocks(Z: Any, most: int, models: bool) -> Any:
    """Return the work of blocks of rows and stretches of columns, in their order."""
    by_columns = abs(Z.strides[0]) < abs(Z.strides[1])
    rows, columns = TILE[by_columns]
    if by_columns and not models and len(Z) <= WHOLE_COLUMN:
        rows, columns = len(Z), 32
    wanted = BLOCKS // max(1, -(-Z.shape[0] // rows))
    stretches = max(1, min(wanted, Z.shape[1] // SHORTEST, max(16, min(most, BLOCKS))))
    tiles = -(-Z.shape[1] // columns)
    step = -(-tiles // stretches) * columns
    return np.outer(even(Z.shape[0], rows), even(Z.shape[1], step)).ravel()


def blocks_of(name: str, given: tuple[Any, ...]) -> tuple[Any, Any, float]:
    """Return the work of every block, its chain, and the number of multiplications of a call."""
    of_numbers = (a for a in given if isinstance(a, np.ndarray) and a.dtype.kind == "f")
    arrays = [a for a in of_numbers if a.ndim == 2]  # without supports, which are bits
    if name.startswith("sparse_"):
        indptr = next(a for a in given if isinstance(a, np.ndarray))
        columns = arrays[-1].shape[1] if arrays else 1  # a fingerprint is of the data alone
        return *sparse_blocks(indptr), float(indptr[-1]) * columns
    if name == "panel_pass":
        indptr, bounds, G = given[1], given[6], given[5]
        return *panel_blocks(indptr, bounds), float(indptr[-1]) * G.shape[1]
    if name.startswith("dense_"):
        Z, columns = arrays[0], arrays[1].shape[1] if len(arrays) > 1 else 1
        if name == "dense_fingerprint":
            return even(Z.shape[0], max(1, ENTRIES // Z.shape[1])), None, float(Z.size)
        most = PARTIALS // (Z.shape[0] * columns) if name == "dense_pass" else Z.shape[1]
        models = name != "dense_pass" or given[0] != 0
        return dense_blocks(Z, most, models), None, float(Z.size) * columns
    rows, columns = max((a.shape for a in arrays), default=(1, 1))
    if name == "coordinate_descent":
        return even(rows, DESCENT_ROWS), None, 2.0 * rows * columns**2
    step = max(ROWS, -(-rows // 256)) if name in ("gram", "column_sums") else ROWS
    each = {"gram": columns, "multiply": columns, "update": 4}.get(name, 1)
    return even(rows, step), None, float(rows) * columns * each


class Recorder:
    """Times every kernel call while it is open."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._originals: dict[str, Callable[..., Any]] = {}

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
            begin = time.perf_counter()
            result = original(*given)
            seconds = time.perf_counter() - begin
            if any(isinstance(a, np.ndarray) for a in given):
                sizes, chains, work = blocks_of(name, given)
                self.calls.append(Call(name, seconds, sizes / sizes.sum(), chains, work))
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


def simulated(call: Call, threads: int, wake: float) -> float:
    team = int(min(threads, len(call.shares), 1 + call.work // WORK_PER_THREAD))
    free = begins(team, wake)
    done: dict[int, float] = defaultdict(float)
    end = 0.0
    for block, share in enumerate(call.shares):
        begin = heapq.heappop(free)
        if call.chains is not None:
            begin = max(begin, done[call.chains[block]])
        finish = begin + share * call.seconds
        if call.chains is not None:
            done[call.chains[block]] = finish
        heapq.heappush(free, finish)
        end = max(end, finish)
    return end


def record(X: Any, loss: str, rank: int, iterations: int) -> tuple[list[Call], float]:
    """Return the calls of some iterations and the seconds of what is between them."""
    # The first iteration belongs to the set-up: it makes the transposed copy.
    runs = []
    for count in (1, 1 + iterations):
        with Recorder() as recorder:
            begin = time.perf_counter()
            plain_fit(X, rank, loss, 1, count)
            runs.append((time.perf_counter() - begin, recorder.calls))
    (setup, first), (whole, calls) = runs
    between = (whole - setup) - (sum(c.seconds for c in calls) - sum(c.seconds for c in first))
    return calls[len(first) :], max(between, 0.0)


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


def picture(path: str, curves: dict[str, list[float]]) -> None:
    figure, ((axes,),) = panels(6, 4)
    axes.plot(THREADS, THREADS, color="0.7", linestyle=":", label="as many times as threads")
    for name, values in curves.items():
        axes.plot(THREADS, values, marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ticks = [str(number) for number in THREADS]
    axes.set_xticks(THREADS, ticks)
    axes.set_yticks(THREADS, ticks)
    axes.set(xlabel="threads", ylabel="an iteration is so many times faster")
    axes.legend()
    figure.savefig(path, dpi=150)


OPTIONS = {
    "rank": 32,
    "iterations": 5,
    "wake": (2.0, "microseconds to wake a thread"),
    "picture": (str, "file of the picture"),
}
QUICK = {"rank": 5, "iterations": 2}


def main(options: Options) -> Any:
    wake = options.wake * 1e-6
    curves, table, passes = {}, [], []
    for name, (X, loss) in cases(options.quick).items():
        calls, between = record(X, loss, options.rank, options.iterations)
        totals = [sum(simulated(c, t, wake) for c in calls) + between for t in THREADS]
        curves[name] = [totals[0] / total for total in totals]
        say(f"{name}: {totals[0] / options.iterations * 1e3:.1f} ms an iteration")
        table.append([name, f"{totals[0] / options.iterations * 1e3:.1f}"])
        table[-1] += [f"{faster:.1f}" for faster in curves[name][1:]]
        by_name: dict[str, list[Call]] = defaultdict(list)
        for call in calls:
            by_name[call.name].append(call)
        for kernel, some in by_name.items():
            alone = sum(c.seconds for c in some)
            if alone > 0.01 * totals[0]:
                faster = alone / sum(simulated(c, 64, wake) for c in some)
                passes.append([name, kernel, f"{alone / totals[0]:.1%}", f"{faster:.0f}"])
    print(f"float64, rank {options.rank}\n")
    header = ["fit", "1 thread, ms", *(f"{number} threads" for number in THREADS[1:])]
    print(markdown(header, table), end="\n\n")
    print(markdown(["fit", "pass", "share of the time", "faster with 64 threads"], passes))
    if options.picture:
        picture(options.picture, curves)
