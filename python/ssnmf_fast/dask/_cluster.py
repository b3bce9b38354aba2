"""Tasks on a Dask cluster that may lose workers: waits, restarts, sums in a fixed order.

Dask places data, recomputes the results of lost workers, and transports results.

Python drops exceptions of destructors, including an interrupt (Ctrl-C) that arrives while a future
of Dask is deleted.  Therefore a fit notes interrupts, and the next wait raises them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic, time
from typing import Any, TypeAlias, TypeVar

import dask
from distributed import Client, Future, Scheduler, get_client
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import TaskState, WorkerState

from .._common.arrays import Array

Result = TypeVar("Result")
_State: TypeAlias = tuple[list[str], bool, bool, bool, str]

logger = logging.getLogger("ssnmf_fast.dask")

ATTEMPTS = 10
POLL_INTERVAL = 1.0  # seconds between checks of the cluster
WARN_AFTER = 5.0  # no task can run: the log tells why
IDLE_TIMEOUT = 10.0  # no worker has the task: it was lost, and is restarted
SCHEDULER_TIMEOUT = 60.0  # the scheduler does not answer: it is lost
GIVE_UP_AFTER = 300.0  # no task can run, or results do not arrive: the fit ends
_HEARTBEAT_TIMEOUT = 5.0  # age of a heartbeat after which its report may be outdated

_OWN_COPIES = 4  # workers to which data are sent one by one

_AT_WORK = ("executing", "long-running", "flight", "resumed")
_DUE = ("ready", "constrained", "fetch")  # states that a worker leaves by itself unless paused

_TIMEOUTS = (TimeoutError, asyncio.TimeoutError)
_LOST = (CommClosedError, FutureCancelledError, FuturesCancelledError, OSError, *_TIMEOUTS)
GOES_ON = "A fit with checkpoint= can be continued with init=ssnmf_fast.load(path)."


class SchedulerLostError(RuntimeError):
    """The scheduler of the cluster no longer answers."""

    def __init__(self) -> None:
        super().__init__(
            "The scheduler of the Dask cluster no longer answers, and the fit has stopped. Start a "
            f"cluster again. {GOES_ON}"
        )


class WorkersLostError(RuntimeError):
    """Results were lost with workers of the cluster, and must be recomputed."""


_interrupted = False  # since the outermost context began


@contextmanager
def note_interrupts() -> Iterator[None]:
    """Note dropped interrupts for `_raise_interrupt`; only the main thread has any."""
    global _interrupted
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = sys.unraisablehook

    def note(unraisable: Any) -> None:
        global _interrupted
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _interrupted = True
        else:
            before(unraisable)

    sys.unraisablehook = note
    try:
        yield
        _raise_interrupt()
    finally:
        sys.unraisablehook = before
        _interrupted = False


def _raise_interrupt() -> None:
    if _interrupted and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def check_client(client: Client | None) -> Client:
    """Return the given client, or the current one."""
    if client is None:
        try:
            return get_client()
        except ValueError as error:
            raise ValueError("There is no Dask client; start one, or give client=.") from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client must be made with asynchronous=False; got an asynchronous one.")
    return client


def add_in_tree(
    client: Client, parts: list[Future], plus: Callable[..., Any], n_sums: int = 1
) -> list[Future]:
    """Start sums in a fixed tree and add them to `parts`; return the last `n_sums` futures."""
    level = list(parts)
    while len(level) > n_sums:
        n_pairs = len(level) // 2
        sums = client.map(plus, level[: 2 * n_pairs : 2], level[1::2], pure=False)  # one message
        parts += sums
        level = sums + level[2 * n_pairs :]
    return level


def reduce_tasks(
    client: Client, futures: Sequence[Future], plus: Callable[..., Any] = operator.add
) -> Any:
    """Return the sum of results, in a fixed tree over the blocks."""
    return result_of(client, add_in_tree(client, list(futures), plus)[0])


def keep_value(client: Client, value: object) -> Future:
    """Return a future of a value that the scheduler keeps, so that no worker can lose it."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        return client.submit(_kept, value, pure=False)


def _kept(value: Result) -> Result:
    return value


def retry(
    client: Client, attempt: Callable[[], Result], repair: Callable[[], None] = lambda: None
) -> Result:
    """Return the result of an attempt; if workers are lost, repair and repeat."""
    last: WorkersLostError | None = None
    for number in range(ATTEMPTS):
        try:
            if number:
                repair()
            return attempt()
        except WorkersLostError as error:
            last = error
            ask(client, client.nthreads)  # raises SchedulerLostError unless there is an answer
    raise WorkersLostError(
        f"Workers of the Dask cluster were lost {ATTEMPTS} times in one step, and the fit has "
        f"stopped. Look at their logs; they may have run out of memory. {GOES_ON}"
    ) from last


def ask(client: Client, call: Callable[[], Any], seconds: float | None = None) -> Any:
    """Return the result of a call of the client that needs an answer of the scheduler."""
    try:
        return _poll(client, call, seconds or SCHEDULER_TIMEOUT, SchedulerLostError())
    except _LOST as error:
        raise SchedulerLostError from error


def scatter(
    client: Client, data: Sequence[Array], places: Sequence[str]
) -> dict[str, list[Future]]:
    """Send data to workers for one step; return the futures for each place.

    If the client sends to workers directly, up to four workers get copies at the same time; more
    workers pass them on.  A worker that leaves during the transfer may block the scheduler:
    therefore data are sent only to these places, whose loss is noticed at once.
    """
    workers = sorted(set(places))
    direct = client.direct_to_workers and len(workers) <= _OWN_COPIES
    groups = [[worker] for worker in workers] if direct else [workers]

    async def send() -> list[list[Future]]:
        sent = (client.scatter(data, hash=False, workers=group) for group in groups)
        return list(await asyncio.gather(*sent))

    late = WorkersLostError(f"A worker accepts no data for {SCHEDULER_TIMEOUT:.0f} s. {GOES_ON}")
    try:
        received = _poll(client, send, SCHEDULER_TIMEOUT, late, _watch(client, [], places))
    except (*_LOST, KeyError) as error:  # a KeyError for a worker that has just gone
        raise _loss_error(client) from error
    pairs = zip(groups, received, strict=True)
    return {place: copies for group, copies in pairs for place in group}


def result_of(
    client: Client, futures: Any, places: Sequence[str] = (), call: Callable[[], Any] | None = None
) -> Any:
    """Return results of futures, or of a call that waits for them; `places` must stay."""
    flat = [futures] if isinstance(futures, Future) else list(futures)
    watch = _watch(client, flat, places)
    try:
        return _poll(client, call or (lambda: client.gather(futures)), watch=watch)
    except KeyboardInterrupt:
        cancel(client, flat)
        raise
    except _LOST as error:
        if any(future.status == "error" for future in flat):
            raise  # the error of a task
        if "restart" in str(error):
            raise RuntimeError(
                "The Dask cluster was restarted during the fit, which deletes all data and results."
                f" Fit again. {GOES_ON}"
            ) from error
        raise _loss_error(client) from error


def finish(client: Client, futures: Sequence[Future]) -> None:
    """Wait until futures are finished; raise their errors."""

    async def wait() -> None:
        while not all(future.done() for future in futures):
            await asyncio.sleep(POLL_INTERVAL / 100)

    result_of(client, futures, call=wait)
    for future in futures:
        if future.status in ("error", "cancelled"):
            result_of(client, future)
    if any(future.status != "finished" for future in futures):
        raise _loss_error(client)


def cancel(client: Client, futures: Sequence[Future]) -> None:
    """Cancel futures, if the scheduler still answers."""
    if client.status == "running":
        with suppress(SchedulerLostError):
            ask(client, lambda: client.cancel(list(futures), force=True))


def _loss_error(client: Client) -> RuntimeError:
    if client.status != "running":
        return SchedulerLostError()
    return WorkersLostError(f"Workers of the Dask cluster were lost in a step. {GOES_ON}")


def _poll(
    client: Client,
    call: Callable[[], Any],
    seconds: float = math.inf,
    late: RuntimeError | None = None,
    watch: Iterator[None] | None = None,
) -> Any:
    """Return the result of a call of the client on its loop; raise `late` after `seconds`."""
    end = monotonic() + seconds

    async def run() -> tuple[Any, BaseException | None]:
        try:
            result = call()
            return (await result if inspect.isawaitable(result) else result), None
        except Exception as error:  # some exceptions would cancel this call
            return None, error

    if client.status != "running":
        raise SchedulerLostError
    handle = asyncio.run_coroutine_threadsafe(run(), client.loop.asyncio_loop)
    try:
        while True:
            _raise_interrupt()
            try:
                result, error = handle.result(POLL_INTERVAL)
                break
            except concurrent.futures.TimeoutError:
                if client.status != "running":
                    raise SchedulerLostError from None
                if watch is not None:
                    next(watch)
                if late is not None and monotonic() > end:
                    raise late from None
    finally:
        handle.cancel()
    if error is not None:
        raise error
    return result


def _look_at_tasks(keys: Sequence[str], dask_scheduler: Scheduler = None) -> _State:
    """Return the state of the tasks with these keys; this runs on the scheduler.

    Return the workers; whether all tasks have results or errors; whether something that they need
    is being computed or transferred; whether a task waits for a suitable worker; and the reason if
    nothing happens.
    """
    workers = dask_scheduler.workers
    paused = {address: w for address, w in workers.items() if w.status.name == "paused"}
    tasks = [dask_scheduler.tasks.get(key) for key in keys]
    needed, waiting = set[TaskState](), {task for task in tasks if task is not None}
    while waiting:
        task = waiting.pop()
        needed.add(task)
        waiting |= set(task.waiting_on or ()) - needed
    done = all(task is not None and task.state in ("memory", "erred") for task in tasks)
    busy = any(
        (task.state == "processing" and _works(task.processing_on))
        or (task.state == "queued" and len(paused) < len(workers))
        for task in needed
    )
    unrunnable = not workers or any(
        task.state in ("no-worker", "queued")
        or (task.state == "processing" and task.processing_on.address in paused)
        for task in needed
    )
    if not workers:
        why = "The Dask cluster has no worker (workers that end repeatedly often lack memory)"
    elif len(paused) == len(workers):
        sizes = {
            a: (w.metrics.get("memory", 0) >> 20, w.memory_limit >> 20) for a, w in workers.items()
        }
        why = "All workers of the Dask cluster are paused because their memory is full: "
        why += ", ".join(f"{a} ({now} of {most} MiB)" for a, (now, most) in sizes.items())
    elif unrunnable:
        why = "No worker of the Dask cluster accepts a task of the fit"
    else:
        why = "Results of the Dask cluster do not arrive"
    return list(workers), done, busy, unrunnable, why


def _works(worker: WorkerState) -> bool:
    """Return whether a worker is working, according to its last heartbeat."""
    counts = worker.metrics.get("task_counts")
    if counts is None or time() - worker.last_seen > _HEARTBEAT_TIMEOUT:
        return True
    states = _AT_WORK if worker.status.name == "paused" else _AT_WORK + _DUE
    return any(
        n > 0 and (state if isinstance(state, str) else state[-1]) in states
        for state, n in counts.items()
    )


def _watch(client: Client, futures: Sequence[Future], places: Sequence[str]) -> Iterator[None]:
    """Check the cluster during a wait for futures; raise an error if waiting is useless."""
    keys = [future.key for future in futures]
    before, warned = set(places), False
    since: float | None = None  # time of the first check at which no worker was working
    while True:
        now: _State = ask(client, lambda: client.run_on_scheduler(_look_at_tasks, keys))
        addresses, done, busy, unrunnable, reason = now
        workers = set(addresses)
        if lost := before - workers:
            text = "workers were lost, often for lack of memory (see their logs): %s; %d are left"
            logger.warning(text, ", ".join(sorted(lost)), len(workers))
        before = workers
        if gone := sorted(set(places) - workers):
            raise WorkersLostError(f"Workers were lost: {', '.join(gone)}.")
        if busy:
            since, warned = None, False
            yield
            continue
        since = since or monotonic()
        seconds = monotonic() - since
        arriving = done and all(future.status == "finished" for future in futures)
        waits = unrunnable or arriving
        if waits and seconds > GIVE_UP_AFTER:
            raise RuntimeError(f"{reason} for {seconds:.0f} s: the fit has stopped. {GOES_ON}")
        if not waits and seconds > IDLE_TIMEOUT:
            wait = f"no worker has worked on them for {seconds:.0f} s"
            raise WorkersLostError(f"Tasks were lost: {wait}. {GOES_ON}")
        if unrunnable and seconds > WARN_AFTER and not warned:
            warned = True
            logger.warning("%s; the fit waits up to %.0f s", reason, GIVE_UP_AFTER)
        yield
