"""Tasks on a Dask cluster: one for each block, on its worker, and sums of what they say.

Results are added in a fixed tree over the numbers of the blocks, so that they do not depend on the
number of workers.  Everything else is left to Dask: where data go, what is computed again when a
worker is lost, and how results travel.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from distributed import Client, get_client, wait
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm import CommClosedError

from .._common.arrays import Array
from . import _block
from ._block import Order, Said

_logger = logging.getLogger("ssnmf_fast.dask")

_PATIENCE = 1.0  # seconds between two looks at the workers
_ATTEMPTS = 10
_LOST = (CommClosedError, FutureCancelledError, FuturesCancelledError, OSError)
_NO_SCHEDULER = (
    "The scheduler of the Dask cluster no longer answers, and the fit has stopped. Start a cluster "
    "again; a fit with checkpoint= goes on by init=ssnmf_fast.load(path)."
)


class SchedulerLostError(RuntimeError):
    """The scheduler of the cluster no longer answers."""


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
        raise ValueError("client is asynchronous; expected one made with asynchronous=False.")
    return client


def result_of(client: Client, futures: Any) -> Any:
    """Return the results of futures; Ctrl-C cancels them."""
    try:
        return client.gather(futures)
    except KeyboardInterrupt:
        client.cancel(futures, force=True)
        raise
    except _LOST as error:
        if client.status != "running":
            raise SchedulerLostError(_NO_SCHEDULER) from error
        raise


def added(
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


class Blocks:
    """Blocks of a fit, each on its worker.

    Tasks go to the worker that has the block, since the rows of S are kept there.
    """

    def __init__(self, client: Client, futures: Sequence[Any]) -> None:
        self.client = client
        self.fit = f"ssnmf-fast-{uuid.uuid4().hex[:12]}"
        self.futures = list(futures)
        self._places: list[str] = []
        self._held: list[Any] = []  # futures of the last task
        self._count = 0
        self.number = 0  # of the last order that changed the rows

    def __len__(self) -> int:
        return len(self.futures)

    def settle(self) -> None:
        """Wait for all blocks, and see where they are."""
        with suppress(FuturesCancelledError):  # told of below
            self._wait(self.futures)
        for number, future in enumerate(self.futures):
            if future.status == "error":
                future.result()  # raises what the task raised
            if future.status != "finished":
                raise RuntimeError(
                    f"The data of block {number} were lost with a worker, and Dask cannot make "
                    "them again. Give a dask array, delayed objects or files instead of data that "
                    "were scattered; a fit with checkpoint= goes on by "
                    "init=ssnmf_fast.load(path)."
                )
        where = self.client.who_has(self.futures)
        self._places = [next(iter(where[future.key]), "") for future in self.futures]

    def replace(
        self, task: Callable[..., Any], *arguments: Any, own: Sequence[Any] | None = None
    ) -> None:
        """Make every block anew where it is, from what it was and an argument of its own."""
        firsts = [()] * len(self) if own is None else [(each,) for each in own]
        self.futures = [
            self.client.submit(
                task,
                future,
                *first,
                *arguments,
                workers=[place],
                allow_other_workers=True,
                pure=False,
            )
            for future, place, first in zip(self.futures, self._places, firsts, strict=True)
        ]
        self.settle()

    def each(self, task: Callable[..., Any], arguments: Sequence[Any], *shared: Any) -> list[Any]:
        """Start a task for every block with its argument; return the futures."""
        self._count += 1
        submit = self.client.submit
        return [
            submit(
                _block.guarded,
                future,
                self.fit,
                task,
                argument,
                *shared,
                key=f"{self.fit}-{task.__name__}-{self._count}-{number}",
                workers=[self._places[number]],
                allow_other_workers=False,
                pure=False,
            )
            for number, (future, argument) in enumerate(zip(self.futures, arguments, strict=True))
        ]

    def said(self, task: Callable[..., Said], arguments: Sequence[Any], *factors: Array) -> Said:
        """Return the sum of what a task says of all blocks.

        Blocks of a worker that is lost come to another one, where Dask makes them again, and the
        task is started once more.
        """
        trouble: BaseException | None = None
        for _ in range(_ATTEMPTS):
            started: list[Any] = []
            try:
                shared = self.client.scatter(list(factors), hash=False) if factors else []
                started += self.each(task, arguments, *shared)
                # The last sum is the caller's where workers send to it directly: that spares them a
                # way.
                last = added(
                    self.client, started, _block.plus, 2 if self.client.direct_to_workers else 1
                )
                # What is no longer needed is told with the new tasks: messages by themselves would
                # let those wait.
                self._held = [*started, *shared]
                if self._wait(last, self._stranded):
                    said: Said = reduce(_block.plus, self.client.gather(last))
                    self._log(factors, said)
                    return said
            except _LOST as error:  # with a worker, unless nobody answers
                trouble = error
                self._check_scheduler(error)
            except BaseException:
                self._cancel(started)
                raise
            self._cancel(started)
            self.settle()
        raise RuntimeError(
            f"Workers of the Dask cluster were lost {_ATTEMPTS} times in one iteration, and the "
            "fit has stopped. Look at their logs; they may have run out of memory."
        ) from trouble

    def _log(self, factors: Sequence[Array], said: Said) -> None:
        """Log how much has been sent: factors to every worker, and sums from every worker."""
        if _logger.isEnabledFor(logging.INFO):
            n_workers = len(set(self._places))
            sent, back = sum(F.nbytes for F in factors), said.n_bytes
            megabytes = n_workers * (sent + back) / 1e6
            _logger.info("%d workers: %.1f MB moved (%s)", n_workers, megabytes, self.fit)

    def order(self, order: Order, *factors: Array) -> Said:
        """Return what all blocks say after an order."""
        return self.said(_block.work, [order] * len(self), *factors)

    def taken(self, names: tuple[str, ...], factors: Sequence[Array]) -> list[Any]:
        """Return futures of the rows of S, which other workers may solve for again."""
        return self.rows(_block.taken, names, factors=factors)

    def rows(
        self, task: Callable[..., Array], *arguments: Any, factors: Sequence[Array]
    ) -> list[Any]:
        """Return futures of what a task makes of the rows of blocks, on any worker."""
        shared = self.client.scatter(list(factors), hash=False)
        futures = [
            self.client.submit(
                _block.guarded,
                future,
                self.fit,
                task,
                *arguments,
                *shared,
                workers=[place],
                allow_other_workers=True,
                pure=False,
            )
            for future, place in zip(self.futures, self._places, strict=True)
        ]
        self._wait(futures)  # before the workers drop the rows
        return futures

    def forget(self) -> None:
        """Let the workers drop what they keep for this fit."""
        if self.client.status == "running":
            self.client.run(_block.forget, self.fit, on_error="ignore")

    def _cancel(self, futures: Sequence[Any]) -> None:
        if self.client.status == "running":
            self.client.cancel(list(futures), force=True)

    def _stranded(self) -> bool:
        """Whether a worker with blocks is gone."""
        return not set(self._places) <= set(self.client.nthreads())

    def _check_scheduler(self, error: BaseException) -> None:
        """Raise SchedulerLostError unless the scheduler answers."""
        try:
            if self.client.status == "running":
                self.client.nthreads()
                return
        except (*_LOST, TimeoutError):
            pass
        raise SchedulerLostError(_NO_SCHEDULER) from error

    def _wait(self, futures: Sequence[Any], stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait until futures are done, or return False where `stop` says so."""
        while True:
            try:
                wait(futures, timeout=_PATIENCE)
                return True
            except TimeoutError:
                if self.client.status != "running":
                    raise SchedulerLostError(_NO_SCHEDULER) from None
                if stop():
                    return False
