"""Tasks on a Dask cluster: one for each block, on its worker, and sums of their statistics.

Results are added in a fixed tree over the numbers of the blocks, so that they do not depend on the
number of workers.  Everything else is left to Dask: where data go, what is computed again when a
worker is lost, and how results travel.
"""

from __future__ import annotations

import logging
import operator
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import dask
import numpy as np
from distributed import Client, get_client

from .._common.arrays import Array
from . import _rows, _waiting
from ._rows import BlockStatistics, Order, aligned_copy, forget, read, run_task
from ._waiting import GOES_ON, WorkersLostError, ask, finish, logger, note_interrupts, result_of

Result = TypeVar("Result")
Self = TypeVar("Self", bound="Blocks")

ATTEMPTS = 10


def check_client(client: Any) -> Client:
    """Return the client that is given, or the one that is in use."""
    if client is None:
        try:
            return get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client. Start one before, for example by client = "
                "dask.distributed.Client(), or give client=."
            ) from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client must be made with asynchronous=False; got an asynchronous one.")
    return client


def add_in_tree(
    client: Client, parts: list[Any], plus: Callable[[Any, Any], Any], n_sums: int = 1
) -> list[Any]:
    """Start sums in a fixed tree; return futures of the last ones, `parts` gets all of them."""
    level = list(parts)
    while len(level) > n_sums:
        n_pairs = len(level) // 2
        pairs = level[: 2 * n_pairs : 2], level[1::2]
        sums = client.map(plus, *pairs, pure=False)  # one message
        parts += sums
        level = sums + ([level[-1]] if len(level) % 2 else [])
    return level


def reduce_tasks(
    client: Client, futures: Sequence[Any], plus: Callable[[Any, Any], Any] = operator.add
) -> Any:
    """Return the sum of results, added in a fixed tree over the blocks."""
    return result_of(client, add_in_tree(client, list(futures), plus)[0])


def keep_value(client: Client, value: Array) -> Any:
    """Return a future of an array that is kept by the scheduler: no worker can take it away."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        return client.submit(np.asarray, value, pure=False)


def insist(
    client: Client, attempt: Callable[[], Result], mend: Callable[[], None] = lambda: None
) -> Result:
    """Return what an attempt returns; make it again if workers are lost, after `mend`."""
    trouble: WorkersLostError | None = None
    for number in range(ATTEMPTS):
        try:
            if number:
                mend()
            return attempt()
        except WorkersLostError as error:
            trouble = error
            ask(client, client.nthreads)  # raises SchedulerLostError unless there is an answer
    raise WorkersLostError(
        f"Workers of the Dask cluster were lost {ATTEMPTS} times in one step, and the fit has "
        f"stopped. Look at their logs; they may have run out of memory. {GOES_ON}"
    ) from trouble


def _find_homes(
    keys: Sequence[Any], before: Sequence[str], dask_scheduler: Any = None
) -> list[str]:
    """Return for each key a worker that has it, or "": one that stays, as before if it can."""
    found = []
    for key, home in zip(keys, before, strict=True):
        task = dask_scheduler.tasks.get(key)
        workers = (task and task.who_has) or ()
        having = [(w.status.name != "running", w.address != home, w.address) for w in workers]
        found.append(min(having, default=("",))[-1])
    return found


class Blocks:
    """Blocks of a fit, each on its worker, where its rows of S are, and where its tasks go.

    As a context, it lets the workers drop in the end what they keep for the fit.
    """

    def __init__(self, client: Client, futures: list[Any], fit: str) -> None:
        self.client, self.futures, self._fit = client, futures, fit
        self._places: list[str] = []
        self._held: list[Any] = []  # futures of the last task
        self._count = 0
        self.number = 0  # of the last order that changed the rows
        self._interrupts = note_interrupts()
        self.locate()

    def locate(self) -> None:
        """Wait for all blocks, and see where they are."""
        insist(self.client, self._locate)

    def _locate(self) -> None:
        try:
            finish(self.client, self.futures)
        except WorkersLostError as error:
            for number, future in enumerate(self.futures):
                if future.cancelled():
                    raise RuntimeError(
                        f"The data of block {number} were lost, and Dask cannot make them again: "
                        "they were scattered, or were cancelled, as client.restart() does. Give a "
                        f"dask array, delayed objects or files. {GOES_ON}"
                    ) from error
            raise
        keys = [future.key for future in self.futures]
        given = keys, self._places or [""] * len(keys)  # rows of S stay where they are
        places = ask(self.client, self.client.run_on_scheduler, _find_homes, *given)
        if not all(places):
            raise WorkersLostError("A worker was lost while the blocks were located.")
        self._places = places

    def anywhere(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Start a task for every block at its place, or at another one if that is gone."""
        submit, where = self.client.submit, {"allow_other_workers": True, "pure": False}
        return [
            submit(task, future, *arguments, workers=[place], **where)
            for future, place in zip(self.futures, self._places, strict=True)
        ]

    def replace(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Make every block anew where it is, from what it was."""
        self.futures = self.anywhere(task, *arguments)
        self.locate()

    def collect(
        self, task: Callable[..., BlockStatistics], each: Sequence[Any], *factors: Array
    ) -> BlockStatistics:
        """Return the sum of the statistics that a task returns for all blocks with an argument.

        Blocks of a worker that is lost come to another one, where Dask makes them again, and the
        task is started once more.
        """
        return insist(self.client, lambda: self._collect(task, each, *factors), self.locate)

    def _collect(
        self, task: Callable[..., BlockStatistics], each: Sequence[Any], *factors: Array
    ) -> BlockStatistics:
        client, started = self.client, list[Any]()
        self._count += 1
        try:
            sent = _waiting.scatter(client, list(factors), self._places) if factors else {}
            shared = [sent.get(place, []) for place in self._places]
            numbers = range(len(self.futures))
            keys = [f"{self._fit}-{task.__name__}-{self._count}-{number}" for number in numbers]
            given = self.futures, [task] * len(keys), each, *zip(*shared, strict=True)
            # All in one message, with the place of each.
            where = dict(zip(keys, self._places, strict=True)).__getitem__
            with dask.annotate(workers=where, allow_other_workers=False):
                started += client.map(run_task, *given, key=keys, pure=False)
            # The last sum is the caller's where workers send to it directly, which saves a way.
            last = add_in_tree(client, started, operator.add, 2 if client.direct_to_workers else 1)
            # What is no longer needed is told with the new tasks: messages by themselves would let
            # those wait.
            self._held = [started, sent]
            sums: list[BlockStatistics] = result_of(client, last, self._places)
        except BaseException:
            _waiting.cancel(client, started)
            raise
        found = sums[0].copied(aligned_copy)
        for other in sums[1:]:
            found.add(other)
        if logger.isEnabledFor(logging.INFO):  # factors go to every worker, and sums come back
            n_workers = len(set(self._places))
            size = sum(F.nbytes for F in factors) + len(pickle.dumps(found, protocol=5))
            moved = n_workers * size / 1e6
            logger.info("%d workers: %.1f MB moved (%s)", n_workers, moved, keys[-1])
        return found

    def obey(self, order: Order, factors: Mapping[str, Array]) -> BlockStatistics:
        """Return the statistics of all blocks after an order."""
        others = (factors[name] for name in order.names)
        return self.collect(_rows.work, [order] * len(self.futures), *others)

    def read(
        self, order: Order, what: Callable[..., Array], factors: Mapping[str, Array]
    ) -> list[Any]:
        """Return futures of what a function makes of the rows of each block, on any worker."""
        shared = [keep_value(self.client, factors[name]) for name in order.names]

        def attempt() -> list[Any]:
            futures = self.anywhere(run_task, read, order, what, *shared)
            finish(self.client, futures)  # before the workers drop the rows
            return futures

        return insist(self.client, attempt, self.locate)

    def __enter__(self: Self) -> Self:
        self._interrupts.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._interrupts.__exit__(*error)
        finally:
            if self.client.status == "running":
                with suppress(RuntimeError):
                    options: dict[str, Any] = {"on_error": "ignore", "seconds": _waiting.IDLE}
                    ask(self.client, self.client.run, forget, self._fit, **options)
