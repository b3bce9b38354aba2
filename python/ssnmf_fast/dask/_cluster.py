"""Tasks on a Dask cluster: one for each block, on its worker, and sums of their statistics.

Results are added in a fixed tree over the numbers of the blocks, so that they do not depend on the
number of workers.  Everything else is left to Dask: where data go, what is computed again when a
worker is lost, and how results travel.
"""

from __future__ import annotations

import logging
import operator
import pickle
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, TypeVar

import dask
import numpy as np
from distributed import Client, Future, get_client

from .._common.arrays import Array
from . import _rows, _waiting
from ._rows import BlockStatistics, Order
from ._waiting import (
    GOES_ON,
    WorkersLostError,
    ask,
    cancel,
    finish,
    logger,
    result_of,
    scatter,
)

Result = TypeVar("Result")

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
        pairs = zip(level[::2], level[1::2], strict=False)
        sums = [client.submit(plus, *pair, pure=False) for pair in pairs]
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


def _find_homes(keys: Sequence[Any], dask_scheduler: Any = None) -> list[str]:
    """Return for each key a worker that has it, or "": one that stays, not one that ends."""
    found = []
    for key in keys:
        task = dask_scheduler.tasks.get(key)
        having = [] if task is None else list(task.who_has or ())
        having.sort(key=lambda worker: (worker.status.name != "running", worker.address))
        found.append(having[0].address if having else "")
    return found


class Blocks:
    """Blocks of a fit, each on its worker.

    Tasks go to the worker that has the rows of S of the block, where its keeper is.
    """

    def __init__(self, client: Client, futures: Sequence[Any]) -> None:
        self.client = client
        self.fit = f"ssnmf-fast-{uuid.uuid4().hex[:12]}"
        self.futures = list(futures)
        self._keepers: list[Any] = []
        self._places: list[str] = []
        self._held: list[Any] = []  # futures of the last task
        self._count = 0
        self.number = 0  # of the last order that changed the rows

    def locate(self) -> None:
        """Wait for all blocks, and see where their rows are."""
        insist(self.client, self._locate)

    def _locate(self) -> None:
        self._finish_blocks()
        if not self._keepers:
            places = self._find_homes(self.futures)
            self._keepers = [
                self._anywhere(place, _rows.make_keeper, future, self.fit)
                for place, future in zip(places, self.futures, strict=True)
            ]
        finish(self.client, self._keepers)
        self._places = self._find_homes(self._keepers)

    def _finish_blocks(self) -> None:
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

    def _find_homes(self, futures: Sequence[Future]) -> list[str]:
        keys = [future.key for future in futures]
        found: list[str] = ask(self.client, self.client.run_on_scheduler, _find_homes, keys)
        if not all(found):
            raise WorkersLostError("A worker was lost while the blocks were located.")
        return found

    def _anywhere(self, place: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Start a task at a place, or at another one if it is gone."""
        where: dict[str, Any] = {"workers": [place], "allow_other_workers": True}
        return self.client.submit(task, *arguments, **where, pure=False)

    def replace(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Make every block anew where it is, from what it was."""
        self.futures = [
            self._anywhere(place, task, future, *arguments)
            for future, place in zip(self.futures, self._places, strict=True)
        ]
        self.locate()

    def _each(self, task: Callable[..., Any], arguments: Sequence[Any], *shared: Any) -> list[Any]:
        """Start a task for every block with its argument; return the futures."""
        self._count += 1
        blocks = zip(self.futures, self._keepers, arguments, self._places, strict=True)
        futures = []
        for number, (future, keeper, argument, place) in enumerate(blocks):
            where: dict[str, Any] = {"workers": [place], "allow_other_workers": False}
            key = f"{self.fit}-{task.__name__}-{self._count}-{number}"
            given = future, keeper, task, argument, *shared
            futures.append(self.client.submit(_rows.run_task, *given, **where, key=key, pure=False))
        return futures

    def collect(
        self, task: Callable[..., BlockStatistics], arguments: Sequence[Any], *factors: Array
    ) -> BlockStatistics:
        """Return the sum of the statistics that a task returns for all blocks.

        Blocks of a worker that is lost come to another one, where Dask makes them again, and the
        task is started once more.
        """
        return insist(self.client, lambda: self._collect(task, arguments, *factors), self.locate)

    def _collect(
        self, task: Callable[..., BlockStatistics], arguments: Sequence[Any], *factors: Array
    ) -> BlockStatistics:
        started: list[Any] = []
        try:
            shared = scatter(self.client, list(factors), self._places) if factors else []
            started += self._each(task, arguments, *shared)
            # The last sum is the caller's where workers send to it directly: that spares them a
            # way.
            n_sums = 2 if self.client.direct_to_workers else 1
            last = add_in_tree(self.client, started, operator.add, n_sums)
            # What is no longer needed is told with the new tasks: messages by themselves would let
            # those wait.
            self._held = [*started, *shared]
            found: BlockStatistics = reduce(
                operator.add, result_of(self.client, last, self._places)
            )
        except BaseException:
            cancel(self.client, started)
            raise
        self._log(factors, found)
        return found

    def _log(self, factors: Sequence[Array], found: BlockStatistics) -> None:
        """Log how much has been sent: factors to every worker, and sums from every worker."""
        if logger.isEnabledFor(logging.INFO):
            n_workers = len(set(self._places))
            sent, back = sum(F.nbytes for F in factors), len(pickle.dumps(found, protocol=5))
            megabytes = n_workers * (sent + back) / 1e6
            logger.info("%d workers: %.1f MB moved (%s)", n_workers, megabytes, self.fit)

    def obey(self, order: Order, factors: Mapping[str, Array]) -> BlockStatistics:
        """Return the statistics of all blocks after an order."""
        others = (factors[name] for name in order.names)
        return self.collect(_rows.work, [order] * len(self.futures), *others)

    def read(
        self,
        order: Order,
        what: Callable[..., Array],
        given: Sequence[Any],
        factors: Mapping[str, Array],
    ) -> list[Any]:
        """Return futures of what a function makes of the rows of each block, on any worker."""
        shared = [keep_value(self.client, factors[name]) for name in order.names]
        arguments = (_rows.read, order, what, given, *shared)

        def attempt() -> list[Any]:
            blocks = zip(self._places, self.futures, self._keepers, strict=True)
            futures = [
                self._anywhere(place, _rows.run_task, future, keeper, *arguments)
                for place, future, keeper in blocks
            ]
            finish(self.client, futures)  # before the workers drop the rows
            return futures

        return insist(self.client, attempt, self.locate)

    def forget(self) -> None:
        """Let the workers drop what they keep for this fit."""
        if self.client.status == "running":
            with suppress(RuntimeError):
                options: dict[str, Any] = {"on_error": "ignore", "seconds": _waiting.IDLE}
                ask(self.client, self.client.run, _rows.forget, self.fit, **options)
