"""What the scheduler of a Dask cluster knows of tasks; these functions run there."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import Any, NamedTuple

_AT_WORK = ("executing", "long-running", "flight", "resumed")
_DUE = ("ready", "constrained", "fetch")  # what a worker that is not paused starts by itself
_SILENT = 5.0  # seconds without a heartbeat: what a worker told last may no longer hold


class Standing(NamedTuple):
    """How far tasks are, and which workers there are."""

    done: bool  # all results are in memory, or are errors
    busy: bool  # something below the tasks is being computed, or is on its way
    unrunnable: bool  # a task waits for a worker that may run it
    gone: list[str]  # places without a worker
    workers: list[str]
    paused: dict[str, str]  # workers that take no tasks, with their memory


def look_at_tasks(
    keys: Sequence[Any], places: Sequence[str], dask_scheduler: Any = None
) -> Standing:
    """Return how far the tasks with these keys are."""
    workers = dask_scheduler.workers
    paused = {
        address: f"{worker.metrics.get('memory', 0) >> 20} of {worker.memory_limit >> 20} MiB"
        for address, worker in workers.items()
        if worker.status.name == "paused"
    }
    found = [dask_scheduler.tasks.get(key) for key in keys]
    done = all(task is not None and task.state in ("memory", "erred") for task in found)
    below = _below(found)
    busy = any(
        task.state == "processing" and _works(task.processing_on, time()) for task in below
    ) or (len(paused) < len(workers) and any(task.state == "queued" for task in below))
    unrunnable = not workers or any(
        task.state in ("no-worker", "queued")
        or (task.state == "processing" and task.processing_on.address in paused)
        for task in below
    )
    gone = sorted(set(places) - set(workers))
    return Standing(done, busy, unrunnable, gone, list(workers), paused)


def _below(found: Sequence[Any]) -> list[Any]:
    """Return tasks, and all those they wait for."""
    seen = {task.key: task for task in found if task is not None}
    waiting = list(seen.values())
    while waiting:
        for task in waiting.pop().waiting_on or ():
            if task.key not in seen:
                seen[task.key] = task
                waiting.append(task)
    return list(seen.values())


def _works(worker: Any, now: float) -> bool:
    """Whether a worker is at work, as far as its last heartbeat tells."""
    counts = worker.metrics.get("task_counts")
    if counts is None or now - worker.last_seen > _SILENT:
        return True
    states = _AT_WORK if worker.status.name == "paused" else _AT_WORK + _DUE
    return any(
        n > 0 and (state if isinstance(state, str) else state[-1]) in states
        for state, n in counts.items()
    )


def find_homes(keys: Sequence[Any], dask_scheduler: Any = None) -> list[str]:
    """Return for each key a worker that has it, or "": one that stays rather than one that ends."""
    found = []
    for key in keys:
        task = dask_scheduler.tasks.get(key)
        having = [] if task is None else list(task.who_has or ())
        having.sort(key=lambda worker: (worker.status.name != "running", worker.address))
        found.append(having[0].address if having else "")
    return found
