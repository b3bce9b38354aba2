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

from distributed import Client, Future, get_client

from .._common.arrays import Array
from . import _block, _rows, _waiting
from ._block import Order, Said
from ._standing import homes
from ._waiting import (
    WorkersLostError,
    ask,
    cancel,
    finish,
    insist,
    lasting,
    logger,
    result_of,
    scatter,
)


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

    def __len__(self) -> int:
        return len(self.futures)

    def settle(self) -> None:
        """Wait for all blocks, and see where their rows are."""
        insist(self.client, self._settle)

    def _settle(self) -> None:
        self._finish_blocks()
        if not self._keepers:
            places = self._homes(self.futures)
            self._keepers = [
                self._anywhere(place, _block.keeper, future, self.fit)
                for place, future in zip(places, self.futures, strict=True)
            ]
        finish(self.client, self._keepers)
        self._places = self._homes(self._keepers)

    def _finish_blocks(self) -> None:
        try:
            finish(self.client, self.futures)
        except WorkersLostError as error:
            for number, future in enumerate(self.futures):
                if future.cancelled():
                    raise RuntimeError(
                        f"The data of block {number} were lost, and Dask cannot make them again: "
                        "they were scattered, or were cancelled, as client.restart() does. Give a "
                        "dask array, delayed objects or files; a fit with checkpoint= goes on by "
                        "init=ssnmf_fast.load(path)."
                    ) from error
            raise

    def _homes(self, futures: Sequence[Future]) -> list[str]:
        keys = [future.key for future in futures]
        found: list[str] = ask(self.client, self.client.run_on_scheduler, homes, keys)
        if not all(found):
            raise WorkersLostError("A worker was lost while the blocks settled.")
        return found

    def _anywhere(self, place: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Start a task at a place, or at another one if it is gone."""
        where: dict[str, Any] = {"workers": [place], "allow_other_workers": True}
        return self.client.submit(task, *arguments, **where, pure=False)

    def replace(
        self, task: Callable[..., Any], *arguments: Any, own: Sequence[Any] | None = None
    ) -> None:
        """Make every block anew where it is, from what it was and an argument of its own."""
        firsts = [()] * len(self) if own is None else [(each,) for each in own]
        self.futures = [
            self._anywhere(place, task, future, *first, *arguments)
            for future, place, first in zip(self.futures, self._places, firsts, strict=True)
        ]
        self.settle()

    def each(self, task: Callable[..., Any], arguments: Sequence[Any], *shared: Any) -> list[Any]:
        """Start a task for every block with its argument; return the futures."""
        self._count += 1
        return [
            self.client.submit(
                _block.guarded,
                future,
                keeper,
                task,
                argument,
                *shared,
                key=f"{self.fit}-{task.__name__}-{self._count}-{number}",
                workers=[place],
                allow_other_workers=False,
                pure=False,
            )
            for number, (future, keeper, place, argument) in enumerate(
                zip(self.futures, self._keepers, self._places, arguments, strict=True)
            )
        ]

    def said(self, task: Callable[..., Said], arguments: Sequence[Any], *factors: Array) -> Said:
        """Return the sum of what a task says of all blocks.

        Blocks of a worker that is lost come to another one, where Dask makes them again, and the
        task is started once more.
        """
        return insist(self.client, lambda: self._said(task, arguments, *factors), self.settle)

    def _said(self, task: Callable[..., Said], arguments: Sequence[Any], *factors: Array) -> Said:
        started: list[Any] = []
        try:
            shared = scatter(self.client, list(factors), self._places) if factors else []
            started += self.each(task, arguments, *shared)
            # The last sum is the caller's where workers send to it directly: that spares them a
            # way.
            last = added(
                self.client, started, _block.plus, 2 if self.client.direct_to_workers else 1
            )
            # What is no longer needed is told with the new tasks: messages by themselves would let
            # those wait.
            self._held = [*started, *shared]
            said: Said = reduce(_block.plus, result_of(self.client, last, self._places))
        except BaseException:
            cancel(self.client, started)
            raise
        self._log(factors, said)
        return said

    def _log(self, factors: Sequence[Array], said: Said) -> None:
        """Log how much has been sent: factors to every worker, and sums from every worker."""
        if logger.isEnabledFor(logging.INFO):
            n_workers = len(set(self._places))
            sent, back = sum(F.nbytes for F in factors), said.n_bytes
            megabytes = n_workers * (sent + back) / 1e6
            logger.info("%d workers: %.1f MB moved (%s)", n_workers, megabytes, self.fit)

    def order(self, order: Order, *factors: Array) -> Said:
        """Return what all blocks say after an order."""
        return self.said(_block.work, [order] * len(self), *factors)

    def rows(
        self, task: Callable[..., Array], *arguments: Any, factors: Sequence[Array]
    ) -> list[Any]:
        """Return futures of what a task makes of the rows of blocks, on any worker."""
        shared = [lasting(self.client, F) for F in factors]

        def attempt() -> list[Any]:
            blocks = zip(self._places, self.futures, self._keepers, strict=True)
            futures = [
                self._anywhere(place, _block.guarded, future, keeper, task, *arguments, *shared)
                for place, future, keeper in blocks
            ]
            finish(self.client, futures)  # before the workers drop the rows
            return futures

        return insist(self.client, attempt, self.settle)

    def forget(self) -> None:
        """Let the workers drop what they keep for this fit."""
        if self.client.status == "running":
            with suppress(*_waiting.LOST, RuntimeError):
                seconds = _waiting.IDLE  # of a worker that does not answer
                run = self.client.run
                ask(self.client, run, _rows.forget, self.fit, on_error="ignore", seconds=seconds)
