"""A matrix on disk that several fits read together: each block once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

import scipy.sparse as sp

from .csr_file import CsrFile

Block = tuple[slice, sp.csr_array]


class SharedFile(CsrFile):
    """A file for fits in threads of their own, which do the same number of passes at a time.

    A pass begins when all members have come to it; who comes too late joins the next one.
    """

    def __init__(self, file: CsrFile) -> None:
        self.__dict__.update(file.__dict__)
        self._change = Condition()
        self._members = 0
        self._waiting = 0
        self._pass: _Pass | None = None

    @contextmanager
    def member(self) -> Iterator[None]:
        """Let the fit within take part."""
        with self._change:
            self._members += 1
        try:
            yield
        finally:
            with self._change:
                self._members -= 1
                self._begin_if_all_wait()

    def blocks(self) -> Iterator[Block]:
        """Read all rows together with the other members; without members, alone."""
        if not self._members:
            yield from super().blocks()
            return
        together = self._join()
        try:
            while (block := together.next_block()) is not None:
                yield block
        finally:
            together.leave()

    def _join(self) -> _Pass:
        with self._change:
            before = self._pass
            self._waiting += 1
            self._begin_if_all_wait()
            self._change.wait_for(lambda: self._pass is not before)
            assert self._pass is not None
            return self._pass

    def _begin_if_all_wait(self) -> None:
        if self._waiting and self._waiting >= self._members:
            self._pass = _Pass(super().blocks(), self._waiting)
            self._waiting = 0
            self._change.notify_all()


class _Pass:
    """One reading of a file, which goes on to the next block when all readers have asked for it."""

    def __init__(self, source: Iterator[Block], readers: int) -> None:
        self._source = source
        self._readers = readers
        self._change = Condition()
        self._asking = self._position = 0
        self._block: Block | None = None
        self._error: Exception | None = None

    def next_block(self) -> Block | None:
        with self._change:
            position = self._position
            self._asking += 1
            self._read_if_all_ask()
            self._change.wait_for(lambda: self._position > position)
            if self._error is not None:
                raise self._error
            return self._block

    def leave(self) -> None:
        with self._change:
            self._readers -= 1
            self._read_if_all_ask()

    def _read_if_all_ask(self) -> None:
        if self._asking and self._asking >= self._readers:
            try:
                self._block = next(self._source, None)
            except Exception as error:
                self._error = error
            self._asking = 0
            self._position += 1
            self._change.notify_all()
