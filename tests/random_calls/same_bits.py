"""Do random calls give the same bits for any number of threads, and wherever the arrays lie?

Every legal call of :mod:`functions` is made with 1, 2, 3 and 8 threads, each time with copies of
its arrays that begin at another distance from a whole line of the caches.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from random_calls import functions

THREADS = (1, 2, 3, 8)
SHIFTS = (0, 1, 3, 5)  # elements
LINE = 64  # bytes


def shifted(value: Any, shift: int) -> Any:
    """Return a copy whose arrays begin `shift` elements behind a whole line."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return _moved(value, shift)
    if sp.issparse(value) and value.format in ("csr", "csc"):
        parts = [_moved(part, shift) for part in (value.data, value.indices, value.indptr)]
        return type(value)(tuple(parts), shape=value.shape)
    if isinstance(value, (tuple, list)):
        return type(value)(shifted(part, shift) for part in value)
    if isinstance(value, dict):
        return {key: shifted(part, shift) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):  # weights
        copy = object.__new__(type(value))
        for part in fields(value):
            moved = shifted(getattr(value, part.name), shift)
            object.__setattr__(copy, part.name, moved)
        return copy
    return value


def _moved(array: npt.NDArray[Any], shift: int) -> npt.NDArray[Any]:
    item = array.itemsize
    room = np.empty(array.nbytes + 2 * LINE + shift * item, dtype=np.uint8)
    first = -room.ctypes.data % LINE + shift * item
    moved = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def judge(seed: int, case: int) -> tuple[str, str]:
    call = functions.make(seed, case, illegal=False)
    if call.illegal or call.name.startswith("damaged"):  # data that are refused
        return "refused", ""
    found = []
    first: dict[str, Any] | None = None
    for threads, shift in zip(THREADS, SHIFTS, strict=True):
        given = {name: shifted(value, shift) for name, value in call.arguments.items()}
        results = call.compute(given, threads)
        if first is None:
            first = results
            continue
        found += [
            f"{call.name}: {name} differs at {threads} threads, arrays moved by {shift}"
            for name, value in results.items()
            if np.asarray(value).tobytes() != np.asarray(first[name]).tobytes()
        ]
    return ("FAILED", "; ".join(found)) if found else ("right", "")
