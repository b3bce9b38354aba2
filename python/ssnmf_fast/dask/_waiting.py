"""Ctrl-C in a fit on a cluster.

Python drops an exception that a destructor raises, and with it an interrupt that comes while a
future of Dask is deleted.  A fit on a cluster deletes futures all the time.  So it keeps a note of
each interrupt, and its next wait raises the one that was dropped.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic, time
from types import FrameType
from typing import Any, NamedTuple

from distributed import Client, Future
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm import CommClosedError

_noted = False  # since the outermost context began


@contextmanager
def note_interrupts() -> Iterator[None]:
    """Note interrupts of the main thread, which `raise_noted` then raises again."""
    global _noted
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        global _noted
        try:
            before(number, frame)
        except KeyboardInterrupt:
            _noted = True
            raise

    signal.signal(signal.SIGINT, note)
    try:
        yield
        raise_noted()
    finally:
        signal.signal(signal.SIGINT, before)
        _noted = False


def raise_noted() -> None:
    """Raise an interrupt that was dropped; one that is being handled was not."""
    handled = isinstance(sys.exc_info()[1], KeyboardInterrupt)
    if _noted and not handled and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


logger = logging.getLogger("ssnmf_fast.dask")

PATIENCE = 1.0  # seconds between two looks at the cluster
NOTICE = 5.0  # nothing can run: the log tells why
IDLE = 10.0  # nothing runs that should: it was lost, and is started again
SILENCE = 60.0  # the scheduler does not answer: it is lost
HOPELESS = 300.0  # nothing can run, or results do not arrive: the fit ends

_OWN_COPIES = 4  # workers that data are sent to one by one

_AT_WORK = ("executing", "long-running", "flight", "resumed")
_DUE = ("ready", "constrained", "fetch")  # what a worker that is not paused starts by itself
_SILENT = 5.0  # seconds without a heartbeat: what a worker told last may no longer hold

_CANCELLED = (FutureCancelledError, FuturesCancelledError)
LOST = (CommClosedError, *_CANCELLED, OSError, TimeoutError, asyncio.TimeoutError)
GOES_ON = "A fit with checkpoint= goes on by init=ssnmf_fast.load(path)."


class SchedulerLostError(RuntimeError):
    """The scheduler of the cluster no longer answers."""

    def __init__(self) -> None:
        super().__init__(
            "The scheduler of the Dask cluster no longer answers, and the fit has stopped. Start a "
            f"cluster again. {GOES_ON}"
        )


class WorkersLostError(RuntimeError):
    """Results were lost with workers of the cluster, and must be asked for again."""


def ask(
    client: Client, method: Callable[..., Any], *given: Any, seconds: float = SILENCE, **named: Any
) -> Any:
    """Return what a method of the client returns, which needs an answer of the scheduler."""
    end = monotonic() + seconds

    def look() -> None:
        if monotonic() > end:
            raise SchedulerLostError

    try:
        return _poll(client, look, method, *given, **named)
    except LOST as error:
        raise SchedulerLostError from error


def scatter(client: Client, data: list[Any], places: Sequence[str]) -> dict[str, list[Any]]:
    """Send data to workers; return futures for each place, for one step: they are lost with it.

    Where the client sends to workers itself, a few of them get copies of their own, at the same
    time: one would have to wait until another has it.  More of them get it from each other.

    A worker that leaves while it is sent something may keep the scheduler waiting.  So only these
    places are sent something: it is seen at once when one of them is lost.
    """
    workers = sorted(set(places))
    own = client.direct_to_workers and len(workers) <= _OWN_COPIES
    groups = [[worker] for worker in workers] if own else [workers]

    async def send() -> list[list[Any]]:
        sent = (client.scatter(data, hash=False, workers=group or None) for group in groups)
        return list(await asyncio.gather(*sent))

    watch, end = _Watch(client, [], places), monotonic() + SILENCE

    def look() -> None:
        watch.look()
        if monotonic() > end:
            raise WorkersLostError(f"A worker has taken no data for {SILENCE:.0f} s. {GOES_ON}")

    try:
        found: list[list[Any]] = _poll(client, look, send)
    except (*LOST, KeyError) as error:  # of a worker that has just gone, a KeyError
        raise _loss_error(client) from error
    pairs = zip(groups, found, strict=True)
    return {place: copies for group, copies in pairs for place in group or [""]}


def result_of(client: Client, futures: Any, places: Sequence[str] = ()) -> Any:
    """Return the results of futures, of which some can be computed in these places only."""
    return _of_futures(client, futures, places, client.gather, futures)


def finish(client: Client, futures: Sequence[Any]) -> None:
    """Wait until futures are finished; raise what they raised."""

    async def wait() -> None:
        while not all(future.done() for future in futures):
            await asyncio.sleep(PATIENCE / 100)

    _of_futures(client, futures, (), wait)
    for future in futures:
        if future.status in ("error", "cancelled"):
            result_of(client, future)
    if any(future.status != "finished" for future in futures):
        raise _loss_error(client)


def cancel(client: Client, futures: Sequence[Any]) -> None:
    """Cancel futures, if the scheduler can still be told."""
    if client.status == "running":
        with suppress(SchedulerLostError):
            ask(client, client.cancel, list(futures), force=True)


def _loss_error(client: Client) -> RuntimeError:
    if client.status != "running":
        return SchedulerLostError()
    return WorkersLostError(f"Workers of the Dask cluster were lost in a step. {GOES_ON}")


def _of_futures(
    client: Client, futures: Any, places: Sequence[str], method: Callable[..., Any], *given: Any
) -> Any:
    """Return what a method returns that waits for futures, while somebody works on them."""
    flat = [futures] if isinstance(futures, Future) else list(futures)
    try:
        return _poll(client, _Watch(client, flat, places).look, method, *given)
    except KeyboardInterrupt:
        cancel(client, flat)
        raise
    except LOST as error:
        if any(future.status == "error" for future in flat):
            raise  # the error of a task
        if "restart" in str(error):
            raise RuntimeError(
                "The Dask cluster was restarted in a fit, which takes all data and results from "
                f"it. Fit again. {GOES_ON}"
            ) from error
        raise _loss_error(client) from error


def _poll(
    client: Client, look: Callable[[], None], method: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """Return what a method of the client returns, which is called on its loop; `look` meanwhile."""

    async def call() -> tuple[Any, BaseException | None]:
        try:
            found = method(*given, **named)
            return (await found if inspect.isawaitable(found) else found), None
        except Exception as error:  # some kinds of them would cancel this call instead
            return None, error

    if client.status != "running":
        raise SchedulerLostError
    handle = asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)
    try:
        while True:
            raise_noted()
            try:
                found, error = handle.result(PATIENCE)
                break
            except concurrent.futures.TimeoutError:
                if client.status != "running":
                    raise SchedulerLostError from None
                look()
    finally:
        handle.cancel()
    if error is not None:
        raise error
    return found


class Standing(NamedTuple):
    """How far tasks are, and which workers there are."""

    done: bool  # all results are in memory, or are errors
    busy: bool  # something below the tasks is being computed, or is on its way
    unrunnable: bool  # a task waits for a worker that may run it
    workers: list[str]
    paused: dict[str, str]  # workers that take no tasks, with their memory


def _look_at_tasks(keys: Sequence[Any], dask_scheduler: Any = None) -> Standing:
    """Return how far the tasks with these keys are; this runs on the scheduler."""
    workers = dask_scheduler.workers
    paused = {
        address: f"{worker.metrics.get('memory', 0) >> 20} of {worker.memory_limit >> 20} MiB"
        for address, worker in workers.items()
        if worker.status.name == "paused"
    }
    found = [dask_scheduler.tasks.get(key) for key in keys]
    done = all(task is not None and task.state in ("memory", "erred") for task in found)
    below = _tasks_below(found)
    busy = any(
        task.state == "processing" and _works(task.processing_on, time()) for task in below
    ) or (len(paused) < len(workers) and any(task.state == "queued" for task in below))
    unrunnable = not workers or any(
        task.state in ("no-worker", "queued")
        or (task.state == "processing" and task.processing_on.address in paused)
        for task in below
    )
    return Standing(done, busy, unrunnable, list(workers), paused)


def _tasks_below(found: Sequence[Any]) -> set[Any]:
    """Return tasks, and all those they wait for."""
    seen, waiting = set(), {task for task in found if task is not None}
    while waiting:
        task = waiting.pop()
        seen.add(task)
        waiting |= set(task.waiting_on or ()) - seen
    return seen


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


class _Watch:
    """A watch over futures, by one look after the other at the cluster."""

    def __init__(self, client: Client, futures: Sequence[Any], places: Sequence[str]) -> None:
        self._client, self._futures = client, futures
        self._keys, self._places = [future.key for future in futures], set(places)
        self._workers = self._places  # at the last look
        self._since: float | None = None  # when nothing was seen to go on for the first time
        self._told = False

    def look(self) -> None:
        """Raise an error if nothing will come of waiting."""
        run = self._client.run_on_scheduler
        now: Standing = ask(self._client, run, _look_at_tasks, self._keys)
        self._tell_of_lost_workers(now)
        if gone := sorted(self._places - set(now.workers)):
            raise WorkersLostError(f"Workers were lost: {', '.join(gone)}.")
        if now.busy:
            self._since, self._told = None, False
            return
        self._since = self._since or monotonic()
        seconds = monotonic() - self._since
        arriving = now.done and all(future.status == "finished" for future in self._futures)
        waits = now.unrunnable or arriving
        if waits and seconds > HOPELESS:
            raise RuntimeError(
                f"{_why(now)}, since {seconds:.0f} s, and the fit has stopped. {GOES_ON}"
            )
        if not waits and seconds > IDLE:
            raise WorkersLostError(
                f"Tasks were lost: nobody has worked on them for {seconds:.0f} s. {GOES_ON}"
            )
        if now.unrunnable and seconds > NOTICE and not self._told:
            self._told = True
            logger.warning("%s; the fit waits up to %.0f s", _why(now), HOPELESS)

    def _tell_of_lost_workers(self, now: Standing) -> None:
        lost, self._workers = self._workers - set(now.workers), set(now.workers)
        if lost:
            logger.warning(
                "workers were lost, of which their logs may tell more (often it is memory): %s; "
                "%d are left, and their work is done again",
                ", ".join(sorted(lost)),
                len(now.workers),
            )


def _why(now: Standing) -> str:
    if not now.workers:
        return "The Dask cluster has no worker (where they end again and again, it is often memory)"
    if len(now.paused) == len(now.workers):
        memory = ", ".join(f"{address} ({each})" for address, each in now.paused.items())
        return f"All workers of the Dask cluster are paused, for their memory is full: {memory}"
    if now.unrunnable:
        return "No worker of the Dask cluster takes a task that the fit needs"
    return "Results of the Dask cluster do not arrive"
