"""Ctrl-C in a fit on a cluster.

Python drops an exception that a destructor raises, and with it an interrupt that comes while a
future of Dask is deleted.  A fit on a cluster deletes futures all the time.  So it keeps a note of
each interrupt, and its next wait raises the one that was dropped.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
