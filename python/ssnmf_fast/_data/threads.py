"""Numbers of threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache, partial
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController, register

from .._backend import dispatch
from .._common.locks import ForkLock, result_of
from .._version import __version__

_MOST = 2**31 - 1  # limit of a C int; kernels do not start more threads than they need

_forked = False

# Blocks that limit a kind of libraries in the whole process, of all threads, and their limit.
_users = {"blas": 0, "openmp": 0}
_limits: dict[str, Any] = {}
_lock = ForkLock()
# Since threadpoolctl 3.8, only the thread that set a limit may change it.
_let_go = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)

_limit = _MOST  # of threadpoolctl, for the whole process


class _KernelThreads(LibController):  # type: ignore[misc]
    """For threadpoolctl and joblib: limits the threads of the kernels in the whole process."""

    user_api = "openmp"
    internal_api = "ssnmf_fast"
    filename_prefixes = (f"_kernels_{dispatch.level}",)
    check_symbols = (f"PyInit__kernels_{dispatch.level}",)  # another package may have such a name

    def get_num_threads(self) -> int:
        return resolve_threads()

    def set_num_threads(self, num_threads: int) -> None:
        global _limit
        _limit = num_threads

    def get_version(self) -> str:
        return __version__


register(_KernelThreads)


@cache
def libraries() -> ThreadpoolController:
    """Return all other libraries of the process; finding them takes some milliseconds."""
    controller = ThreadpoolController()
    kinds = {library.internal_api for library in controller.lib_controllers}
    return controller.select(internal_api=sorted(kinds - {_KernelThreads.internal_api}))


@contextmanager
def _limited(kind: str, n_threads: int) -> Iterator[None]:
    """Limit a kind of libraries in a block, until no other block of any thread needs it."""
    with _lock:
        if not _users[kind]:
            _limits[kind] = libraries().limit(limits=n_threads, user_api=kind)
        _users[kind] += 1
    try:
        yield
    finally:
        with _lock:
            _users[kind] -= 1
            if not _users[kind]:
                _let_go(force=True)  # another thread may have set the limit
                _limits.pop(kind).restore_original_limits()
                _let_go(force=True)


# Limits BLAS to one thread in a block, for speed and equal sums; also a decorator.
one_blas_thread = partial(_limited, "blas", 1)


@contextmanager
def limited_openmp(n_threads: int) -> Iterator[None]:
    """Limit OpenMP loops of other libraries to some threads in a block, and BLAS to one."""
    with one_blas_thread(), _limited("openmp", n_threads):
        yield


def _mark_forked() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    # A child has no threads of its parent; the kernels do not start others there, because most
    # children share the cores with siblings.
    os.register_at_fork(after_in_child=_mark_forked)


def _checked(number: int, name: str) -> int:
    from .border import check_integer  # with SciPy, which `import ssnmf_fast` does without

    return check_integer(number, name, 1, _MOST)


def resolve_threads(n_threads: int | None = None) -> int:
    """Return the number of threads: `n_threads`, OMP_NUM_THREADS or the available cores."""
    if n_threads is not None:
        n_threads = _checked(n_threads, "n_threads")
    if _forked:
        return 1
    if n_threads is not None:
        return int(n_threads)
    if dispatch.level_in_use() == "reference":
        return 1
    count = 0
    with suppress(ValueError):
        count = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0])  # the first of a list
    if count > 0:
        return min(count, _limit)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    group = Path("/sys/fs/cgroup")
    old = (group / "cpu/cpu.cfs_quota_us", group / "cpu/cpu.cfs_period_us")
    for files in ((group / "cpu.max",), old):
        with suppress(OSError, ValueError):  # "max", or -1, means no quota
            quota, period = map(float, " ".join(file.read_text() for file in files).split())
            cores = min(cores, max(1, round(quota / period))) if quota > 0 else cores
            break
    return min(cores, _limit)


Result = TypeVar("Result")
Stop = Callable[[Any], bool]
Task = Callable[[int, Stop], Result]


def resolve_jobs(n_jobs: int | None, n_threads: int | None, n_tasks: int) -> tuple[int, int]:
    """Return how many tasks run at a time (None: one per thread), and the threads of each."""
    threads = resolve_threads(n_threads)
    jobs = threads if n_jobs is None or n_jobs == -1 else _checked(n_jobs, "n_jobs")
    jobs = max(1, min(jobs, n_tasks))
    return jobs, max(1, threads // jobs)


def run_side_by_side(tasks: Iterable[Task[Result]], jobs: int, threads: int) -> Iterator[Result]:
    """Run tasks, `jobs` of them at a time, and yield their results in order.

    A task gets its number of threads, and a callback that ends its fits when the run is stopped (by
    an error, Ctrl-C, or if no more results are needed).  It must not depend on when others run.
    Tasks are taken from the iterable when they start.  BLAS has one thread only while they run.
    """

    @one_blas_thread()
    def run(task: Task[Result], stop: Stop) -> Result:
        return task(threads, stop)

    if jobs == 1:
        yield from (run(task, lambda _: False) for task in tasks)
        return
    stopped = Event()
    waiting: deque[Future[Result]] = deque()
    remaining = iter(tasks)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while True:
                for task in islice(remaining, 2 * jobs - len(waiting)):
                    inside = copy_context().run
                    waiting.append(pool.submit(inside, run, task, lambda _: stopped.is_set()))
                if not waiting:
                    return
                yield result_of(waiting.popleft())
        finally:
            stopped.set()
            for future in waiting:
                future.cancel()
