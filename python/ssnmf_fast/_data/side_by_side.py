"""Several calls at once, in threads, with the results in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Event
from typing import Any, TypeVar

from .checks import check_integer
from .threads import one_blas_thread, resolve_threads

Result = TypeVar("Result")
Stop = Callable[[Any], bool]
Task = Callable[[int, Stop], Result]


def resolve_jobs(n_jobs: int | None, n_threads: int | None, n_tasks: int) -> tuple[int, int]:
    """Return how many tasks run at a time, and how many threads each of them may use.

    `n_threads` are those of all tasks together.  None, or -1, stands for as many tasks as these
    threads can serve: small fits gain more from one thread each than from several threads.
    """
    threads = resolve_threads(n_threads)
    jobs = threads if n_jobs is None or n_jobs == -1 else check_integer(n_jobs, "n_jobs", 1)
    jobs = max(1, min(jobs, n_tasks))
    return jobs, max(1, threads // jobs)


def run_side_by_side(tasks: Iterable[Task[Result]], jobs: int, threads: int) -> Iterator[Result]:
    """Run tasks, `jobs` of them at a time, and give their results in their order.

    A task is called with its number of threads, and with a callback for its fits, which ends them
    when the others are stopped: after an error of one of the tasks, after Ctrl-C, or where nobody
    asks for further results.  It must not depend on when others run.  Tasks are taken from the
    iterable as they are begun, so that it may make them when they are needed.
    """
    with one_blas_thread():
        if jobs == 1:
            yield from (task(threads, _go_on) for task in tasks)
            return
        stopped = Event()
        waiting: deque[Future[Result]] = deque()
        remaining = iter(tasks)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                while True:
                    for task in islice(remaining, 2 * jobs - len(waiting)):
                        waiting.append(pool.submit(task, threads, lambda _: stopped.is_set()))
                    if not waiting:
                        return
                    yield waiting.popleft().result()
            finally:
                stopped.set()
                for future in waiting:
                    future.cancel()


def _go_on(_: Any) -> bool:
    return False
