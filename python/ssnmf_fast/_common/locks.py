"""Locks that are free in a forked child, and waits that Ctrl-C ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:
        """`functools.cached_property` without the lock that it had for all instances of a class.

        Threads waited for each other, and a child that was forked meanwhile waited forever.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = vars(instance)[self.name] = self.compute(instance)
            return value


class ForkLock:
    """A lock for a module, free in a forked child."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def result_of(future: Future[Any]) -> Any:
    """Wait for a result; on Windows, Ctrl-C takes effect only between two waits."""
    while sys.platform == "win32" and not wait([future], 0.1).done:
        pass
    return future.result()
